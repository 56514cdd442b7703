(* Memory in stream order: from the pool, and from the nodes of a graph. *)

open Cuda
open Support

let capture ?mode s f = fst (Graph.with_capture ?mode s f)
let mem_alloc s = Stream.mem_alloc s ~size_in_bytes:4
let set s p n = Stream.memset_d32 p (Unsigned.UInt32.of_int n) ~length:1 s
let copy s ~dst ~src = Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst ~src s

let collect () =
  Gc.full_major ();
  Gc.full_major ();
  Context.synchronize ()

(* A collection, and a call that drains what it has found. *)
let collect_values () =
  Gc.full_major ();
  Gc.full_major ();
  ignore (Event.create ())

(* [f] gives all its memory back. *)
let leaves_nothing f =
  if not (Simulator.present ()) then f ()
  else (
    collect ();
    let before = Simulator.live "memory" in
    f ();
    collect ();
    Alcotest.(check int) "live allocations" before (Simulator.live "memory"))

let used_at_once () =
  leaves_nothing (fun () ->
      let s = stream () in
      let p = mem_alloc s in
      set s p 41;
      incr s p;
      Stream.synchronize s;
      Alcotest.(check (list int)) "computed in order" [ 42 ] (read p);
      Alcotest.(check int) "its size" 4 (Deviceptr.allocation_size p);
      Stream.mem_free s p;
      Stream.mem_free s p;
      check_invalid "after the free" [ "was freed" ] (fun () -> set s p 1))

let dropped () =
  leaves_nothing (fun () ->
      let s = stream () and seen = device_ints 1 in
      let enqueue () =
        let p = mem_alloc s in
        set s p 7;
        copy s ~dst:seen ~src:p
      in
      for _ = 1 to 100 do
        enqueue ();
        Gc.full_major ()
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "the last value" [ 7 ] (read seen))

(* Freed by the user while another stream has work that uses it. *)
let used_by_another_stream () =
  leaves_nothing (fun () ->
      let a = stream () and b = stream () in
      let seen = device_ints 1 and scratch = device_ints 1 in
      let p = mem_alloc a in
      set a p 5;
      Stream.synchronize a;
      busy b scratch;
      copy b ~dst:seen ~src:p;
      Stream.mem_free a p;
      check_invalid "dead to the user" [ "was freed" ] (fun () -> set a p 1);
      let q = mem_alloc a in
      set a q 99;
      Stream.synchronize a;
      Stream.synchronize b;
      Alcotest.(check (list int)) "not overwritten" [ 5 ] (read seen);
      let r = mem_alloc a in
      set a r 6;
      busy a scratch;
      copy a ~dst:seen ~src:r;
      (* cuMemFree does not wait for work on such memory. *)
      Deviceptr.mem_free r;
      let t = mem_alloc b in
      set b t 98;
      Stream.synchronize b;
      Stream.synchronize a;
      Alcotest.(check (list int)) "nor by mem_free" [ 6 ] (read seen))

(* Freed by the user while work of another context of the device has not come to it, or while the stream
   that allocated it has not come to that: work before it may use the same bytes. *)
let used_where_nobody_waits () =
  let home = Context.get_current () in
  let s = stream () in
  leaves_nothing (fun () ->
      let other = Context.create [] (Device.get ~ordinal:0) in
      Fun.protect
        ~finally:(fun () -> Context.set_current home)
        (fun () ->
          let far = stream () and k = kernel "incr" in
          let use p = run k far [ Tensor p; Int 1 ] in
          let p = mem_alloc s and q = mem_alloc s in
          set s p 1;
          set s q 1;
          Stream.synchronize s;
          use p;
          use q;
          Context.synchronize ();
          Simulator.paused (fun () ->
              use p;
              use q;
              Deviceptr.mem_free p;
              Stream.mem_free s q);
          Context.synchronize ();
          ignore (Sys.opaque_identity other)));
  leaves_nothing (fun () ->
      let other = stream () in
      Simulator.paused (fun () ->
          let q = mem_alloc s and r = mem_alloc s in
          let calls () =
            (Simulator.calls "cuMemFree_v2", Simulator.calls "cuMemFreeAsync")
          in
          let before = calls () in
          Deviceptr.mem_free q;
          Stream.mem_free other r;
          Alcotest.(check (pair int int)) "neither goes back yet" before (calls ()));
      Stream.synchronize s)

