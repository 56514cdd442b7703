(* What a capture, a graph, an exec and pending work keep alive, and when it goes. The numbers are
   those of reports that users of other bindings made. *)

open Cuda
open Support

let live_at_rest kind =
  Gc.full_major ();
  Gc.full_major ();
  Context.synchronize ();
  Simulator.live kind

(* [f] leaves as many live objects of each kind as it found. *)
let leaves_nothing f =
  if not (Simulator.present ()) then f ()
  else
    let kinds = [ "module"; "stream"; "event"; "graph"; "exec"; "memory" ] in
    let before = List.map live_at_rest kinds in
    f ();
    let after = List.map live_at_rest kinds in
    List.iteri
      (fun i kind ->
        Alcotest.(check int) ("live " ^ kind) (List.nth before i) (List.nth after i))
      kinds

let capture ?mode s f = fst (Graph.with_capture ?mode s f)

(* 1: a buffer that only the graph knows. *)
let case_01 mode () =
  leaves_nothing (fun () ->
      let s = stream () and seen = device_ints 1 in
      let make () =
        let p = device_ints 1 in
        Graph.instantiate
          (capture ~mode s (fun () ->
               incr s p;
               Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s))
      in
      let exec = make () in
      Stream.synchronize s;
      ignore (Stream.is_ready s);
      gc_storm ();
      for _ = 1 to 3 do
        Graph.launch exec s
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "through the copy" [ 3 ] (read seen))

(* 2 and 3: host bytes that only the graph knows, other copies in between. *)
let case_02 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 64 in
      let make () =
        let host = ints ~value:42 64 in
        Graph.instantiate
          (capture ~mode s (fun () -> Stream.memcpy_H_to_D ~dst:p ~src:host s))
      in
      let exec = make () in
      for _ = 1 to 5 do
        gc_storm ();
        for _ = 1 to 20 do
          Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:(-1) 64) s
        done;
        Graph.launch exec s;
        Stream.synchronize s;
        Alcotest.(check (list int)) "the original bytes" [ 42; 42 ] (read ~n:2 p)
      done)

(* 4: 200 launches, each with memory of its own. *)
let case_04 mode () =
  leaves_nothing (fun () ->
      let s = stream () and total = device_ints 1 in
      let copy = kernel "copy" in
      let buffers = List.init 200 (fun i -> device_ints ~value:i 1) in
      let exec =
        Graph.instantiate
          (capture ~mode s (fun () ->
               List.iter
                 (fun b ->
                   run copy ~threads:1 s [ Tensor total; Tensor b; Int 1 ];
                   incr s total)
                 buffers))
      in
      gc_storm ();
      for _ = 1 to 10 do
        Graph.launch exec s
      done;
      Stream.synchronize s;
      Alcotest.(check (list int)) "the last one plus one" [ 200 ] (read total))

(* Host memory of thousands of captured copies, made and dropped by several domains at once. *)
let host_buffers_of_domains () =
  leaves_nothing (fun () ->
      let each = 1500 in
      let work number () =
        Context.set_current (Context.get_primary (Device.get ~ordinal:0));
        let s = stream () and p = device_ints each in
        let value i = (10_000 * number) + i in
        let round () =
          let exec =
            Graph.instantiate
              (capture ~mode:RELAXED s (fun () ->
                   for i = 0 to each - 1 do
                     let host = ints ~value:(value i) 1 in
                     Stream.memcpy_H_to_D ~length:1 ~dst_offset:(4 * i) ~dst:p ~src:host s
                   done))
          in
          Gc.compact ();
          ignore (List.init each (fun _ -> ints ~value:(-1) 1));
          Deviceptr.memset_d8 p Unsigned.UChar.zero ~length:(4 * each);
          Graph.launch exec s;
          Stream.synchronize s;
          if read ~n:each p <> List.init each value then failwith "not what was copied"
        in
        for _ = 1 to 3 do
          round ()
        done
      in
      List.init 4 (fun number -> Domain.spawn (work number)) |> List.iter Domain.join)

