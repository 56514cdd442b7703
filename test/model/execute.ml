(* Making the calls of a plan. *)

open Cuda
open Support
open Program
open Plan

exception Wrong of string

let wrong format = Printf.ksprintf (fun text -> raise (Wrong text)) format

(* The things of one domain, by name. What is taken out can be collected. *)
type things = {
  buffers : (int, Deviceptr.t) Hashtbl.t;
  hosts :
    (int, (int32, Bigarray.int32_elt, Bigarray.c_layout) Bigarray.Genarray.t) Hashtbl.t;
  streams : (int, Stream.t) Hashtbl.t;
  events : (int, Event.t) Hashtbl.t;
  graphs : (int, Graph.t) Hashtbl.t;
  execs : (int, Graph.exec) Hashtbl.t;
}

let things () =
  let table () = Hashtbl.create 8 in
  {
    buffers = table ();
    hosts = table ();
    streams = table ();
    events = table ();
    graphs = table ();
    execs = table ();
  }

let bytes = 4 * elements
let in_uint n = Unsigned.UInt32.of_int (n land 0xffffffff)
let fill s p value = Stream.memset_d32 p (in_uint value) ~length:elements s
let copy s ~dst ~src = Stream.memcpy_D_to_D ~size_in_bytes:bytes ~dst ~src s
let incr_by f s p = run f s [ Tensor p; Int elements ]
let scratch_memory = lazy (device_ints 1)

let work t s w =
  let buffer = Hashtbl.find t.buffers and host = Hashtbl.find t.hosts in
  match w with
  | Incr b -> incr_by (Lazy.force incr_kernel) s (buffer b)
  | Incr_by_own_module b -> incr_by (kernel "incr") s (buffer b)
  | Append (b, d) ->
      run (Lazy.force append_kernel) s [ Tensor (buffer b); Int d; Int elements ]
  | Fill (b, v) -> fill s (buffer b) v
  | Copy { dst; src } -> copy s ~dst:(buffer dst) ~src:(buffer src)
  | Upload { host = h; dst } -> Stream.memcpy_H_to_D ~dst:(buffer dst) ~src:(host h) s
  | Download { src; host = h } -> Stream.memcpy_D_to_H ~dst:(host h) ~src:(buffer src) s
  | Scratch { dst; value } ->
      let p = Stream.mem_alloc s ~size_in_bytes:bytes in
      fill s p value;
      copy s ~dst:(buffer dst) ~src:p;
      Stream.mem_free s p
  | Busy ->
      run (Lazy.force busy_kernel) ~threads:1 s
        [ Tensor (Lazy.force scratch_memory); Int 5_000 ]

let order ~before ~after =
  let e = Event.create () in
  Event.record e before;
  Event.wait after e

let poison () =
  Gc.full_major ();
  let make i =
    let p = Deviceptr.mem_alloc ~size_in_bytes:(16 lsl (i mod 3)) in
    Deviceptr.memset_d8 p (Unsigned.UChar.of_int 0xAB) ~length:16;
    p
  in
  let poisoned = List.init 6 make in
  let host = List.init 8 (fun _ -> ints ~value:0x0BAD0BAD elements) in
  List.iter Deviceptr.mem_free poisoned;
  ignore (Sys.opaque_identity host)

let clean = function
  | Minor -> Gc.minor ()
  | Major -> Gc.full_major ()
  | Compact -> Gc.compact ()
  | Poison -> poison ()

let forget t thing n =
  match thing with
  | Buffer -> Hashtbl.remove t.buffers n
  | Host -> Hashtbl.remove t.hosts n
  | Stream -> Hashtbl.remove t.streams n
  | Event -> Hashtbl.remove t.events n
  | Graph -> Hashtbl.remove t.graphs n
  | Exec -> Hashtbl.remove t.execs n

let must_fail what f =
  match f () with _ -> wrong "%s raises nothing" what | exception Cuda_error _ -> ()

(* Until a dropped stream is collected, and a call gives it back, its thread captures. *)
let collect_captures () =
  Gc.full_major ();
  ignore (Event.create ());
  (* Another domain's call may be the one that gives it back, and not be done with it; asking would break
     the capture that this may be inside of. *)
  for _ = 1 to 4 do
    Unix.sleepf 0.001;
    ignore (Event.create ())
  done

let expect name got values =
  if got <> values then
    wrong "%s is [ %s ] and not [ %s ]" name (Show.ints got) (Show.ints values)

