(* A service on several domains: each has its own stream, and all launch one exec.

   The launches of one exec run one after the other, whichever streams they are made on, so the
   requests may share its memory. *)

open Cuda

let n = 1024
let workers = 4
let requests = 400
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))

(* What waits to be done. [None] tells a worker to end. *)
let queue : int option Queue.t = Queue.create ()
let mutex = Mutex.create ()
let filled = Condition.create ()

let put request =
  Mutex.protect mutex (fun () ->
      Queue.add request queue;
      Condition.signal filled)

let take () =
  Mutex.protect mutex (fun () ->
      while Queue.is_empty queue do
        Condition.wait filled mutex
      done;
      Queue.take queue)

(* How many requests this domain has served. *)
let worker context exec () =
  (* The current context belongs to a thread: each domain sets it. *)
  Context.set_current context;
  let stream = Stream.create ~non_blocking:true () in
  let rec serve count =
    match take () with
    | Some request ->
        Graph.launch exec stream;
        (* Every now and then, so that what is enqueued stays bounded. *)
        if request mod 16 = 0 then Stream.synchronize stream;
        serve (count + 1)
    | None ->
        Stream.synchronize stream;
        count
  in
  serve 0

let () =
  Cuda.init ();
  let context = Context.get_primary (Device.get ~ordinal:0) in
  Context.set_current context;
  let kernels = Module.load_ptx Saxpy_ptx.text in
  let launch name stream arguments =
    Stream.launch_kernel
      (Module.get_function kernels ~name)
      ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0 stream arguments
  in
  let x = Deviceptr.alloc_and_memcpy (floats 1.0) in
  let y = Deviceptr.alloc_and_memcpy (floats 0.0) in
  let stream = Stream.create ~non_blocking:true () in
  let graph, () =
    Graph.with_capture stream (fun () ->
        launch "saxpy" stream [ Single 2.0; Tensor x; Tensor y; Int n ];
        launch "increment" stream [ Tensor y; Int n ])
  in
  let exec = Graph.instantiate graph in
  let domains = List.init workers (fun _ -> Domain.spawn (worker context exec)) in
  for request = 1 to requests do
    put (Some request)
  done;
  List.iter (fun _ -> put None) domains;
  let served = List.map Domain.join domains in
  let result = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:result ~src:y ();
  let total = List.fold_left ( + ) 0 served in
  let first = Bigarray.Genarray.get result [| n - 1 |] in
  Printf.printf "service: %d requests on %d domains, y = %g, expected %d\n" total workers
    first (3 * requests);
  assert (total = requests && first = float_of_int (3 * requests))