(* A call that has done its work when it returns keeps nothing until the next call. *)
let calls_that_end_keep_nothing () =
  let p = device_ints 4 and gone = ref 0 in
  let[@inline never] given call =
    let host = Bigarray.(Genarray.create char c_layout [| 16 |]) in
    Gc.finalise (fun _ -> Stdlib.incr gone) host;
    call host
  in
  let check name call =
    let before = !gone in
    given call;
    Gc.full_major ();
    Alcotest.(check int) name (before + 1) !gone
  in
  check "H to D" (fun src -> Deviceptr.memcpy_H_to_D ~dst:p ~src ());
  check "D to H" (fun dst -> Deviceptr.memcpy_D_to_H ~dst ~src:p ());
  check "refused" (fun src ->
      try Deviceptr.memcpy_H_to_D ~dst_offset:1000 ~dst:p ~src ()
      with Invalid_argument _ -> ());
  check "a log" (fun log ->
      let log = Bigarray.array1_of_genarray log in
      ignore (Module.load_ptx Ptx.text ~options:[ ERROR_LOG_BUFFER log ]));
  check "pending" (fun src ->
      let s = stream () in
      Stream.memcpy_H_to_D ~dst:p ~src s;
      Stream.synchronize s);
  check "captured" (fun src ->
      let s = stream () in
      let graph = capture s (fun () -> Stream.memcpy_H_to_D ~dst:p ~src s) in
      Graph.destroy graph)

(* 5: the module and the kernel are dropped. *)
let case_05 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let make () =
        let f = kernel "incr" in
        Graph.instantiate (capture ~mode s (fun () -> run f s [ Tensor p; Int 1 ]))
      in
      let exec = make () in
      gc_storm ();
      let others = List.init 10 (fun _ -> code ()) in
      Graph.launch exec s;
      Stream.synchronize s;
      ignore (Sys.opaque_identity others);
      Alcotest.(check (list int)) "the kernel ran" [ 1 ] (read p))

(* 5, for work that is not captured. *)
let case_05_pending () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let enqueue () =
        busy s p;
        run (kernel "incr") s [ Tensor p; Int 1 ]
      in
      enqueue ();
      gc_storm ();
      Stream.synchronize s;
      Alcotest.(check (list int)) "the kernel ran" [ 1 ] (read p))

(* 7: memory that a graph uses is freed by hand. *)
let case_07 () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 and seen = device_ints 1 in
      let exec =
        Graph.instantiate
          (capture s (fun () ->
               incr s p;
               Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s))
      in
      Deviceptr.mem_free p;
      check_invalid "dead to the user" [ "freed" ] (fun () -> read p);
      gc_storm ();
      Graph.launch exec s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "but not to the graph" [ 1 ] (read seen))

(* 13 and 53: stream, exec and memory are dropped with work pending. *)
let case_13 () =
  leaves_nothing (fun () ->
      let seen = device_ints 1 and scratch = device_ints 1 in
      let make () =
        let s = stream () and p = device_ints 1 in
        let exec =
          Graph.instantiate
            (capture s (fun () ->
                 busy s scratch;
                 incr s p;
                 Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s))
        in
        Graph.launch exec s;
        Graph.exec_destroy exec
      in
      make ();
      gc_storm ();
      Context.synchronize ();
      Alcotest.(check (list int)) "the launch completed" [ 1 ] (read seen))

(* 17: old graphs are collected between the recorded launches. *)
let case_17 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let rubbish () =
        for _ = 1 to 20 do
          ignore (Graph.instantiate (capture ~mode:RELAXED s (fun () -> incr s p)))
        done
      in
      rubbish ();
      let graph =
        capture ~mode s (fun () ->
            for _ = 1 to 20 do
              incr s p;
              Gc.full_major ();
              ignore (Event.create ())
            done)
      in
      Alcotest.(check int) "all nodes" 20 (Graph.node_count graph))

(* 18 and 20: things are destroyed, freed and dropped inside a capture. *)
let case_18 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let graph1 = capture s (fun () -> incr s p) in
      let exec1 = Graph.instantiate graph1 in
      let q = device_ints 1 in
      ignore (List.init 5 (fun _ -> (code (), stream (), Event.create (), device_ints 1)));
      let graph =
        capture ~mode s (fun () ->
            incr s p;
            Graph.destroy graph1;
            Graph.exec_destroy exec1;
            Deviceptr.mem_free q;
            Gc.full_major ();
            Gc.full_major ();
            (* An ordinary call, which drains what was collected. *)
            ignore (Event.create ());
            ignore (Stream.is_ready (stream ()));
            incr s p)
      in
      Alcotest.(check int) "both nodes" 2 (Graph.node_count graph);
      Graph.launch (Graph.instantiate graph) s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "and no other" [ 2 ] (read p))

