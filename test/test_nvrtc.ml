(* CUDA C compiled at run time by a real NVRTC, and what happens where there is none.

   Tests that need NVRTC are skipped, aloud, where it is not found - unless CUDAGRAPH_TEST_NVRTC says
   which version there must be, as "12.9". *)

open Support
open Cuda
module Program = Nvrtc.Program

let wanted = Sys.getenv_opt "CUDAGRAPH_TEST_NVRTC"
let nvrtc_status status = sexp (Nvrtc.sexp_of_result status)

let absence =
  match Nvrtc.version () with
  | _ -> None
  | exception Nvrtc.Nvrtc_error { message; _ } -> Some message

(* A test that needs NVRTC. *)
let compiling name f =
  test name (fun () ->
      match (absence, wanted) with
      | None, _ -> f ()
      | Some why, None -> print_endline ("skipped: " ^ why)
      | Some why, Some version -> Alcotest.failf "there must be NVRTC %s: %s" version why)

let check_parts name text parts =
  List.iter
    (fun part ->
      Alcotest.(check bool)
        (Printf.sprintf "%s: %S names %S" name text part)
        true (contains text part))
    parts

(* The same for one that runs what it has compiled: no driver takes PTX that is newer than itself. *)
let running name f =
  compiling name (fun () ->
      let major, minor = Nvrtc.version () and driver = Cuda.driver_version () in
      if (1000 * major) + (10 * minor) <= driver then f ()
      else
        Printf.printf "skipped: NVRTC %d.%d is newer than the driver, of CUDA %d.%d\n"
          major minor (driver / 1000)
          (driver mod 1000 / 10))

(* [f] fails with a status of NVRTC, and a text that holds [parts]. *)
let check_nvrtc_error name status parts f =
  match f () with
  | _ -> Alcotest.failf "%s: no error" name
  | exception Nvrtc.Nvrtc_error { status = got; message } ->
      Alcotest.(check string) (name ^ ": status") ("NVRTC_" ^ status) (nvrtc_status got);
      check_parts name message parts

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
  List.iter
    (fun line ->
      if contains line "no error" then print_endline "skipped: this system has an NVRTC"
      else
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

(* With a library. *)

let in_folder f =
  let folder = Filename.temp_dir "cudagraph" ".nvrtc" in
  let rec remove path =
    match (Unix.lstat path).st_kind with
    | S_DIR ->
        Array.iter (fun name -> remove (Filename.concat path name)) (Sys.readdir path);
        Sys.rmdir path
    | _ -> Sys.remove path
  in
  Fun.protect ~finally:(fun () -> remove folder) (fun () -> f folder)

let write_file folder name text =
  let file = Filename.concat folder name in
  Out_channel.with_open_bin file (fun channel -> output_string channel text);
  file

let compile_to_ptx ?(name = "k.cu") ?(options = []) ?(with_debug = false) cu_src =
  Nvrtc.compile_to_ptx ~cu_src ~name ~options ~with_debug

let floats values =
  Bigarray.(
    Genarray.init float32 c_layout
      [| List.length values |]
      (fun i -> List.nth values i.(0)))

let read_floats n ptr =
  let host = floats (List.init n (fun _ -> 0.0)) in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:ptr ();
  List.init n (fun i -> Bigarray.Genarray.get host [| i |])

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

let saxpy =
  {|extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}|}

let compile_and_run () =
  let compiled = compile_to_ptx ~name:"saxpy.cu" saxpy in
  Alcotest.(check (option string))
    "no log unless asked for" None
    (Nvrtc.compilation_log compiled);
  Alcotest.(check (option string))
    "an empty one" (Some "")
    (Nvrtc.compilation_log (compile_to_ptx ~with_debug:true saxpy));
  gc_storm ();
  let kernel = Module.get_function (Module.load_data_ex compiled []) ~name:"saxpy" in
  let x = Deviceptr.alloc_and_memcpy (floats [ 1.; 2.; 3. ]) in
  let y = Deviceptr.alloc_and_memcpy (floats [ 0.5; 0.5; 0.5 ]) in
  let s = stream () in
  run kernel s [ Single 10.0; Tensor x; Tensor y; Int 3 ];
  Stream.synchronize s;
  Alcotest.(check (list (float 0.0))) "computed" [ 10.5; 20.5; 30.5 ] (read_floats 3 y)

