(* Random programs against a model of memory: streams, events, graphs, captures of every mode and
   every end, drops and collections, on 1 to 4 domains.

   CUDAGRAPH_MODEL_PROGRAMS says how many (10000), CUDAGRAPH_MODEL_SEED which (a new one each time, printed). A
   program that fails is made smaller and printed. The programs are run by a second process, so one
   that crashes or hangs is known too. *)

open Support

let programs =
  match Sys.getenv_opt "CUDAGRAPH_MODEL_PROGRAMS" with
  | Some n -> int_of_string n
  | None -> 10_000

let seed =
  match Sys.getenv_opt "CUDAGRAPH_MODEL_SEED" with
  | Some n -> int_of_string n
  | None ->
      Random.self_init ();
      Random.int 1_000_000_000

let patience = 60

(* Holds the program that is under way, for whoever finds this process dead. *)
let note = "model-program.txt"

let write_note text =
  let out = open_out note in
  output_string out text;
  close_out out

let holds before program =
  let plan = Plan.of_program program in
  write_note (Show.program plan);
  ignore (Unix.alarm patience);
  match Execute.program ~before plan with
  | None -> true
  | Some text ->
      (* What is left of this program would be blamed on each smaller one. *)
      if not (Execute.is_settled before) then (
        Printf.printf "model: %s\nand the process is of no use after\n%s\n%!" text
          (Show.program plan);
        exit 1);
      QCheck.Test.fail_report text

let print program = "\n" ^ Show.program (Plan.of_program program)

let work () =
  start ();
  Execute.before_all ();
  ignore (Execute.live ());
  let before = Execute.live () in
  let arbitrary = QCheck.make ~print ~shrink:Program.shrink Program.generate in
  let test =
    QCheck.Test.make ~name:"programs do what the model says" ~count:programs arbitrary
      (holds before)
  in
  let rand = Random.State.make [| seed |] in
  let outcome =
    QCheck_base_runner.run_tests ~colors:false ~verbose:false ~rand [ test ]
  in
  exit outcome

let () =
  if Array.mem "--worker" Sys.argv then work ();
  Printf.printf "model: %d programs, CUDAGRAPH_MODEL_SEED=%d\n%!" programs seed;
  Unix.putenv "CUDAGRAPH_MODEL_SEED" (string_of_int seed);
  let began = Unix.gettimeofday () in
  let worker =
    Unix.create_process Sys.executable_name
      [| Sys.executable_name; "--worker" |]
      Unix.stdin Unix.stdout Unix.stderr
  in
  let died how =
    Printf.printf "model: the process %s in\n%s\n%!" how
      (In_channel.with_open_text note In_channel.input_all);
    exit 1
  in
  match snd (Unix.waitpid [] worker) with
  | WEXITED 0 ->
      Printf.printf "model: all right, %.0f s\n" (Unix.gettimeofday () -. began);
      Sys.remove note
  | WEXITED _ -> exit 1
  | WSIGNALED n when n = Sys.sigalrm -> died "hung"
  | WSIGNALED n | WSTOPPED n -> died (Printf.sprintf "was killed by signal %d" n)
