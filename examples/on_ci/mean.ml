(* The code that is tested: the mean of numbers, summed up on the GPU by a graph. *)

open Cuda

(* [of_list numbers] copies each number to the device and adds it there. *)
let of_list numbers =
  let kernels = Module.load_ptx Saxpy_ptx.text in
  let add = Module.get_function kernels ~name:"saxpy" in
  let one value = Bigarray.(Genarray.init float32 c_layout [| 1 |] (fun _ -> value)) in
  let stream = Stream.create ~non_blocking:true () in
  let number = one 0.0 in
  let x = Deviceptr.mem_alloc ~size_in_bytes:4 in
  let sum = Deviceptr.alloc_and_memcpy (one 0.0) in
  let graph, () =
    Graph.with_capture stream (fun () ->
        Stream.memcpy_H_to_D ~dst:x ~src:number stream;
        Stream.launch_kernel add ~grid_dim_x:1 ~block_dim_x:1 ~shared_mem_bytes:0 stream
          [ Single 1.0; Tensor x; Tensor sum; Int 1 ])
  in
  let exec = Graph.instantiate graph in
  List.iter
    (fun value ->
      Bigarray.Genarray.set number [| 0 |] value;
      Graph.launch exec stream)
    numbers;
  let result = one 0.0 in
  Stream.memcpy_D_to_H ~dst:result ~src:sum stream;
  Stream.synchronize stream;
  Bigarray.Genarray.get result [| 0 |] /. float_of_int (List.length numbers)
