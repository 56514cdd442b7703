(* A graph with a part that C code enqueues: fill_stubs.c takes our values and includes cudagraph.h. *)

open Cuda

let n = 1024
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let kernel = Module.get_function (Module.load_ptx Saxpy_ptx.text) ~name:"saxpy" in
  let stream = Stream.create ~non_blocking:true () in
  let sum = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let terms = Deviceptr.mem_alloc ~size_in_bytes:(4 * n) in
  let graph, () =
    Graph.with_capture stream (fun () ->
        (* C code enqueues on the stream: that is recorded like a launch. *)
        Fill.fill stream terms 3.0;
        Stream.launch_kernel kernel ~grid_dim_x:(n / 256) ~block_dim_x:256
          ~shared_mem_bytes:0 stream
          [ Single 2.0; Tensor terms; Tensor sum; Int n ])
  in
  assert (Graph.node_count graph = 2);
  let exec = Graph.instantiate graph in
  for _ = 1 to 10 do
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:sum ();
  let sum = Bigarray.Genarray.get result [| 0 |] in
  Printf.printf "with_c_stubs: %g after 10 launches of a graph with a part made by C\n"
    sum;
  assert (sum = 60.0)
