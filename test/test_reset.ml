(* A primary context is reset, also under those who use it: nothing of it reaches the driver afterwards. *)

open Cuda
open Support

let capture ?mode s f = fst (Graph.with_capture ?mode s f)

(* 9: the context is reset under an exec. *)
let case_09 () =
  let s = stream () and p = device_ints 1 in
  let exec =
    Graph.instantiate (capture s (fun () -> run (kernel "incr") s [ Tensor p; Int 1 ]))
  in
  let dead = Event.create () in
  Device.primary_ctx_reset (Device.get ~ordinal:0);
  let gone name f = check_cuda_error name "CONTEXT_IS_DESTROYED" [ "reset" ] f in
  gone "launch" (fun () -> Graph.launch exec s);
  gone "synchronize" (fun () -> Stream.synchronize s);
  gone "copy" (fun () -> ignore (read p));
  gone "event" (fun () -> Event.record dead s);
  Graph.exec_destroy exec;
  Deviceptr.mem_free p;
  (* Releasing what was in it calls nothing and fails nothing. *)
  Gc.full_major ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let q = device_ints 1 in
  Context.synchronize ();
  Alcotest.(check (list int)) "the new context works" [ 0 ] (read q)

(* A context made after the reset has the handle of the one before: what was made in that one is refused
   all the same, also by the short ways of what was launched before. *)
let values_of_before () =
  let device = Device.get ~ordinal:0 in
  Context.set_current (Context.get_primary device);
  let make () =
    let s = stream () and p = device_ints 1 and k = kernel "incr" in
    let launch () = run k s [ Tensor p; Int 1 ] in
    let exec = Graph.instantiate (capture s launch) in
    for _ = 1 to 2 do
      launch ();
      Graph.launch exec s;
      Stream.synchronize s
    done;
    let pool = Stream.mem_alloc s ~size_in_bytes:4 in
    (s, p, k, exec, pool)
  in
  let _, p, k, exec, pool = make () in
  Device.primary_ctx_reset device;
  Context.set_current (Context.get_primary device);
  let s, new_p, new_k, _, _ = make () in
  let before = if Simulator.present () then Simulator.live "async" else 0 in
  let gone name f = check_cuda_error name "CONTEXT_IS_DESTROYED" [ "reset" ] f in
  let both name f =
    gone name f;
    let graph = capture s (fun () -> gone (name ^ ", captured") f) in
    Alcotest.(check int) (name ^ ": nothing captured") 0 (Graph.node_count graph)
  in
  both "kernel" (fun () -> run k s [ Tensor new_p; Int 1 ]);
  both "memory of a launch" (fun () -> run new_k s [ Tensor p; Int 1 ]);
  both "memory of a copy" (fun () ->
      Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:new_p ~src:p s);
  gone "exec" (fun () -> Graph.launch exec s);
  (* Its address may be of other memory by now. *)
  Stream.mem_free s pool;
  only_on_simulator (fun () ->
      Alcotest.(check int) "no other is freed" before (Simulator.live "async"));
  Stream.synchronize s;
  Alcotest.(check (list int)) "the new context works" [ 4 ] (read new_p)

(* The context is reset while a stream of it captures: the capture is over, and in nobody's way. *)
let in_a_capture mode () =
  let device = Device.get ~ordinal:0 in
  let enter () = Context.set_current (Context.get_primary device) in
  enter ();
  let s = stream () and p = device_ints 1 in
  Graph.begin_capture ~mode s;
  run (kernel "incr") s [ Tensor p; Int 1 ];
  Device.primary_ctx_reset device;
  check_cuda_error "end" "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () ->
      ignore (Graph.end_capture s));
  enter ();
  let q = device_ints 1 and s = stream () in
  let graph = capture s (fun () -> run (kernel "incr") s [ Tensor q; Int 1 ]) in
  Graph.launch (Graph.instantiate graph) s;
  Domain.join
    (Domain.spawn (fun () ->
         enter ();
         Context.synchronize ()));
  Alcotest.(check (list int)) "the new context captures" [ 1 ] (read q)

