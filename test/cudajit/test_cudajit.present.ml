(* A program written for cudajit, with graphs on top: its values are cudajit's throughout. *)

open Cuda
open Cudagraph_cudajit

let source =
  {|extern "C" __global__ void incr(int *x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[i] += 1;
    }|}

let code () =
  let ptx =
    Nvrtc.compile_to_ptx ~cu_src:source ~name:"incr" ~options:[] ~with_debug:false
  in
  Cuda.Module.load_data_ex ptx []

let ints value n =
  Bigarray.(Genarray.init int32 c_layout [| n |] (fun _ -> Int32.of_int value))

let read ?(n = 1) ptr =
  let host = ints 0 n in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:ptr ();
  List.init n (fun i -> Int32.to_int (Bigarray.Genarray.get host [| i |]))

let incr kernel stream ptr n =
  Stream.launch_kernel kernel ~grid_dim_x:1 ~block_dim_x:64 ~shared_mem_bytes:0 stream
    [ Tensor ptr; Int n ]

let kernel () = Module.get_function (code ()) ~name:"incr"
let stream () = Stream.create ~non_blocking:true ()
let test name f = Alcotest.test_case name `Quick f
let values = Alcotest.(check (list int))

let collect () =
  Gc.full_major ();
  Gc.full_major ();
  Gc.compact ()

(* Memory that cudajit has freed is allocated again and overwritten. *)
let storm () =
  collect ();
  let poison = List.init 16 (fun _ -> Deviceptr.mem_alloc ~size_in_bytes:256) in
  List.iter
    (fun p -> Deviceptr.memset_d8 p (Unsigned.UChar.of_int 0xAB) ~length:256)
    poison;
  List.iter Deviceptr.mem_free poison

let same_driver () =
  let theirs = Sexplib0.Sexp.to_string (Context.sexp_of_t (Context.get_current ())) in
  let s = Stream.interop (stream ()) in
  let ours = Cudagraph.Interop.context_handle (Cudagraph.Stream.get_context s) in
  Alcotest.(check string) "one context" theirs (Printf.sprintf "@%nx" ours);
  let theirs = Deviceptr.alloc_and_memcpy (ints 7 1) in
  let address = Nativeint.of_int (Deviceptr.hash theirs) in
  let ours = Cudagraph.Interop.deviceptr ~keep:theirs ~size_in_bytes:4 address in
  let host = ints 0 1 in
  Cudagraph.Deviceptr.memcpy_D_to_H ~dst:host ~src:ours ();
  Alcotest.(check int32) "one memory" 7l (Bigarray.Genarray.get host [| 0 |])

let replay () =
  let k = kernel () and s = stream () and p = Deviceptr.alloc_and_memcpy (ints 0 4) in
  Graph.begin_capture s;
  Alcotest.(check bool) "captures" true (Stream.is_capturing s);
  incr k s p 4;
  incr k s p 4;
  let graph = Graph.end_capture s in
  Alcotest.(check bool) "is over" false (Stream.is_capturing s);
  Alcotest.(check int) "nodes" 2 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  for _ = 1 to 10 do
    Graph.launch exec s
  done;
  Stream.synchronize s;
  values "ten replays of two" [ 20; 20; 20; 20 ] (read ~n:4 p);
  incr k s p 4;
  Stream.synchronize s;
  values "and plain work" [ 21; 21; 21; 21 ] (read ~n:4 p);
  Graph.exec_destroy exec;
  match Graph.launch exec s with
  | () -> Alcotest.fail "a destroyed exec was launched"
  | exception Invalid_argument _ -> ()

(* Neither the collector nor synchronizing takes from a graph what it needs: memory, the module of
   a kernel, the bigarrays of copies. *)
let kept () =
  let s = stream () and seen = Deviceptr.alloc_and_memcpy (ints 0 2) in
  let result = ints 0 1 in
  let capture () =
    let k = kernel () and p = Deviceptr.alloc_and_memcpy (ints 0 1) in
    let gone = ref false in
    Gc.finalise (fun _ -> gone := true) p;
    let graph, () =
      Graph.with_capture s (fun () ->
          Stream.memcpy_H_to_D ~dst:p ~src:(ints 40 1) s;
          incr k s p 1;
          Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s;
          Stream.memset_d32 ~offset:4 seen (Unsigned.UInt32.of_int 9) ~length:1 s;
          Stream.memcpy_D_to_H ~dst:result ~src:p s)
    in
    (Graph.instantiate graph, gone)
  in
  let exec, gone = capture () in
  Stream.synchronize s;
  storm ();
  Alcotest.(check bool) "kept by the exec" false !gone;
  Graph.launch exec s;
  storm ();
  Graph.launch exec s;
  Stream.synchronize s;
  values "computed" [ 41; 9 ] (read ~n:2 seen);
  Alcotest.(check int32) "copied out" 41l (Bigarray.Genarray.get result [| 0 |]);
  Graph.exec_destroy exec;
  Stream.synchronize s;
  collect ();
  collect ();
  Alcotest.(check bool) "let go with it" true !gone

let broken_off () =
  let k = kernel () and s = stream () and p = Deviceptr.alloc_and_memcpy (ints 0 1) in
  (match
     Graph.with_capture s (fun () ->
         incr k s p 1;
         failwith "enough")
   with
  | _ -> Alcotest.fail "no exception"
  | exception Failure text -> Alcotest.(check string) "goes on" "enough" text);
  incr k s p 1;
  Stream.synchronize s;
  values "only the plain launch" [ 1 ] (read p)

(* A stream of cudajit's may go while its graphs live on. *)
let stream_gone () =
  let k = kernel () and p = Deviceptr.alloc_and_memcpy (ints 0 1) in
  let exec =
    let s = stream () in
    let exec = Graph.instantiate (fst (Graph.with_capture s (fun () -> incr k s p 1))) in
    Graph.launch exec s;
    exec
  in
  collect ();
  let s = stream () in
  Graph.launch exec s;
  Stream.synchronize s;
  collect ();
  values "both launches" [ 2 ] (read p)

let refused () =
  (match Graph.begin_capture Stream.no_stream with
  | () -> Alcotest.fail "the NULL stream captures"
  | exception Cudagraph.Cuda_error { message; _ } ->
      Alcotest.(check bool)
        message true
        (String.starts_with ~prefix:"cu_stream_begin_capture" message));
  match Graph.end_capture (stream ()) with
  | _ -> Alcotest.fail "a capture that nobody began has ended"
  | exception Cudagraph.Cuda_error _ -> ()

let () =
  Cuda.init ();
  let context = Context.get_primary (Device.get ~ordinal:0) in
  Context.set_current context;
  (* cudajit releases the context when its value is garbage. *)
  at_exit (fun () -> Cudagraph.Interop.keep_alive context);
  Alcotest.run "cudajit"
    [
      ( "graphs of cudajit's streams",
        [
          test "both use one driver" same_driver;
          test "capture and replay" replay;
          test "a graph keeps what it uses" kept;
          test "a capture broken off" broken_off;
          test "a stream that is gone" stream_gone;
          test "refused" refused;
        ] );
    ]
