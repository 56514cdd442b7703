(* Cuda.Graph: every function, its good and its bad paths. *)

open Cuda
open Support
module _ : Documented.GRAPH = Cuda.Graph

let capture ?mode s f =
  Graph.begin_capture ?mode s;
  f ();
  Graph.end_capture s

let replay mode =
  let s = stream () and p = device_ints 1 in
  let graph = capture ~mode s (fun () -> incr s p) in
  Alcotest.(check (list int)) "captured work is not executed" [ 0 ] (read p);
  let exec = Graph.instantiate graph in
  for _ = 1 to 100 do
    Graph.launch exec s
  done;
  Stream.synchronize s;
  Alcotest.(check (list int)) "each launch does the work" [ 100 ] (read p)

let default_mode () =
  let s = stream () in
  Graph.begin_capture s;
  check_cuda_error "allocating" "STREAM_CAPTURE_UNSUPPORTED" [ "cu_mem_alloc" ] (fun () ->
      Deviceptr.mem_alloc ~size_in_bytes:4);
  check_cuda_error "the default mode is GLOBAL" "STREAM_CAPTURE_INVALIDATED" [] (fun () ->
      Graph.end_capture s)

let order () =
  let s = stream () and p = device_ints 1 in
  let graph =
    capture s (fun () ->
        append s p 1;
        append s p 2;
        append s p 3)
  in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  append s p 4;
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "in order" [ 1234123 ] (read p)

let sexps () =
  let s = stream () and p = device_ints 1 in
  let graph = capture s (fun () -> incr s p) in
  let exec = Graph.instantiate graph in
  let check name text parts =
    List.iter
      (fun part -> Alcotest.(check bool) (name ^ ": " ^ text) true (contains text part))
      parts
  in
  (* The module of the kernel, and the memory. *)
  check "graph" (sexp (Graph.sexp_of_t graph)) [ "address 0x"; "nodes 1"; "held 2" ];
  check "exec" (sexp (Graph.sexp_of_exec exec)) [ "address 0x"; "nodes 1"; "held 2" ];
  Graph.destroy graph;
  Graph.exec_destroy exec;
  check "graph" (sexp (Graph.sexp_of_t graph)) [ "destroyed"; "held 0" ];
  check "exec" (sexp (Graph.sexp_of_exec exec)) [ "destroyed"; "held 0" ];
  Alcotest.(check (list string))
    "modes"
    [ "GLOBAL"; "THREAD_LOCAL"; "RELAXED" ]
    (List.map mode_name modes)

let destroyed () =
  let s = stream () and p = device_ints 1 in
  let graph = capture s (fun () -> incr s p) in
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  Graph.destroy graph;
  check_invalid "instantiating a destroyed graph"
    [ "Cuda.Graph.instantiate"; "destroyed" ] (fun () -> Graph.instantiate graph);
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "the exec lives on" [ 1 ] (read p);
  Graph.exec_destroy exec;
  Graph.exec_destroy exec;
  check_invalid "launching a destroyed exec" [ "Cuda.Graph.launch"; "destroyed" ]
    (fun () -> Graph.launch exec s);
  check_healthy s

let two_execs () =
  let s = stream () and p = device_ints 1 in
  let graph = capture s (fun () -> incr s p) in
  let first = Graph.instantiate graph in
  Graph.launch first s;
  let second = Graph.instantiate graph in
  Graph.destroy graph;
  Graph.exec_destroy first;
  gc_storm ();
  Graph.launch second s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "both ran" [ 2 ] (read p)

let other_stream () =
  let s = stream () and other = Stream.create () and p = device_ints 1 in
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  Graph.launch exec other;
  Stream.synchronize other;
  Graph.launch exec Stream.no_stream;
  Context.synchronize ();
  Alcotest.(check (list int)) "on any stream" [ 2 ] (read p)

(* Launches of one exec wait for each other, whatever the stream. *)
let one_exec_two_streams () =
  let a = stream () and b = stream () and p = device_ints 1 in
  let steps () =
    append a p 1;
    append a p 2;
    append a p 3
  in
  let exec = Graph.instantiate (capture a steps) in
  for _ = 1 to 200 do
    Deviceptr.memset_d32 p (Unsigned.UInt32.of_int 0) ~length:1;
    Graph.launch exec a;
    Graph.launch exec b;
    Context.synchronize ();
    Alcotest.(check (list int)) "one after the other" [ 123123 ] (read p)
  done

let empty () =
  let s = stream () in
  let graph = capture s ignore in
  Alcotest.(check int) "no nodes" 0 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s