let wrong_kind () =
  let s = stream () in
  check_invalid "of mem_alloc" [ "Stream.mem_free"; "Deviceptr.mem_free" ] (fun () ->
      Stream.mem_free s (Deviceptr.mem_alloc ~size_in_bytes:4));
  check_invalid "negative" [ "-1"; "size_in_bytes" ] (fun () ->
      Stream.mem_alloc s ~size_in_bytes:(-1));
  check_cuda_error "huge" "OUT_OF_MEMORY" [ "cu_mem_alloc_async"; "size_in_bytes" ]
    (fun () -> Stream.mem_alloc s ~size_in_bytes:(1 lsl 50))

(* A tensor of no elements: the driver gives the null pointer, and no node of a graph. *)
let no_bytes () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let host = Bigarray.(Genarray.create int32 c_layout [| 0 |]) in
      let use ptr =
        Stream.memcpy_H_to_D ~dst:ptr ~src:host s;
        Stream.memcpy_D_to_H ~dst:host ~src:ptr s
      in
      let outside = Stream.mem_alloc s ~size_in_bytes:0 in
      use outside;
      Stream.mem_free s outside;
      check_invalid "freed" [ "was freed" ] (fun () -> use outside);
      check_invalid "past its end" [ "4 bytes"; "0 bytes" ] (fun () ->
          Stream.memset_d32
            (Stream.mem_alloc s ~size_in_bytes:0)
            Unsigned.UInt32.one ~length:1 s);
      let graph =
        capture s (fun () ->
            let kept = Stream.mem_alloc s ~size_in_bytes:0 in
            Stream.mem_free s (Stream.mem_alloc s ~size_in_bytes:0);
            incr s p;
            ignore (Sys.opaque_identity kept))
      in
      Alcotest.(check int) "nodes" 1 (Graph.node_count graph);
      let exec = Graph.instantiate graph in
      (* Nothing is left allocated by the first launch. *)
      Graph.launch exec s;
      Graph.launch exec s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "launched twice" [ 2 ] (read p))

(* 26: the first memory of a stream is asked for inside a capture. *)
let inside_a_capture mode =
  leaves_nothing (fun () ->
      let s = stream () and seen = device_ints 1 in
      let graph =
        capture ~mode s (fun () ->
            let p = mem_alloc s in
            set s p 1;
            incr s p;
            copy s ~dst:seen ~src:p;
            Stream.mem_free s p;
            check_invalid "freed in the capture" [ "was freed" ] (fun () -> set s p 1))
      in
      Alcotest.(check int) "nodes" 5 (Graph.node_count graph);
      let exec = Graph.instantiate graph in
      for _ = 1 to 200 do
        Graph.launch exec s
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "after 200 launches" [ 2 ] (read seen);
      check_cuda_error "a second exec" "NOT_SUPPORTED" [ "one exec at a time" ] (fun () ->
          Graph.instantiate graph);
      Graph.exec_destroy exec;
      let again = Graph.instantiate graph in
      Graph.launch again s;
      Stream.synchronize s)

(* 35: on a fork, freed there, joined. *)
let on_a_fork () =
  leaves_nothing (fun () ->
      let a = stream () and b = stream () and seen = device_ints 1 in
      let graph =
        capture ~mode:RELAXED a (fun () ->
            let fork = Event.create () and join = Event.create () in
            Event.record fork a;
            Event.wait b fork;
            let p = mem_alloc b in
            set b p 3;
            incr b p;
            copy b ~dst:seen ~src:p;
            Stream.mem_free b p;
            Event.record join b;
            Event.wait a join;
            incr a seen)
      in
      let exec = Graph.instantiate graph in
      for _ = 1 to 200 do
        Graph.launch exec a;
        (* Another user of the same pool. *)
        let q = mem_alloc b in
        set b q 77;
        Stream.mem_free b q
      done;
      Stream.synchronize a;
      Alcotest.(check (list int)) "sum" [ 5 ] (read seen))