(* 25: an event that was recorded inside a capture. *)
let case_25 () =
  let s = stream () and p = device_ints 1 and e = Event.create () in
  ignore (capture s (fun () -> incr s p; Event.record e s));
  List.iter
    (fun (name, f) -> check_cuda_error name "INVALID_VALUE" [ "recorded inside a capture" ] f)
    [ ("query", fun () -> ignore (Event.query e)); ("synchronize", fun () -> Event.synchronize e) ];
  Event.record e s;
  Event.synchronize e;
  Alcotest.(check bool) "normal again" true (Event.query e)
[@@ocamlformat "disable"]

(* 33: a fork that is not joined. *)
let case_33 () =
  leaves_nothing (fun () ->
      let a = stream () and b = stream () and p = device_ints 1 in
      let forked = Event.create () and joined = Event.create () in
      Graph.begin_capture a;
      incr a p;
      Event.record forked a;
      Event.wait b forked;
      incr b p;
      check_cuda_error "not joined" "STREAM_CAPTURE_UNJOINED" [ "cu_stream_end_capture" ]
        (fun () -> Graph.end_capture a);
      check_healthy a;
      check_healthy b;
      (* Joined, with the second stream's arguments dropped. *)
      let seen = device_ints 1 in
      let make () =
        let q = device_ints 1 in
        capture a (fun () ->
            Event.record forked a;
            Event.wait b forked;
            incr b q;
            Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:q b;
            Event.record joined b;
            Event.wait a joined)
      in
      let exec = Graph.instantiate (make ()) in
      gc_storm ();
      Graph.launch exec a;
      Stream.synchronize a;
      Alcotest.(check (list int)) "the fork's argument was kept" [ 1 ] (read seen))

(* 37: captures that fail, many times. *)
let case_37 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let ends () = Simulator.calls "cuStreamEndCapture" in
      for _ = 1 to 100 do
        let before = ends () in
        Graph.begin_capture ~mode s;
        incr s p;
        (try Stream.synchronize s with Cuda_error _ -> ());
        (match Graph.end_capture s with
        | _ -> Alcotest.fail "a broken capture gave a graph"
        | exception Cuda_error _ -> ());
        if Simulator.present () then Alcotest.(check int) "one end" (before + 1) (ends ())
      done;
      check_healthy s)

(* 38: a capture is left open. *)
let case_38 mode () =
  leaves_nothing (fun () ->
      let abandon () =
        let s = stream () and p = device_ints 1 in
        Graph.begin_capture ~mode s;
        incr s p
      in
      abandon ();
      Gc.full_major ();
      Gc.full_major ();
      (* The next ordinary call closes it. *)
      let s = stream () in
      Context.synchronize ();
      check_healthy s)

(* 38: the domain or the thread that captured is gone. *)
let case_38_ended mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let leave () =
        Context.set_current (Stream.get_context s);
        Graph.begin_capture ~mode s;
        incr s p
      in
      Domain.join (Domain.spawn leave);
      Alcotest.(check bool) "its domain ended" false (Stream.is_capturing s);
      check_healthy s;
      Thread.join (Thread.create leave ());
      (* A thread may be joined a moment before it is gone. *)
      let rec wait n =
        if Stream.is_capturing s && n > 0 then (
          Unix.sleepf 0.01;
          wait (n - 1))
      in
      wait 1000;
      Alcotest.(check bool) "its thread ended" false (Stream.is_capturing s);
      check_healthy s)

(* Several threads end one capture at the same moment: it ends once, and the library still knows of
   the captures that come after. *)