(* The context is reset while domains launch in it: each gets an error, and uses nothing that is gone. *)
let among_launches () =
  let device = Device.get ~ordinal:0 in
  for round = 1 to 20 do
    Context.set_current (Context.get_primary device);
    let k = kernel "incr" and ready = Atomic.make 0 in
    let launcher i =
      let s = stream () and p = device_ints 1 in
      let launch () = run k s [ Tensor p; Int 1 ] in
      let exec = Graph.instantiate (capture ~mode:RELAXED s launch) in
      launch ();
      Graph.launch exec s;
      Domain.spawn (fun () ->
          Atomic.incr ready;
          let rec go n =
            launch ();
            Graph.launch exec s;
            if i = 0 && n mod 50 = 0 then ignore (capture ~mode:RELAXED s launch);
            if n mod 100 = 0 then Stream.synchronize s;
            go (n + 1)
          in
          try go 1 with e -> e)
    in
    let domains = List.init 3 launcher in
    while Atomic.get ready < 3 do
      Domain.cpu_relax ()
    done;
    Unix.sleepf (0.0005 *. float_of_int round);
    Device.primary_ctx_reset device;
    let ended domain =
      let e = Domain.join domain in
      check_cuda_error "in the end" "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () -> raise e)
    in
    List.iter ended domains
  done

(* The reset waits for a stream. Others that are made meanwhile are not used once their context is gone,
   either. *)
let among_new_streams () =
  only_on_simulator (fun () ->
      let device = Device.get ~ordinal:0 in
      let enter () = Context.set_current (Context.get_primary device) in
      enter ();
      let s = stream () and p = device_ints 1 in
      let bad = Simulator.bad_handles () in
      let rules = "cuStreamSynchronize~200ms, cuMemsetD8Async~20ms" in
      Alcotest.(check int) "rules" 0 (Simulator.fail rules);
      Fun.protect ~finally:(fun () -> ignore (Simulator.fail "")) @@ fun () ->
      let waiting = Domain.spawn (fun () -> Stream.synchronize s) in
      Unix.sleepf 0.05;
      let resetting = Domain.spawn (fun () -> Device.primary_ctx_reset device) in
      Unix.sleepf 0.05;
      check_cuda_error "in the end" "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () ->
          let t = stream () in
          while true do
            Stream.memset_d8 p (Unsigned.UChar.of_int 1) ~length:4 t
          done);
      Domain.join waiting;
      Domain.join resetting;
      Alcotest.(check int) "uses of dead handles" bad (Simulator.bad_handles ()));
  Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* Domains that do a bit of everything, and a context that is reset under them again and again. *)
let among_calls () =
  let device = Device.get ~ordinal:0 in
  let enter () = Context.set_current (Context.get_primary device) in
  let bad = if Simulator.present () then Simulator.bad_handles () else 0 in
  for round = 1 to 10 do
    enter ();
    let shared = device_ints 1 and started = Atomic.make 0 in
    let user _ =
      Domain.spawn (fun () ->
          enter ();
          let s = stream () in
          let rec go () =
            let p = device_ints 1 and k = kernel "incr" and e = Event.create () in
            let launch () = run k s [ Tensor p; Int 1 ] in
            let exec = Graph.instantiate (capture ~mode:RELAXED s launch) in
            Graph.launch exec s;
            Event.record e s;
            Event.synchronize e;
            if read p <> [ 1 ] then failwith "not counted";
            ignore (read shared);
            Deviceptr.mem_free p;
            Graph.exec_destroy exec;
            Atomic.incr started;
            go ()
          in
          try go () with e -> e)
    in
    let users = List.init 3 user in
    while Atomic.get started < 3 do
      Domain.cpu_relax ()
    done;
    Unix.sleepf (0.0005 *. float_of_int round);
    Device.primary_ctx_reset device;
    let ended user =
      let e = Domain.join user in
      check_cuda_error "in the end" "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () -> raise e)
    in
    List.iter ended users
  done;
  enter ();
  if Simulator.present () then
    Alcotest.(check int) "uses of dead handles" bad (Simulator.bad_handles ())

(* Another context of the device uses what is in the primary one, which is reset: nothing that is gone is used
   there, also by the short ways of what was launched before. *)
