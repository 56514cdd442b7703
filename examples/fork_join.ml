(* Work on two streams as one graph: the streams fork, work side by side, and join.

       first:   x <- x + 1  (fork)  y <- 2 x + y  (join)  y <- 1 z + y
       second:                 |    z <- 3 x + z    |                   *)

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
  let saxpy stream a x y =
    launch "saxpy" stream Stream.[ Single a; Tensor x; Tensor y; Int n ]
  in
  let first = Stream.create ~non_blocking:true () in
  let second = Stream.create ~non_blocking:true () in
  let fork = Event.create () and join = Event.create () in
  let x = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let z = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let graph, () =
    Graph.with_capture first (fun () ->
        launch "increment" first [ Tensor x; Int n ];
        Event.record fork first;
        (* The second stream is part of the capture from here on, *)
        Event.wait second fork;
        saxpy first 2.0 x y;
        saxpy second 3.0 x z;
        Event.record join second;
        (* and has to come back before it ends. *)
        Event.wait first join;
        saxpy first 1.0 z y)
  in
  let exec = Graph.instantiate graph in
  let launches = 10 in
  for _ = 1 to launches do
    Graph.launch exec first
  done;
  Stream.synchronize first;
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  (* The same on the host. *)
  let x = ref 0.0 and y = ref 0.0 and z = ref 0.0 in
  for _ = 1 to launches do
    x := !x +. 1.0;
    y := !y +. (2.0 *. !x);
    z := !z +. (3.0 *. !x);
    y := !y +. !z
  done;
  let first = Bigarray.Genarray.get result [| 0 |] in
  Printf.printf "fork_join: %d nodes, y = %g, expected %g\n" (Graph.node_count graph)
    first !y;
  for i = 0 to n - 1 do
    assert (Bigarray.Genarray.get result [| i |] = !y)
  done
