(* Programs for the sweep. Each is given a stream of its own, does some work, and raises [Failure]
   for a wrong result; the errors of the driver go through. Whatever happens, it leaves nothing. *)

open Cuda
open Support

let expect name pp wanted got =
  if wanted <> got then
    failwith (Printf.sprintf "%s: %s instead of %s" name (pp got) (pp wanted))

let pp_ints list = String.concat " " (List.map string_of_int list)
let expect_ints name wanted got = expect name pp_ints wanted got
let expect_int name = expect name string_of_int
let expect_bool name = expect name string_of_bool
let capture ?mode s f = fst (Graph.with_capture ?mode s f)

let collect () =
  Gc.full_major ();
  Gc.full_major ()

let set s p value ~n = Stream.memset_d32 p (Unsigned.UInt32.of_int value) ~length:n s
let copy s ~dst ~src = Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst ~src s

(* What a program would see if the call had been refused for its own fault. *)
let must_fail name f =
  match f () with
  | _ -> failwith (name ^ ": no error")
  | exception Cuda_error { status; _ } -> status_name status

let work s =
  let host = ints ~value:5 8 and result = ints 8 in
  let p = Deviceptr.mem_alloc ~size_in_bytes:32 in
  Stream.memcpy_H_to_D ~dst:p ~src:host s;
  incr ~n:8 s p;
  append s p 3;
  Stream.memcpy_D_to_H ~dst:result ~src:p s;
  Stream.synchronize s;
  let at i = Int32.to_int (Bigarray.Genarray.get result [| i |]) in
  expect_ints "copied, incremented, copied" [ 63; 6 ] [ at 0; at 7 ]

let synchronous _ =
  let p = device_ints ~value:1 4 and q = device_ints 4 in
  Deviceptr.memset_d8 p (Unsigned.UChar.of_int 1) ~length:4;
  Deviceptr.memset_d16 ~offset:4 p (Unsigned.UShort.of_int 2) ~length:2;
  Deviceptr.memset_d32 ~offset:8 p (Unsigned.UInt32.of_int 3) ~length:1;
  Deviceptr.memcpy_D_to_D ~size_in_bytes:16 ~dst:q ~src:p ();
  Context.synchronize ();
  expect_ints "filled and copied" [ 0x01010101; 0x00020002; 3; 1 ] (read ~n:4 q);
  Deviceptr.mem_free p;
  Deviceptr.mem_free q

let fills s =
  let p = device_ints 4 in
  Stream.memset_d8 p (Unsigned.UChar.of_int 1) ~length:16 s;
  Stream.memset_d16 ~offset:4 p (Unsigned.UShort.of_int 2) ~length:2 s;
  Stream.memset_d32 ~offset:8 p (Unsigned.UInt32.of_int 3) ~length:1 s;
  Stream.synchronize s;
  expect_ints "filled" [ 0x01010101; 0x00020002; 3; 0x01010101 ] (read ~n:4 p)

let events s =
  let other = stream () and p = device_ints 1 in
  let first = Event.create ~enable_timing:true () in
  let last = Event.create ~enable_timing:true () in
  Event.record first s;
  append s p 1;
  Event.record last s;
  Event.wait other last;
  append other p 2;
  ignore (Event.query first);
  Event.synchronize last;
  if Event.elapsed_time ~start:first ~end_:last < 0. then failwith "time runs backwards";
  Stream.synchronize other;
  Stream.synchronize s;
  ignore (Stream.is_ready s);
  expect_ints "in order" [ 12 ] (read p)

let delimited_events s =
  let other = stream () and p = device_ints 1 in
  append s p 1;
  let e = Delimited_event.record s in
  Delimited_event.wait other e;
  append other p 2;
  ignore (Delimited_event.query e);
  Delimited_event.synchronize e;
  let dropped = Delimited_event.record other in
  Stream.synchronize other;
  expect_bool "released" true (Delimited_event.is_released dropped);
  expect_ints "in order" [ 12 ] (read p)