let from_another_context () =
  let device = Device.get ~ordinal:0 in
  Context.set_current (Context.get_primary device);
  let s = stream () and p = device_ints 1 in
  let event () = Event.create ~enable_timing:true () in
  let e = event () and managed = Deviceptr.mem_alloc_managed ~size_in_bytes:64 () in
  Event.record e s;
  let other = Context.create [] device in
  Fun.protect ~finally:(fun () ->
      ignore (Context.pop_current ());
      Context.set_current (Context.get_primary device))
  @@ fun () ->
  let t = stream () and k = kernel "incr" and own = device_ints 1 in
  let f = event () and launch () = run k t [ Tensor p; Int 1 ] in
  let graph = capture t launch in
  let exec = Graph.instantiate graph in
  for _ = 1 to 3 do
    launch ();
    Graph.launch exec t
  done;
  Event.record f t;
  Stream.synchronize t;
  let gone name f = check_cuda_error name "CONTEXT_IS_DESTROYED" [ "reset" ] f in
  (* Work that nobody has waited for still knows the memory. *)
  Event.record f t;
  let captured =
    capture ~mode:RELAXED t (fun () ->
        launch ();
        launch ();
        Device.primary_ctx_reset device;
        gone "captured" launch;
        run k t [ Tensor own; Int 1 ];
        gone "a stream that waits" (fun () -> Event.wait s f))
  in
  gone "launch" launch;
  gone "graph launch" (fun () -> Graph.launch exec t);
  gone "instantiate" (fun () -> ignore (Graph.instantiate graph));
  gone "instantiate what was captured" (fun () -> ignore (Graph.instantiate captured));
  gone "start" (fun () -> ignore (Event.elapsed_time ~start:e ~end_:f));
  gone "end" (fun () -> ignore (Event.elapsed_time ~start:f ~end_:e));
  gone "array" (fun () ->
      ignore
        (Interop.bigarray_of_managed Bigarray.char Bigarray.c_layout [| 64 |] managed));
  Stream.synchronize t;
  Alcotest.(check (list int)) "the other context works" [ 0 ] (read own);
  ignore other

(* Memory of the primary context that work of another one was given just before. *)
let known_elsewhere () =
  only_on_simulator (fun () ->
      let device = Device.get ~ordinal:0 in
      Context.set_current (Context.get_primary device);
      let p = device_ints 1 and other = Context.create [] device in
      Fun.protect ~finally:(fun () ->
          ignore (Context.pop_current ());
          Context.set_current (Context.get_primary device))
      @@ fun () ->
      let t = stream () and k = kernel "incr" and e = Event.create () in
      let launch () = run k t [ Tensor p; Int 1 ] in
      for _ = 1 to 3 do
        launch ()
      done;
      (* The work is over, and the stream does not know it. *)
      Event.record e t;
      Event.synchronize e;
      Device.primary_ctx_reset device;
      check_cuda_error "launch" "CONTEXT_IS_DESTROYED" [ "reset" ] launch;
      Stream.synchronize t;
      ignore other)