let ended_at_once () =
  let s = stream () and p = device_ints 1 in
  let go = Atomic.make 0 and rounds = 50 in
  let ended = Atomic.make 0 in
  let finish round =
    while Atomic.get go < round do
      Domain.cpu_relax ()
    done;
    match Graph.end_capture s with
    | (_ : Graph.t) -> Atomic.incr ended
    | exception Cuda_error _ -> ()
  in
  let arrived = Atomic.make 0 in
  let ender () =
    for round = 1 to rounds do
      finish round;
      Atomic.incr arrived
    done
  in
  let enders = List.init 2 (fun _ -> Domain.spawn ender) in
  for round = 1 to rounds do
    Graph.begin_capture ~mode:RELAXED s;
    incr s p;
    Atomic.set go round;
    finish round;
    while Atomic.get arrived < 2 * round do
      Domain.cpu_relax ()
    done
  done;
  List.iter Domain.join enders;
  Alcotest.(check int) "each ended once" rounds (Atomic.get ended);
  Graph.begin_capture ~mode:RELAXED s;
  let refused =
    Domain.join
      (Domain.spawn (fun () ->
           Context.set_current (Stream.get_context s);
           match Context.synchronize () with
           | () -> false
           | exception Cuda_error { message; _ } -> contains message "another thread"))
  in
  Alcotest.(check bool) "the next capture is protected" true refused;
  ignore (Graph.end_capture s);
  check_healthy s

(* 43: a second error while the first one unwinds. *)
let case_43 mode () =
  let s = stream () and p = device_ints 1 in
  let finalised = ref 0 in
  let count () = Stdlib.incr finalised in
  (match
     Graph.with_capture ~mode s (fun () ->
         Fun.protect ~finally:count (fun () ->
             Fun.protect ~finally:count (fun () ->
                 incr s p;
                 Stream.synchronize s)))
   with
  | _ -> Alcotest.fail "no error"
  | exception Cuda_error { status; _ } ->
      Alcotest.(check string)
        "the first error" "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" (status_name status));
  Alcotest.(check int) "both finalisers ran" 2 !finalised;
  check_healthy s

(* 50: whatever is made is given back without asking: the collector knows what an exec weighs. *)
let case_50 () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let most = ref 0 and rounds = 20_000 in
      for _ = 1 to rounds do
        let exec =
          Graph.instantiate
            (capture s (fun () ->
                 for _ = 1 to 50 do
                   incr s p
                 done))
        in
        Graph.launch exec s;
        Stream.synchronize s;
        most := max !most (Simulator.live "exec")
      done;
      only_on_simulator (fun () ->
          if !most > rounds / 10 then Alcotest.failf "%d execs of %d live" !most rounds))

(* 50: the execs of one graph, which stays. *)
let case_50_of_one_graph () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let graph =
        capture s (fun () ->
            for _ = 1 to 50 do
              incr s p
            done)
      in
      let most = ref 0 and rounds = 10_000 in
      for _ = 1 to rounds do
        ignore (Sys.opaque_identity (Graph.instantiate graph));
        most := max !most (Simulator.live "exec")
      done;
      only_on_simulator (fun () ->
          if !most > rounds / 2 then Alcotest.failf "%d execs of %d live" !most rounds))

(* A million launches hold what one does. *)
let launches_hold_once () =
  let s = stream () and p = device_ints 1 in
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  for _ = 1 to 5000 do
    Graph.launch exec s;
    incr s p
  done;
  Alcotest.(check bool)
    (sexp (Stream.sexp_of_t s))
    true
    (contains (sexp (Stream.sexp_of_t s)) "(held 3)");
  Stream.synchronize s;
  Alcotest.(check (list int)) "all done" [ 10000 ] (read p)

(* 51: dropped memory is found again when it is needed. *)
let case_51 () =
  leaves_nothing (fun () ->
      let _, total = Device.get_free_and_total_mem () in
      for _ = 1 to 12 do
        ignore (Deviceptr.mem_alloc ~size_in_bytes:(total / 3))
      done)

(* 51: and before it is needed: the collector knows how large it is. *)
let case_51_pressure () =
  only_on_simulator (fun () ->
      let most = ref 0 and rounds = 5000 in
      for _ = 1 to rounds do
        ignore (Sys.opaque_identity (Deviceptr.mem_alloc ~size_in_bytes:1_000_000));
        most := max !most (Simulator.live "memory")
      done;
      if !most > rounds / 2 then Alcotest.failf "%d of %d allocations live" !most rounds)

