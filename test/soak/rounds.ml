(* What a domain does again and again. Each round checks the numbers that it computed, destroys little
   and leaves the rest to the garbage collector. *)

open Cuda
open Support

let launches = Atomic.make 0
let captures = Atomic.make 0

(* What the rounds of one domain use. *)
type place = {
  a : Stream.t;
  b : Stream.t;
  random : Random.State.t;
  mutable current : Graph.exec option;  (** Of {!replaced}. *)
  shared : Graph.exec;  (** Counts its launches, by whichever domain. *)
  shared_launches : int Atomic.t;
}

let below place n = Random.State.int place.random n
let choose place list = List.nth list (below place (List.length list))
let mode place = choose place modes

let expect what expected got =
  if expected <> got then
    let text list = String.concat " " (List.map string_of_int list) in
    failwith (Printf.sprintf "%s: expected %s, got %s" what (text expected) (text got))

let capture place s f =
  Atomic.incr captures;
  fst (Graph.with_capture ~mode:(mode place) s f)

let launch exec s =
  Atomic.incr launches;
  Graph.launch exec s

let content host =
  List.init (Bigarray.Genarray.nth_dim host 0) (fun i ->
      Int32.to_int (Bigarray.Genarray.get host [| i |]))

(* The work of [f] goes to [b], as part of what [a] does. *)
let forked place f =
  let { a; b; _ } = place in
  let forked = Event.create () and joined = Event.create () in
  Event.record forked a;
  Event.wait b forked;
  f b;
  Event.record joined b;
  Event.wait a joined

(* Two streams; memory, events and bigarrays that only the graph knows. *)
let fork_join place =
  let { a; _ } = place in
  let start = below place 1000 and times = 1 + below place 8 in
  let seen = ints 2 in
  let make () =
    let host = ints ~value:start 1 in
    let p = Deviceptr.mem_alloc ~size_in_bytes:4 and q = device_ints ~value:1 1 in
    capture place a (fun () ->
        Stream.memcpy_H_to_D ~dst:p ~src:host a;
        forked place (fun b -> append b q 7);
        incr a p;
        let part i = Bigarray.Genarray.sub_left seen i 1 in
        Stream.memcpy_D_to_H ~dst:(part 0) ~src:p a;
        Stream.memcpy_D_to_H ~dst:(part 1) ~src:q a)
  in
  let exec = Graph.instantiate (make ()) in
  for _ = 1 to times do
    launch exec a
  done;
  Stream.synchronize a;
  let rec appended q times =
    if times = 0 then q else appended ((10 * q) + 7) (times - 1)
  in
  expect "fork and join" [ start + 1; appended 1 times ] (content seen)

(* Memory that the graph allocates, freed in the capture or by the next launch. *)
let memory_nodes place =
  let { a; _ } = place in
  let value = below place 1000 and times = 1 + below place 4 in
  let free = Random.State.bool place.random in
  let out = device_ints 1 in
  let graph =
    capture place a (fun () ->
        let p = Stream.mem_alloc a ~size_in_bytes:4096 in
        Stream.memset_d32 p (Unsigned.UInt32.of_int value) ~length:1024 a;
        forked place (fun b -> incr b p);
        Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:out ~src:p a;
        if free then Stream.mem_free a p)
  in
  let exec = Graph.instantiate_with ~auto_free_on_launch:(not free) graph in
  for _ = 1 to times do
    launch exec a
  done;
  let seen = ints 1 in
  Stream.memcpy_D_to_H ~dst:seen ~src:out a;
  Stream.synchronize a;
  expect "memory of a graph" [ value + 1 ] (content seen)

exception Stop

(* A capture whose function raises, mostly with a fork that is not joined back. *)
let raising place =
  let { a; b; _ } = place in
  match
    capture place a (fun () ->
        let p = Stream.mem_alloc a ~size_in_bytes:256 in
        incr a p;
        if Random.State.bool place.random then forked place (fun b -> incr b p);
        let fork = Event.create () in
        Event.record fork a;
        Event.wait b fork;
        raise Stop)
  with
  | _ -> failwith "the exception was lost"
  | exception Stop -> ()