(* Work of another context that uses memory of the primary one is over before that is reset. *)
let work_of_another_context ~graph ~drop () =
  let device = Device.get ~ordinal:0 in
  Context.set_current (Context.get_primary device);
  let p = device_ints 1 and other = Context.create [] device in
  Fun.protect ~finally:(fun () ->
      ignore (Context.pop_current ());
      Context.set_current (Context.get_primary device))
  @@ fun () ->
  let incr = kernel "incr" and busy = kernel "busy" and own = device_ints 1 in
  let[@inline never] enqueue () =
    let t = stream () in
    let work () =
      run busy ~threads:1 t [ Tensor own; Int 3_000_000 ];
      run incr t [ Tensor p; Int 1 ]
    in
    if graph then Graph.launch (Graph.instantiate (capture t work)) t else work ();
    if drop then None else Some t
  in
  let t = enqueue () in
  Gc.full_major ();
  Device.primary_ctx_reset device;
  Option.iter Stream.synchronize t;
  Alcotest.(check bool) "usable" true (Context.is_usable other);
  let s = stream () and q = device_ints 1 in
  run incr s [ Tensor q; Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "the other context works" [ 1 ] (read q)

(* Runs [f] in another context of the device than the primary one, of which it is given what [of_primary] makes. *)
let in_another_context of_primary f =
  let device = Device.get ~ordinal:0 in
  let enter () = Context.set_current (Context.get_primary device) in
  enter ();
  let primary = Context.get_current () and made = of_primary () in
  let other = Context.create [] device in
  Fun.protect ~finally:(fun () ->
      ignore (Context.pop_current ());
      enter ())
  @@ fun () ->
  f ~primary ~other made;
  Alcotest.(check bool) "usable" true (Context.is_usable other);
  let s = stream () and q = device_ints 1 in
  run (kernel "incr") s [ Tensor q; Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "the other context works" [ 1 ] (read q)

(* The NULL stream of the other context, while the primary one is current. *)
let work_on_the_null_stream () =
  in_another_context (fun () -> device_ints 1) @@ fun ~primary ~other p ->
  let own = device_ints 1 and incr = kernel "incr" in
  run (kernel "busy") ~threads:1 Stream.no_stream [ Tensor own; Int 3_000_000 ];
  run incr Stream.no_stream [ Tensor p; Int 1 ];
  Context.set_current primary;
  Device.primary_ctx_reset (Device.get ~ordinal:0);
  Context.set_current other;
  Stream.synchronize Stream.no_stream

(* The thread that resets captures in the other context: waiting for work there breaks no capture. *)
let while_capturing_elsewhere mode () =
  in_another_context (fun () -> device_ints 1) @@ fun ~primary:_ ~other:_ p ->
  let own = device_ints 1 and incr = kernel "incr" in
  let s = stream () and t = stream () in
  run incr t [ Tensor p; Int 1 ];
  let graph =
    capture ~mode s (fun () ->
        run incr s [ Tensor own; Int 1 ];
        Device.primary_ctx_reset (Device.get ~ordinal:0);
        run incr s [ Tensor own; Int 1 ])
  in
  Alcotest.(check int) "all is captured" 2 (Graph.node_count graph)

(* A stream of the primary context joins a capture of the other one: the graph has a kernel that goes. *)
let joined_from_the_primary ~ended () =
  let of_primary () = (stream (), Event.create (), kernel "incr") in
  in_another_context of_primary @@ fun ~primary ~other (t, et, incr) ->
  let s = stream () and es = Event.create () and own = device_ints 1 in
  let reset () = Device.primary_ctx_reset (Device.get ~ordinal:0) in
  let gone name f = check_cuda_error name "CONTEXT_IS_DESTROYED" [ "reset" ] f in
  Graph.begin_capture ~mode:RELAXED s;
  Event.record es s;
  Event.wait t es;
  Context.set_current primary;
  run incr t [ Tensor own; Int 1 ];
  Event.record et t;
  Context.set_current other;
  Event.wait s et;
  if ended then (
    let graph = Graph.end_capture s in
    let exec = Graph.instantiate graph in
    Graph.launch exec s;
    reset ();
    gone "launch" (fun () -> Graph.launch exec s);
    gone "instantiate" (fun () -> ignore (Graph.instantiate graph));
    Stream.synchronize s;
    Alcotest.(check (list int)) "launched before" [ 1 ] (read own))
  else (
    reset ();
    check_cuda_error "end" "ILLEGAL_STATE" [] (fun () -> ignore (Graph.end_capture s)))

(* A graph of the other context waits for an event of the primary one at each launch. *)
let waits_for_an_event () =
  let of_primary () =
    let e = Event.create () in
    Event.record e (stream ());
    e
  in
  in_another_context of_primary @@ fun ~primary:_ ~other:_ e ->
  let s = stream () in
  let graph = capture ~mode:RELAXED s (fun () -> Event.wait ~external_:true s e) in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Device.primary_ctx_reset (Device.get ~ordinal:0);
  check_cuda_error "launch" "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () ->
      Graph.launch exec s)

(* A domain that has captured before ends while a reset waits for a long call. *)
let while_a_domain_ends () =
  only_on_simulator (fun () ->
      let device = Device.get ~ordinal:0 in
      let enter () = Context.set_current (Context.get_primary device) in
      enter ();
      let s = stream () and over = Atomic.make false and go = Atomic.make false in
      Alcotest.(check int) "rules" 0 (Simulator.fail "cuStreamSynchronize~500ms");
      Fun.protect ~finally:(fun () -> ignore (Simulator.fail "")) @@ fun () ->
      let ending =
        Domain.spawn (fun () ->
            enter ();
            ignore (capture ~mode:RELAXED (stream ()) ignore);
            while not (Atomic.get go) do
              Domain.cpu_relax ()
            done)
      in
      let waiting =
        Domain.spawn (fun () ->
            Stream.synchronize s;
            Atomic.set over true)
      in
      Unix.sleepf 0.05;
      let resetting = Domain.spawn (fun () -> Device.primary_ctx_reset device) in
      Unix.sleepf 0.05;
      Atomic.set go true;
      Domain.join ending;
      Alcotest.(check bool) "it has waited for nobody" false (Atomic.get over);
      Domain.join waiting;
      Domain.join resetting);
  Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* A call that the driver is slow to take up, and a reset meanwhile: what the call was given is not gone when the
   driver looks at it. *)