(* 51: nor in a program with much else on its heap, which the collector takes long to go through. *)
let case_51_beside_a_heap () =
  only_on_simulator (fun () ->
      let heap = List.init 1_000_000 (fun i -> (i, i)) in
      let s = stream () and most = ref 0 and size_in_bytes = 64 * 1024 * 1024 in
      let drop kind allocate =
        Gc.full_major ();
        Context.synchronize ();
        let before = Simulator.live kind in
        for _ = 1 to 500 do
          ignore (Sys.opaque_identity (allocate ()));
          most := max !most (Simulator.live kind - before)
        done
      in
      drop "memory" (fun () -> Deviceptr.mem_alloc ~size_in_bytes);
      drop "async" (fun () -> Stream.mem_alloc s ~size_in_bytes);
      ignore (Sys.opaque_identity heap);
      if !most > 125 then Alcotest.failf "%d of 500 blocks of 64 MiB are live" !most)

(* 51: memory that is freed by hand costs no collections, however much. *)
let case_51_freed_by_hand () =
  only_on_simulator (fun () ->
      let s = stream () and size_in_bytes = 64 * 1024 * 1024 in
      let use () =
        Deviceptr.mem_free (Deviceptr.mem_alloc ~size_in_bytes);
        Stream.mem_free s (Stream.mem_alloc s ~size_in_bytes)
      in
      let collections () =
        let { Gc.minor_collections; major_collections; _ } = Gc.quick_stat () in
        minor_collections + major_collections
      in
      use ();
      Gc.full_major ();
      let before = collections () in
      for _ = 1 to 500 do
        use ()
      done;
      Alcotest.(check int) "collections" before (collections ()))

(* 51: memory that was freed by hand while something held it goes with its value, which the collector has to
   find; so does what launches of an exec have left that was destroyed by hand. *)
let case_51_freed_but_there () =
  only_on_simulator (fun () ->
      let s = stream () and size_in_bytes = 16 * 1024 * 1024 and rounds = 500 in
      let blocks () = Simulator.live "memory" + Simulator.live "async" in
      let most one =
        Gc.full_major ();
        Context.synchronize ();
        let before = blocks () and most = ref 0 in
        for _ = 1 to rounds do
          let graph, exec = one () in
          Stream.synchronize s;
          Graph.exec_destroy exec;
          Graph.destroy graph;
          most := max !most (blocks () - before)
        done;
        if !most > rounds / 5 then
          Alcotest.failf "%d of %d blocks of 16 MiB are live" !most rounds
      in
      most (fun () ->
          let p = Deviceptr.mem_alloc ~size_in_bytes in
          let fill () = Stream.memset_d8 p (Unsigned.UChar.of_int 1) ~length:4 s in
          let graph, () = Graph.with_capture s fill in
          let exec = Graph.instantiate graph in
          Deviceptr.mem_free p;
          (graph, exec));
      most (fun () ->
          let allocate () = ignore (Stream.mem_alloc s ~size_in_bytes) in
          let graph, () = Graph.with_capture s allocate in
          let exec = Graph.instantiate graph in
          Graph.launch exec s;
          (graph, exec)))

(* 51: nor do execs whose launches leave memory allocated. *)
let case_51_memory_of_execs () =
  only_on_simulator (fun () ->
      let s = stream () and most = ref 0 and rounds = 1000 in
      let one () =
        let graph, () =
          Graph.with_capture s (fun () -> ignore (Stream.mem_alloc s ~size_in_bytes:4096))
        in
        Graph.launch (Graph.instantiate graph) s;
        Stream.synchronize s;
        most := max !most (Simulator.live "async")
      in
      for _ = 1 to rounds do
        one ()
      done;
      if !most > rounds / 10 then Alcotest.failf "of %d execs %d left memory" rounds !most)

(* A launch for whose memory there is no room: what garbage holds is given back, and what the device keeps
   for launches to come. *)