let in_a_capture () =
  let s = stream () and p = device_ints 1 in
  Graph.begin_capture s;
  incr s p;
  let compiled = compile_to_ptx saxpy in
  incr s p;
  Graph.launch (Graph.instantiate (Graph.end_capture s)) s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "the capture went on" [ 2 ] (read p);
  ignore (Module.load_data_ex compiled [])

let errors () =
  let broken =
    "extern \"C\" __global__ void k(int *p) {\n  int unused;\n  *p = missing;\n}"
  in
  let parts =
    [ "nvrtc_compile_program broken.cu: broken.cu(3): error"; "\"missing\" is undefined" ]
  in
  check_nvrtc_error "a program with an error" "ERROR_COMPILATION" parts (fun () ->
      compile_to_ptx ~name:"broken.cu" broken);
  check_nvrtc_error "the same without a name" "ERROR_COMPILATION"
    [ "nvrtc_compile_program: "; "(3): error" ] (fun () -> compile_to_ptx ~name:"" broken);
  check_nvrtc_error "an option" "ERROR_INVALID_OPTION"
    [ "nvrtc_compile_program"; "--no-such-option" ] (fun () ->
      compile_to_ptx ~options:[ "--no-such-option" ] saxpy);
  check_nvrtc_error "an empty option" "ERROR_INVALID_OPTION" [ "unrecognized option" ]
    (fun () -> compile_to_ptx ~options:[ "" ] saxpy);
  check_nvrtc_error "a header" "ERROR_COMPILATION" [ "nowhere.h" ] (fun () ->
      compile_to_ptx "#include <nowhere.h>");
  check_nvrtc_error "another kind of output" "ERROR_INVALID_OPTION"
    [ "nvrtc_get_PTX"; "-dlto" ] (fun () ->
      compile_to_ptx ~options:[ "-dlto"; "-arch=compute_80" ] saxpy);
  let warned = "extern \"C\" __global__ void k() {\n  int unused;\n}" in
  (match
     Nvrtc.compilation_log (compile_to_ptx ~name:"warned.cu" ~with_debug:true warned)
   with
  | Some log -> check_parts "a warning" log [ "warned.cu(2): warning"; "unused" ]
  | None -> Alcotest.fail "no log");
  match compile_to_ptx broken with
  | _ -> Alcotest.fail "no error"
  | exception error ->
      check_parts "printed" (Printexc.to_string error)
        [ "k.cu(3)"; "NVRTC_ERROR_COMPILATION" ]

(* Runs [name] of a program with one thread and an array of ints; its first values. *)
let first_ints ?(n = 1) image name =
  let s = stream () and p = device_ints n in
  run (Module.get_function (Module.load_ptx image) ~name) ~threads:1 s [ Tensor p ];
  Stream.synchronize s;
  read ~n p

let options () =
  let source = "extern \"C\" __global__ void k(int *p) { p[0] = N; }" in
  let image = Nvrtc.string_from_ptx (compile_to_ptx ~options:[ "-DN=42" ] source) in
  Alcotest.(check (list int)) "a macro" [ 42 ] (first_ints image "k");
  let target arch =
    Program.image (Program.compile ~options:[ "-arch=" ^ arch; "-DN=1" ] source)
  in
  check_parts "an architecture" (target "compute_80") [ ".target sm_80" ];
  check_parts "another" (target "compute_90") [ ".target sm_90" ]

let headers () =
  let source =
    "#include <cuda_fp16.h>\n\
     #include \"a.h\"\n\
     extern \"C\" __global__ void k(int *p) { p[0] = MINE + A; }"
  in
  let own = [ ("a.h", "#include \"b/c.h\"\n"); ("b/c.h", "#define A 30\n") ] in
  in_folder (fun folder ->
      ignore (write_file folder "cuda_fp16.h" "#define MINE 7\n");
      (* CUDA's folder comes last, so the program's own header of that name is taken. *)
      let program = Program.compile ~options:[ "-I"; folder ] ~headers:own source in
      Alcotest.(check (list int))
        "the program's own" [ 37 ]
        (first_ints (Program.image program) "k");
      (* Beside the source, as its name says. *)
      let name = Filename.concat folder "k.cu" in
      let beside =
        "#include \"cuda_fp16.h\"\n\
         extern \"C\" __global__ void k(int *p) { p[0] = MINE; }"
      in
      let image = Program.image (Program.compile ~name beside) in
      Alcotest.(check (list int)) "beside it" [ 7 ] (first_ints image "k"))

