(* Choosing, missing and broken drivers; exit and fork. Each in a process of its own. *)

open Support

let probe = Filename.concat (Filename.dirname Sys.executable_name) "probe.exe"

(* Output, errors and exit code of the probe doing [what] on [driver]. *)
let run ?driver what =
  let driver =
    match driver with
    | Some d -> d
    | None -> Option.value ~default:"sim" (Sys.getenv_opt "CUDAGRAPH_DRIVER")
  in
  let env =
    Array.append
      [| "CUDAGRAPH_DRIVER=" ^ driver |]
      (Array.of_list
         (List.filter
            (fun v -> not (String.starts_with ~prefix:"CUDAGRAPH_DRIVER=" v))
            (Array.to_list (Unix.environment ()))))
  in
  let channels = Unix.open_process_args_full probe [| probe; what |] env in
  let out, _, err = channels in
  let output = In_channel.input_all out and errors = In_channel.input_all err in
  let code =
    match Unix.close_process_full channels with
    | WEXITED n -> n
    | WSIGNALED n | WSTOPPED n -> -n
  in
  (output, errors, code)

let check_output name parts (output, errors, code) =
  List.iter
    (fun part ->
      Alcotest.(check bool)
        (Printf.sprintf "%s: %S names %S" name output part)
        true (contains output part))
    parts;
  Alcotest.(check string) (name ^ ": no noise") "" errors;
  Alcotest.(check int) (name ^ ": exit code") 0 code

let missing = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED cu_init: "

let no_driver () =
  check_output "a path that is not there"
    [
      missing;
      "CUDAGRAPH_DRIVER=/no/such/driver.so cannot be used";
      "CUDAGRAPH_DRIVER=sim";
    ]
    (run ~driver:"/no/such/driver.so" "init");
  let garbage = Filename.temp_file "driver" ".so" in
  Out_channel.with_open_bin garbage (fun file -> output_string file "this is no library");
  check_output "a file that is no library"
    [ missing; garbage; "(" ^ garbage ^ ": " ]
    (run ~driver:garbage "init");
  Sys.remove garbage;
  check_output "a library that is no driver"
    [ missing; "it has no cuInit" ]
    (run ~driver:"libm.so.6" "init")

let old_driver () =
  let driver = Filename.concat (Filename.dirname Sys.executable_name) "old_driver.so" in
  if Sys.file_exists driver then
    check_output "a driver of CUDA 11.4"
      [ "CUDA_ERROR_NOT_SUPPORTED cu_init: "; "CUDA 11.4"; "too old"; "cuMemAlloc_v2" ]
      (run ~driver "init")
  else print_endline "skipped: old_driver.so is not beside this program"

(* The path of the driver of CUDA 12.0, where it was built. *)
let with_12_0 f =
  let path = Filename.concat (Filename.dirname Sys.executable_name) "simulator_12_0.so" in
  if Sys.file_exists path then f path
  else print_endline "skipped: simulator_12_0.so is not beside this program"

let oldest_driver () =
  with_12_0 (fun driver ->
      check_output "a driver of CUDA 12.0"
        [
          "version 12000\n";
          "an attribute of 12.1: false\n";
          "after 3 launches: 3\n";
          "missing ones are 0: 3\n";
        ]
        (run ~driver "12.0"))

(* A copy of the driver in which the function has another name. *)
let without name driver =
  let text = In_channel.with_open_bin driver In_channel.input_all in
  let symbol = "\000" ^ name ^ "\000" in
  let rec find i =
    if String.sub text i (String.length symbol) = symbol then i else find (i + 1)
  in
  let bytes = Bytes.of_string text in
  Bytes.set bytes (find 0 + 1) 'x';
  let copy = Filename.temp_file ~temp_dir:(Filename.dirname driver) "driver" ".so" in
  Out_channel.with_open_bin copy (fun file -> output_bytes file bytes);
  copy

let missing_function () =
  with_12_0 (fun driver ->
      List.iter
        (fun name ->
          let driver = without name driver in
          Fun.protect
            (fun () ->
              check_output ("without " ^ name)
                [
                  "CUDA_ERROR_NOT_SUPPORTED cu_init: the driver (CUDA 12.0) is too old: it has \
                   no " ^ name ^ ";";
                ]
                (run ~driver "init"))
            ~finally:(fun () -> Sys.remove driver))
        [
          "cuCtxCreate_v2"; "cuFuncGetModule"; "cuGraphInstantiateWithFlags"; "cuMemAllocAsync";
          "cuStreamGetCaptureInfo_v2"; "cuStreamGetId"; "cuUserObjectCreate";
        ])
