(* The program cudagraph, on the simulator and on drivers that do not work. *)

let beside file = Filename.concat (Filename.dirname Sys.executable_name) file
let tool = beside "../../ocaml/tool/main.exe"
let simulator = beside "../../sim/libcudagraph_sim.so"

let contains text part =
  let n = String.length part in
  let rec at i =
    i + n <= String.length text && (String.sub text i n = part || at (i + 1))
  in
  at 0

(* Output, errors and exit code of [cudagraph words], with these environment variables and no others
   that matter. *)
let run ?(variables = []) words =
  let ours variable =
    String.starts_with ~prefix:"CUDAGRAPH_" variable
    || String.starts_with ~prefix:"CUDA_" variable
  in
  let kept = List.filter (fun v -> not (ours v)) (Array.to_list (Unix.environment ())) in
  let channels =
    Unix.open_process_args_full tool
      (Array.of_list (tool :: words))
      (Array.of_list (variables @ kept))
  in
  let out, _, err = channels in
  let output = In_channel.input_all out and errors = In_channel.input_all err in
  match Unix.close_process_full channels with
  | WEXITED code -> (output, errors, code)
  | WSIGNALED n | WSTOPPED n -> Alcotest.failf "signal %d" n

(* [text] with indented lines joined to the one before: where those break depends on how long the
   path of the build folder is. *)
let joined text =
  let rec add before line =
    if String.starts_with ~prefix:"  " line then
      add before (String.sub line 1 (String.length line - 1))
    else if String.starts_with ~prefix:" " line then before ^ line
    else before ^ "\n" ^ line
  in
  match String.split_on_char '\n' text with
  | [] -> ""
  | first :: rest -> List.fold_left add first rest

let check_parts name text parts =
  let check part =
    Alcotest.(check bool)
      (Printf.sprintf "%s: %S has %S" name text part)
      true
      (contains (joined text) (joined part))
  in
  List.iter check parts

(* The output has [parts], nothing is written to the errors, and the exit code is [code]. *)
let check ?variables ~code words parts =
  let name = String.concat " " words in
  let output, errors, got = run ?variables words in
  check_parts name output parts;
  Alcotest.(check string) (name ^ ": errors") "" errors;
  Alcotest.(check int) (name ^ ": exit code") code got

let no_nvrtc = "CUDAGRAPH_NVRTC=/no/such/libnvrtc.so"

let bad_arguments () =
  let refused words reason =
    let name = String.concat " " words in
    let output, errors, code = run words in
    Alcotest.(check string) (name ^ ": output") "" output;
    check_parts name errors [ reason; "usage: cudagraph (info | doctor | bench)" ];
    Alcotest.(check int) (name ^ ": exit code") 2 code
  in
  refused [] "usage";
  refused [ "cure" ] "no command cure";
  refused [ "info"; "bench" ] "info takes no argument bench";
  refused [ "info"; "--fast" ] "no option --fast";
  refused [ "info"; "--driver" ] "--driver needs system, sim or a path";
  refused [ "info"; "--driver"; "--sexp" ] "--driver needs";
  refused [ "info"; "--driver=" ] "--driver needs"

let help () =
  List.iter
    (fun words -> check ~code:0 words [ "usage:"; "--driver DRIVER"; "Exit code" ])
    [ [ "--help" ]; [ "doctor"; "--help" ]; [ "-h" ] ];
  check ~code:0 [ "--version" ] [ "cudagraph 0." ]

(* Nobody reads the answer, or the disk is full. *)
let unwritable () =
  let shell command =
    let channel = Unix.open_process_in command in
    let text = In_channel.input_all channel in
    match Unix.close_process_in channel with
    | WEXITED code -> (text, code)
    | WSIGNALED n | WSTOPPED n -> Alcotest.failf "signal %d" n
  in
  let tool words = Filename.quote tool ^ " " ^ words in
  let refused text reason code =
    check_parts "an answer that cannot be written" text
      [ "cudagraph: the answer cannot be written: " ^ reason ];
    Alcotest.(check int) "exit code" 1 code
  in
  (if Sys.file_exists "/dev/full" then
     let text, code = shell (tool "info --driver sim" ^ " 3>&1 2>&3 >/dev/full") in
     refused text "No space left" code);
  let text, code = shell (tool "info --driver sim" ^ " 3>&1 2>&3 >&-") in
  refused text "Bad file descriptor" code;
  let text, _ = shell (tool "info --driver sim" ^ " | head -n 1") in
  Alcotest.(check int)
    ("one line: " ^ text) 2
    (List.length (String.split_on_char '\n' text))

