(* Launching 1000 small kernels one by one, and as one graph. *)

open Cuda

let kernels = 1000
let repetitions = 30
let n = 256

let median times =
  Array.sort compare times;
  times.(Array.length times / 2)

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let increment =
    Module.get_function (Module.load_ptx Saxpy_ptx.text) ~name:"increment"
  in
  let stream = Stream.create ~non_blocking:true () in
  let y =
    Deviceptr.alloc_and_memcpy
      Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> 0.0))
  in
  let enqueue () =
    for _ = 1 to kernels do
      Stream.launch_kernel increment ~grid_dim_x:1 ~block_dim_x:n ~shared_mem_bytes:0
        stream [ Tensor y; Int n ]
    done
  in
  let graph, () = Graph.with_capture stream enqueue in
  let exec = Graph.instantiate graph in
  let timed f =
    let start = Unix.gettimeofday () in
    f ();
    Stream.synchronize stream;
    (Unix.gettimeofday () -. start) *. 1e6
  in
  (* One of each first: the driver loads code when it is first used. *)
  ignore (timed enqueue);
  ignore (timed (fun () -> Graph.launch exec stream));
  let as_stream = Array.make repetitions 0.0 and as_graph = Array.make repetitions 0.0 in
  for i = 0 to repetitions - 1 do
    as_stream.(i) <- timed enqueue;
    as_graph.(i) <- timed (fun () -> Graph.launch exec stream)
  done;
  let result = Bigarray.(Genarray.create float32 c_layout [| n |]) in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  let expected = float_of_int (2 * (repetitions + 1) * kernels) in
  if Bigarray.Genarray.get result [| n - 1 |] <> expected then failwith "wrong result";
  let stream_us = median as_stream and graph_us = median as_graph in
  Printf.printf "many_kernels: nodes=%d stream_us=%.0f graph_us=%.0f ratio=%.2f\n"
    (Graph.node_count graph) stream_us graph_us (stream_us /. graph_us)