let no_room_for_a_launch () =
  only_on_simulator (fun () ->
      let s = stream () and seen = device_ints 1 in
      let graph =
        capture s (fun () ->
            let p = Stream.mem_alloc s ~size_in_bytes:4 in
            Stream.memset_d32 p (Unsigned.UInt32.of_int 7) ~length:1 s;
            Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s;
            Stream.mem_free s p)
      in
      let exec = Graph.instantiate graph in
      let trims () = Simulator.calls "cuDeviceGraphMemTrim" in
      let before = trims () in
      let launch_failing times =
        ignore (Simulator.fail (Printf.sprintf "cuGraphLaunch%s=OUT_OF_MEMORY" times));
        Fun.protect
          ~finally:(fun () -> ignore (Simulator.fail ""))
          (fun () -> Graph.launch exec s)
      in
      launch_failing "@1";
      Stream.synchronize s;
      Alcotest.(check (list int)) "launched after all" [ 7 ] (read seen);
      Alcotest.(check int) "given back" (before + 1) (trims ());
      check_cuda_error "no room still" "OUT_OF_MEMORY" [ "cu_graph_launch" ] (fun () ->
          launch_failing "");
      check_healthy s)

(* Nor is kept what work of the stream has needed that is done, though nobody has waited for it. *)
let no_room_but_done () =
  only_on_simulator (fun () ->
      let s = stream () and live () = Simulator.live "async" in
      let leave_memory () =
        let graph =
          capture s (fun () -> ignore (Stream.mem_alloc s ~size_in_bytes:4096))
        in
        Graph.launch (Graph.instantiate graph) s
      in
      let p = device_ints 1 in
      let next = Graph.instantiate (capture s (fun () -> incr s p)) in
      gc_storm ();
      Context.synchronize ();
      let before = live () in
      for _ = 1 to 5 do
        leave_memory ()
      done;
      let done_ = Event.create () in
      Event.record done_ s;
      Event.synchronize done_;
      Alcotest.(check int) "left" (before + 5) (live ());
      ignore (Simulator.fail "cuGraphLaunch@1=OUT_OF_MEMORY");
      Fun.protect
        ~finally:(fun () -> ignore (Simulator.fail ""))
        (fun () -> Graph.launch next s);
      Alcotest.(check int) "given back" before (live ());
      Stream.synchronize s)

(* The same where no context is current: a launch needs none. *)
let no_room_without_a_context () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 in
      let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
      let trims () = Simulator.calls "cuDeviceGraphMemTrim" in
      let before = trims () in
      let launch () =
        ignore (Simulator.fail "cuGraphLaunch@1=OUT_OF_MEMORY");
        Fun.protect
          ~finally:(fun () -> ignore (Simulator.fail ""))
          (fun () -> Graph.launch exec s)
      in
      Domain.join (Domain.spawn launch);
      Stream.synchronize s;
      Alcotest.(check (list int)) "launched" [ 1 ] (read p);
      Alcotest.(check int) "given back" (before + 1) (trims ()))

(* What was dropped goes at the next wait, if not before. *)
let goes_at_a_wait () =
  only_on_simulator (fun () ->
      let s = stream () in
      let drop () = ignore (Sys.opaque_identity (device_ints 1)) in
      let before = live_at_rest "memory" in
      drop ();
      Gc.full_major ();
      Gc.full_major ();
      Stream.synchronize s;
      Alcotest.(check int) "live" before (Simulator.live "memory"))

(* 51: but not in the midst of a capture. *)
let case_51_capturing () =
  only_on_simulator (fun () ->
      let calls () = Simulator.calls "cuMemAlloc_v2" in
      let allocate () =
        let before = calls () in
        check_cuda_error "no memory" "OUT_OF_MEMORY" [ "cu_mem_alloc" ] (fun () ->
            Deviceptr.mem_alloc ~size_in_bytes:64);
        calls () - before
      in
      let s = stream () and p = device_ints 1 in
      ignore (Simulator.fail "cuMemAlloc=OUT_OF_MEMORY");
      Fun.protect
        ~finally:(fun () -> ignore (Simulator.fail ""))
        (fun () ->
          Alcotest.(check int) "one retry" 2 (allocate ());
          let graph =
            capture ~mode:RELAXED s (fun () ->
                incr s p;
                Alcotest.(check int) "no retry in a capture" 1 (allocate ()))
          in
          Alcotest.(check int) "the capture is whole" 1 (Graph.node_count graph)))

