(* saxpy_graph.ml with its kernels as CUDA C in the program, compiled when it runs. *)

open Cuda

let source =
  {|
template <typename T> __global__ void saxpy(T a, const T *x, T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T> __global__ void increment(T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += 1;
}
|}

let n = 1024
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  (* Instances of the templates are asked for by their C++ names. *)
  let expressions = [ "saxpy<float>"; "increment<float>" ] in
  let program = Nvrtc.Program.compile ~name:"saxpy.cu" ~expressions source in
  let kernels = Module.load_data_ex (Nvrtc.Program.to_load program) [] in
  let launch name stream arguments =
    let name = Nvrtc.Program.lowered_name program name in
    Stream.launch_kernel
      (Module.get_function kernels ~name)
      ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0 stream arguments
  in
  let stream = Stream.create ~non_blocking:true () in
  let x = Deviceptr.alloc_and_memcpy (floats 1.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let step, () =
    Graph.with_capture stream (fun () ->
        launch "saxpy<float>" stream [ Single 2.0; Tensor x; Tensor y; Int n ];
        launch "increment<float>" stream [ Tensor y; Int n ])
  in
  let step = Graph.instantiate step in
  for _ = 1 to 1000 do
    Graph.launch step stream
  done;
  Stream.synchronize stream;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  let first = Bigarray.Genarray.get result [| 0 |] in
  let major, minor = Nvrtc.version () in
  Printf.printf "y = %g after 1000 launches, compiled by NVRTC %d.%d\n" first major minor;
  assert (first = 3000.0)
