(* What a hostile or careless program may do, one attack a test: it gets an exception or its way, and
   afterwards captures work, nothing is leaked and nothing dead was used. *)

open Cuda
open Support

let collect () =
  Gc.full_major ();
  Gc.full_major ();
  Context.synchronize ();
  Context.synchronize ()

(* After the attack all is as before, and a stream works. *)
let attack name f =
  test name (fun () ->
      collect ();
      let before = if Simulator.present () then Simulator.ledger () else [] in
      f ();
      check_healthy (stream ());
      collect ();
      let after = if Simulator.present () then Simulator.ledger () else [] in
      Alcotest.(check (list (pair string int))) "what is live" before after)

let capture ?mode s f = fst (Graph.with_capture ?mode s f)
let graph_of s p = capture ~mode:RELAXED s (fun () -> incr s p)
let tolerated f = try f () with Cuda_error _ | Invalid_argument _ | Failure _ -> ()

exception Alarm

(* Finalizers, alarms of the collector and hooks of the program run in the midst of calls. *)

let finalisers_that_call () =
  let s = stream () and p = device_ints 1 in
  let exec = Graph.instantiate (graph_of s p) and ran = ref 0 in
  let act _ =
    Stdlib.incr ran;
    List.iter tolerated
      [
        (fun () -> Graph.launch exec (stream ()));
        (fun () -> ignore (graph_of (stream ()) p));
        (fun () -> ignore (Event.query (Event.create ())));
        (fun () -> Deviceptr.mem_free (device_ints 1));
      ]
  in
  let victims () =
    for _ = 1 to 20 do
      let victim = Event.create () in
      Gc.finalise act victim
    done
  in
  victims ();
  let graph =
    capture ~mode:RELAXED s (fun () ->
        incr s p;
        Gc.full_major ();
        incr s p)
  in
  Gc.full_major ();
  Alcotest.(check int) "both nodes and no other" 2 (Graph.node_count graph);
  Alcotest.(check int) "they ran" 20 !ran

let collector_alarms () =
  let s = stream () and p = device_ints 1 in
  (* OCaml before 5.3 keeps the function of an alarm, deleted or not, until the program ends. *)
  let used = ref (Some (stream (), p)) in
  let alarm =
    Gc.create_alarm (fun () ->
        Option.iter
          (fun (other, p) ->
            tolerated (fun () -> incr other p);
            tolerated (fun () -> ignore (Stream.is_ready other)))
          !used)
  in
  Fun.protect
    ~finally:(fun () ->
      Gc.delete_alarm alarm;
      used := None)
    (fun () ->
      List.iter
        (fun mode ->
          let graph =
            capture ~mode s (fun () ->
                incr s p;
                Gc.full_major ();
                ignore (Sys.opaque_identity (List.init 10_000 string_of_int));
                incr s p)
          in
          Alcotest.(check int) "whole" 2 (Graph.node_count graph))
        modes)

let resurrected () =
  let saved = ref None and p = device_ints 1 in
  let make capturing =
    let s = stream () in
    Gc.finalise (fun s -> saved := Some s) s;
    if capturing then Graph.begin_capture ~mode:RELAXED s;
    incr s p
  in
  List.iter
    (fun capturing ->
      make capturing;
      Gc.full_major ();
      Gc.full_major ();
      ignore (Event.create ());
      match !saved with
      | None -> Alcotest.fail "it was not finalised"
      | Some s ->
          tolerated (fun () -> incr s p);
          tolerated (fun () -> ignore (Graph.end_capture s));
          tolerated (fun () -> Stream.synchronize s);
          tolerated (fun () -> ignore (graph_of s p));
          saved := None)
    [ false; true ]

let hooks_that_raise_and_call () =
  let s = stream () and p = device_ints 1 in
  let inside = ref false in
  let hook ~message:_ ~status:_ =
    if not !inside then (
      inside := true;
      tolerated (fun () -> Graph.begin_capture s);
      tolerated (fun () -> ignore (Graph.end_capture s));
      inside := false;
      raise Alarm)
  in
  cuda_call_hook := Some hook;
  Fun.protect
    ~finally:(fun () -> cuda_call_hook := None)
    (fun () ->
      for _ = 1 to 20 do
        List.iter
          (fun f -> match f () with () -> () | exception Alarm -> () | exception Cuda_error _ -> ())
          [
            (fun () -> incr s p);
            (fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:4));
            (fun () -> ignore (capture s (fun () -> incr s p)));
            (fun () -> Stream.synchronize s);
            (fun () -> ignore (code ()));
          ]
      done);
  tolerated (fun () -> ignore (Graph.end_capture s))
[@@ocamlformat "disable"]

(* Control leaves a capture in every way that OCaml has. *)