let out_of_order () =
  let s = stream () and p = device_ints 1 in
  check_cuda_error "end without begin" "ILLEGAL_STATE" [ "cu_stream_end_capture" ]
    (fun () -> Graph.end_capture s);
  Graph.begin_capture s;
  incr s p;
  check_cuda_error "begin twice" "ILLEGAL_STATE"
    [ "cu_stream_begin_capture"; "capturing" ] (fun () -> Graph.begin_capture s);
  let graph = Graph.end_capture s in
  Alcotest.(check int) "the first capture went on" 1 (Graph.node_count graph);
  check_cuda_error "end twice" "ILLEGAL_STATE" [] (fun () -> Graph.end_capture s);
  check_cuda_error "the NULL stream" "STREAM_CAPTURE_UNSUPPORTED" [] (fun () ->
      Graph.begin_capture Stream.no_stream);
  check_healthy s

let copies_and_fills () =
  let s = stream () in
  let a = device_ints 4 and b = device_ints 4 in
  let from = ints ~value:5 4 and into = ints 4 in
  let graph =
    capture s (fun () ->
        Stream.memcpy_H_to_D ~dst:a ~src:from s;
        Stream.memset_d32 ~offset:8 a (Unsigned.UInt32.of_int 9) ~length:1 s;
        Stream.memcpy_D_to_D ~size_in_bytes:16 ~dst:b ~src:a s;
        incr ~n:4 s b;
        Stream.memcpy_D_to_H ~dst:into ~src:b s)
  in
  Alcotest.(check int) "five nodes" 5 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s;
  let seen () =
    List.init 4 (fun i -> Int32.to_int (Bigarray.Genarray.get into [| i |]))
  in
  Alcotest.(check (list int)) "through the device" [ 6; 6; 10; 6 ] (seen ());
  (* A captured copy reads the bigarray when it is launched. *)
  Bigarray.Genarray.fill from 20l;
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "what is there at the launch" [ 21; 21; 10; 21 ] (seen ())

let fork_and_join () =
  let a = stream () and b = stream () in
  let p = device_ints 1 and q = device_ints 1 in
  let forked = Event.create () and joined = Event.create () in
  let graph =
    capture a (fun () ->
        append a p 1;
        Event.record forked a;
        Event.wait b forked;
        append b q 7;
        append b p 2;
        Event.record joined b;
        Event.wait a joined;
        append a p 3)
  in
  Alcotest.(check int) "one graph" 4 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.launch exec a;
  Graph.launch exec b;
  Context.synchronize ();
  Alcotest.(check (pair (list int) (list int)))
    "in order" ([ 123123 ], [ 77 ])
    (read p, read q);
  check_healthy a;
  check_healthy b

let sync_work_refused blocking mode () =
  let s = Stream.create ~non_blocking:(not blocking) () in
  let p = device_ints 1 in
  let status =
    if blocking then "STREAM_CAPTURE_IMPLICIT" else "STREAM_CAPTURE_UNSUPPORTED"
  in
  let graph =
    capture ~mode s (fun () ->
        incr s p;
        check_cuda_error "a copy" status [ "cu_memcpy_H_to_D"; "capturing" ] (fun () ->
            Deviceptr.memcpy_H_to_D ~dst:p ~src:(ints 1) ());
        check_cuda_error "a fill" status [ "cu_memset_d32" ] (fun () ->
            Deviceptr.memset_d32 p (Unsigned.UInt32.of_int 1) ~length:1);
        check_cuda_error "a launch on the NULL stream" status [ "cu_launch_kernel" ]
          (fun () -> incr Stream.no_stream p))
  in
  Alcotest.(check int) "the capture is whole" 1 (Graph.node_count graph);
  Alcotest.(check (list int)) "nothing ran" [ 0 ] (read p)

let relaxed_runs_now () =
  let s = stream () and p = device_ints 1 in
  let graph =
    capture ~mode:RELAXED s (fun () ->
        incr s p;
        Deviceptr.memset_d32 p (Unsigned.UInt32.of_int 5) ~length:1)
  in
  Alcotest.(check (pair int (list int)))
    "not captured, done" (1, [ 5 ])
    (Graph.node_count graph, read p)

let with_capture_raises () =
  let s = stream () and p = device_ints 1 in
  List.iter
    (fun error ->
      (match Graph.with_capture s (fun () -> incr s p; raise error) with
      | _ -> Alcotest.fail "no exception"
      | exception raised -> Alcotest.(check bool) "the same exception" true (raised == error));
      Alcotest.(check bool) "not capturing" false (Stream.is_capturing s);
      check_healthy s)
    [ Not_found; Out_of_memory; Stack_overflow; Sys.Break; Failure "mine" ]