(* 21: releases that fail raise nothing, nowhere. *)
let case_21 () =
  only_on_simulator (fun () ->
      let make () =
        ignore (List.init 20 (fun _ -> (Event.create (), device_ints 1, code ())))
      in
      let told = Hashtbl.create 3 in
      let before = failed_releases () in
      failed_release_hook :=
        Some
          (fun ~message ~status ->
            let n = Option.value ~default:0 (Hashtbl.find_opt told message) in
            Hashtbl.replace told message (n + 1);
            if status_name status <> "CUDA_ERROR_UNKNOWN" then failwith "dropped");
      make ();
      ignore
        (Simulator.fail "cuMemFree=UNKNOWN,cuEventDestroy=UNKNOWN,cuModuleUnload=UNKNOWN");
      Fun.protect
        ~finally:(fun () ->
          ignore (Simulator.fail "");
          failed_release_hook := None)
        (fun () ->
          for _ = 1 to 100 do
            Gc.full_major ();
            match Hashtbl.find (Hashtbl.create 1) "none" with
            | () -> ()
            | exception Not_found -> ()
          done;
          Context.synchronize ();
          Context.synchronize ();
          let times name = Option.value ~default:0 (Hashtbl.find_opt told name) in
          List.iter
            (fun name -> Alcotest.(check bool) name true (times name >= 20))
            [ "cu_mem_free"; "cu_event_destroy"; "cu_module_unload" ];
          Alcotest.(check int)
            "each was told once"
            (failed_releases () - before)
            (Hashtbl.fold (fun _ n sum -> n + sum) told 0)))

let domains_capture mode () =
  leaves_nothing (fun () ->
      (* No Alcotest here: it serves one thread. *)
      let work () =
        Context.set_current (Context.get_primary (Device.get ~ordinal:0));
        let s = stream () and p = device_ints 1 in
        let f = kernel "incr" in
        for i = 1 to 50 do
          let nodes = 1 + (i mod 7) in
          let graph =
            capture ~mode s (fun () ->
                for _ = 1 to nodes do
                  run f s [ Tensor p; Int 1 ]
                done)
          in
          if Graph.node_count graph <> nodes then failwith "not its own nodes";
          let exec = Graph.instantiate graph in
          Graph.launch exec s
        done;
        Stream.synchronize s;
        let expected =
          List.fold_left ( + ) 0 (List.init 50 (fun i -> 1 + ((i + 1) mod 7)))
        in
        if read p <> [ expected ] then failwith "not its own work"
      in
      List.iter Domain.join (List.init 4 (fun _ -> Domain.spawn work)))

(* The driver crashes where a graph and its execs are destroyed or made on two threads at once. *)
let a_graph_and_its_execs_at_once ~drop () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 and domains = 4 in
      let arrived = Atomic.make 0 in
      let over = Atomic.make false in
      let together round =
        Atomic.incr arrived;
        while Atomic.get arrived < domains * round && not (Atomic.get over) do
          Domain.cpu_relax ()
        done
      in
      let made = Atomic.make None in
      let[@inline never] make () =
        let graph = capture ~mode:RELAXED s (fun () -> incr s p) in
        let execs = List.init (domains - 1) (fun _ -> Graph.instantiate graph) in
        List.iter (fun exec -> Graph.launch exec s) execs;
        Atomic.set made (Some (graph, execs))
      in
      let ends number =
        match Atomic.get made with
        | None -> ()
        | Some (graph, _) when number = 0 -> Graph.destroy graph
        | Some (graph, execs) ->
            (try ignore (Graph.instantiate graph) with Invalid_argument _ -> ());
            Graph.exec_destroy (List.nth execs (number - 1))
      in
      let work number () =
        Fun.protect ~finally:(fun () -> Atomic.set over true) @@ fun () ->
        Context.set_current (Context.get_primary (Device.get ~ordinal:0));
        for round = 0 to 29 do
          if number = 0 then make ();
          together ((3 * round) + 1);
          if not drop then ends number;
          together ((3 * round) + 2);
          if number = 0 then (
            Atomic.set made None;
            Stream.synchronize s;
            Gc.full_major ());
          together ((3 * round) + 3);
          (* Whoever comes first releases what was dropped. *)
          for _ = 1 to 4 do
            ignore (Event.create ())
          done
        done
      in
      let slowly f =
        if not (Simulator.present ()) then f ()
        else (
          ignore (Simulator.fail "cuGraph/inside~500us");
          Fun.protect f ~finally:(fun () -> ignore (Simulator.fail "")))
      in
      slowly (fun () ->
          List.init domains (fun number -> Domain.spawn (work number))
          |> List.iter Domain.join);
      Alcotest.(check (list int)) "every launch ran" [ 90 ] (read p))

