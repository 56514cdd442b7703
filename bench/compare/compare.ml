(* compare.exe [--smoke] [--rounds N] [--threads N] [--only MEASURE] [--python PYTHON] [--out FOLDER]

   Runs the OCaml program beside the floor, and then the Python peers beside the floor, interleaved: each burst
   of one is followed by the same burst of the others, so that all see the same clocks of CPU and GPU. Writes
   results.tsv, table.md and chart.svg. *)

open Bench_report

let smoke = ref false
let rounds = ref 12
let threads = ref 8
let only = ref ""
let python = ref "python3"
let out = ref "."
let peers = ref true

let options =
  [
    ("--smoke", Arg.Set smoke, " few calls, to see that all of it works");
    ( "--rounds",
      Arg.Set_int rounds,
      "N start the programs anew N times (12); the peers a third of it" );
    ("--threads", Arg.Set_int threads, "N threads of the part with several (8; 1: none)");
    ("--only", Arg.Set_string only, "MEASURE one measure alone, as launch_5");
    ("--python", Arg.Set_string python, "PYTHON for the peers (python3)");
    ("--no-peers", Arg.Clear peers, " without the Python peers");
    ("--out", Arg.Set_string out, "FOLDER for the results (.)");
  ]

let beside name = Filename.concat (Filename.dirname Sys.executable_name) name
let say fmt = Printf.ksprintf (fun line -> print_endline line) fmt

type program = { label : string; path : string; arguments : string list }

let serving threads label name =
  { label; path = beside name; arguments = [ "serve"; string_of_int threads ] }

let floor threads = serving threads Result.floor "floor"
let ours threads = serving threads Result.ours "worker"

let python_exists () =
  Sys.command
    (Filename.quote_command !python [ "--version" ] ~stdout:"/dev/null"
       ~stderr:"/dev/null")
  = 0

let peer_programs () =
  if not !peers then []
  else if not (python_exists ()) then (
    say "skipped the Python peers: there is no %s" !python;
    [])
  else
    let peer label =
      { label; path = !python; arguments = [ beside "peers.py"; label ] }
    in
    List.map peer [ "cupy"; "pytorch"; "cuda.core" ]

let skipped = Hashtbl.create 4
let drivers = Hashtbl.create 4

(* A peer that is not there, or breaks down, is left out, which is said once. *)
let skip label why =
  Hashtbl.add skipped label ();
  say "skipped %s: %s" label why

let is_ours label = label = Result.floor || label = Result.ours

let start { label; path; arguments } =
  if Hashtbl.mem skipped label then None
  else
    match Worker.start ~label path arguments with
    | Ready (worker, description) ->
        if not (Hashtbl.mem drivers label) then (
          Hashtbl.add drivers label description;
          say "%s: %s" label description);
        Some worker
    | Unavailable reason ->
        skip label reason;
        None
    | exception Failure why when not (is_ours label) ->
        skip label why;
        None

let ask (worker : Worker.t) (measure : Measure.t) =
  if Hashtbl.mem skipped worker.label then None
  else
    match Worker.ask worker measure.name measure.count with
    | Some answer -> Some (worker.label, answer)
    | None -> None
    | exception ((Failure why | Sys_error why) as error) ->
        if is_ours worker.label then raise error;
        skip worker.label why;
        None

let finish (worker : Worker.t) =
  if not (Hashtbl.mem skipped worker.label) then Worker.finish worker

(* One burst of each program, each time another one first. *)
let burst workers (measure : Measure.t) turn =
  let count = List.length workers in
  let order = List.init count (fun i -> List.nth workers ((i + turn) mod count)) in
  List.filter_map (fun worker -> ask worker measure) order

(* Starts the programs, and has the bursts of each measure. *)
let round programs measures record =
  let workers = List.filter_map start programs in
  List.iter
    (fun (measure : Measure.t) ->
      (* What is made at the first request, and code that is loaded, is not looked at. *)
      ignore (burst workers measure 0);
      record measure
        (List.init measure.bursts (fun turn -> burst workers measure (turn + 1))))
    measures;
  List.iter finish workers

