(* One graph for all steps, although each step has other parameters: they are in memory. The graph
   begins with a copy from a bigarray, whose content is read at each launch. *)

open Cuda

let n = 1024
let steps = 100
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

(* What step [k] uses: a rate that falls, and an offset that alternates. *)
let rate k = 1.0 /. float_of_int (1 lsl (k / 25))
let offset k = if k mod 2 = 0 then 0.5 else 0.25

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let kernel = Module.get_function (Module.load_ptx Step_ptx.text) ~name:"step" in
  let stream = Stream.create ~non_blocking:true () in
  let settings = Bigarray.(Array1.create float32 c_layout 2) in
  let on_device = Deviceptr.mem_alloc ~size_in_bytes:8 in
  let x = Deviceptr.alloc_and_memcpy (floats 2.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let graph, () =
    Graph.with_capture stream (fun () ->
        Stream.memcpy_H_to_D ~dst:on_device
          ~src:(Bigarray.genarray_of_array1 settings)
          stream;
        Stream.launch_kernel kernel ~grid_dim_x:(n / 256) ~block_dim_x:256
          ~shared_mem_bytes:0 stream
          [ Tensor on_device; Tensor x; Tensor y; Int n ])
  in
  let exec = Graph.instantiate graph in
  for k = 0 to steps - 1 do
    settings.{0} <- rate k;
    settings.{1} <- offset k;
    (* Reads the settings before it returns: they may change again at once. *)
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  let expected = ref 0.0 in
  for k = 0 to steps - 1 do
    expected := !expected +. (rate k *. 2.0) +. offset k
  done;
  Printf.printf "step_parameters: y = %g after %d steps of one graph, expected %g\n"
    (Bigarray.Genarray.get result [| 0 |])
    steps !expected;
  for i = 0 to n - 1 do
    assert (Bigarray.Genarray.get result [| i |] = !expected)
  done