let modules s =
  let m = code () in
  let f = Module.get_function m ~name:"bump_table" in
  let table, size = Module.get_global m ~name:"table" in
  expect_int "its size" 64 (Unsigned.Size_t.to_int size);
  let attributes = Module.Func.get_attributes f in
  if attributes.max_threads_per_block < 32 then failwith "too few threads";
  Module.Func.set_max_dynamic_shared_size f 1024;
  if Module.Func.max_active_blocks ~block_size:32 f < 1 then failwith "no block fits";
  if (Module.Func.suggest_launch f).block_dim_x < 1 then failwith "no block size";
  run f ~threads:1 s [ Int 2 ];
  Stream.synchronize s;
  expect_ints "the variable" [ 1; 2; 4; 4 ] (read ~n:4 table);
  ignore
    (must_fail "a kernel that is not there" (fun () -> Module.get_function m ~name:"none"));
  ignore (must_fail "PTX that is none" (fun () -> Module.load_ptx "nonsense"))

(* Begun and ended by hand, launched, destroyed. *)
let graph mode s =
  let p = device_ints 1 in
  Graph.begin_capture ~mode s;
  append s p 1;
  expect_bool "capturing" true (Stream.is_capturing s);
  append s p 2;
  let graph = Graph.end_capture s in
  expect_bool "over" false (Stream.is_capturing s);
  expect_int "nodes" 2 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  Graph.launch exec s;
  Graph.launch exec s;
  Stream.synchronize s;
  Graph.exec_destroy exec;
  expect_ints "twice" [ 1212 ] (read p)

(* Only the graph knows its kernel, its memory and its host bytes. *)
let retained s =
  let seen = device_ints 1 in
  let make () =
    let p = device_ints 1 and host = ints ~value:40 1 and f = kernel "incr" in
    capture s (fun () ->
        Stream.memcpy_H_to_D ~dst:p ~src:host s;
        run f s [ Tensor_at (Deviceptr.offset p ~bytes:0); Int 1 ];
        incr s p;
        copy s ~dst:seen ~src:p)
  in
  let exec = Graph.instantiate (make ()) in
  collect ();
  Graph.launch exec s;
  Stream.synchronize s;
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "from what only the graph has" [ 42 ] (read seen)

(* A capture over three streams, by events. *)
let fork mode s =
  let p = device_ints 1 and q = device_ints 1 and r = device_ints 1 in
  let make () =
    let left = stream () and right = stream () in
    capture ~mode s (fun () ->
        append s p 1;
        let forked = Event.create () in
        Event.record forked s;
        Event.wait left forked;
        Event.wait right forked;
        append left q 2;
        append right r 3;
        let join other =
          let e = Event.create () in
          Event.record e other;
          Event.wait s e
        in
        join left;
        join right;
        append s q 4;
        append s r 5)
  in
  let graph = make () in
  expect_int "nodes" 5 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  collect ();
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "each branch" [ 1; 24; 35 ] (List.concat_map (fun x -> read x) [ p; q; r ])

(* Broken by a call of its own thread, unjoined, left by an exception, left by a drop. *)
let broken s =
  let p = device_ints 1 in
  Graph.begin_capture s;
  incr s p;
  (match Stream.synchronize s with
  | () -> failwith "a stream that captures cannot be waited for"
  | exception Cuda_error { status; _ }
    when contains (status_name status) "STREAM_CAPTURE_UNSUPPORTED" ->
      ());
  ignore (must_fail "the end of a broken capture" (fun () -> Graph.end_capture s));
  expect_bool "over" false (Stream.is_capturing s);
  expect_ints "nothing ran" [ 0 ] (read p)

let unjoined s =
  let p = device_ints 1 and other = stream () and e = Event.create () in
  Graph.begin_capture s;
  incr s p;
  Event.record e s;
  Event.wait other e;
  incr other p;
  ignore (must_fail "the end of an unjoined capture" (fun () -> Graph.end_capture s));
  Stream.synchronize other;
  expect_ints "nothing ran" [ 0 ] (read p)