let signals () =
  let s = stream () and p = device_ints 1 in
  let armed = ref false in
  let handler _ =
    if !armed then (
      armed := false;
      raise Alarm)
  in
  let previous = Sys.signal Sys.sigalrm (Signal_handle handler) in
  let timer seconds =
    ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.; it_value = seconds })
  in
  let caught = ref 0 in
  let until = Unix.gettimeofday () +. 1. in
  let random = Random.State.make [| 1 |] in
  while Unix.gettimeofday () < until do
    (try
       armed := true;
       timer (1e-6 +. Random.State.float random 2e-4);
       let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
       Graph.launch exec s;
       Stream.synchronize s;
       armed := false
     with Alarm -> Stdlib.incr caught);
    if Stream.is_capturing s then Alcotest.fail "a capture was left open"
  done;
  timer 0.;
  Sys.set_signal Sys.sigalrm previous;
  Alcotest.(check bool) (Printf.sprintf "%d signals" !caught) true (!caught > 10)

type _ Effect.t += Suspend : unit Effect.t

(* The function of a capture is suspended: it goes on in another domain, or with an exception, or never. *)
let effects () =
  let p = device_ints 1 and seen = ref None in
  let resume = ref ignore and finished = ref None in
  let suspend s =
    let open Effect.Deep in
    let effc (type a) : a Effect.t -> ((a, unit) continuation -> unit) option = function
      | Suspend ->
          Some
            (fun k ->
              resume := function true -> continue k () | false -> discontinue k Alarm)
      | _ -> None
    in
    match_with
      (fun () ->
        let graph, () =
          Graph.with_capture ~mode:RELAXED s (fun () ->
              incr s p;
              Effect.perform Suspend;
              incr s p)
        in
        finished := Some (Graph.node_count graph))
      ()
      { retc = Fun.id; exnc = (fun error -> seen := Some error); effc }
  in
  let s = stream () in
  suspend s;
  Domain.join (Domain.spawn (fun () -> !resume true));
  Alcotest.(check (option int)) "went on elsewhere" (Some 2) !finished;
  suspend s;
  !resume false;
  Alcotest.(check bool) "the exception" true (!seen = Some Alarm);
  Alcotest.(check bool) "closed" false (Stream.is_capturing s);
  suspend (stream ());
  resume := ignore

let stack_overflow () =
  let s = stream () and p = device_ints 1 in
  let rec deep n = if n = 0 then 0 else 1 + deep (n - 1) in
  (match
     Graph.with_capture s (fun () ->
         incr s p;
         deep (Sys.opaque_identity max_int))
   with
  | _ -> Alcotest.fail "no overflow"
  | exception Stack_overflow -> ());
  Alcotest.(check bool) "closed" false (Stream.is_capturing s)

let nested () =
  let a = stream () and b = stream () and p = device_ints 1 in
  let inner = ref None in
  let outer =
    capture a (fun () ->
        incr a p;
        inner := Some (capture b (fun () -> incr b p));
        (match Graph.with_capture a ignore with
        | _ -> Alcotest.fail "the same stream twice"
        | exception Cuda_error _ -> ());
        incr a p)
  in
  Alcotest.(check (list int))
    "each its own" [ 2; 1 ]
    [ Graph.node_count outer; Graph.node_count (Option.get !inner) ]

let thread_exits () =
  let s = stream () and p = device_ints 1 in
  let body () =
    Context.set_current (Stream.get_context s);
    ignore
      (Graph.with_capture s (fun () ->
           incr s p;
           raise Thread.Exit))
  in
  Thread.join (Thread.create body ());
  Alcotest.(check bool) "closed" false (Stream.is_capturing s)

let forks_inside () =
  let s = stream () and p = device_ints 1 in
  let graph =
    capture s (fun () ->
        incr s p;
        flush_all ();
        match Unix.fork () with
        | 0 ->
            tolerated (fun () -> incr s p);
            Gc.full_major ();
            Unix._exit 7
        | child ->
            Alcotest.(check bool)
              "the child went as it wanted" true
              (snd (Unix.waitpid [] child) = WEXITED 7);
            incr s p)
  in
  Alcotest.(check int) "both nodes" 2 (Graph.node_count graph)

(* Numbers and sizes. *)

let sizes () =
  let s = stream () and p = device_ints 4 in
  let refused name f =
    match f () with
    | _ -> Alcotest.failf "%s was accepted" name
    | exception (Cuda_error _ | Invalid_argument _) -> ()
  in
  let byte = Unsigned.UChar.of_int 0 in
  refused "max_int bytes" (fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:max_int));
  refused "-1 bytes" (fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:(-1)));
  refused "min_int bytes" (fun () -> ignore (Stream.mem_alloc s ~size_in_bytes:min_int));
  refused "a fill of max_int" (fun () -> Stream.memset_d8 p byte ~length:max_int s);
  refused "a fill from max_int" (fun () ->
      Stream.memset_d8 ~offset:max_int p byte ~length:1 s);
  refused "words past all" (fun () ->
      Stream.memset_d32 p (Unsigned.UInt32.of_int 0) ~length:((max_int / 4) + 1) s);
  refused "a copy of max_int" (fun () ->
      Stream.memcpy_D_to_D ~size_in_bytes:max_int ~dst:p ~src:p s);
  refused "an offset of max_int" (fun () ->
      run (Lazy.force incr_kernel) s
        [ Tensor_at (Deviceptr.offset p ~bytes:max_int); Int 1 ];
      Stream.synchronize s)