(* All rows of [measures] at this number of threads. *)
let run ~rounds ~threads programs measures =
  let found = Hashtbl.create 64 in
  let record (measure : Measure.t) bursts =
    let of_program label =
      match List.filter_map (List.assoc_opt label) bursts with
      | [] -> ()
      | answers -> Hashtbl.add found (measure.name, label) (Result.round answers)
    in
    List.iter (fun { label; _ } -> of_program label) programs
  in
  for _ = 1 to rounds do
    round programs measures record
  done;
  let row (measure : Measure.t) { label; _ } =
    let rounds label = List.rev (Hashtbl.find_all found (measure.name, label)) in
    match rounds label with
    | [] -> None
    | mine ->
        Some (Result.row measure ~threads ~program:label mine ~base:(rounds Result.floor))
  in
  List.concat_map (fun measure -> List.filter_map (row measure) programs) measures

(* Every measure must have a line of both of our programs. *)
let check ~threads measures rows =
  List.iter
    (fun (measure : Measure.t) ->
      List.iter
        (fun program ->
          match Result.find rows ~measure:measure.name ~threads ~program with
          | Some row when row.ns.median > 0.0 -> ()
          | _ -> Printf.ksprintf failwith "%s: no time of %s" program measure.name)
        [ Result.floor; Result.ours ])
    measures

let write name text =
  if not (Sys.file_exists !out) then Sys.mkdir !out 0o755;
  let path = Filename.concat !out name in
  Out_channel.with_open_bin path (fun file -> output_string file text)

let today () =
  let t = Unix.gmtime (Unix.time ()) in
  Printf.sprintf "%d-%02d-%02d" (t.tm_year + 1900) (t.tm_mon + 1) t.tm_mday

let main () =
  Arg.parse (Arg.align options)
    (fun extra -> raise (Arg.Bad ("what is " ^ extra ^ "?")))
    "compare.exe [OPTION]...";
  if !rounds < 1 then failwith "--rounds: at least 1";
  if !threads < 1 || !threads > 64 then failwith "--threads: from 1 to 64";
  (* A worker that dies is reported where its answer is missing. *)
  Sys.set_signal Sys.sigpipe Signal_ignore;
  if !smoke then rounds := 1;
  let measures = if !smoke then List.map Measure.smoke Measure.all else Measure.all in
  let wanted (measure : Measure.t) = !only = "" || measure.name = !only in
  let measures = List.filter wanted measures in
  if measures = [] then failwith ("--only: there is no measure " ^ !only);
  let begun = Unix.gettimeofday () in
  let alone = run ~rounds:!rounds ~threads:1 [ floor 1; ours 1 ] measures in
  check ~threads:1 measures alone;
  let peers =
    match peer_programs () with
    | [] -> []
    | peers ->
        let rounds = (!rounds + 2) / 3 in
        run ~rounds ~threads:1 (floor 1 :: peers) measures
        |> List.filter (fun (row : Result.row) -> row.program <> Result.floor)
  in
  let together =
    if !threads = 1 then []
    else
      let measures = List.filter_map Measure.shared measures in
      let programs = [ floor !threads; ours !threads ] in
      let rows = run ~rounds:!rounds ~threads:!threads programs measures in
      check ~threads:!threads measures rows;
      rows
  in
  let rows = alone @ peers @ together in
  let driver = try Hashtbl.find drivers Result.ours with Not_found -> "" in
  let subtitle = Printf.sprintf "%s; %s" driver (today ()) in
  write "results.tsv" (Result.tsv rows);
  write "table.md" (Result.table rows);
  write "chart.svg" (Chart.svg ~subtitle rows);
  print_newline ();
  print_string (Result.table rows);
  say "\nbench: %d lines in %.0f s, in results.tsv, table.md and chart.svg"
    (List.length rows)
    (Unix.gettimeofday () -. begun)

let () =
  try main ()
  with Failure why | Sys_error why ->
    prerr_endline ("bench: " ^ why);
    exit 1