let left_by_exception mode s =
  let p = device_ints 1 in
  (match
     Graph.with_capture ~mode s (fun () ->
         incr s p;
         raise Not_found)
   with
  | _ -> failwith "no exception"
  | exception Not_found -> ());
  expect_bool "over" false (Stream.is_capturing s);
  expect_ints "nothing ran" [ 0 ] (read p)

let left_by_drop s =
  let p = device_ints 1 in
  let leave () =
    let own = stream () in
    Graph.begin_capture ~mode:RELAXED own;
    incr own p
  in
  leave ();
  collect ();
  incr s p;
  Stream.synchronize s;
  expect_ints "the dropped one did nothing" [ 1 ] (read p)

(* The same, where memory that was allocated on the stream is still in use. *)
let left_with_memory s =
  let leave () =
    let own = stream () in
    let p = Stream.mem_alloc own ~size_in_bytes:4 in
    set own p 6 ~n:1;
    Stream.synchronize own;
    Graph.begin_capture own;
    set own p 7 ~n:1;
    p
  in
  let p = leave () in
  collect ();
  ignore (Event.create ());
  (* Refused to a thread that captures. *)
  let q = device_ints 1 in
  copy s ~dst:q ~src:p;
  Stream.synchronize s;
  expect_ints "the captured fill did not run" [ 6 ] (read q)

(* Refused, and the capture goes on. *)
let refused s =
  let p = device_ints 1 in
  let refuse name f = ignore (must_fail name f) in
  let graph =
    capture s (fun () ->
        incr s p;
        refuse "a synchronous copy" (fun () -> ignore (read p));
        refuse "the NULL stream" (fun () -> incr Stream.no_stream p);
        incr s p)
  in
  expect_int "nodes" 2 (Graph.node_count graph);
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  expect_ints "both" [ 2 ] (read p)

(* Things go inside a capture, by hand and by the collector. *)
let releases_in_capture mode s =
  let p = device_ints 1 and q = device_ints 1 in
  let graph1 = capture s (fun () -> incr s p) in
  let exec1 = Graph.instantiate graph1 in
  let rubbish () =
    let own = stream () in
    ignore (Graph.instantiate (capture own (fun () -> incr own p)));
    ignore (code (), Event.create (), device_ints 1)
  in
  rubbish ();
  let graph =
    capture ~mode s (fun () ->
        incr s p;
        Graph.destroy graph1;
        Graph.exec_destroy exec1;
        Deviceptr.mem_free q;
        collect ();
        ignore (Event.create ());
        incr s p)
  in
  expect_int "nodes" 2 (Graph.node_count graph);
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  expect_ints "both" [ 2 ] (read p)

(* An event stays for the work that marks it: pending work, and a node of a graph. *)
let retained_events s =
  let p = device_ints 1 in
  let before = Simulator.live "event" in
  let is_kept name =
    collect ();
    (* An ordinary call, which gives back what was found. *)
    ignore (stream ());
    if Simulator.live "event" <= before then failwith (name ^ ": the event is gone")
  in
  Simulator.paused (fun () ->
      incr s p;
      Event.record (Event.create ()) s;
      is_kept "pending");
  Stream.synchronize s;
  let graph =
    capture s (fun () ->
        incr s p;
        Event.record ~external_:true (Event.create ()) s)
  in
  is_kept "captured";
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  is_kept "in an exec";
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "it ran" [ 2 ] (read p)

(* The collector gives nothing back by itself: it may run in the midst of any call. *)
let silent_collector s =
  let rubbish () =
    let own = stream () and p = device_ints 1 in
    ignore (Graph.instantiate (capture own (fun () -> incr own p)));
    ignore (code (), Event.create (), Stream.mem_alloc own ~size_in_bytes:4)
  in
  rubbish ();
  Stream.synchronize s;
  rubbish ();
  let before = Simulator.calls_of_all () in
  collect ();
  Gc.compact ();
  expect_int "driver calls" before (Simulator.calls_of_all ());
  Context.synchronize ();
  if Simulator.calls "cuGraphExecDestroy" = 0 then failwith "nothing was given back"