[@@ocamlformat "disable"]

let before_init () =
  check_output "before init"
    [ "CUDA_ERROR_NOT_INITIALIZED cu_device_get_count: Cuda.init was not called";
      "CUDA_ERROR_NOT_INITIALIZED cu_stream_create" ]
    (run "before-init")
[@@ocamlformat "disable"]

let no_device () =
  if Option.value ~default:"sim" (Sys.getenv_opt "CUDAGRAPH_DRIVER") <> "sim" then
    print_endline "skipped: only the simulator can have no device"
  else (
    Unix.putenv "CUDAGRAPH_SIM_DEVICES" "0";
    let result = run ~driver:"sim" "init" in
    Unix.putenv "CUDAGRAPH_SIM_DEVICES" "1";
    check_output "no device" [ "CUDA_ERROR_NO_DEVICE cu_init" ] result)

let leaving () =
  let check what code noise =
    let _, errors, got = run what in
    Alcotest.(check int) (what ^ ": exit code") code got;
    Alcotest.(check bool) (what ^ ": " ^ errors) true (noise errors)
  in
  let began = Unix.gettimeofday () in
  check "return" 0 (( = ) "");
  (* The runtime takes itself down at the end. *)
  let usual = Option.value ~default:"" (Sys.getenv_opt "OCAMLRUNPARAM") in
  Unix.putenv "OCAMLRUNPARAM" (usual ^ ",c");
  check "return" 0 (( = ) "");
  Unix.putenv "OCAMLRUNPARAM" usual;
  check "exit-3" 3 (( = ) "");
  check "exit-in-domain" 4 (( = ) "");
  check "terminated" (-Sys.sigterm) (( = ) "");
  check "uncaught" 2 (fun errors -> contains errors "Failure(\"uncaught\")");
  let seconds = Unix.gettimeofday () -. began in
  Alcotest.(check bool) (Printf.sprintf "in %.1f s" seconds) true (seconds < 30.)

let forked () =
  let output, errors, code = run "fork" in
  Alcotest.(check (pair string int)) "no noise" ("", 0) (errors, code);
  match String.split_on_char '\n' (String.trim output) with
  | [ launch; free; init; parent ] ->
      List.iter
        (fun text ->
          Alcotest.(check bool)
            text true
            (contains text "CUDA_ERROR_NOT_INITIALIZED" && contains text "forked"))
        [ launch; free; init ];
      Alcotest.(check string) "the parent goes on" "ok" parent
  | _ -> Alcotest.failf "unexpected output: %s" output

let wild () =
  let output, errors, code = run "wild" in
  Alcotest.(check int) "exit code" 0 code;
  (match String.split_on_char '\n' (String.trim output) with
  | wait :: launch :: allocate :: destroy :: rest ->
      List.iter
        (fun text ->
          Alcotest.(check bool) text true (contains text "CUDA_ERROR_ILLEGAL_ADDRESS"))
        [ wait; launch; allocate ];
      Alcotest.(check string) "what is left can be destroyed" "ok" destroy;
      (* Measured: the driver does not recover in this process. *)
      Alcotest.(check (list string))
        "dead for good"
        [
          "usable false";
          "failed releases 0";
          "CUDA_ERROR_ILLEGAL_ADDRESS cu_device_primary_ctx_retain";
        ]
        rest
  | _ -> Alcotest.failf "unexpected output: %s" output);
  if Option.value ~default:"sim" (Sys.getenv_opt "CUDAGRAPH_DRIVER") = "sim" then
    List.iter
      (fun part -> Alcotest.(check bool) errors true (contains errors part))
      [ "wild"; "illegal address"; "writing 4 bytes"; "at 0x10" ]

let () =
  Alcotest.run "driver"
    [
      ( "missing",
        [
          test "no driver" no_driver;
          test "an old driver" old_driver;
          test "the oldest driver" oldest_driver;
          test "a missing function" missing_function;
          test "no device" no_device;
        ] );
      ("init", [ test "calls before it" before_init ]);
      ("fault", [ test "a kernel writes outside" wild ]);
      ("end", [ test "every way out" leaving; test "fork" forked ]);
    ]