(* A call that the capture forbids. *)
let broken place =
  let { a; _ } = place in
  let p = device_ints 1 in
  match
    capture place a (fun () ->
        incr a p;
        Stream.synchronize a)
  with
  | _ -> failwith "a broken capture gave a graph"
  | exception Cuda_error _ -> ()

(* A stream is dropped while it captures. Until that is found, this thread counts as capturing. *)
let dropped_capture place =
  let mode = mode place in
  let[@inline never] abandon () =
    let s = stream () and p = device_ints 1 in
    Atomic.incr captures;
    Graph.begin_capture ~mode s;
    incr s p;
    if Random.State.bool place.random then ignore (Stream.mem_alloc s ~size_in_bytes:1024)
  in
  abandon ();
  (* Another domain may be the one that closes it. *)
  let rec until_closed tries =
    Gc.full_major ();
    match Deviceptr.mem_alloc ~size_in_bytes:4 with
    | _ -> ()
    | exception Cuda_error _ when tries > 0 ->
        Unix.sleepf 0.001;
        until_closed (tries - 1)
  in
  if mode <> RELAXED then until_closed 100

(* An exec is replaced by one with other parameters while its launch is pending. *)
let replaced place =
  let { a; _ } = place in
  let digit = below place 10 in
  let p = device_ints 1 and seen = ints 1 in
  Option.iter (fun old -> launch old a) place.current;
  let graph =
    capture place a (fun () ->
        append a p digit;
        append a p digit)
  in
  let exec = Graph.instantiate graph in
  if Random.State.bool place.random then Option.iter Graph.exec_destroy place.current;
  if Random.State.bool place.random then Graph.destroy graph;
  place.current <- Some exec;
  launch exec a;
  Stream.memcpy_D_to_H ~dst:seen ~src:p a;
  Stream.synchronize a;
  expect "replaced" [ 11 * digit ] (content seen)

let shared place =
  for _ = 1 to 1 + below place 20 do
    launch place.shared place.b;
    Atomic.incr place.shared_launches
  done

(* No capture: work in flight whose operands are dropped at once. *)
let plain place =
  let { a; _ } = place in
  let start = below place 1000 and seen = ints 1 in
  let p = Stream.mem_alloc a ~size_in_bytes:4 in
  Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:start 1) a;
  forked place (fun b -> incr b p);
  Stream.memcpy_D_to_H ~dst:seen ~src:p a;
  if Random.State.bool place.random then Stream.mem_free a p;
  Stream.synchronize a;
  expect "plain" [ start + 1 ] (content seen)

(* The launched work outlives its module, its memory and its stream. *)
let left_behind _ =
  let s = stream () and p = device_ints 1 in
  let f = kernel ~from:(code ()) "incr" in
  let graph, () =
    Graph.with_capture ~mode:RELAXED s (fun () -> run f s [ Tensor p; Int 1 ])
  in
  Atomic.incr captures;
  launch (Graph.instantiate graph) s;
  Deviceptr.mem_free p

(* Each kind of round, and how often it comes. *)
let kinds =
  [
    ("fork_join", 6, fork_join);
    ("memory_nodes", 4, memory_nodes);
    ("raising", 3, raising);
    ("broken", 2, broken);
    ("dropped_capture", 2, dropped_capture);
    ("replaced", 6, replaced);
    ("shared", 4, shared);
    ("plain", 4, plain);
    ("left_behind", 1, left_behind);
  ]

(* CUDAGRAPH_SOAK_ROUNDS names the kinds that are wanted, with commas between. *)
let wanted =
  match Sys.getenv_opt "CUDAGRAPH_SOAK_ROUNDS" with
  | None -> kinds
  | Some names ->
      let names = String.split_on_char ',' names in
      let kind name =
        match List.find_opt (fun (known, _, _) -> known = name) kinds with
        | Some kind -> kind
        | None -> failwith ("CUDAGRAPH_SOAK_ROUNDS: no round is called " ^ name)
      in
      List.map kind names

let all = List.concat_map (fun (_, n, round) -> List.init n (fun _ -> round)) wanted

let one place =
  (choose place all) place;
  if below place 100 = 0 then Gc.full_major ()

(* At the end of a domain: a capture that nobody ends. *)
let leave place =
  Graph.begin_capture ~mode:(mode place) place.a;
  incr place.a (Stream.mem_alloc place.a ~size_in_bytes:64)