(* Freed by hand while a graph uses it. *)
let freed_by_hand s =
  let p = device_ints 1 and seen = device_ints 1 in
  let exec =
    Graph.instantiate
      (capture s (fun () ->
           incr s p;
           copy s ~dst:seen ~src:p))
  in
  Deviceptr.mem_free p;
  (match read p with
  | _ -> failwith "freed memory was read"
  | exception Invalid_argument _ -> ());
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "the graph still has it" [ 1 ] (read seen)

(* Stream, exec, memory and event go while work is pending. *)
let dropped_pending _ =
  let seen = device_ints 1 in
  let make () =
    let own = stream () and p = device_ints 1 in
    let exec =
      Graph.instantiate
        (capture own (fun () ->
             incr own p;
             copy own ~dst:seen ~src:p))
    in
    run (kernel "incr") own [ Tensor p; Int 1 ];
    Graph.launch exec own;
    Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:9 1) own;
    Event.record (Event.create ()) own
  in
  make ();
  collect ();
  Context.synchronize ();
  expect_ints "it was done" [ 2 ] (read seen)

(* More launches than the stream marks its progress by. *)
let many_launches s =
  let p = device_ints 1 in
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  for _ = 1 to 150 do
    Graph.launch exec s;
    incr s p
  done;
  Stream.synchronize s;
  expect_ints "all" [ 300 ] (read p)

let stream_memory s =
  let other = stream () and seen = device_ints 1 in
  let p = Stream.mem_alloc s ~size_in_bytes:4 in
  set s p 7 ~n:1;
  let e = Event.create () in
  Event.record e s;
  Event.wait other e;
  copy other ~dst:seen ~src:p;
  Stream.mem_free s p;
  ignore (Stream.mem_alloc s ~size_in_bytes:4);
  Stream.synchronize other;
  Stream.synchronize s;
  expect_ints "through the pool" [ 7 ] (read seen)

(* The graph allocates and frees. *)
let graph_memory mode s =
  let seen = device_ints 1 in
  let graph =
    capture ~mode s (fun () ->
        let p = Stream.mem_alloc s ~size_in_bytes:4 in
        set s p 1 ~n:1;
        incr s p;
        copy s ~dst:seen ~src:p;
        Stream.mem_free s p)
  in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "its own memory" [ 2 ] (read seen)

(* The graph allocates, the program frees; or the next launch does. *)
let graph_memory_left s =
  let make () =
    Graph.with_capture s (fun () ->
        let p = Stream.mem_alloc s ~size_in_bytes:4 in
        set s p 5 ~n:1;
        p)
  in
  let graph, p = make () in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "there after the launch" [ 5 ] (read p);
  Stream.mem_free s p;
  Graph.launch exec s;
  Stream.synchronize s;
  let graph, q = make () in
  let exec = Graph.instantiate_with ~auto_free_on_launch:true graph in
  Graph.launch exec s;
  Graph.launch exec s;
  Stream.synchronize s;
  expect_ints "freed and made again" [ 5 ] (read q)

let managed s =
  let p = Deviceptr.mem_alloc_managed ~size_in_bytes:4 () in
  Stream.attach_mem s p 0 SINGLE_stream;
  set s p 3 ~n:1;
  let context = Stream.get_context s in
  let q = device_ints 1 and r = device_ints 1 in
  Stream.memcpy_peer ~size_in_bytes:4 ~dst:q ~dst_ctx:context ~src:p ~src_ctx:context s;
  Stream.synchronize s;
  Deviceptr.memcpy_peer ~size_in_bytes:4 ~dst:r ~dst_ctx:context ~src:q ~src_ctx:context
    ();
  expect_ints "from one to the other" [ 3 ] (read r)

let null_stream _ =
  let p = device_ints 1 in
  incr Stream.no_stream p;
  Stream.synchronize Stream.no_stream;
  incr Stream.no_stream p;
  Context.synchronize ();
  expect_ints "on the NULL stream" [ 2 ] (read p)

let blocking_stream _ =
  let s = Stream.create ~lower_priority:(-1) () and p = device_ints 1 in
  ignore (Stream.get_id s);
  append s p 1;
  append Stream.no_stream p 2;
  append s p 3;
  Stream.synchronize s;
  expect_ints "one after the other" [ 123 ] (read p)

