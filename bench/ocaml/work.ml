(* The measures: what is called in a burst. floor/src/work.rs has the same in the same order, made of
   driver calls alone. *)

open Cuda

type t = {
  stream : Stream.t;
  other : Stream.t;  (** waits for events of [stream] *)
  one : Module.func;
  five : Module.func;
  twelve : Module.func;
  x : Deviceptr.t;
  y : Deviceptr.t;
  host : (float, Bigarray.float32_elt, Bigarray.c_layout) Bigarray.Genarray.t;
  event : Event.t;
}
(** What one domain works with. *)

type measure = {
  run : int -> unit;  (** makes so many calls *)
  settle : unit -> unit;  (** waits for them and lets go what they made; not timed *)
  parts : int;  (** a call has so many parts, and its time is given for one part *)
}

let words = 256
let bytes = 4 * words
let stride = Unsigned.Size_t.one

let create () =
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let kernels = Module.load_ptx Kernels_ptx.text in
  let kernel name = Module.get_function kernels ~name in
  let host = Bigarray.(Genarray.init float32 c_layout [| words |] (fun _ -> 1.0)) in
  {
    stream = Stream.create ~non_blocking:true ();
    other = Stream.create ~non_blocking:true ();
    one = kernel "one";
    five = kernel "five";
    twelve = kernel "twelve";
    x = Deviceptr.alloc_and_memcpy host;
    y = Deviceptr.alloc_and_memcpy host;
    host;
    event = Event.create ();
  }

let launch_one { one; stream; y; _ } =
  Stream.launch_kernel one ~grid_dim_x:1 ~block_dim_x:32 ~shared_mem_bytes:0 stream
    [ Tensor y ]

let launch_five { five; stream; x; y; _ } =
  Stream.launch_kernel five ~grid_dim_x:1 ~block_dim_x:32 ~shared_mem_bytes:0 stream
    [ Tensor y; Tensor x; Int 0; Single 2.0; Size_t stride ]

let launch_twelve { twelve; stream; x; y; _ } =
  Stream.launch_kernel twelve ~grid_dim_x:1 ~block_dim_x:32 ~shared_mem_bytes:0 stream
    [
      Tensor y;
      Tensor x;
      Tensor x;
      Tensor x;
      Int 0;
      Int 1;
      Single 2.0;
      Single 3.0;
      Double 4.0;
      Double 5.0;
      Size_t stride;
      Size_t stride;
    ]

let wait w =
  Stream.synchronize w.stream;
  Stream.synchronize w.other

(* A measure whose calls only enqueue. *)
let enqueuing w call =
  let run count =
    for _ = 1 to count do
      call w
    done
  in
  { run; settle = (fun () -> wait w); parts = 1 }

let enqueue w nodes =
  for _ = 1 to nodes do
    launch_five w
  done

let capture w nodes =
  Graph.begin_capture ~mode:THREAD_LOCAL w.stream;
  enqueue w nodes;
  Graph.end_capture w.stream

let graph w nodes =
  let graph = capture w nodes in
  if Graph.node_count graph <> nodes then failwith "a captured graph lacks nodes";
  graph

(* A measure whose calls make things, which are destroyed outside of the time. *)
let making ~parts make destroy =
  let made = ref [||] in
  let run count =
    if Array.length !made < count then made := Array.make count None;
    for i = 0 to count - 1 do
      Array.unsafe_set !made i (Some (make ()))
    done
  in
  let settle () =
    Array.iter (Option.iter destroy) !made;
    Array.fill !made 0 (Array.length !made) None
  in
  { run; settle; parts }

let measure w kind size =
  match (kind, size) with
  | "launch", 1 -> enqueuing w launch_one
  | "launch", 5 -> enqueuing w launch_five
  | "launch", 12 -> enqueuing w launch_twelve
  | "graph", nodes ->
      let exec = Graph.instantiate (graph w nodes) in
      enqueuing w (fun w -> Graph.launch exec w.stream)
  | "capture", nodes -> making ~parts:nodes (fun () -> capture w nodes) Graph.destroy
  | "instantiate", nodes ->
      let graph = graph w nodes in
      making ~parts:1 (fun () -> Graph.instantiate graph) Graph.exec_destroy
  | "stream", nodes ->
      enqueuing w (fun w ->
          enqueue w nodes;
          Stream.synchronize w.stream)
  | "replay", nodes ->
      let exec = Graph.instantiate (graph w nodes) in
      enqueuing w (fun w ->
          Graph.launch exec w.stream;
          Stream.synchronize w.stream)
  | "event_record", _ -> enqueuing w (fun w -> Event.record w.event w.stream)
  | "event_pair", _ ->
      enqueuing w (fun w ->
          Event.record w.event w.stream;
          Event.wait w.other w.event)
  | "h2d", _ -> enqueuing w (fun w -> Stream.memcpy_H_to_D ~dst:w.y ~src:w.host w.stream)
  | "d2h", _ -> enqueuing w (fun w -> Stream.memcpy_D_to_H ~dst:w.host ~src:w.y w.stream)
  | "d2d", _ ->
      enqueuing w (fun w ->
          Stream.memcpy_D_to_D ~size_in_bytes:bytes ~dst:w.y ~src:w.x w.stream)
  | "memset", _ ->
      enqueuing w (fun w ->
          Stream.memset_d32 w.y Unsigned.UInt32.zero ~length:words w.stream)
  | _ -> Printf.ksprintf failwith "there is no measure %s_%d" kind size

(* [find w "graph_10"]; a name without a number has size 0. *)
let find w name =
  let number from =
    int_of_string_opt (String.sub name from (String.length name - from))
  in
  match String.rindex_opt name '_' with
  | Some at when number (at + 1) <> None ->
      measure w (String.sub name 0 at) (Option.get (number (at + 1)))
  | _ -> measure w name 0