let info () =
  check ~code:0 ~variables:[ no_nvrtc ]
    [ "info"; "--driver"; "sim" ]
    [ "driver "; "libcudagraph_sim.so, CUDA 13.0"; "NVRTC       none: nvrtc: "; no_nvrtc;
      "0       cudagraph simulator"; "compute" ];
  (* The variable chooses where the option does not. *)
  check ~code:0 ~variables:[ "CUDAGRAPH_DRIVER=sim" ] [ "info" ] [ "(CUDAGRAPH_DRIVER=sim)" ];
  check ~code:0
    ~variables:[ "CUDAGRAPH_DRIVER=/no/such" ]
    [ "info"; "--driver=sim" ] [ "(CUDAGRAPH_DRIVER=sim)" ];
  check ~code:0
    ~variables:[ "CUDAGRAPH_SIM_DEVICES=2" ]
    [ "info"; "--driver"; "sim" ]
    [ "\n0       cudagraph"; "\n1       cudagraph" ]
[@@ocamlformat "disable"]

let info_sexp () =
  check ~code:0 ~variables:[ no_nvrtc ]
    [ "info"; "--driver"; "sim"; "--sexp" ]
    [ "(chosen sim)"; "(version 13000)"; "(ordinal 0)"; "(compute_capability_major 9)";
      "(status NVRTC_NOT_FOUND)" ];
  check ~code:1
    [ "info"; "--driver"; "/no/such/driver.so"; "--sexp" ]
    [ "(chosen /no/such/driver.so)"; "(status CUDA_ERROR_SHARED_OBJECT_INIT_FAILED)";
      "(simulator" ]
[@@ocamlformat "disable"]

let info_without_driver () =
  check ~code:1
    [ "info"; "--driver"; "/no/such/driver.so" ]
    [
      "driver      none: cu_init: CUDAGRAPH_DRIVER=/no/such/driver.so cannot be used";
      "simulator   /";
    ]

(* A driver whose file has any name. *)
let info_of_a_copy () =
  let copy = Filename.temp_file "driver" ".so" in
  let text = In_channel.with_open_bin simulator In_channel.input_all in
  Out_channel.with_open_bin copy (fun file -> output_string file text);
  Fun.protect
    ~finally:(fun () -> Sys.remove copy)
    (fun () ->
      let text, _, _ = run [ "info"; "--driver"; copy ] in
      check_parts "info" text [ Printf.sprintf "driver      %s, CUDA 13.0" copy ];
      Alcotest.(check bool) "its version once" false (contains text "CUDA 13.0, CUDA"))
[@@ocamlformat "disable"]

let doctor () =
  check ~code:0 ~variables:[ no_nvrtc ]
    [ "doctor"; "--driver"; "sim" ]
    [ "ok     driver "; "ok     version "; "CUDA 13.0"; "ok     device ";
      "ok     a kernel runs    256 threads, result checked";
      "ok     a graph replays  2 kernels"; "absent NVRTC"; "-> Only programs that compile";
      "All is well. (CUDAGRAPH_DRIVER=sim)" ];
  check ~code:0 ~variables:[ no_nvrtc ]
    [ "doctor"; "--driver"; "sim"; "--sexp" ]
    [ "((check driver) (result ok)\n  (detail "; "((check NVRTC) (result absent)"; "(mend" ]
[@@ocamlformat "disable"]

