(* Finding NVRTC, and what happens where there is none. *)

open Support
open Nvrtc_support
open Cuda
module Program = Nvrtc.Program

(* Without a library, in a process of its own: this program with an argument. *)

let child_argument = "without-nvrtc"

let child () =
  let report what f =
    match f () with
    | () -> Printf.printf "%s: no error\n" what
    | exception Nvrtc.Nvrtc_error { status; message } ->
        let message = String.map (function '\n' -> ' ' | c -> c) message in
        Printf.printf "%s: %s: %s\n" what (nvrtc_status status) message
  in
  let source = "extern \"C\" __global__ void k() {}" in
  report "version" (fun () -> ignore (Nvrtc.version ()));
  report "architectures" (fun () -> ignore (Nvrtc.supported_architectures ()));
  report "folders" (fun () -> ignore (Nvrtc.include_folders ()));
  report "cudajit's" (fun () ->
      ignore
        (Nvrtc.compile_to_ptx ~cu_src:source ~name:"k.cu" ~options:[] ~with_debug:false));
  report "program" (fun () -> ignore (Program.compile source));
  report "half" (fun () -> ignore (Program.compile ("#include <cuda_fp16.h>\n" ^ source)));
  match Nvrtc.library () with
  | library -> Printf.printf "library: %s\n" library
  | exception Nvrtc.Nvrtc_error _ -> ()

(* The lines of [child] in this environment, beside what is there. *)
let without environment =
  let named (name, _) binding = String.starts_with ~prefix:(name ^ "=") binding in
  let kept binding =
    not (List.exists (fun variable -> named variable binding) environment)
  in
  let environment =
    Array.append
      (Array.of_list (List.map (fun (name, value) -> name ^ "=" ^ value) environment))
      (Array.of_list (List.filter kept (Array.to_list (Unix.environment ()))))
  in
  let program = Sys.executable_name in
  let ((out, _, err) as channels) =
    Unix.open_process_args_full program [| program; child_argument |] environment
  in
  let output = In_channel.input_all out and errors = In_channel.input_all err in
  Alcotest.(check bool) "exit" true (Unix.close_process_full channels = WEXITED 0);
  Alcotest.(check string) "no noise" "" errors;
  let lines = String.split_on_char '\n' (String.trim output) in
  Alcotest.(check bool) output true (List.length lines >= 6);
  lines

let missing () =
  let garbage = Filename.temp_file "libnvrtc" ".so" in
  Out_channel.with_open_bin garbage (fun file -> output_string file "this is no library");
  List.iter
    (fun (chosen, reason) ->
      List.iter
        (fun line ->
          check_parts chosen line
            [ ": NVRTC_NOT_FOUND: nvrtc: "; "CUDAGRAPH_NVRTC=" ^ chosen; reason ])
        (without [ ("CUDAGRAPH_NVRTC", chosen) ]))
    [
      ("/nonexistent/libnvrtc.so", "no such file");
      (garbage, "file too short");
      ("libm.so.6", "it has no nvrtcVersion");
      ("libnvrtc-none.so", "cannot open shared object file");
    ];
  Sys.remove garbage

let nothing_anywhere () =
  let nowhere = "/nonexistent" in
  let lines =
    without
      (("CUDAGRAPH_NVRTC", "")
      :: List.map
           (fun name -> (name, nowhere))
           [
             "CUDA_PATH";
             "CUDA_HOME";
             "VIRTUAL_ENV";
             "CONDA_PREFIX";
             "PATH";
             "PYTHONPATH";
             "HOME";
           ])
  in
  if List.exists (fun line -> contains line "no error") lines then
    print_endline "skipped: this system has an NVRTC"
  else
    List.iter
      (fun line ->
        check_parts "nothing" line
          [
            "NVRTC_NOT_FOUND";
            "CUDA_PATH=/nonexistent";
            "libnvrtc.so.13 of the system";
            "libnvrtc.so.12";
            "/usr/local/cuda";
            "no python3";
            "pip";
            "nvidia-cuda-nvrtc-cu12";
            "set CUDAGRAPH_NVRTC";
          ])
      lines

let bad_arguments () =
  let where = "Nvrtc.Program.compile" and nul = "a\000b" in
  let refused name parts f = check_invalid name (where :: parts) f in
  refused "source" [ "source has a NUL at byte 1 of 3" ] (fun () -> Program.compile nul);
  refused "name" [ "name has a NUL" ] (fun () -> Program.compile ~name:nul "");
  refused "option" [ "option 1 has a NUL" ] (fun () ->
      Program.compile ~options:[ "-G"; nul ] "");
  refused "header" [ "header 0 has a NUL" ] (fun () ->
      Program.compile ~headers:[ ("a.h", nul) ] "");
  refused "header's name" [ "name of header 0" ] (fun () ->
      Program.compile ~headers:[ (nul, "") ] "");
  refused "expression" [ "name expression 0" ] (fun () ->
      Program.compile ~expressions:[ nul ] "");
  List.iter
    (fun wrong ->
      refused "architecture"
        [ Printf.sprintf "architecture %S" wrong; "sm_90" ]
        (fun () -> Program.compile ~target:(CUBIN wrong) ""))
    [ ""; "90"; "compute_90"; "sm_9"; "sm_-90"; "sm_90 "; "SM_90" ];
  List.iter
    (fun options ->
      refused "two architectures"
        [ "option \"" ^ List.hd options; "target CUBIN" ]
        (fun () -> Program.compile ~target:(CUBIN "sm_80") ~options ""))
    [ [ "-arch=sm_90" ]; [ "-arch"; "sm_90" ]; [ "--gpu-architecture=compute_80" ] ];
  check_invalid "cudajit's" [ "Nvrtc.compile_to_ptx: source has a NUL" ] (fun () ->
      Nvrtc.compile_to_ptx ~cu_src:nul ~name:"k.cu" ~options:[] ~with_debug:true)