(* Another context, with something in it, pushed and popped. *)
let contexts s =
  let before = Context.get_current () in
  let other = Context.create [ SCHED_AUTO ] (Device.get ~ordinal:0) in
  (fun () ->
    ignore (Context.get_flags ());
    Context.set_limit STACK_SIZE (Context.get_limit STACK_SIZE);
    let q = device_ints ~value:3 1 and own = stream () in
    Context.synchronize ();
    Stream.synchronize own;
    expect_ints "in the other one" [ 3 ] (read q);
    let popped = Context.pop_current () in
    Context.push_current popped;
    let p = Context.pop_current () in
    ignore (Sys.opaque_identity (p, other));
    Context.set_current before;
    (* Its own context is entered for each call. *)
    Deviceptr.memset_d32 q (Unsigned.UInt32.of_int 4) ~length:1;
    expect_ints "from outside" [ 4 ] (read q))
    ();
  work s

let device s =
  let d = Context.get_device () in
  if Device.get_count () < 1 then failwith "no device";
  let free, total = Device.get_free_and_total_mem () in
  if free > total then failwith "more free than there is";
  let primary = Context.get_primary d in
  Context.push_current primary;
  ignore (Context.pop_current ());
  if (Device.get_attributes d).warp_size <> 32 then failwith "another warp size";
  ignore (Stream.get_context s)

(* Another domain works on the same stream and the same exec. *)
let domain s =
  let p = device_ints 1 in
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  let work () =
    Context.set_current (Stream.get_context s);
    Graph.launch exec s;
    let own = stream () and q = device_ints 1 in
    let graph = capture ~mode:THREAD_LOCAL own (fun () -> incr own q) in
    Graph.launch (Graph.instantiate graph) own;
    Stream.synchronize own;
    expect_ints "its own" [ 1 ] (read q)
  in
  let other =
    Domain.spawn (fun () -> match work () with () -> None | exception e -> Some e)
  in
  let mine = match Graph.launch exec s with () -> None | exception e -> Some e in
  Option.iter raise (Domain.join other);
  Option.iter raise mine;
  Stream.synchronize s;
  expect_ints "both launches" [ 2 ] (read p)

(* Everything in the context goes. Afterwards the context must be made current anew. *)
let reset s =
  let d = Device.get ~ordinal:0 in
  let p = device_ints 1 in
  let exec =
    Graph.instantiate (capture s (fun () -> run (kernel "incr") s [ Tensor p; Int 1 ]))
  in
  Device.primary_ctx_reset d;
  ignore (must_fail "a launch in a dead context" (fun () -> Graph.launch exec s));
  Graph.exec_destroy exec;
  Deviceptr.mem_free p

let all =
  let each name f = List.map (fun mode -> (name ^ " " ^ mode_name mode, f mode)) modes in
  [ ("work", work); ("synchronous", synchronous); ("fills", fills); ("events", events) ]
  @ [ ("delimited events", delimited_events); ("modules", modules) ]
  @ each "graph" graph
  @ [ ("retained", retained) ]
  @ each "fork" fork
  @ [ ("broken", broken); ("unjoined", unjoined) ]
  @ each "left by an exception" left_by_exception
  @ [ ("left by a drop", left_by_drop); ("left with memory", left_with_memory) ]
  @ [ ("refused", refused) ]
  @ each "releases in a capture" releases_in_capture
  @ [ ("freed by hand", freed_by_hand); ("dropped pending", dropped_pending) ]
  @ [ ("silent collector", silent_collector) ]
  @ [ ("retained events", retained_events) ]
  @ [ ("many launches", many_launches); ("stream memory", stream_memory) ]
  @ each "graph memory" graph_memory
  @ [ ("graph memory left", graph_memory_left); ("managed", managed) ]
  @ [ ("NULL stream", null_stream); ("blocking stream", blocking_stream) ]
  @ [ ("contexts", contexts); ("device", device); ("domain", domain); ("reset", reset) ]
