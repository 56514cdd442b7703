(* CUDA C compiled at run time by a real NVRTC. *)

open Support
open Nvrtc_support
open Cuda
module Program = Nvrtc.Program

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

let () =
  start ();
  Alcotest.run "nvrtc"
    [
      ( "compile",
        [
          running "and run" compile_and_run;
          running "during a capture" in_a_capture;
          compiling "errors and logs" errors;
          running "options" options;
          running "headers of the program" headers;
          running "half precision" half;
          running "names of C++" names;
          compiling "to machine code" cubin;
        ] );
      ( "threads",
        [
          compiling "options under pressure" options_under_pressure;
          compiling "the runtime lock" lock_is_released;
        ] );
      ("end", [ no_misuse ]);
    ]