let rec call t = function
  | Make_buffer (b, value) -> Hashtbl.add t.buffers b (device_ints ~value elements)
  | Make_pool_buffer { buffer; stream; value } ->
      let s = Hashtbl.find t.streams stream in
      let p = Stream.mem_alloc s ~size_in_bytes:bytes in
      fill s p value;
      Hashtbl.add t.buffers buffer p
  | Make_host (h, value) -> Hashtbl.add t.hosts h (ints ~value elements)
  | Make_stream s -> Hashtbl.add t.streams s (Support.stream ())
  | Make_event e -> Hashtbl.add t.events e (Event.create ())
  | Do (w, s) -> work t (Hashtbl.find t.streams s) w
  | Order { before; after } ->
      order ~before:(Hashtbl.find t.streams before) ~after:(Hashtbl.find t.streams after)
  | Mark { event; stream } ->
      Event.record (Hashtbl.find t.events event) (Hashtbl.find t.streams stream)
  | Await { stream; event } ->
      Event.wait (Hashtbl.find t.streams stream) (Hashtbl.find t.events event)
  | Ask_event e -> ignore (Event.query (Hashtbl.find t.events e))
  | Ask_stream s -> ignore (Stream.is_ready (Hashtbl.find t.streams s))
  | Wait_stream s -> Stream.synchronize (Hashtbl.find t.streams s)
  | Wait_event e -> Event.synchronize (Hashtbl.find t.events e)
  | Wait_all -> ( try Context.synchronize () with Cuda_error _ -> ())
  | Give_back b ->
      Deviceptr.mem_free (Hashtbl.find t.buffers b);
      Hashtbl.remove t.buffers b
  | Give_back_on { stream; buffer } ->
      Stream.mem_free (Hashtbl.find t.streams stream) (Hashtbl.find t.buffers buffer);
      Hashtbl.remove t.buffers buffer
  | Forget (thing, n) -> forget t thing n
  | Clean c -> clean c
  | Record { stream; mode; graph; nodes; calls; finish } ->
      record t ~stream ~mode ~graph ~nodes ~calls finish
  | Make_exec { graph; exec } ->
      Hashtbl.add t.execs exec (Graph.instantiate (Hashtbl.find t.graphs graph))
  | Run { exec; stream } ->
      Graph.launch (Hashtbl.find t.execs exec) (Hashtbl.find t.streams stream)
  | End_graph g ->
      Graph.destroy (Hashtbl.find t.graphs g);
      Hashtbl.remove t.graphs g
  | End_exec x ->
      Graph.exec_destroy (Hashtbl.find t.execs x);
      Hashtbl.remove t.execs x
  | Expect (b, values) ->
      expect (Printf.sprintf "b%d" b) (read ~n:elements (Hashtbl.find t.buffers b)) values
  | Expect_host (h, values) ->
      let host = Hashtbl.find t.hosts h in
      let at i = Int32.to_int (Bigarray.Genarray.get host [| i |]) in
      expect (Printf.sprintf "h%d" h) (List.init elements at) values
  | Expect_refusal b ->
      must_fail "a synchronous copy in a capture" (fun () ->
          read (Hashtbl.find t.buffers b))

and record t ~stream ~mode ~graph ~nodes ~calls finish =
  let s = Hashtbl.find t.streams stream in
  let body () = List.iter (call t) calls in
  let end_fails () = must_fail "end_capture" (fun () -> Graph.end_capture s) in
  match finish with
  | Ended ->
      let g, () = Graph.with_capture ~mode s body in
      if Graph.node_count g <> nodes then
        wrong "g%d has %d nodes and not %d" graph (Graph.node_count g) nodes;
      Hashtbl.add t.graphs graph g
  | Raised -> (
      match
        Graph.with_capture ~mode s (fun () ->
            body ();
            raise Exit)
      with
      | _ -> wrong "no exception"
      | exception Exit -> ())
  | Broken ->
      Graph.begin_capture ~mode s;
      body ();
      must_fail "waiting for a stream that captures" (fun () -> Stream.synchronize s);
      end_fails ()
  | Unjoined ->
      Graph.begin_capture ~mode s;
      body ();
      end_fails ()
  | Dropped ->
      Graph.begin_capture ~mode s;
      body ();
      Hashtbl.remove t.streams stream;
      collect_captures ()

(* All calls of a domain, or the first one that went wrong. *)
let domain calls =
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let t = things () in
  let rec go = function
    | [] -> None
    | c :: rest -> (
        match call t c with
        | () -> go rest
        | exception e ->
            let what = String.concat "\n  " (Show.lines "  " c) in
            let why = match e with Wrong text -> text | e -> Printexc.to_string e in
            Some (Printf.sprintf "%s\n  in\n%s" why what))
  in
  go calls

let before_all () =
  List.iter
    (fun f -> ignore (Sys.opaque_identity (Lazy.force f)))
    [ incr_kernel; append_kernel; busy_kernel ];
  ignore (Lazy.force scratch_memory)

(* What is live when all that can go has gone. *)
let live () =
  Gc.full_major ();
  Context.synchronize ();
  Simulator.ledger ()

(* Whether nothing more is live than before. Tried a few times: a stream may have had work. *)
let is_settled before =
  let rec go tries =
    match live () with
    | now when now = before -> true
    | _ | (exception Cuda_error _) -> tries > 0 && go (tries - 1)
  in
  go 4

(* Runs a plan. [Some text] says what was wrong: a value, an exception, a use of what was gone, or
   something left over, compared with [before]. *)
let program ~before plan =
  let faults = Simulator.faults () and dead = Simulator.bad_handles () in
  let outcomes =
    match plan with
    | [] -> []
    | first :: others ->
        let spawned =
          List.map (fun calls -> Domain.spawn (fun () -> domain calls)) others
        in
        let mine = domain first in
        mine :: List.map Domain.join spawned
  in
  let misused =
    if Simulator.faults () > faults then [ "memory was used that was gone" ]
    else if Simulator.bad_handles () > dead then [ "a handle was used that was gone" ]
    else []
  in
  let left () =
    if is_settled before then []
    else
      match live () with
      | now ->
          List.filter_map
            (fun (kind, n) ->
              let was = List.assoc kind before in
              if n = was then None
              else Some (Printf.sprintf "%d of kind %s are left over" (n - was) kind))
            now
      | exception e -> [ "at the end: " ^ Printexc.to_string e ]
  in
  let wrong = List.filter_map Fun.id outcomes @ misused in
  let wrong = if wrong = [] then left () else wrong in
  if wrong = [] then None else Some (String.concat "\n" wrong)