let during (name, slow, f) =
  let reset_meanwhile () =
    let device = Device.get ~ordinal:0 in
    let enter () = Context.set_current (Context.get_primary device) in
    enter ();
    let call = f () and bad = Simulator.bad_handles () and called = Atomic.make false in
    Alcotest.(check int) "rules" 0 (Simulator.fail (slow ^ "~50ms"));
    Fun.protect ~finally:(fun () -> ignore (Simulator.fail "")) @@ fun () ->
    let caller =
      Domain.spawn (fun () ->
          enter ();
          Atomic.set called true;
          call ())
    in
    while not (Atomic.get called) do
      Domain.cpu_relax ()
    done;
    Unix.sleepf 0.02;
    Device.primary_ctx_reset device;
    (match Domain.join caller with
    | () -> ()
    | exception e ->
        (* On a busy machine the reset may have come first. *)
        check_cuda_error name "CONTEXT_IS_DESTROYED" [ "reset" ] (fun () -> raise e));
    Alcotest.(check int) "uses of dead handles" bad (Simulator.bad_handles ())
  in
  test name (fun () -> only_on_simulator reset_meanwhile)

let calls =
  let on_stream f () =
    let s = stream () in
    fun () -> f s
  in
  let on_context f () =
    let context = Context.get_current () in
    fun () -> f context
  in
  let on_memory f () =
    let p = device_ints 1 in
    fun () -> f p
  in
  let on_event f () =
    let s = stream () and e = Event.create () in
    Event.record e s;
    fun () -> f e
  in
  let on_graph f () =
    let s = stream () and p = device_ints 1 and k = kernel "incr" in
    let graph = capture s (fun () -> run k s [ Tensor p; Int 1 ]) in
    fun () -> f graph
  in
  let on_exec f () =
    let s = stream () and exec = ref None in
    on_graph (fun graph -> exec := Some (Graph.instantiate graph)) () ();
    fun () -> f (Option.get !exec) s
  in
  let zero = Unsigned.UChar.of_int 0 in
  [
    ("Deviceptr.mem_free", "cuMemFree", on_memory Deviceptr.mem_free);
    ( "Deviceptr.memcpy_D_to_H",
      "cuMemcpyDtoH",
      on_memory (fun src -> Deviceptr.memcpy_D_to_H ~dst:(ints 1) ~src ()) );
    ( "Deviceptr.memcpy_H_to_D",
      "cuMemcpyHtoD",
      on_memory (fun dst -> Deviceptr.memcpy_H_to_D ~dst ~src:(ints 1) ()) );
    ( "Deviceptr.memset_d8",
      "cuMemsetD8",
      on_memory (fun p -> Deviceptr.memset_d8 p zero ~length:4) );
    ( "Module.get_function",
      "cuModuleGetFunction",
      fun () ->
        let code = code () in
        fun () -> ignore (kernel ~from:code "incr") );
    ( "Module.Func.get_attributes",
      "cuFuncGetAttribute",
      fun () ->
        let k = kernel "incr" in
        fun () -> ignore (Module.Func.get_attributes k) );
    ("Event.query", "cuEventQuery", on_event (fun e -> ignore (Event.query e)));
    ("Event.synchronize", "cuEventSynchronize", on_event Event.synchronize);
    ( "Event.record",
      "cuEventRecordWithFlags",
      fun () ->
        let s = stream () and e = Event.create () in
        fun () -> Event.record ~external_:false e s );
    ("Stream.synchronize", "cuStreamSynchronize", on_stream Stream.synchronize);
    ("Stream.is_ready", "cuStreamQuery", on_stream (fun s -> ignore (Stream.is_ready s)));
    ("Stream.get_id", "cuStreamGetId", on_stream (fun s -> ignore (Stream.get_id s)));
    ( "Stream.mem_alloc",
      "cuMemAllocAsync",
      on_stream (fun s -> ignore (Stream.mem_alloc s ~size_in_bytes:4)) );
    ( "Graph.begin_capture",
      "cuStreamBeginCapture",
      on_stream (fun s -> Graph.begin_capture ~mode:RELAXED s) );
    ( "Graph.instantiate",
      "cuGraphInstantiateWithFlags",
      on_graph (fun graph -> ignore (Graph.instantiate graph)) );
    ("Graph.destroy", "cuGraphDestroy", on_graph Graph.destroy);
    ("Graph.launch", "cuGraphLaunch", on_exec Graph.launch);
    ("Graph.exec_destroy", "cuGraphExecDestroy", on_exec (fun e _ -> Graph.exec_destroy e));
    ("Context.synchronize", "cuCtxSynchronize", fun () -> Context.synchronize);
    ("Context.set_current", "cuCtxSetCurrent", on_context Context.set_current);
    ("Context.push_current", "cuCtxPushCurrent", on_context Context.push_current);
    ("Context.get_flags", "cuCtxGetFlags", fun () () -> ignore (Context.get_flags ()));
    ( "Context.get_limit",
      "cuCtxGetLimit",
      fun () () -> ignore (Context.get_limit STACK_SIZE) );
    ("Context.set_limit", "cuCtxSetLimit", fun () () -> Context.set_limit STACK_SIZE 2048);
    ( "Device.get_free_and_total_mem",
      "cuMemGetInfo",
      fun () () -> ignore (Device.get_free_and_total_mem ()) );
    ( "of the garbage collector",
      "cuMemFree",
      fun () ->
        ignore (Sys.opaque_identity (device_ints 1));
        fun () ->
          Gc.full_major ();
          Context.synchronize () );
  ]

