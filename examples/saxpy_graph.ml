open Cuda

let n = 1024
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let kernels = Module.load_ptx Saxpy_ptx.text in
  let launch name stream arguments =
    Stream.launch_kernel
      (Module.get_function kernels ~name)
      ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0 stream arguments
  in
  let stream = Stream.create ~non_blocking:true () in
  let x = Deviceptr.alloc_and_memcpy (floats 1.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  (* Between these two, launches are recorded and not executed. *)
  Graph.begin_capture stream;
  launch "saxpy" stream [ Single 2.0; Tensor x; Tensor y; Int n ];
  launch "increment" stream [ Tensor y; Int n ];
  let step = Graph.instantiate (Graph.end_capture stream) in
  (* Each launch does both, as one call. *)
  for _ = 1 to 1000 do
    Graph.launch step stream
  done;
  Stream.synchronize stream;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  let first = Bigarray.Genarray.get result [| 0 |] in
  Printf.printf "y = %g after 1000 launches on %s\n" first (driver_description ());
  assert (first = 3000.0)