let lists_without_end () =
  let s = stream () in
  let rec ints = Stream.Int 1 :: ints in
  let launch () = run (Lazy.force incr_kernel) s ints in
  check_invalid "without end" [ "takes 2 arguments" ] launch;
  check_invalid "in a capture" [ "takes 2 arguments" ] (fun () ->
      ignore (capture s launch))

let marshalled () =
  let s = stream () and p = device_ints 1 in
  let graph = graph_of s p in
  let exec = Graph.instantiate graph in
  let refused name f =
    match f () with
    | (_ : string) -> Alcotest.failf "%s was marshalled" name
    | exception (Invalid_argument _ | Failure _) -> ()
  in
  refused "memory" (fun () -> Marshal.to_string p []);
  refused "a graph" (fun () -> Marshal.to_string graph []);
  refused "an exec" (fun () -> Marshal.to_string exec [ Closures ]);
  refused "a stream" (fun () -> Marshal.to_string s [ Closures ]);
  Alcotest.(check bool) "compared" true (compare exec exec = 0 && compare graph graph = 0);
  ignore (Hashtbl.hash (s, p, graph, exec))

(* Many of everything. *)

let many_captures () =
  let p = device_ints 1 in
  let streams = List.init 1000 (fun _ -> stream ()) in
  List.iter (Graph.begin_capture ~mode:RELAXED) streams;
  List.iter (fun s -> incr s p) streams;
  Gc.full_major ();
  let half = List.filteri (fun i _ -> i mod 2 = 0) streams in
  List.iter
    (fun s -> Alcotest.(check int) "its own" 1 (Graph.node_count (Graph.end_capture s)))
    half
(* The others are dropped. *)

let many_nodes () =
  let s = stream () and p = device_ints 1 in
  let graph =
    capture s (fun () ->
        for _ = 1 to 20_000 do
          incr s p
        done)
  in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Graph.exec_destroy exec;
  Graph.destroy graph;
  Stream.synchronize s;
  Alcotest.(check (list int)) "all of them" [ 20_000 ] (read p)

(* Contexts under a capture. *)

let contexts_inside () =
  let s = stream () and p = device_ints 1 in
  let home = Context.get_current () in
  let graph =
    capture ~mode:RELAXED s (fun () ->
        incr s p;
        let other = Context.create [] (Device.get ~ordinal:0) in
        tolerated (fun () -> Graph.begin_capture s);
        incr s p;
        tolerated (fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:4));
        ignore (Context.pop_current ());
        ignore other)
  in
  Context.set_current home;
  Alcotest.(check int) "both nodes" 2 (Graph.node_count graph)

let events_of_two_captures () =
  let shared = Event.create () and p = device_ints 1 in
  let work seed () =
    Context.set_current (Context.get_primary (Device.get ~ordinal:0));
    let s = stream () in
    for i = 1 to 100 do
      tolerated (fun () ->
          ignore
            (capture
               ~mode:(List.nth modes ((seed + i) mod 3))
               s
               (fun () ->
                 incr s p;
                 Event.record shared s;
                 Event.wait s shared)));
      tolerated (fun () -> Event.record shared s);
      tolerated (fun () -> ignore (Event.query shared))
    done;
    Stream.synchronize s
  in
  List.iter Domain.join (List.init 3 (fun i -> Domain.spawn (work i)))

let () =
  start ();
  ignore (Lazy.force incr_kernel);
  Alcotest.run "attacks"
    [
      (* Before any other domain is there. *)
      ("fork", [ attack "in a capture" forks_inside ]);
      ( "in the midst of calls",
        [
          attack "finalizers that call" finalisers_that_call;
          attack "alarms of the collector" collector_alarms;
          attack "resurrected streams" resurrected;
          attack "hooks that raise and call" hooks_that_raise_and_call;
        ] );
      ( "ways out",
        [
          attack "signals that raise" signals;
          attack "effects" effects;
          attack "stack overflow" stack_overflow;
          attack "nested captures" nested;
          attack "a thread exits" thread_exits;
        ] );
      ( "values",
        [
          attack "sizes" sizes;
          attack "lists without end" lists_without_end;
          attack "marshalled" marshalled;
        ] );
      ("many", [ attack "open captures" many_captures; attack "nodes" many_nodes ]);
      ( "others",
        [
          attack "contexts in a capture" contexts_inside;
          attack "one event in many captures" events_of_two_captures;
        ] );
      ("end", [ no_misuse ]);
    ]
