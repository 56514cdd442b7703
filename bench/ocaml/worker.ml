(* The OCaml side of the comparison.

   worker.exe serve THREADS: for each line "MEASURE COUNT" on standard input, makes a burst of calls and
   answers "NS MINOR MAJOR": nanoseconds and allocated words for one call.
   worker.exe once MEASURE COUNT: makes the calls and ends, for counting instructions. *)

let answer (burst : Burst.t) =
  Printf.printf "%.2f %.3f %.3f\n%!" burst.ns burst.minor_words burst.major_words

let serve run =
  let device = Cuda.Device.(get_attributes (get ~ordinal:0)).name in
  Printf.printf "ready %s, %s\n%!" device (Cuda.driver_description ());
  let rec next () =
    match In_channel.input_line stdin with
    | None -> ()
    | Some line ->
        answer (Scanf.sscanf line "%s %d" run);
        next ()
  in
  next ()

let serve_alone () =
  let w = Work.create () in
  let measures = Hashtbl.create 32 in
  serve (fun name count ->
      let measure =
        match Hashtbl.find_opt measures name with
        | Some measure -> measure
        | None ->
            let measure = Work.find w name in
            Hashtbl.add measures name measure;
            measure
      in
      Burst.run measure count ~ready:ignore)

let serve_together threads =
  let team, domains = Team.create threads in
  serve (Team.run team);
  Team.finish (team, domains)

let once name count =
  let measure = Work.find (Work.create ()) name in
  measure.run count;
  measure.settle ()

let () =
  try
    Cuda.init ();
    match Sys.argv with
    | [| _; "serve"; "1" |] -> serve_alone ()
    | [| _; "serve"; threads |] -> serve_together (int_of_string threads)
    | [| _; "once"; name; count |] -> once name (int_of_string count)
    | _ -> failwith "usage: worker.exe serve THREADS | once MEASURE COUNT"
  with error -> Team.fail error