(* 47 and 49: memory that outlives the launch. *)
let kept_by_the_graph () =
  leaves_nothing (fun () ->
      let s = stream () in
      let p = ref None in
      let graph =
        capture s (fun () ->
            let q = mem_alloc s in
            set s q 10;
            p := Some q)
      in
      let p = Option.get !p in
      check_invalid "before a launch" [ "launch of that graph" ] (fun () -> incr s p);
      check_invalid "copied before a launch" [ "launch of that graph" ] (fun () -> read p);
      check_invalid "a copy enqueued before a launch" [ "launch of that graph" ]
        (fun () -> Stream.memcpy_D_to_H ~dst:(ints 1) ~src:p s);
      Stream.mem_free s p;
      let exec = Graph.instantiate graph in
      Graph.launch exec s;
      incr s p;
      Stream.synchronize s;
      Alcotest.(check (list int)) "used outside of the graph" [ 11 ] (read p);
      check_invalid "a second launch"
        [ "still allocated"; "Stream.mem_free"; "auto_free_on_launch" ] (fun () ->
          Graph.launch exec s);
      Alcotest.(check (list int)) "unharmed" [ 11 ] (read p);
      check_invalid "freed out of order" [ "Stream.mem_free" ] (fun () ->
          Deviceptr.mem_free p);
      Stream.mem_free s p;
      check_invalid "after the free" [ "launch of that graph" ] (fun () -> incr s p);
      for _ = 1 to 100 do
        Graph.launch exec s;
        Stream.mem_free s p
      done;
      Graph.launch exec s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "afresh" [ 10 ] (read p))

let freed_by_another_graph () =
  leaves_nothing (fun () ->
      let s = stream () and seen = device_ints 1 in
      let p = ref None in
      let first =
        capture s (fun () ->
            let q = mem_alloc s in
            set s q 20;
            p := Some q)
      in
      let p = Option.get !p in
      let second =
        capture s (fun () ->
            incr s p;
            copy s ~dst:seen ~src:p;
            Stream.mem_free s p)
      in
      let first = Graph.instantiate first and second = Graph.instantiate second in
      for _ = 1 to 50 do
        Graph.launch first s;
        Graph.launch second s
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "from one to the other" [ 21 ] (read seen);
      check_invalid "it is free again" [ "launch of that graph" ] (fun () -> incr s p))

let freed_on_launch () =
  leaves_nothing (fun () ->
      let s = stream () in
      let p = ref None in
      let graph =
        capture s (fun () ->
            let q = mem_alloc s in
            set s q 30;
            incr s q;
            p := Some q)
      in
      let exec = Graph.instantiate_with ~auto_free_on_launch:true graph in
      for _ = 1 to 1000 do
        Graph.launch exec s
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "of the last launch" [ 31 ] (read (Option.get !p)))

(* 47: whenever the value is dropped, and whether the graph is launched or not, nothing of it ends
   up in somebody's capture and nothing stays. *)
let dropped_values () =
  leaves_nothing (fun () ->
      let s = stream () in
      let make () =
        capture s (fun () ->
            let p = mem_alloc s in
            set s p 1)
      in
      ignore (Sys.opaque_identity (make ()));
      Gc.full_major ();
      let exec = Graph.instantiate (make ()) in
      Gc.full_major ();
      Graph.launch exec s;
      let q = device_ints 1 in
      let other =
        capture s (fun () ->
            collect_values ();
            incr s q;
            collect_values ())
      in
      Alcotest.(check int) "nodes of the other graph" 1 (Graph.node_count other))

(* A finalizer during a capture of the very stream that the memory was allocated on. *)
let finalized_in_a_capture mode =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let drop () =
        for _ = 1 to 10 do
          ignore (Sys.opaque_identity (mem_alloc s))
        done
      in
      drop ();
      let refused = failed_releases () in
      let graph =
        capture ~mode s (fun () ->
            incr s p;
            collect_values ();
            incr s p)
      in
      Alcotest.(check int) "nodes" 2 (Graph.node_count graph);
      Stream.synchronize s;
      Alcotest.(check int) "no release was refused" refused (failed_releases ()))

let outside_memory_in_a_capture () =
  let s = stream () in
  let p = mem_alloc s in
  set s p 1;
  let graph =
    capture s (fun () ->
        check_invalid "freed in a capture" [ "outside of any capture" ] (fun () ->
            Stream.mem_free s p);
        incr s p)
  in
  Alcotest.(check int) "the capture is whole" 1 (Graph.node_count graph);
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "and its memory lives" [ 2 ] (read p)

let held_by_a_graph () =
  leaves_nothing (fun () ->
      let s = stream () in
      let p = mem_alloc s and seen = device_ints 1 in
      set s p 8;
      let exec = Graph.instantiate (capture s (fun () -> copy s ~dst:seen ~src:p)) in
      Stream.mem_free s p;
      let q = mem_alloc s in
      set s q 9;
      Graph.launch exec s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "not given back yet" [ 8 ] (read seen))