[@@ocamlformat "disable"]

let culprit_named mode () =
  let s = stream () and p = device_ints 1 in
  Graph.begin_capture ~mode s;
  incr s p;
  check_cuda_error "waiting for it" "STREAM_CAPTURE_UNSUPPORTED"
    [ "cu_stream_synchronize" ] (fun () -> Stream.synchronize s);
  check_cuda_error "the next launch" "STREAM_CAPTURE_INVALIDATED" [] (fun () -> incr s p);
  check_cuda_error "the end names the culprit" "STREAM_CAPTURE_INVALIDATED"
    [ "cu_stream_end_capture"; "broken by cu_stream_synchronize" ] (fun () ->
      Graph.end_capture s);
  check_healthy s

let launch_while_capturing mode () =
  let s = stream () and p = device_ints 1 in
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  Graph.begin_capture ~mode s;
  check_cuda_error "a graph in a capture" "STREAM_CAPTURE_UNSUPPORTED" [ "capturing" ]
    (fun () -> Graph.launch exec s);
  check_cuda_error "ended" "STREAM_CAPTURE_INVALIDATED" [ "cu_graph_launch" ] (fun () ->
      Graph.end_capture s);
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "the exec still works" [ 1 ] (read p);
  check_healthy s

let wrong_thread () =
  List.iter
    (fun mode ->
      let s = stream () and p = device_ints 1 in
      Graph.begin_capture ~mode s;
      incr s p;
      let ended () = Domain.join (Domain.spawn (fun () -> Graph.end_capture s)) in
      if mode = Graph.RELAXED then
        Alcotest.(check int) "RELAXED" 1 (Graph.node_count (ended ()))
      else check_cuda_error "another thread" "STREAM_CAPTURE_WRONG_THREAD" [] ended;
      check_healthy s)
    modes

let cold_domain () =
  let s = stream () and p = device_ints 1 in
  let f = Lazy.force incr_kernel in
  Domain.join
    (Domain.spawn (fun () ->
         (* No context is current here: the stream's is used. *)
         let graph, () = Graph.with_capture s (fun () -> run f s [ Tensor p; Int 1 ]) in
         let exec = Graph.instantiate graph in
         Graph.launch exec s;
         Stream.synchronize s));
  Alcotest.(check (list int)) "done" [ 1 ] (read p)

let instantiate_fails () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 in
      let graph = capture s (fun () -> incr s p) in
      ignore (Simulator.fail "cuGraphInstantiateWithFlags=INVALID_VALUE");
      check_cuda_error "a failing driver" "INVALID_VALUE" [ "cu_graph_instantiate" ]
        (fun () -> Graph.instantiate graph);
      ignore (Simulator.fail "cuGraphInstantiateWithFlags@2=OUT_OF_MEMORY");
      ignore (Simulator.fail "");
      Graph.launch (Graph.instantiate graph) s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "works after" [ 1 ] (read p))

let () =
  start ();
  Alcotest.run "graph"
    [
      ( "replay",
        in_each_mode "100 launches" replay @ [ test "order" order; test "sexp" sexps ] );
      ( "capture",
        [
          test "GLOBAL is the default" default_mode;
          test "nothing captured" empty;
          test "out of order" out_of_order;
          test "copies and fills" copies_and_fills;
          test "two streams" fork_and_join;
          test "another thread ends it" wrong_thread;
          test "a domain without a context" cold_domain;
        ]
        @ in_each_mode "the culprit is named" (fun m -> culprit_named m ())
        @ in_each_mode "a graph launched into a capture" (fun m ->
              launch_while_capturing m ()) );
      ( "uncaptured work",
        [
          test "RELAXED" relaxed_runs_now;
          test "refused, GLOBAL" (sync_work_refused false GLOBAL);
          test "refused, THREAD_LOCAL" (sync_work_refused false THREAD_LOCAL);
          test "refused, blocking stream" (sync_work_refused true GLOBAL);
        ] );
      ( "exec",
        [
          test "destroyed" destroyed;
          test "two of one graph" two_execs;
          test "on another stream" other_stream;
          test "on two streams at once" one_exec_two_streams;
          test "instantiate fails" instantiate_fails;
        ] );
      ("with_capture", [ test "exceptions" with_capture_raises ]);
      ("end", [ no_misuse ]);
    ]
