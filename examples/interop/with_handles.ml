(* Two libraries in one program, which know each other by the driver's handles. *)

open Cuda

let n = 1024
let bytes = 4 * n

let first memory =
  let numbers = Bigarray.(Genarray.create float32 c_layout [| n |]) in
  Deviceptr.memcpy_D_to_H ~dst:numbers ~src:memory ();
  Bigarray.Genarray.get numbers [| 0 |]

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let kernel = Module.get_function (Module.load_ptx Saxpy_ptx.text) ~name:"increment" in
  let increment stream memory =
    Stream.launch_kernel kernel ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0
      stream [ Tensor memory; Int n ]
  in
  (* Out: the neighbour fills our memory, on our stream. What others enqueue is not known to cudagraph,
     so it is told what has to live until that is done. *)
  let stream = Stream.create ~non_blocking:true () in
  let memory = Deviceptr.mem_alloc ~size_in_bytes:bytes in
  Neighbour.fill
    ~stream:(Interop.stream_handle stream)
    ~memory:(Interop.deviceptr_handle memory)
    ~n 1.0;
  Interop.keep_for stream memory;
  increment stream memory;
  Stream.synchronize stream;
  assert (first memory = 2.0);
  (* In: we compute on the neighbour's stream, with its memory. Both stay the neighbour's. *)
  let its_stream = Neighbour.create_stream () in
  let its_memory = Neighbour.allocate ~bytes in
  let stream = Interop.stream its_stream in
  let memory = Interop.deviceptr ~size_in_bytes:bytes its_memory in
  Neighbour.fill ~stream:its_stream ~memory:its_memory ~n 5.0;
  increment stream memory;
  Stream.synchronize stream;
  assert (first memory = 6.0);
  (* The neighbour captures: what we enqueue on its stream is recorded, too. *)
  Neighbour.begin_capture its_stream;
  assert (Stream.is_capturing stream);
  increment stream memory;
  increment stream memory;
  let graph = Interop.graph ~own:true (Neighbour.end_capture its_stream) in
  assert (not (Stream.is_capturing stream));
  assert (Graph.node_count graph = 2);
  assert (first memory = 6.0);
  let exec = Graph.instantiate graph in
  for _ = 1 to 10 do
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  let result = first memory in
  Printf.printf "with_handles: %g after 10 launches of the neighbour's graph\n" result;
  assert (result = 26.0);
  (* The exec uses the memory: it goes first. *)
  Graph.exec_destroy exec;
  Neighbour.free its_memory;
  Neighbour.destroy_stream its_stream
