(* Device, Context, Deviceptr, Module, Stream, Event: results, and every kind of bad input. *)

open Cuda
open Support

let u8 = Unsigned.UChar.of_int
let u16 = Unsigned.UShort.of_int
let u32 = Unsigned.UInt32.of_int

let device () =
  let count = Device.get_count () in
  Alcotest.(check bool) "there is one" true (count >= 1);
  let attributes = Device.get_attributes (Device.get ~ordinal:0) in
  Alcotest.(check int) "threads of a block" 1024 attributes.max_threads_per_block;
  Alcotest.(check bool) "a name" true (attributes.name <> "");
  Alcotest.(check bool)
    "sexp" true
    (contains
       (sexp (Device.sexp_of_attributes attributes))
       "(max_threads_per_block 1024)");
  let free, total = Device.get_free_and_total_mem () in
  Alcotest.(check bool) "memory" true (0 < free && free <= total);
  check_cuda_error "no such device" "INVALID_DEVICE" [ "cu_device_get"; "99" ] (fun () ->
      Device.get ~ordinal:99);
  check_cuda_error "negative" "INVALID_DEVICE" [ "-1" ] (fun () ->
      Device.get ~ordinal:(-1));
  check_invalid "too large" [ "Cuda.Device.get"; "C int" ] (fun () ->
      Device.get ~ordinal:(1 lsl 40));
  Alcotest.(check string)
    "mode" "PROHIBITED"
    (sexp (Device.sexp_of_computemode (Device.computemode_of_int 2)))

let context () =
  let current = Context.get_current () in
  Alcotest.(check string)
    "the primary one"
    (sexp (Context.sexp_of_t current))
    (sexp (Context.sexp_of_t (Context.get_primary (Device.get ~ordinal:0))));
  Context.push_current current;
  ignore (Context.pop_current ());
  Context.set_limit STACK_SIZE 4096;
  Alcotest.(check int) "a limit" 4096 (Context.get_limit STACK_SIZE);
  check_invalid "a negative limit" [ "Cuda.Context.set_limit"; "-1" ] (fun () ->
      Context.set_limit STACK_SIZE (-1));
  Domain.join
    (Domain.spawn (fun () ->
         check_cuda_error "none is current on a new domain" "INVALID_CONTEXT"
           [ "cu_ctx_get_current"; "set_current" ]
           Context.get_current;
         check_cuda_error "allocating without one" "INVALID_CONTEXT" [ "set_current" ]
           (fun () -> Deviceptr.mem_alloc ~size_in_bytes:4)));
  Context.synchronize ()

let copies () =
  let p = device_ints ~value:3 8 in
  let host = ints ~value:100 8 in
  Deviceptr.memcpy_D_to_H ~host_offset:2 ~length:3 ~dst:host ~src:p ();
  Alcotest.(check (list int))
    "an interval"
    [ 100; 100; 3; 3; 3; 100; 100; 100 ]
    (List.init 8 (fun i -> Int32.to_int (Bigarray.Genarray.get host [| i |])));
  Deviceptr.memcpy_H_to_D ~host_offset:0 ~length:2 ~dst_offset:8 ~dst:p ~src:host ();
  Deviceptr.memset_d8 ~offset:28 p (u8 1) ~length:4;
  Deviceptr.memset_d16 ~offset:24 p (u16 2) ~length:2;
  Deviceptr.memset_d32 ~offset:20 p (u32 7) ~length:1;
  Alcotest.(check (list int))
    "in place"
    [ 3; 3; 100; 100; 3; 7; 0x20002; 0x1010101 ]
    (read ~n:8 p);
  let q = Deviceptr.mem_alloc ~size_in_bytes:32 in
  Deviceptr.memcpy_D_to_D ~kind:Bigarray.int32 ~length:8 ~dst:q ~src:p ();
  Deviceptr.memcpy_D_to_D ~size_in_bytes:4 ~dst_offset:4 ~src_offset:8 ~dst:q ~src:p ();
  Alcotest.(check (list int)) "on the device" [ 3; 100; 100 ] (read ~n:3 q);
  (* dst_offset takes its bytes from the whole bigarray *)
  Deviceptr.memcpy_H_to_D ~dst_offset:16 ~dst:q ~src:(ints ~value:9 8) ();
  Alcotest.(check (list int)) "the rest" [ 3; 100; 100; 100; 9; 9; 9; 9 ] (read ~n:8 q)

