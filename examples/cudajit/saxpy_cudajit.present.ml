(* A program written for cudajit that replays a graph: the second open and what names Graph is all that
   was added to it. *)

open Cuda
open Cudagraph_cudajit

let n = 1024
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

let cu_src =
  {|extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] += a * x[i];
    }|}

let () =
  Cuda.init ();
  let context = Context.get_primary (Device.get ~ordinal:0) in
  Context.set_current context;
  let ptx = Nvrtc.compile_to_ptx ~cu_src ~name:"saxpy" ~options:[] ~with_debug:false in
  let saxpy = Module.get_function (Module.load_data_ex ptx []) ~name:"saxpy" in
  let stream = Stream.create ~non_blocking:true () in
  let x = Deviceptr.alloc_and_memcpy (floats 1.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let step () =
    Stream.launch_kernel saxpy ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0
      stream
      [ Single 2.0; Tensor x; Tensor y; Int n ]
  in
  let graph, () = Graph.with_capture stream step in
  let exec = Graph.instantiate graph in
  for _ = 1 to 1000 do
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  Printf.printf "y = %g after 1000 launches\n" (Bigarray.Genarray.get result [| 0 |]);
  Cudagraph.Interop.keep_alive context
