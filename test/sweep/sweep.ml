(* For each scenario: counts the driver calls that it makes, then runs it again once for each call,
   with that one call failing, and once for each call of the program with a collection after it.

   Each scenario runs in a process of its own, which says what it is about to try; if it dies or
   hangs, that was the culprit, and another process goes on behind it.

   sweep.exe [--sample N] [--seed N] [--scenario NAME]

   --sample N tries only N things for each scenario, chosen by the seed, which is printed. *)

open Support

let sample = ref max_int
let seed = ref 0
let only = ref ""
let worker = ref false
let first = ref 0
let patience = 60

let chosen scenario =
  let all = Array.of_list (Trial.troubles scenario) in
  (if Array.length all > !sample then
     let state = Random.State.make [| !seed; Hashtbl.hash (fst scenario) |] in
     for i = Array.length all - 1 downto 1 do
       let j = Random.State.int state (i + 1) in
       let x = all.(i) in
       all.(i) <- all.(j);
       all.(j) <- x
     done);
  Array.sub all 0 (min !sample (Array.length all))

(* In the worker. A line for each trial before it begins, and one with "!" for what went wrong. *)
let work scenario =
  start ();
  List.iter (fun f -> ignore (Lazy.force f)) [ incr_kernel; append_kernel ];
  Trial.check_healthy (stream ());
  ignore (Trial.calls scenario);
  let troubles = chosen scenario in
  Printf.printf "= %d\n%!" (Array.length troubles);
  let tried = ref 0 in
  for i = !first to Array.length troubles - 1 do
    let trouble = troubles.(i) in
    Printf.printf "%d %s\n%!" i (Trial.name trouble);
    ignore (Unix.alarm patience);
    (match Trial.run scenario trouble with
    | () -> ()
    | exception e -> Printf.printf "! %s\n%!" (Printexc.to_string e));
    Stdlib.incr tried
  done;
  exit 0

type outcome = { tried : int; wrong : string list }

let signal_name n =
  if n = Sys.sigalrm then "it hangs"
  else if n = Sys.sigsegv then "segmentation fault"
  else if n = Sys.sigabrt then "aborted"
  else Printf.sprintf "killed by signal %d" n

let rec supervise name ~first outcome =
  let arguments =
    [
      Sys.executable_name; "--worker"; "--scenario"; name; "--first"; string_of_int first;
      "--seed"; string_of_int !seed; "--sample"; string_of_int !sample;
    ]
    [@ocamlformat "disable"]
  in
  let out = Unix.open_process_args_in Sys.executable_name (Array.of_list arguments) in
  let rec follow last outcome =
    match In_channel.input_line out with
    | None -> (last, outcome)
    | Some line when line.[0] = '=' -> follow last outcome
    | Some line when line.[0] = '!' ->
        let what = Printf.sprintf "%s, %s: %s" name (snd last) line in
        follow last { outcome with wrong = what :: outcome.wrong }
    | Some line ->
        let at = String.index line ' ' in
        let number = int_of_string (String.sub line 0 at) in
        let what = String.sub line (at + 1) (String.length line - at - 1) in
        follow (number, what) { outcome with tried = outcome.tried + 1 }
  in
  let (number, what), outcome = follow (first - 1, "before the first trial") outcome in
  let died how =
    let text = Printf.sprintf "%s, %s: %s" name what how in
    let outcome = { outcome with wrong = text :: outcome.wrong } in
    if number < first then outcome else supervise name ~first:(number + 1) outcome
  in
  match Unix.close_process_in out with
  | WEXITED 0 -> outcome
  | WEXITED n -> died (Printf.sprintf "exit code %d" n)
  | WSIGNALED n | WSTOPPED n -> died (signal_name n)

let () =
  let usage = "sweep.exe [--sample N] [--seed N] [--scenario NAME]" in
  Arg.parse
    [
      ("--sample", Set_int sample, "N trials of each scenario at most");
      ("--seed", Set_int seed, "N which ones");
      ("--scenario", Set_string only, "NAME this one alone");
      ("--worker", Set worker, " used by the program itself");
      ("--first", Set_int first, " likewise");
    ]
    (fun text -> raise (Arg.Bad text))
    usage;
  let scenarios =
    List.filter (fun (name, _) -> !only = "" || name = !only) (Scenarios.all @ Others.all)
  in
  if scenarios = [] then failwith ("no such scenario: " ^ !only);
  if !worker then work (List.hd scenarios);
  let began = Unix.gettimeofday () in
  let outcomes =
    List.map
      (fun (name, _) ->
        let began = Unix.gettimeofday () in
        let outcome = supervise name ~first:0 { tried = 0; wrong = [] } in
        let seconds = Unix.gettimeofday () -. began in
        Printf.printf "%-32s %6d trials, %d wrong, %.1f s\n%!" name outcome.tried
          (List.length outcome.wrong) seconds;
        List.iter (Printf.printf "  %s\n%!") (List.rev outcome.wrong);
        outcome)
      scenarios
  in
  let total f = List.fold_left (fun sum outcome -> sum + f outcome) 0 outcomes in
  let wrong = total (fun o -> List.length o.wrong) in
  Printf.printf "sweep: %d trials of %d scenarios, %d wrong, seed %d, %.0f s\n"
    (total (fun o -> o.tried))
    (List.length scenarios) wrong !seed
    (Unix.gettimeofday () -. began);
  if wrong > 0 then exit 1