let memory_bad_input () =
  let p = device_ints 4 and host = ints 8 in
  let copy = "Cuda.Deviceptr.memcpy_H_to_D" in
  check_invalid "past the end of the memory" [ copy; "dst"; "32 bytes"; "16 bytes" ]
    (fun () -> Deviceptr.memcpy_H_to_D ~dst:p ~src:host ());
  check_invalid "past the end of the bigarray" [ copy; "length 9"; "8 elements" ]
    (fun () -> Deviceptr.memcpy_H_to_D ~length:9 ~dst:p ~src:host ());
  check_invalid "a host offset" [ copy; "host_offset 9"; "8 elements" ] (fun () ->
      Deviceptr.memcpy_H_to_D ~host_offset:9 ~dst:p ~src:host ());
  check_invalid "negative" [ copy; "host_offset -1" ] (fun () ->
      Deviceptr.memcpy_H_to_D ~host_offset:(-1) ~length:1 ~dst:p ~src:host ());
  check_invalid "a negative device offset" [ copy; "-4" ] (fun () ->
      Deviceptr.memcpy_H_to_D ~dst_offset:(-4) ~length:1 ~dst:p ~src:host ());
  check_invalid "two sizes" [ "memcpy_D_to_D"; "size_in_bytes" ] (fun () ->
      Deviceptr.memcpy_D_to_D ~kind:Bigarray.int32 ~length:1 ~size_in_bytes:4 ~dst:p
        ~src:p ());
  check_invalid "no size" [ "memcpy_D_to_D" ] (fun () ->
      Deviceptr.memcpy_D_to_D ~dst:p ~src:p ());
  check_invalid "a huge length" [ "memcpy_D_to_D"; "too large" ] (fun () ->
      Deviceptr.memcpy_D_to_D ~kind:Bigarray.int32 ~length:max_int ~dst:p ~src:p ());
  check_invalid "a fill past the end" [ "memset_d32"; "16 bytes" ] (fun () ->
      Deviceptr.memset_d32 p (u32 0) ~length:5);
  check_invalid "a negative fill" [ "memset_d8"; "-1" ] (fun () ->
      Deviceptr.memset_d8 p (u8 0) ~length:(-1));
  check_invalid "a crooked fill" [ "memset_d32"; "offset 2" ] (fun () ->
      Deviceptr.memset_d32 ~offset:2 p (u32 0) ~length:1);
  check_invalid "a negative allocation" [ "Cuda.Deviceptr.mem_alloc"; "-8" ] (fun () ->
      Deviceptr.mem_alloc ~size_in_bytes:(-8));
  check_cuda_error "an empty allocation" "INVALID_VALUE" [ "cu_mem_alloc" ] (fun () ->
      Deviceptr.mem_alloc ~size_in_bytes:0);
  check_cuda_error "too large" "OUT_OF_MEMORY" [ "cu_mem_alloc"; "1125899906842624" ]
    (fun () -> Deviceptr.mem_alloc ~size_in_bytes:(1 lsl 50));
  Alcotest.(check bool) "equal" true (Deviceptr.equal p p);
  Alcotest.(check bool) "hash" true (Deviceptr.hash p = Deviceptr.hash p);
  Alcotest.(check bool)
    "text" true
    (contains (sexp (Deviceptr.sexp_of_t p)) (Deviceptr.string_of p));
  Deviceptr.mem_free p;
  Deviceptr.mem_free p;
  Alcotest.(check bool)
    "freed" true
    (contains (sexp (Deviceptr.sexp_of_t p)) "(freed true)");
  check_invalid "use after free" [ copy; "freed" ] (fun () ->
      Deviceptr.memcpy_H_to_D ~length:1 ~dst:p ~src:host ());
  let s = stream () in
  check_invalid "as an argument"
    [ "Cuda.Stream.launch_kernel"; "argument 0"; "incr"; "freed" ] (fun () -> incr s p);
  check_invalid "in a region" [ "freed" ] (fun () ->
      run (kernel "incr") s [ Tensor_at (Deviceptr.region_of p); Int 1 ])