(* 22 and 24: another domain allocates, drops, collects and asks while this one captures. *)
let case_22 mode () =
  leaves_nothing (fun () ->
      let s = stream () and p = device_ints 1 in
      let stop = Atomic.make false in
      let other =
        Domain.spawn (fun () ->
            Context.set_current (Context.get_primary (Device.get ~ordinal:0));
            let old = Event.create () and idle = stream () in
            Event.record old idle;
            while not (Atomic.get stop) do
              ignore (Deviceptr.mem_alloc ~size_in_bytes:256);
              Deviceptr.mem_free (Deviceptr.mem_alloc ~size_in_bytes:256);
              ignore (Event.query old);
              ignore (Stream.is_ready idle);
              Stream.synchronize idle;
              Event.synchronize old;
              ignore (Event.create ());
              Gc.minor ()
            done)
      in
      Fun.protect
        ~finally:(fun () ->
          Atomic.set stop true;
          Domain.join other)
        (fun () ->
          for _ = 1 to 100 do
            let graph =
              capture ~mode s (fun () ->
                  for _ = 1 to 20 do
                    incr s p
                  done)
            in
            Alcotest.(check int) "whole" 20 (Graph.node_count graph)
          done))

let () =
  start ();
  (* Loaded once and kept. *)
  List.iter
    (fun f -> ignore (Sys.opaque_identity (Lazy.force f)))
    [ incr_kernel; append_kernel; busy_kernel ];
  let each name case = in_each_mode name (fun mode -> case mode ()) in
  Alcotest.run "lifetime"
    [
      ( "kept alive",
        each "case 1: memory" case_01
        @ each "cases 2, 3: host memory" case_02
        @ [
            test "case 4: 200 buffers" (case_04 GLOBAL);
            test "host buffers of domains" host_buffers_of_domains;
            test "calls that end keep nothing" calls_that_end_keep_nothing;
          ]
        @ each "case 5: module" case_05
        @ [
            test "case 5: module of pending work" case_05_pending;
            test "case 7: freed by hand" case_07;
            test "cases 13, 53: dropped while pending" case_13;
            test "launches hold once" launches_hold_once;
          ] );
      ( "released",
        [
          test "case 50: 20000 execs" case_50;
          test "case 50: of one graph" case_50_of_one_graph;
          test "case 51: memory" case_51;
          test "case 51: pressure" case_51_pressure;
          test "case 51: beside a heap" case_51_beside_a_heap;
          test "case 51: freed by hand" case_51_freed_by_hand;
          test "case 51: freed by hand, and still there" case_51_freed_but_there;
          test "case 51: memory of execs" case_51_memory_of_execs;
          test "no room for a launch" no_room_for_a_launch;
          test "no room for a launch: done work" no_room_but_done;
          test "no room for a launch: no context" no_room_without_a_context;
          test "case 51: while capturing" case_51_capturing;
          test "gone at a wait" goes_at_a_wait;
          test "case 21: failing releases" case_21;
        ] );
      ( "captures",
        each "case 17: collected meanwhile" case_17
        @ each "cases 18, 20: destroyed meanwhile" case_18
        @ [ test "case 25: captured event" case_25; test "case 33: fork" case_33 ]
        @ each "case 37: broken" case_37
        @ each "case 38: abandoned" case_38
        @ each "case 38: its thread ended" case_38_ended
        @ [ test "ended by three threads at once" ended_at_once ]
        @ each "case 43: synchronize inside" case_43 );
      ( "domains",
        [
          test "captures at once, THREAD_LOCAL" (domains_capture THREAD_LOCAL);
          test "captures at once, RELAXED" (domains_capture RELAXED);
          test "a graph and its execs destroyed at once"
            (a_graph_and_its_execs_at_once ~drop:false);
          test "a graph and its execs dropped" (a_graph_and_its_execs_at_once ~drop:true);
        ]
        @ each "cases 22, 24: another domain" case_22 );
      ("end", [ no_misuse ]);
    ]