let half () =
  if Nvrtc.include_folders () = [] && wanted = None then
    print_endline "skipped: CUDA's headers were not found"
  else
    let source =
      {|#include <cuda_fp16.h>
extern "C" __global__ void k(int *p) {
  __half third = __hdiv(__float2half(1.0f), __float2half(3.0f));
  p[0] = __half_as_ushort(third);
  p[1] = __half2int_rn(__hmul(third, __float2half(300.0f)));
}|}
    in
    let image = Nvrtc.string_from_ptx (compile_to_ptx source) in
    (* 1/3 in half precision is 0x3555, a little less than it; times 300 that rounds to 100. *)
    Alcotest.(check (list int)) "halves" [ 0x3555; 100 ] (first_ints ~n:2 image "k")

let names () =
  let source =
    {|namespace my {
__device__ int state = 5;
template <typename T, int by> __global__ void add(T *p) { p[0] += T(by); }
__global__ void set(int *p) { p[0] = state; }
}|}
  in
  let expressions =
    [ "my::add<float, 3>"; "my::add<int, -2>"; "my::set"; "&my::state" ]
  in
  let program = Program.compile ~expressions source in
  let code = Module.load_ptx (Program.image program) in
  let kernel name = Module.get_function code ~name:(Program.lowered_name program name) in
  let s = stream () and p = device_ints 1 in
  run (kernel "my::set") ~threads:1 s [ Tensor p ];
  run (kernel "my::add<int, -2>") ~threads:1 s [ Tensor p ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "ints" [ 3 ] (read p);
  let q = Deviceptr.alloc_and_memcpy (floats [ 0.25 ]) in
  run (kernel "my::add<float, 3>") ~threads:1 s [ Tensor q ];
  Stream.synchronize s;
  Alcotest.(check (list (float 0.0))) "floats" [ 3.25 ] (read_floats 1 q);
  let _, size =
    Module.get_global code ~name:(Program.lowered_name program "&my::state")
  in
  Alcotest.(check int) "a variable" 4 (Unsigned.Size_t.to_int size);
  check_invalid "not asked for"
    [ "Nvrtc.Program.lowered_name"; "\"my::sub\""; "\"my::set\"" ] (fun () ->
      Program.lowered_name program "my::sub");
  check_invalid "none asked for" [ "\"k\""; "which are none" ] (fun () ->
      Program.lowered_name (Program.compile saxpy) "k");
  check_nvrtc_error "not in the program" "ERROR_COMPILATION"
    [ "nvrtc_compile_program"; "nothing" ] (fun () ->
      Program.compile ~expressions:[ "my::nothing" ] source);
  (* More than fit a small block of OCaml. *)
  let many = List.init 300 (fun i -> Printf.sprintf "my::add<int, %d>" i) in
  let program = Program.compile ~expressions:many source in
  let lowered = List.map (Program.lowered_name program) many in
  Alcotest.(check int) "each its own" 300 (List.length (List.sort_uniq compare lowered))

let cubin () =
  let check architecture =
    let image = Program.image (Program.compile ~target:(CUBIN architecture) saxpy) in
    Alcotest.(check string) "an ELF file" "\127ELF" (String.sub image 0 4);
    Alcotest.(check int) "for CUDA" 190 (String.get_uint16_le image 18);
    image
  in
  let image = check "sm_80" in
  Alcotest.(check bool) "each architecture its own" true (image <> check "sm_90a");
  check_nvrtc_error "an unknown one" "ERROR_INVALID_OPTION" [ "gpu-architecture" ]
    (fun () -> check "sm_11");
  let program = Program.compile ~target:(CUBIN "sm_80") saxpy in
  Alcotest.(check string) "the same again" image (Program.image program);
  let result = Program.to_load program in
  Alcotest.(check string) "whole" image (Nvrtc.string_from_ptx result);
  (* A device of compute capability 9.0 runs it; the simulator has no machine code. *)
  if Simulator.present () then
    match Module.load_data_ex result [] with
    | _ -> Alcotest.fail "the simulator loaded machine code"
    | exception Cuda_error _ -> ()
  else
    let attributes = Device.get_attributes (Context.get_device ()) in
    let architecture =
      Printf.sprintf "sm_%d%d" attributes.compute_capability_major
        attributes.compute_capability_minor
    in
    let source = "extern \"C\" __global__ void k(int *p) { p[0] = 77; }" in
    let program = Program.compile ~target:(CUBIN architecture) source in
    let s = stream () and p = device_ints 1 in
    let code = Module.load_cubin (Program.image program) in
    run (Module.get_function code ~name:"k") ~threads:1 s [ Tensor p ];
    Stream.synchronize s;
    Alcotest.(check (list int)) "runs" [ 77 ] (read p)

let entries folder =
  Array.to_list (Sys.readdir folder)
  |> List.map (Filename.concat folder)
  |> List.sort compare

let cache () =
  in_folder @@ fun root ->
  let cache = Filename.concat (Filename.concat root "made") "when needed" in
  let compile ?target ?(name = "k.cu") ?(options = []) ?headers ?expressions
      ?(source = saxpy) () =
    Program.compile ?target ~name ~options ?headers ?expressions ~cache source
  in
  let first = compile () in
  let check_cached what expected program =
    Alcotest.(check bool) (what ^ ": found") expected (Program.is_cached program)
  in
  check_cached "first" false first;
  let again = compile () in
  check_cached "again" true again;
  Alcotest.(check string) "the same" (Program.image first) (Program.image again);
  (* Whatever the result depends on. *)
  let warned =
    "__device__ int f() { return 1; }\n\
     template <int n> __global__ void k() { int unused; }"
  in
  let expressions = [ "k<1>"; "k<2>" ] in
  let different =
    [
      ("another source", fun () -> compile ~source:(saxpy ^ "\n") ());
      ("another name", fun () -> compile ~name:"l.cu" ());
      ("an option", fun () -> compile ~options:[ "-use_fast_math" ] ());
      ("a header", fun () -> compile ~headers:[ ("a.h", "") ] ());
      ("another header", fun () -> compile ~headers:[ ("a.h", " ") ] ());
      ("another target", fun () -> compile ~target:(CUBIN "sm_80") ());
      ("expressions", fun () -> compile ~expressions ~source:warned ());
    ]
  in
  let compiled =
    List.map
      (fun (what, compile) ->
        let p = compile () in
        check_cached what false p;
        p)
      different
  in
  List.iter2
    (fun (what, compile) before ->
      let after = compile () in
      check_cached what true after;
      Alcotest.(check string)
        (what ^ ": image") (Program.image before) (Program.image after);
      Alcotest.(check string) (what ^ ": log") (Program.log before) (Program.log after))
    different compiled;
  let found = compile ~expressions ~source:warned () in
  check_parts "the log is kept" (Program.log found) [ "unused" ];
  List.iter
    (fun e ->
      check_parts "a kernel of that name" (Program.image found)
        [ ".entry " ^ Program.lowered_name found e ])
    expressions;
  (* A failure is not kept. *)
  let before = entries cache in
  for _ = 1 to 2 do
    check_nvrtc_error "an error" "ERROR_COMPILATION" [ "nvrtc_compile_program" ]
      (fun () -> compile ~source:"broken" ())
  done;
  Alcotest.(check (list string)) "no entry" before (entries cache);
  (* Damaged entries are made anew. *)
  let damage change =
    let file = List.hd (entries cache) in
    List.iter (fun other -> if other <> file then Sys.remove other) (entries cache);
    let whole = In_channel.with_open_bin file In_channel.input_all in
    Out_channel.with_open_bin file (fun channel -> output_string channel (change whole))
  in
  List.iter
    (fun (what, change) ->
      List.iter Sys.remove (entries cache);
      check_cached what false (compile ());
      damage change;
      let repaired = compile () in
      check_cached what false repaired;
      Alcotest.(check string) what (Program.image first) (Program.image repaired);
      check_cached (what ^ ", repaired") true (compile ()))
    [
      ("empty", fun _ -> "");
      ("cut", fun whole -> String.sub whole 0 (String.length whole / 2));
      ( "one byte",
        fun whole ->
          String.mapi
            (fun i c -> if i = 100 then Char.chr (Char.code c lxor 1) else c)
            whole );
      ("longer", fun whole -> whole ^ "x");
      ("something else", fun _ -> "an old format");
    ];
  (* A folder in its place. *)
  let file = List.hd (entries cache) in
  Sys.remove file;
  Sys.mkdir file 0o700;
  check_cached "cannot be kept" false (compile ());
  check_cached "cannot be kept" false (compile ());
  Alcotest.(check (list string)) "nothing else is left" [ file ] (entries cache);
  check_invalid "no folder" [ "Nvrtc.Program.compile: cache "; "cannot be made" ]
    (fun () -> Program.compile ~cache:(write_file root "file" "") saxpy);
  check_invalid "no name" [ "cache \"\": " ] (fun () -> Program.compile ~cache:"" saxpy);
  check_invalid "a NUL" [ "cache "; "cannot be made" ] (fun () ->
      Program.compile ~cache:"a\000b" saxpy)

let cache_and_headers () =
  in_folder @@ fun root ->
  let cache = Filename.concat root "cache" in
  let value
      ?(source =
        "#include \"outer.h\"\nextern \"C\" __global__ void k(int *p) { p[0] = N; }") () =
    let program = Program.compile ~options:[ "-I" ^ root ] ~cache source in
    (Program.is_cached program, first_ints (Program.image program) "k")
  in
  let inner n = ignore (write_file root "inner.h" (Printf.sprintf "#define N %d\n" n)) in
  ignore (write_file root "outer.h" "#include <inner.h>\n");
  inner 1;
  let check = Alcotest.(check (pair bool (list int))) in
  check "first" (false, [ 1 ]) (value ());
  check "again" (true, [ 1 ]) (value ());
  inner 2;
  check "a header of a header changed" (false, [ 2 ]) (value ());
  inner 1;
  check "and changed back" (true, [ 1 ]) (value ());
  let computed =
    "#define NAME <inner.h>\n\
     #include NAME\n\
     extern \"C\" __global__ void k(int *p) { p[0] = N; }"
  in
  check "by a macro's name" (false, [ 1 ]) (value ~source:computed ());
  inner 3;
  check "is not kept" (false, [ 3 ]) (value ~source:computed ());
  let asks =
    "#if __has_include(<later.h>)\n\
     #include <later.h>\n\
     #else\n\
     #define N 4\n\
     #endif\n\
     extern \"C\" __global__ void k(int *p) { p[0] = N; }"
  in
  check "not there" (false, [ 4 ]) (value ~source:asks ());
  check "still not" (true, [ 4 ]) (value ~source:asks ());
  ignore (write_file root "later.h" "#define N 5\n");
  check "there" (false, [ 5 ]) (value ~source:asks ());
  if Nvrtc.include_folders () <> [] then (
    let half =
      "#include <cuda_fp16.h>\n\
       extern \"C\" __global__ void k(int *p) { p[0] = \
       __half_as_ushort(__float2half(1.0f)); }"
    in
    check "CUDA's own headers" (false, [ 0x3C00 ]) (value ~source:half ());
    check "are no obstacle" (true, [ 0x3C00 ]) (value ~source:half ()))

(* Many processes and one folder. *)
let cache_argument = "fill-cache"

let fill cache =
  for i = 0 to 11 do
    let source =
      Printf.sprintf "extern \"C\" __global__ void k(int *p) { p[0] = %d; }" (i / 2)
    in
    let program = Program.compile ~cache source in
    print_string (Digest.to_hex (Digest.string (Program.image program)))
  done

let cache_of_many () =
  in_folder @@ fun cache ->
  let program = Sys.executable_name in
  let children =
    List.init 4 (fun _ ->
        Unix.open_process_args_in program [| program; cache_argument; cache |])
  in
  let outputs = List.map In_channel.input_all children in
  List.iter
    (fun child ->
      Alcotest.(check bool) "exit" true (Unix.close_process_in child = WEXITED 0))
    children;
  Alcotest.(check int) "all compiled" (12 * 32) (String.length (List.hd outputs));
  Alcotest.(check int) "and got the same" 1 (List.length (List.sort_uniq compare outputs));
  Alcotest.(check int) "one entry each, and nothing else" 6 (List.length (entries cache));
  List.iter
    (fun entry -> Alcotest.(check bool) entry true (Filename.check_suffix entry ".nvrtc"))
    (entries cache)

(* Options reach NVRTC whole, whatever the garbage collector does meanwhile. *)
let options_under_pressure () =
  let stop = Atomic.make false in
  let collector =
    Domain.spawn (fun () ->
        while not (Atomic.get stop) do
          Gc.full_major ();
          ignore
            (Sys.opaque_identity
               (List.init 1000 (fun i -> String.make 100 (Char.chr (i land 127)))))
        done)
  in
  let compile domain round =
    let value i = (1000 * domain) + (100 * round) + i in
    (* Forty options that die with this call, their values in the text that comes back. *)
    let options =
      List.init 40 (fun i ->
          Printf.sprintf "-DOPTION_%d_%s=%d" i (String.make 200 'x') (value i))
    in
    let name i = Printf.sprintf "OPTION_%d_%s" i (String.make 200 'x') in
    let sum = String.concat " + " (List.init 40 name) in
    let source = Printf.sprintf "__device__ int sum = %s;" sum in
    let expected = List.fold_left ( + ) 0 (List.init 40 value) in
    match compile_to_ptx ~options source with
    | result ->
        contains (Nvrtc.string_from_ptx result) (Printf.sprintf "sum = %d;" expected)
    | exception Nvrtc.Nvrtc_error { message; _ } -> failwith message
  in
  let domains =
    List.init 8 (fun d -> Domain.spawn (fun () -> List.init 25 (compile d)))
  in
  let answers = List.concat_map Domain.join domains in
  Atomic.set stop true;
  Domain.join collector;
  Alcotest.(check (list bool)) "every option" (List.init 200 (fun _ -> true)) answers

(* A thread of the same domain runs while this one compiles: it does so ten thousands of times, where
   a thread that is only let in between two calls would do so a few times. *)
let lock_is_released () =
  let ticks = Atomic.make 0 and stop = Atomic.make false in
  let ticking =
    Thread.create
      (fun () ->
        while not (Atomic.get stop) do
          Atomic.incr ticks;
          Thread.yield ()
        done)
      ()
  in
  let rec most attempts found =
    if attempts = 0 || found > 1000 then found
    else
      let before = Atomic.get ticks in
      ignore (compile_to_ptx saxpy);
      most (attempts - 1) (max found (Atomic.get ticks - before))
  in
  let found = most 20 0 in
  Atomic.set stop true;
  Thread.join ticking;
  Alcotest.(check bool) (Printf.sprintf "%d times" found) true (found > 1000)

let tests () =
  start ();
  Alcotest.run "nvrtc"
    [
      ( "without it",
        [
          test "a library that cannot be used" missing;
          test "no library anywhere" nothing_anywhere;
          test "arguments that are refused" bad_arguments;
          test "results" results;
        ] );
      ( "compile",
        [
          compiling "the library" the_library;
          compiling "found among Python's packages" in_python;
          compiling "without its other half" without_builtins;
          running "and run" compile_and_run;
          running "during a capture" in_a_capture;
          compiling "errors and logs" errors;
          running "options" options;
          running "headers of the program" headers;
          running "half precision" half;
          running "names of C++" names;
          compiling "to machine code" cubin;
        ] );
      ( "cache",
        [
          compiling "what it depends on" cache;
          running "headers" cache_and_headers;
          compiling "many processes" cache_of_many;
        ] );
      ( "threads",
        [
          compiling "options under pressure" options_under_pressure;
          compiling "the runtime lock" lock_is_released;
        ] );
      ("end", [ no_misuse ]);
    ]

let () =
  match Sys.argv with
  | [| _; argument |] when argument = child_argument -> child ()
  | [| _; argument; cache |] when argument = cache_argument -> fill cache
  | _ -> tests ()