let () =
  start ();
  Alcotest.run "reset"
    [
      ( "of a context",
        [ test "case 9: context reset" case_09; test "values of before" values_of_before ]
        @ List.map
            (fun mode -> test ("in a capture, " ^ mode_name mode) (in_a_capture mode))
            modes );
      ( "of one in use",
        [
          test "among launches" among_launches;
          test "among new streams" among_new_streams;
          test "among calls of all kinds" among_calls;
          test "from another context" from_another_context;
          test "known in another context" known_elsewhere;
          test "while a domain ends" while_a_domain_ends;
          test "work of another context"
            (work_of_another_context ~graph:false ~drop:false);
          test "work of another context, by a graph"
            (work_of_another_context ~graph:true ~drop:false);
          test "work of another context, on a dropped stream"
            (work_of_another_context ~graph:false ~drop:true);
          test "work on the NULL stream of another context" work_on_the_null_stream;
          test "a stream in a capture of another context"
            (joined_from_the_primary ~ended:false);
          test "a stream in a graph of another context"
            (joined_from_the_primary ~ended:true);
          test "an event that a graph of another context waits for" waits_for_an_event;
        ] );
      ( "while capturing in another context",
        List.map
          (fun mode -> test (mode_name mode) (while_capturing_elsewhere mode))
          modes );
      ("during a call", List.map during calls);
      ("all of it", [ no_misuse ]);
    ]
