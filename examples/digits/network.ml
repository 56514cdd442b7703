(* The network in device memory, one step of its training, and its evaluation. *)

open Cuda

let rate = 0.1
let momentum = 0.9

(* Values with the gradient and the velocity that belong to them. *)
type weights = {
  size : int;
  value : Deviceptr.t;
  grad : Deviceptr.t;
  velocity : Deviceptr.t;
}

type t = {
  batch : int;
  hidden : int;
  kernels : (string, Module.func) Hashtbl.t;
  (* the training set, the order of its images, and the number of the step *)
  images : Deviceptr.t;
  labels : Deviceptr.t;
  order : Deviceptr.t;
  step : Deviceptr.t;
  losses : Deviceptr.t;
  (* the layers *)
  w1 : weights;
  b1 : weights;
  w2 : weights;
  b2 : weights;
  (* what a step computes for its batch *)
  x : Deviceptr.t;
  y : Deviceptr.t;
  h : Deviceptr.t;
  z : Deviceptr.t;
  p : Deviceptr.t;
  loss : Deviceptr.t;
  dz : Deviceptr.t;
  dh : Deviceptr.t;
}

let words n = Deviceptr.mem_alloc ~size_in_bytes:(4 * n)
let weights size = { size; value = words size; grad = words size; velocity = words size }

let kernel_names =
  [
    "gather"; "hidden"; "logits"; "softmax"; "mean_loss"; "grad_logits"; "grad_weights";
    "grad_bias"; "grad_hidden"; "update"; "next_step"; "is_right";
  ]
[@@ocamlformat "disable"]

let create ~batch ~hidden ~order ~total_steps =
  let code = Module.load_ptx Files.ptx in
  let kernels = Hashtbl.create 16 in
  List.iter
    (fun name -> Hashtbl.add kernels name (Module.get_function code ~name))
    kernel_names;
  let images, labels = Data.training () in
  {
    batch;
    hidden;
    kernels;
    images = Deviceptr.alloc_and_memcpy images;
    labels = Deviceptr.alloc_and_memcpy labels;
    order = Deviceptr.alloc_and_memcpy order;
    step = words 1;
    losses = words total_steps;
    w1 = weights (Data.pixels * hidden);
    b1 = weights hidden;
    w2 = weights (hidden * Data.classes);
    b2 = weights Data.classes;
    x = words (batch * Data.pixels);
    y = words batch;
    h = words (batch * hidden);
    z = words (batch * Data.classes);
    p = words (batch * Data.classes);
    loss = words batch;
    dz = words (batch * Data.classes);
    dh = words (batch * hidden);
  }

let all_weights t = [ t.w1; t.b1; t.w2; t.b2 ]

(* The first weights of both layers: the same for the same seed, on any machine. *)
let first_weights ~seed ~hidden =
  let state = Random.State.make [| seed; 17 |] in
  let spread ~inputs ~outputs =
    let scale = sqrt (6.0 /. float_of_int inputs) in
    let host = Data.floats (inputs * outputs) in
    for i = 0 to (inputs * outputs) - 1 do
      Bigarray.Genarray.set host [| i |] (scale *. (Random.State.float state 2.0 -. 1.0))
    done;
    host
  in
  let w1 = spread ~inputs:Data.pixels ~outputs:hidden in
  let w2 = spread ~inputs:hidden ~outputs:Data.classes in
  (w1, w2)

(* First weights by a seed, nothing moving, step 0. *)
let reset t ~seed =
  let zero ptr length = Deviceptr.memset_d32 ptr (Unsigned.UInt32.of_int 0) ~length in
  List.iter
    (fun w ->
      zero w.value w.size;
      zero w.velocity w.size)
    (all_weights t);
  let w1, w2 = first_weights ~seed ~hidden:t.hidden in
  Deviceptr.memcpy_H_to_D ~dst:t.w1.value ~src:w1 ();
  Deviceptr.memcpy_H_to_D ~dst:t.w2.value ~src:w2 ();
  zero t.step 1