(* Execs that allocate are made, launched, dropped and destroyed by many domains at once. *)
let ended_by_many_domains () =
  leaves_nothing (fun () ->
      let work () =
        Context.set_current (Context.get_primary (Device.get ~ordinal:0));
        let s = stream () and out = device_ints 1 in
        for i = 1 to 100 do
          let free = i mod 2 = 0 in
          let graph, () =
            Graph.with_capture ~mode:RELAXED s (fun () ->
                let p = Stream.mem_alloc s ~size_in_bytes:4096 in
                set s p i;
                Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:out ~src:p s;
                if free then Stream.mem_free s p)
          in
          let exec = Graph.instantiate_with ~auto_free_on_launch:(not free) graph in
          Graph.launch exec s;
          if i mod 3 > 0 then Stream.synchronize s;
          if i mod 3 = 1 then Graph.exec_destroy exec
        done;
        Stream.synchronize s;
        read out
      in
      let domains = List.init 6 (fun _ -> Domain.spawn work) in
      List.iter
        (fun domain ->
          Alcotest.(check (list int)) "the last one" [ 100 ] (Domain.join domain))
        domains)

let managed () =
  leaves_nothing (fun () ->
      let s = stream () in
      let p = Deviceptr.mem_alloc_managed ~size_in_bytes:4 () in
      Stream.attach_mem s p 0 SINGLE_stream;
      set s p 4;
      incr s p;
      Stream.synchronize s;
      Alcotest.(check (list int)) "computed" [ 5 ] (read p);
      check_invalid "a part" [ "length 2"; "4 bytes" ] (fun () ->
          Stream.attach_mem s p 2 GLOBAL);
      check_cuda_error "ordinary memory" "INVALID_VALUE" [ "managed" ] (fun () ->
          Stream.attach_mem s (device_ints 1) 0 GLOBAL);
      Stream.attach_mem s p 4 GLOBAL;
      Stream.synchronize s)

let peer_of_itself () =
  let ctx = Context.get_current () in
  let src = device_ints ~value:3 4 and dst = device_ints 4 in
  Deviceptr.memcpy_peer ~kind:Int32 ~length:2 ~dst ~dst_ctx:ctx ~src ~src_ctx:ctx ();
  Alcotest.(check (list int)) "two of four" [ 3; 3; 0; 0 ] (read ~n:4 dst);
  let s = stream () in
  Stream.memcpy_peer ~size_in_bytes:4 ~dst_offset:12 ~dst ~dst_ctx:ctx ~src ~src_ctx:ctx s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "and the last" [ 3; 3; 0; 3 ] (read ~n:4 dst);
  let other = Context.create [] (Device.get ~ordinal:0) in
  ignore (Context.pop_current ());
  check_invalid "not its context" [ "src_ctx" ] (fun () ->
      Deviceptr.memcpy_peer ~size_in_bytes:4 ~dst ~dst_ctx:ctx ~src ~src_ctx:other ());
  check_invalid "too long" [ "dst"; "16 bytes" ] (fun () ->
      Stream.memcpy_peer ~size_in_bytes:17 ~dst ~dst_ctx:ctx ~src ~src_ctx:ctx s)

let () =
  start ();
  Alcotest.run "stream memory"
    [
      ( "pool",
        [
          test "used at once" used_at_once;
          test "dropped with work pending" dropped;
          test "freed while another stream uses it" used_by_another_stream;
          test "freed where nobody waits for it" (fun () ->
              only_on_simulator used_where_nobody_waits);
          test "what is refused" wrong_kind;
          test "no bytes" no_bytes;
        ] );
      ( "graphs",
        in_each_mode "26: inside a capture" inside_a_capture
        @ [
            test "35: on a fork" on_a_fork;
            test "47, 49: memory that outlives a launch" kept_by_the_graph;
            test "freed by another graph" freed_by_another_graph;
            test "freed on launch" freed_on_launch;
            test "47: dropped values" dropped_values;
            test "outside memory" outside_memory_in_a_capture;
            test "held by a graph" held_by_a_graph;
            test "ended by many domains" ended_by_many_domains;
          ]
        @ in_each_mode "finalized in a capture" finalized_in_a_capture );
      ("managed", [ test "attached" managed ]);
      ("peer", [ test "within one device" peer_of_itself ]);
      ("end", [ no_misuse ]);
    ]
