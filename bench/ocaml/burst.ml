(* One burst of a measure: its time and what it allocated, for each call. *)

type t = { ns : float; minor_words : float; major_words : float }

let mean bursts =
  let sum part = List.fold_left (fun sum burst -> sum +. part burst) 0.0 bursts in
  let mean part = sum part /. float_of_int (List.length bursts) in
  {
    ns = mean (fun b -> b.ns);
    minor_words = mean (fun b -> b.minor_words);
    major_words = mean (fun b -> b.major_words);
  }

let major_words () =
  let _, _, words = Gc.counters () in
  words

(* [ready] is called after the warm-up, right before the time begins. *)
let run (measure : Work.measure) count ~ready =
  measure.run (max 1 (count / 10));
  measure.settle ();
  let major = major_words () in
  ready ();
  let minor = Gc.minor_words () in
  let start = Clock.now () in
  measure.run count;
  let stop = Clock.now () in
  let minor = Gc.minor_words () -. minor in
  let major = major_words () -. major in
  measure.settle ();
  let calls = float_of_int (count * measure.parts) in
  {
    ns = float_of_int (stop - start) /. calls;
    minor_words = minor /. calls;
    major_words = major /. calls;
  }