let missing_driver () =
  check ~code:1 ~variables:[ no_nvrtc ]
    [ "doctor"; "--driver"; "/no/such/driver.so" ]
    [ "FAILED driver"; "-> Set CUDAGRAPH_DRIVER, or"; "-      a kernel runs    not checked";
      "ok     simulator"; "1 check failed." ];
  check ~code:1 ~variables:[ no_nvrtc; "CUDAGRAPH_SIM=/no/such/sim.so" ]
    [ "doctor"; "--driver"; "/no/such/driver.so" ]
    [ "FAILED simulator"; "or set CUDAGRAPH_SIM"; "2 checks failed." ];
  check ~code:1 ~variables:[ no_nvrtc; "CUDAGRAPH_SIM=/no/such/sim.so" ]
    [ "doctor"; "--driver"; "sim" ]
    [ "FAILED driver           cu_init: the simulator, CUDAGRAPH_DRIVER=sim, was not found";
      "-> libcudagraph_sim.so is installed with this package"; "1 check failed." ];
  let failure = { Tool.Failure.status = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"; message = "" } in
  check_parts "no driver in the system" (Tool.Advice.of_driver "system" failure)
    [ "Install the NVIDIA driver"; "set CUDAGRAPH_DRIVER=sim" ]
[@@ocamlformat "disable"]

let old_driver () =
  check ~code:1 ~variables:[ no_nvrtc ]
    [ "doctor"; "--driver"; beside "../old_driver.so" ]
    [ "FAILED driver"; "CUDA 11.4"; "-> Install a driver of CUDA 12.0 or newer" ]

let crashing_driver () =
  List.iter
    (fun command ->
      check ~code:1
        [ command; "--driver"; beside "crash.so" ]
        [ "the process crashed (SIGABRT)"; "simulator" ])
    [ "info"; "doctor" ]

let failing_steps () =
  let doctor rule parts =
    check ~code:1
      ~variables:[ no_nvrtc; "CUDAGRAPH_SIM_FAIL=" ^ rule ]
      [ "doctor"; "--driver"; "sim" ] parts
  in
  doctor "cuLaunchKernel@1=JIT_COMPILER_NOT_FOUND"
    [ "ok     device"; "FAILED a kernel runs"; "libnvidia-ptxjitcompiler";
      "-      a graph replays" ];
  (* Out of memory is met by a second attempt. *)
  doctor "cuGraphLaunch@3=OUT_OF_MEMORY,cuGraphLaunch@4=OUT_OF_MEMORY"
    [ "ok     a kernel runs"; "FAILED a graph replays"; "Other processes use" ];
  check ~code:1
    ~variables:[ no_nvrtc; "CUDAGRAPH_SIM_DEVICES=0"; "CUDA_VISIBLE_DEVICES=" ]
    [ "doctor"; "--driver"; "sim" ]
    [ "FAILED driver"; "CUDA_ERROR_NO_DEVICE"; "CUDA_VISIBLE_DEVICES= may hide" ]
[@@ocamlformat "disable"]

let bench () =
  check ~code:0 [ "bench"; "--driver"; "sim" ]
    [ "500 kernels one by one"; "500 kernels as one graph"; "times as fast"; "simulator" ];
  check ~code:0 [ "bench"; "--driver"; "sim"; "--sexp" ]
    [ "(kernels 500)"; "(one_by_one_us "; "(graph_call_us "; "(ratio " ];
  let variables = [ "CUDAGRAPH_SIM_FAIL=cuGraphLaunch@2=OUT_OF_MEMORY,cuGraphLaunch@3=OUT_OF_MEMORY" ] in
  let output, errors, code = run ~variables [ "bench"; "--driver"; "sim" ] in
  Alcotest.(check (pair string int)) "no times" ("", 1) (output, code);
  check_parts "the error" errors [ "cudagraph bench: cu_graph_launch"; "OUT_OF_MEMORY" ]
[@@ocamlformat "disable"]

(* Files of these names instead of the driver's. *)
let with_nodes names f =
  let folder = Filename.temp_dir "nodes" "" in
  let path = Filename.concat folder in
  List.iter (fun name -> Out_channel.with_open_bin (path name) ignore) names;
  Fun.protect
    (fun () -> f folder)
    ~finally:(fun () ->
      List.iter (fun name -> Sys.remove (path name)) names;
      Sys.rmdir folder)

let device_files () =
  let check_nodes names expected parts =
    with_nodes names (fun folder ->
        match Tool.Nodes.check ~folder () with
        | Ok found ->
            Alcotest.(check bool) found true expected;
            check_parts "found" found parts
        | Error (wrong, mend) ->
            Alcotest.(check bool) wrong false expected;
            check_parts "wrong" (wrong ^ mend) parts)
  in
  check_nodes [] false [ "no "; "nvidia0"; "nvidia-modprobe" ];
  check_nodes [ "nvidia0"; "nvidiactl" ] false [ "missing: "; "nvidia-uvm" ];
  check_nodes
    [ "nvidia0"; "nvidia12"; "nvidia-modeset"; "nvidiactl"; "nvidia-uvm" ]
    true
    [ "/nvidiactl, "; "/nvidia-uvm, "; "/nvidia0, "; "/nvidia12" ];
  check_nodes [ "dxg" ] true [ "/dxg" ];
  if Unix.geteuid () = 0 then print_endline "root may open every file: not checked"
  else
    with_nodes [ "nvidia0"; "nvidiactl"; "nvidia-uvm" ] (fun folder ->
        Unix.chmod (Filename.concat folder "nvidia0") 0o000;
        match Tool.Nodes.check ~folder () with
        | Ok _ -> Alcotest.fail "a closed file was opened"
        | Error (wrong, mend) ->
            check_parts "closed" (wrong ^ mend) [ "nvidia0"; "usermod" ])

(* What [Tool.Child] starts is this program: see the end of the file. *)
let children () =
  let run ?seconds task : (int, Tool.Failure.t) result = Tool.Child.run ?seconds task in
  Alcotest.(check bool) "its answer" true (run "answer" = Ok 42);
  let error ?seconds task =
    Tool.Failure.to_string (Result.get_error (run ?seconds task))
  in
  Alcotest.(check string) "its exception" "no more" (error "raise");
  Alcotest.(check string) "its exit code" "the process ended with code 3" (error "exit");
  Alcotest.(check string)
    "it hangs" "no answer within 0.5 s; it hangs" (error ~seconds:0.5 "hang")

let serve = function
  | "answer" -> Tool.Child.serve (fun () -> print_endline ""; 42)
  | "raise" -> Tool.Child.serve (fun () -> failwith "no more")
  | "hang" -> Unix.sleep 600
  | _ -> exit 3
[@@ocamlformat "disable"]

let layout () =
  let open Tool.Text in
  Alcotest.(check (list string))
    "columns" [ "a   n"; "bb  10" ]
    (table [ "a"; "n" ] [ [ "bb"; "10" ] ]);
  Alcotest.(check (list string))
    "to the right" [ "a    n"; "bb  10" ]
    (table ~right:[ "n" ] [ "a"; "n" ] [ [ "bb"; "10" ] ]);
  Alcotest.(check (list string)) "words" [ "one two"; "three" ] (wrap 7 "one two three");
  Alcotest.(check (list string))
    "sizes"
    [ "227 KiB"; "60.0 MiB"; "1.5 GiB" ]
    (List.map bytes [ 227 * 1024; 60 * 1024 * 1024; 1536 * 1024 * 1024 ])

let test name f = Alcotest.test_case name `Quick f

let tests () =
  Alcotest.run "tool"
    [
      ( "command line",
        [
          test "bad arguments" bad_arguments;
          test "help" help;
          test "an answer that cannot be written" unwritable;
        ] );
      ( "info",
        [
          test "text" info;
          test "s-expression" info_sexp;
          test "no driver" info_without_driver;
          test "a driver of another name" info_of_a_copy;
        ] );
      ( "doctor",
        [
          test "all is well" doctor;
          test "a missing driver" missing_driver;
          test "an old driver" old_driver;
          test "a driver that crashes" crashing_driver;
          test "each step" failing_steps;
          test "device files" device_files;
        ] );
      ("bench", [ test "times" bench ]);
      ("processes", [ test "answers, errors and none" children ]);
      ("text", [ test "layout" layout ]);
    ]

let () =
  match Sys.argv with
  | [| _; option; task |] when option = Tool.Child.option -> serve task
  | _ -> tests ()