(* One thread for each of [results] results. *)
let run t stream name ~results arguments =
  let threads = 64 in
  Stream.launch_kernel (Hashtbl.find t.kernels name)
    ~grid_dim_x:((results + threads - 1) / threads)
    ~block_dim_x:threads ~shared_mem_bytes:0 stream arguments

let forward t stream ~n ~x ~h ~z =
  let open Stream in
  run t stream "hidden" ~results:(n * t.hidden)
    [ Tensor x; Tensor t.w1.value; Tensor t.b1.value; Tensor h; Int n; Int Data.pixels; Int t.hidden ];
  run t stream "logits" ~results:(n * Data.classes)
    [ Tensor h; Tensor t.w2.value; Tensor t.b2.value; Tensor z; Int n; Int t.hidden; Int Data.classes ]
[@@ocamlformat "disable"]

(* One step on the next batch: 16 kernels, and nothing for the host to do. *)
let step t stream =
  let open Stream in
  let n = t.batch and pixels = Data.pixels and hidden = t.hidden and classes = Data.classes in
  let launch = run t stream in
  launch "gather" ~results:(n * pixels)
    [ Tensor t.images; Tensor t.labels; Tensor t.order; Tensor t.step; Tensor t.x; Tensor t.y; Int n; Int pixels ];
  forward t stream ~n ~x:t.x ~h:t.h ~z:t.z;
  launch "softmax" ~results:n [ Tensor t.z; Tensor t.y; Tensor t.p; Tensor t.loss; Int n; Int classes ];
  (* One thread makes the sum. *)
  Stream.launch_kernel (Hashtbl.find t.kernels "mean_loss") ~grid_dim_x:1 ~block_dim_x:1
    ~shared_mem_bytes:0 stream [ Tensor t.loss; Tensor t.step; Tensor t.losses; Int n ];
  launch "grad_logits" ~results:(n * classes) [ Tensor t.p; Tensor t.y; Tensor t.dz; Int n; Int classes ];
  launch "grad_weights" ~results:(hidden * classes)
    [ Tensor t.h; Tensor t.dz; Tensor t.w2.grad; Int n; Int hidden; Int classes ];
  launch "grad_bias" ~results:classes [ Tensor t.dz; Tensor t.b2.grad; Int n; Int classes ];
  launch "grad_hidden" ~results:(n * hidden)
    [ Tensor t.dz; Tensor t.w2.value; Tensor t.h; Tensor t.dh; Int n; Int hidden; Int classes ];
  launch "grad_weights" ~results:(pixels * hidden)
    [ Tensor t.x; Tensor t.dh; Tensor t.w1.grad; Int n; Int pixels; Int hidden ];
  launch "grad_bias" ~results:hidden [ Tensor t.dh; Tensor t.b1.grad; Int n; Int hidden ];
  List.iter
    (fun w ->
      launch "update" ~results:w.size
        [ Tensor w.value; Tensor w.velocity; Tensor w.grad; Int w.size; Single rate; Single momentum ])
    (all_weights t);
  Stream.launch_kernel (Hashtbl.find t.kernels "next_step") ~grid_dim_x:1 ~block_dim_x:1
    ~shared_mem_bytes:0 stream [ Tensor t.step ]
[@@ocamlformat "disable"]

(* The losses of all steps so far. *)
let losses t ~steps =
  let host = Data.floats steps in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:t.losses ();
  Array.init steps (fun i -> Bigarray.Genarray.get host [| i |])

(* The part of the test images that the network names rightly. *)
let accuracy t stream =
  let n = Data.tested in
  let images, labels = Data.test () in
  let x = Deviceptr.alloc_and_memcpy images and y = Deviceptr.alloc_and_memcpy labels in
  let h = words (n * t.hidden) and z = words (n * Data.classes) and right = words n in
  forward t stream ~n ~x ~h ~z;
  run t stream "is_right" ~results:n
    [ Tensor z; Tensor y; Tensor right; Int n; Int Data.classes ];
  let host = Data.ints n in
  Stream.memcpy_D_to_H ~dst:host ~src:right stream;
  Stream.synchronize stream;
  let count = ref 0 in
  for i = 0 to n - 1 do
    count := !count + Int32.to_int (Bigarray.Genarray.get host [| i |])
  done;
  float_of_int !count /. float_of_int n