let results () =
  let check text =
    let result = Nvrtc.of_ptx text in
    Alcotest.(check string) "kept" text (Nvrtc.string_from_ptx result);
    Alcotest.(check int) "its length" (String.length text) result.ptx_length;
    Alcotest.(check char)
      "a NUL follows" '\000'
      Ctypes.(!@(result.ptx +@ result.ptx_length))
  in
  List.iter check [ ""; "a text"; "\127ELF\000\000binary\000" ];
  Alcotest.(check string)
    "sexp" "((log())(ptx <opaque>)(ptx_length 3))"
    (sexp (Nvrtc.sexp_of_compile_to_ptx_result (Nvrtc.of_ptx "abc")))

let the_library () =
  let major, minor = Nvrtc.version () in
  let version = Printf.sprintf "%d.%d" major minor in
  Option.iter
    (fun wanted -> Alcotest.(check string) "the wanted version" wanted version)
    wanted;
  Alcotest.(check bool) version true (major >= 12);
  Alcotest.(check bool) (Nvrtc.library ()) true (Sys.file_exists (Nvrtc.library ()));
  let architectures = Nvrtc.supported_architectures () in
  Alcotest.(check (list int))
    "in order"
    (List.sort_uniq compare architectures)
    architectures;
  List.iter
    (fun n -> Alcotest.(check bool) (string_of_int n) true (List.mem n architectures))
    [ 80; 90 ];
  List.iter
    (fun folder ->
      Alcotest.(check bool) folder true (Sys.is_directory folder);
      Alcotest.(check bool)
        "of this version" true
        (Filename.basename folder = "cccl"
        || Sys.file_exists (Filename.concat folder "cuda_fp16.h")))
    (Nvrtc.include_folders ())

(* The NVRTC in use is found in a Python environment too, if it was installed by pip. *)
let in_python () =
  let rec up n path = if n = 0 then path else up (n - 1) (Filename.dirname path) in
  let packages = up 4 (Nvrtc.library ()) in
  if Filename.basename (up 3 (Nvrtc.library ())) <> "nvidia" then
    print_endline "skipped: this NVRTC was not installed by pip"
  else
    in_folder @@ fun root ->
    let folder names = List.fold_left Filename.concat root names in
    List.iter
      (fun names -> Sys.mkdir (folder names) 0o755)
      [ [ "bin" ]; [ "lib" ]; [ "lib"; "python3.12" ] ];
    Unix.symlink packages (folder [ "lib"; "python3.12"; "site-packages" ]);
    (* Not a script, so it is taken for Python. *)
    Unix.symlink Sys.executable_name (folder [ "bin"; "python3" ]);
    let elsewhere =
      List.map
        (fun name -> (name, ""))
        [
          "CUDAGRAPH_NVRTC";
          "CUDA_PATH";
          "CUDA_HOME";
          "CONDA_PREFIX";
          "PYTHONPATH";
          "HOME";
        ]
    in
    List.iter
      (fun active ->
        let lines = without (active @ elsewhere) in
        let library = List.nth lines (List.length lines - 1) in
        if not (contains library "/site-packages/") then
          print_endline ("skipped: this system has another NVRTC: " ^ library)
        else (
          check_parts "found" library [ "library: "; root; "/nvidia/"; "libnvrtc.so" ];
          List.iteri
            (fun i line ->
              if i < 5 || Nvrtc.include_folders () <> [] then
                check_parts "works" line [ ": no error" ])
            (List.filteri (fun i _ -> i < 6) lines)))
      [
        [ ("VIRTUAL_ENV", root); ("PATH", "/nonexistent") ];
        [ ("PATH", "/nonexistent:" ^ folder [ "bin" ]); ("VIRTUAL_ENV", "") ];
      ]

(* A libnvrtc alone: what it needs to compile is not there, and the error says so. *)
let without_builtins () =
  in_folder @@ fun root ->
  let library = Nvrtc.library () in
  let alone = Filename.concat root (Filename.basename library) in
  let copy () =
    ignore
      (write_file root (Filename.basename library)
         (In_channel.with_open_bin library In_channel.input_all))
  in
  (try Unix.link (Unix.realpath library) alone with Unix.Unix_error _ -> copy ());
  let lines = without [ ("CUDAGRAPH_NVRTC", alone); ("LD_LIBRARY_PATH", "") ] in
  let line what = List.find (String.starts_with ~prefix:(what ^ ": ")) lines in
  Alcotest.(check string) "its version" "version: no error" (line "version");
  if contains (line "program") "no error" then
    print_endline "skipped: this system has the library's other half"
  else
    check_parts "the error" (line "program")
      [
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
        "libnvrtc-builtins.so";
        "belongs beside " ^ alone;
      ]

let tests () =
  start ();
  Alcotest.run "nvrtc library"
    [
      ( "without it",
        [
          test "a library that cannot be used" missing;
          test "no library anywhere" nothing_anywhere;
          test "arguments that are refused" bad_arguments;
          test "results" results;
        ] );
      ( "with it",
        [
          compiling "the library" the_library;
          compiling "found among Python's packages" in_python;
          compiling "without its other half" without_builtins;
        ] );
      ("end", [ no_misuse ]);
    ]

let () =
  match Sys.argv with
  | [| _; argument |] when argument = child_argument -> child ()
  | _ -> tests ()