let modules () =
  let m = code () in
  check_cuda_error "no such kernel" "NOT_FOUND" [ "cu_module_get_function"; "nothing" ]
    (fun () -> Module.get_function m ~name:"nothing");
  check_cuda_error "no such variable" "NOT_FOUND" [ "cu_module_get_global"; "nothing" ]
    (fun () -> Module.get_global m ~name:"nothing");
  check_invalid "a NUL in a name" [ "NUL" ] (fun () ->
      Module.get_function m ~name:"a\000b");
  let table, size = Module.get_global m ~name:"table" in
  Alcotest.(check int) "bytes" 64 (Unsigned.Size_t.to_int size);
  let s = stream () in
  run (kernel ~from:m "bump_table") s [ Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "a variable" [ 1; 3; 3; 4; 0 ] (read ~n:5 table);
  check_invalid "freeing a variable" [ "mem_free"; "module" ] (fun () ->
      Deviceptr.mem_free table);
  check_cuda_error "not PTX" "INVALID_PTX" [ "cu_module_load_data_ex: ptx" ] (fun () ->
      Module.load_ptx ".version 7.0\n.target sm_70\n.address_size 64\nnonsense");
  let log = Bigarray.(Array1.create char c_layout 4096) in
  Bigarray.Array1.fill log '\000';
  check_cuda_error "with a log" "INVALID_PTX" [ "ptx" ] (fun () ->
      Module.load_ptx
        ~options:[ ERROR_LOG_BUFFER log; OPTIMIZATION_LEVEL 4 ]
        ".version 7.0\n\
         .target sm_70\n\
         .address_size 64\n\
         .visible .entry k() { frobnicate.u32; }");
  Alcotest.(check bool) "the log was written" true (Bigarray.Array1.get log 0 <> '\000');
  if Simulator.present () then
    check_cuda_error "an instruction that the simulator does not know" "INVALID_PTX"
      [ "line 5"; "frobnicate.u32" ] (fun () ->
        Module.load_ptx
          ".version 7.0\n\
           .target sm_70\n\
           .address_size 64\n\
           .visible .entry k() {\n\
           frobnicate.u32;\n\
           }");
  let compiled = Nvrtc.of_ptx Ptx.text in
  Alcotest.(check string) "PTX kept" Ptx.text (Nvrtc.string_from_ptx compiled);
  ignore (Module.get_function (Module.load_data_ex compiled []) ~name:"incr")

let parameters () =
  let s = stream () and out = Deviceptr.mem_alloc ~size_in_bytes:64 in
  let f = kernel "every_param" in
  let launch params = run ~threads:1 f s params in
  launch
    [ Tensor_at (Deviceptr.offset out ~bytes:8); Int (-7); Size_t (Unsigned.Size_t.of_int 12345678901);
      Single 0.5; Double 1e100 ];
  Stream.synchronize s;
  let host = Bigarray.(Genarray.create float64 c_layout [| 8 |]) in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:out ();
  Alcotest.(check (list (float 0.0))) "each kind" [ -7.0; 12345678901.0; 0.5; 1e100 ]
    (List.init 4 (fun i -> Bigarray.Genarray.get host [| i + 1 |]));
  let where = "Cuda.Stream.launch_kernel" in
  let size n = Unsigned.Size_t.of_int n in
  (* A driver of CUDA 12.0 cannot tell what a kernel takes. *)
  if driver_version () >= 12040 then (
    check_invalid "too few" [ where; "every_param"; "5 arguments"; "got 1" ] (fun () ->
        launch [ Tensor out ]);
    check_invalid "a wrong kind" [ where; "argument 4"; "Single has 4 bytes"; "8" ] (fun () ->
        launch [ Tensor out; Int 0; Size_t (size 0); Single 0.0; Single 0.0 ]));
  check_invalid "an Int that does not fit" [ where; "argument 1"; "2147483648" ] (fun () ->
      launch [ Tensor out; Int 0x8000_0000; Size_t (size 0); Single 0.0; Double 0.0 ]);
  check_invalid "a region outside" [ where; "argument 0"; "offset_bytes 65"; "64 bytes" ] (fun () ->
      launch
        [ Tensor_at { base = out; offset_bytes = 65 }; Int 0; Size_t (size 0); Single 0.0; Double 0.0 ]);
  let sized ?(gx = 1) ?(by = 1) ?(bx = 1) ?(shared = 0) () =
    Stream.launch_kernel (kernel "incr") ~grid_dim_x:gx ~block_dim_x:bx ~block_dim_y:by
      ~shared_mem_bytes:shared s [ Tensor out; Int 0 ]
  in
  check_invalid "no blocks" [ where; "grid_dim_x 0"; "1" ] (fun () -> sized ~gx:0 ());
  check_invalid "negative" [ where; "block_dim_y -1" ] (fun () -> sized ~by:(-1) ());
  check_invalid "too many threads" [ where; "2048 threads"; "incr"; "1024" ] (fun () ->
      sized ~bx:1024 ~by:2 ());
  check_invalid "a block too wide" [ where; "block_dim_x 1025"; "1024" ] (fun () ->
      sized ~bx:1025 ());
  check_invalid "too large a grid" [ where; "grid_dim_x" ] (fun () -> sized ~gx:(1 lsl 40) ());
  check_invalid "shared memory" [ where; "shared_mem_bytes 1000000" ] (fun () ->
      sized ~shared:1_000_000 ());
  check_invalid "negative shared memory" [ where; "shared_mem_bytes -1" ] (fun () ->
      sized ~shared:(-1) ())
[@@ocamlformat "disable"]

let streams () =
  let s = stream () and p = device_ints 4 and into = ints 4 in
  Alcotest.(check bool) "idle" true (Stream.is_ready s);
  Alcotest.(check bool) "ids differ" true (Stream.get_id s <> Stream.get_id (stream ()));
  Alcotest.(check string)
    "its context"
    (sexp (Context.sexp_of_t (Context.get_current ())))
    (sexp (Context.sexp_of_t (Stream.get_context s)));
  Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:6 4) s;
  Stream.memset_d8 p (u8 1) ~length:4 s;
  Stream.memset_d16 ~offset:4 p (u16 2) ~length:1 s;
  Stream.memset_d32 ~offset:8 p (u32 3) ~length:1 s;
  Stream.memcpy_D_to_H ~dst:into ~src:p s;
  Alcotest.(check bool) "held" true (contains (sexp (Stream.sexp_of_t s)) "held");
  Stream.synchronize s;
  Alcotest.(check (list int))
    "in order" [ 0x1010101; 2; 3; 6 ]
    (List.init 4 (fun i -> Int32.to_int (Bigarray.Genarray.get into [| i |])));
  Alcotest.(check bool)
    "nothing held" true
    (contains (sexp (Stream.sexp_of_t s)) "(held 0)");
  check_invalid "an asynchronous copy outside"
    [ "Cuda.Stream.memcpy_H_to_D"; "dst"; "16 bytes" ] (fun () ->
      Stream.memcpy_H_to_D ~dst:p ~src:(ints 8) s);
  check_invalid "a priority" [ "Cuda.Stream.create"; "C int" ] (fun () ->
      Stream.create ~lower_priority:max_int ());
  let before = Stream.get_total_live_streams () in
  let kept = Stream.create () in
  Alcotest.(check int) "one more" (before + 1) (Stream.get_total_live_streams ());
  ignore (Sys.opaque_identity kept)

