(* The first steps of the training once more, in plain OCaml and double precision: the losses of the graph
   must be those, but for rounding. A wrong gradient shows from the second step on. *)

open Cuda

let batch = 50
let hidden = 32
let seed = 3
let steps = 40
let tolerance = 1e-4

(* A matrix by rows, with the velocity of each value. *)
type weights = { rows : int; columns : int; value : float array; velocity : float array }

let weights rows columns first =
  let velocity = Array.make (rows * columns) 0.0 in
  { rows; columns; value = Array.init (rows * columns) first; velocity }

let get w row column = w.value.((row * w.columns) + column)
let sum n f = Seq.fold_left (fun sum i -> sum +. f i) 0.0 (Seq.init n Fun.id)

(* b + x w, for one image. *)
let affine w b x =
  Array.init w.columns (fun unit ->
      get b 0 unit +. sum w.rows (fun k -> x.(k) *. get w k unit))

let softmax z =
  let largest = Array.fold_left max neg_infinity z in
  let e = Array.map (fun value -> exp (value -. largest)) z in
  let total = Array.fold_left ( +. ) 0.0 e in
  Array.map (fun value -> value /. total) e

(* [gradient row column] is the gradient by one value. *)
let update w gradient =
  for i = 0 to Array.length w.value - 1 do
    let slope = gradient (i / w.columns) (i mod w.columns) in
    w.velocity.(i) <- (Network.momentum *. w.velocity.(i)) -. (Network.rate *. slope);
    w.value.(i) <- w.value.(i) +. w.velocity.(i)
  done

(* One step on the images with these numbers: the mean loss before it. *)
let step (w1, b1, w2, b2) images =
  let n = float_of_int (Array.length images) in
  let one image =
    let x, digit = Data.image_and_label image in
    let h = Array.map (max 0.0) (affine w1 b1 x) in
    let p = softmax (affine w2 b2 h) in
    let dz = Array.mapi (fun k p -> (p -. if k = digit then 1.0 else 0.0) /. n) p in
    let back unit =
      if h.(unit) > 0.0 then sum Data.classes (fun k -> dz.(k) *. get w2 unit k) else 0.0
    in
    (x, h, dz, Array.init hidden back, -.log p.(digit))
  in
  let all = Array.map one images in
  let total f = Array.fold_left (fun sum image -> sum +. f image) 0.0 all in
  update w2 (fun row column -> total (fun (_, h, dz, _, _) -> h.(row) *. dz.(column)));
  update b2 (fun _ column -> total (fun (_, _, dz, _, _) -> dz.(column)));
  update w1 (fun row column -> total (fun (x, _, _, dh, _) -> x.(row) *. dh.(column)));
  update b1 (fun _ column -> total (fun (_, _, _, dh, _) -> dh.(column)));
  total (fun (_, _, _, _, loss) -> loss) /. n

let expected order =
  let w1, w2 = Network.first_weights ~seed ~hidden in
  let value host i = Bigarray.Genarray.get host [| i |] in
  let zero _ = 0.0 in
  let network =
    ( weights Data.pixels hidden (value w1),
      weights 1 hidden zero,
      weights hidden Data.classes (value w2),
      weights 1 Data.classes zero )
  in
  let image i = Int32.to_int (Bigarray.Genarray.get order [| i |]) in
  Array.init steps (fun s ->
      step network (Array.init batch (fun i -> image ((s * batch) + i))))

let by_graph order =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let network = Network.create ~batch ~hidden ~order ~total_steps:steps in
  let stream = Stream.create ~non_blocking:true () in
  Network.reset network ~seed;
  let graph, () = Graph.with_capture stream (fun () -> Network.step network stream) in
  let exec = Graph.instantiate graph in
  for _ = 1 to steps do
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  Network.losses network ~steps

let () =
  let order = Data.orders ~seed ~epochs:1 ~steps ~batch in
  let expected = expected order and found = by_graph order in
  let worst = ref 0.0 in
  for step = 0 to steps - 1 do
    let error = abs_float (found.(step) -. expected.(step)) in
    (* Written so that a NaN fails too. *)
    if not (error <= tolerance) then (
      Printf.eprintf "check_losses: step %d: loss %.6f, expected %.6f\n" step found.(step)
        expected.(step);
      exit 1);
    worst := max !worst error
  done;
  Printf.printf
    "check_losses: %d steps, loss %.4f to %.4f, within %.1e of plain OCaml's on %s\n"
    steps found.(0)
    found.(steps - 1)
    !worst (driver_description ())
