(* What a stream holds for work that is pending, on the ways that launches take once they are warm: the
   simulator holds the work up while this looks. *)

open Cuda
open Support

let held s =
  let text = sexp (Stream.sexp_of_t s) in
  let rec find i =
    match
      Scanf.sscanf (String.sub text i (String.length text - i)) "(held %d)" Fun.id
    with
    | n -> n
    | exception _ -> find (i + 1)
  in
  find 0

let check_held what n s = Alcotest.(check int) ("held: " ^ what) n (held s)

let collect () =
  Gc.full_major ();
  Gc.full_major ();
  (* An ordinary call, which drains what was collected. *)
  ignore (Event.create ())

let graph_of s p = fst (Graph.with_capture ~mode:RELAXED s (fun () -> incr s p))

(* A stream that has done each kind of work before, and holds nothing. *)
let warm () =
  let s = stream () and p = device_ints 1 in
  let exec = Graph.instantiate (graph_of s p) in
  for _ = 1 to 2 do
    incr s p;
    Graph.launch exec s;
    Stream.synchronize s
  done;
  check_held "when idle" 0 s;
  (s, p, exec)

(* Each operand, once; asking does not let go of what is not done. *)
let operands () =
  let s, p, exec = warm () in
  let q = device_ints 1 and event = Event.create () in
  let cold = Graph.instantiate (graph_of s q) in
  Simulator.paused (fun () ->
      incr s p;
      check_held "the module and the memory" 2 s;
      incr s p;
      check_held "the same" 2 s;
      Graph.launch exec s;
      check_held "the exec" 3 s;
      Stream.memcpy_H_to_D ~dst:q ~src:(ints ~value:7 1) s;
      check_held "a bigarray and other memory" 5 s;
      Event.record event s;
      check_held "an event" 6 s;
      Graph.launch cold s;
      check_held "an exec that was never launched before" 7 s;
      Alcotest.(check bool) "not idle" false (Stream.is_ready s);
      check_held "still" 7 s);
  Stream.synchronize s;
  check_held "when done" 0 s;
  Alcotest.(check (list int)) "all was done" [ 7; 8 ] (read p @ read q)

(* Dropped while a launch is pending, the exec lives on. *)
let dropped_exec () =
  let s, p, exec = warm () in
  ignore (Sys.opaque_identity exec);
  collect ();
  let before = Simulator.live "exec" in
  let launch () =
    let exec = Graph.instantiate (graph_of s p) in
    Graph.launch exec s;
    Stream.synchronize s;
    Simulator.call "cusimPause";
    Graph.launch exec s
  in
  launch ();
  Fun.protect
    ~finally:(fun () -> Simulator.call "cusimResume")
    (fun () ->
      collect ();
      Alcotest.(check int) "while pending" (before + 1) (Simulator.live "exec"));
  Stream.synchronize s;
  collect ();
  Alcotest.(check int) "afterwards" before (Simulator.live "exec");
  ignore (Sys.opaque_identity exec)

(* A dropped stream waits for its work, and so does what that uses. *)
let dropped_stream () =
  collect ();
  let p = device_ints 1 in
  let streams = Simulator.live "stream" and gone = ref false in
  let enqueue () =
    let s = stream () and host = ints ~value:3 1 in
    Gc.finalise (fun _ -> gone := true) host;
    Stream.memcpy_H_to_D ~dst:p ~src:host s
  in
  Simulator.paused (fun () ->
      enqueue ();
      collect ();
      Alcotest.(check int) "the stream waits" (streams + 1) (Simulator.live "stream"));
  Context.synchronize ();
  Context.synchronize ();
  Alcotest.(check int) "and goes" streams (Simulator.live "stream");
  Alcotest.(check (list int)) "its work was done" [ 3 ] (read p)

(* A stream that is never waited for learns from its marks how far its work is: it lets go of what is
   done and of nothing else. *)
let marks () =
  let s, p, _ = warm () in
  let old = device_ints 1 and late = device_ints 1 and again = device_ints 1 in
  incr s old;
  incr s again;
  (* Enough for a mark. *)
  for _ = 1 to 200 do
    incr s p
  done;
  let done_ = Event.create () in
  Event.record done_ s;
  Event.synchronize done_;
  Simulator.paused (fun () ->
      incr s again;
      incr s late;
      for _ = 1 to 200 do
        incr s p
      done;
      check_held "the module, what is used again and what is new, and the event" 5 s);
  Stream.synchronize s;
  Alcotest.(check (list int))
    "all was done" [ 1; 2; 1 ]
    (List.concat_map (fun q -> read q) [ old; again; late ])

(* What a capture holds, also of a stream that joined it and was not known to capture. *)
let joined () =
  let a = stream () and b = stream () in
  let p = device_ints 1 and q = device_ints 1 in
  let forked = Event.create () and joined = Event.create () in
  let held_by graph = sexp (Graph.sexp_of_t graph) in
  let graph, () =
    Graph.with_capture a (fun () ->
        incr a p;
        Event.record forked a;
        Event.wait b forked;
        incr b q;
        Stream.memcpy_H_to_D ~dst:q ~src:(ints 1) b;
        Event.record joined b;
        Event.wait a joined)
  in
  (* The module, both memories, the bigarray, both events. *)
  Alcotest.(check bool) (held_by graph) true (contains (held_by graph) "(held 6)");
  check_held "nothing on the one stream" 0 a;
  check_held "on the other, the event by which it joined" 1 b

let () =
  start ();
  ignore (Lazy.force incr_kernel);
  let simulated name f = test name (fun () -> only_on_simulator f) in
  Alcotest.run "pending"
    [
      ( "held",
        [
          simulated "each operand" operands;
          simulated "a dropped exec" dropped_exec;
          simulated "a dropped stream" dropped_stream;
          simulated "what marks let go" marks;
          test "a stream that joined a capture" joined;
        ] );
      ("end", [ no_misuse ]);
    ]