let pending () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 and e = Event.create () in
      Simulator.paused (fun () ->
          incr s p;
          Event.record e s;
          Alcotest.(check (pair bool bool))
            "pending" (false, false)
            (Stream.is_ready s, Event.query e));
      Event.synchronize e;
      Alcotest.(check bool) "happened" true (Event.query e);
      Stream.synchronize s)

let events () =
  let s = stream () and other = stream () and p = device_ints 1 in
  let start = Event.create ~enable_timing:true ()
  and end_ = Event.create ~enable_timing:true () in
  Event.record start s;
  busy s p;
  Event.record end_ s;
  Event.wait other end_;
  Stream.synchronize other;
  Alcotest.(check bool) "the other stream has waited" true (Event.query end_);
  let time = Event.elapsed_time ~start ~end_ in
  Alcotest.(check bool) (Printf.sprintf "%g ms" time) true (time > 0.0);
  check_cuda_error "without time" "INVALID_HANDLE" [ "cu_event_elapsed_time" ] (fun () ->
      Event.elapsed_time ~start ~end_:(Event.create ()))

let hook () =
  let seen = ref [] in
  cuda_call_hook := Some (fun ~message ~status -> seen := (message, is_success status) :: !seen);
  Fun.protect
    ~finally:(fun () -> cuda_call_hook := None)
    (fun () ->
      Deviceptr.mem_free (Deviceptr.mem_alloc ~size_in_bytes:4);
      (try ignore (Device.get ~ordinal:77) with Cuda_error _ -> ());
      try ignore (Deviceptr.mem_alloc ~size_in_bytes:(-1)) with Invalid_argument _ -> ());
  Alcotest.(check (list (pair string bool))) "every driver call"
    [ ("cu_mem_alloc", true); ("cu_mem_free", true); ("cu_device_get", false) ]
    (List.rev !seen);
  let text = try ignore (Device.get ~ordinal:77); "" with e -> Printexc.to_string e in
  Alcotest.(check bool) text true (contains text "CUDA_ERROR_INVALID_DEVICE")
[@@ocamlformat "disable"]

(* A file is loaded as it is; its kernel runs after the file is gone. *)
let from_a_file () =
  let path = Filename.temp_file "kernels" ".ptx" in
  Out_channel.with_open_bin path (fun file -> output_string file Ptx.text);
  let m = Module.load_file path in
  Sys.remove path;
  let s = stream () and p = device_ints ~value:4 1 in
  run (Module.get_function m ~name:"incr") ~threads:1 s [ Tensor p; Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "run" [ 5 ] (read p)

let () =
  start ();
  Alcotest.run "modules"
    [
      ("device", [ test "attributes and bad ordinals" device ]);
      ("context", [ test "current, limits, other domains" context ]);
      ("deviceptr", [ test "copies and fills" copies; test "bad input" memory_bad_input ]);
      ( "module",
        [ test "kernels, variables, bad PTX" modules; test "from a file" from_a_file ] );
      ( "stream",
        [
          test "parameters and limits" parameters;
          test "work" streams;
          test "pending" pending;
        ] );
      ("event", [ test "order and time" events ]);
      ("hook", [ test "calls and printer" hook ]);
      ("end", [ no_misuse ]);
    ]
