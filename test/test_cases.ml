(* Reports of users of other bindings that have no other place, by the numbers of CASES.md. *)

open Cuda
open Support

let capture ?mode s f = fst (Graph.with_capture ?mode s f)
let here () = Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* Another domain does [f] again and again while this one does [g]. *)
let beside f g =
  let stop = Atomic.make false in
  let other =
    Domain.spawn (fun () ->
        here ();
        while not (Atomic.get stop) do
          f ()
        done)
  in
  Fun.protect g ~finally:(fun () ->
      Atomic.set stop true;
      Domain.join other)

(* 10: the call is the last use of its arguments, and another domain collects all the time. *)
let case_10 () =
  let s = stream () and total = device_ints 1 and rounds = 1000 in
  let code = code () in
  let minor = (Gc.get ()).minor_heap_size in
  Gc.set { (Gc.get ()) with minor_heap_size = 256 };
  Fun.protect
    ~finally:(fun () -> Gc.set { (Gc.get ()) with minor_heap_size = minor })
    (fun () ->
      beside Gc.full_major (fun () ->
          for i = 1 to rounds do
            let p = device_ints 1 in
            Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:i 1) s;
            incr s p;
            run
              (Module.get_function code ~name:"copy")
              ~threads:1 s
              [ Tensor total; Tensor p; Int 1 ]
          done;
          Stream.synchronize s));
  Alcotest.(check (list int)) "the last one" [ rounds + 1 ] (read total)

(* 19: modules are loaded and dropped inside a capture. *)
let case_19 mode () =
  let s = stream () and p = device_ints 1 in
  let live () =
    Gc.full_major ();
    Gc.full_major ();
    Context.synchronize ();
    Simulator.live "module"
  in
  let before = live () in
  let run_once () =
    let graph =
      capture ~mode s (fun () ->
          for _ = 1 to 20 do
            run (kernel "incr") s [ Tensor p; Int 1 ];
            ignore (Sys.opaque_identity (code ()));
            Gc.full_major ()
          done)
    in
    Alcotest.(check int) "all of them" 20 (Graph.node_count graph);
    Graph.launch (Graph.instantiate graph) s;
    Stream.synchronize s;
    Alcotest.(check (list int)) "the dropped modules ran" [ 20 ] (read p)
  in
  run_once ();
  check_healthy s;
  Alcotest.(check int) "unloaded" before (live ())

(* 23: what another domain does to the whole device. *)
let case_23 mode () =
  let s = stream () and p = device_ints 1 in
  let waited = Atomic.make 0 and refused = Atomic.make 0 in
  let template = capture ~mode s (fun () -> incr s p) in
  let everything () =
    ignore (Sys.opaque_identity (stream ()));
    let q = Deviceptr.mem_alloc ~size_in_bytes:64 in
    Deviceptr.mem_free q;
    ignore (Sys.opaque_identity (Graph.instantiate template));
    Gc.minor ();
    match Context.synchronize () with
    | () -> Atomic.incr waited
    | exception Cuda_error { message; _ } ->
        if contains message "another thread is capturing" then Atomic.incr refused
        else failwith message
  in
  beside everything (fun () ->
      for _ = 1 to 100 do
        let before = Atomic.get refused in
        let graph =
          capture ~mode s (fun () ->
              for _ = 1 to 10 do
                incr s p
              done;
              (* Until the other one has tried to wait. *)
              let rec wait n =
                if Atomic.get refused = before && n > 0 then (
                  Unix.sleepf 0.0001;
                  wait (n - 1))
              in
              wait 50_000;
              incr s p)
        in
        Alcotest.(check int) "whole" 11 (Graph.node_count graph)
      done);
  Alcotest.(check bool) "told why" true (Atomic.get refused >= 100);
  check_healthy s

(* 29: a synchronous copy by a domain that does not capture. *)
let case_29 blocking mode () =
  let s = Stream.create ~non_blocking:(not blocking) () in
  let p = device_ints 1 and q = device_ints ~value:3 1 in
  Graph.begin_capture ~mode s;
  incr s p;
  let seen =
    Domain.join
      (Domain.spawn (fun () ->
           here ();
           match read q with
           | [ n ] -> string_of_int n
           | _ -> "several"
           | exception Cuda_error { status; message } ->
               if contains message "another thread is capturing" then status_name status
               else message))
  in
  Alcotest.(check string)
    "the other domain's copy"
    (if blocking then "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" else "3")
    seen;
  incr s p;
  let graph = Graph.end_capture s in
  Alcotest.(check int) "the capture is whole" 2 (Graph.node_count graph);
  check_healthy s

(* 23: a thread that breaks its own capture breaks no other thread's. *)
let case_23_own theirs () =
  let s = stream () and p = device_ints 1 in
  let other = stream () and q = device_ints 1 in
  Graph.begin_capture ~mode:GLOBAL s;
  incr s p;
  let breaks () =
    here ();
    Graph.begin_capture ~mode:theirs other;
    incr other q;
    (match Deviceptr.mem_alloc ~size_in_bytes:4 with
    | _ -> ()
    | exception Cuda_error _ -> ());
    match Graph.end_capture other with
    | _ -> "whole"
    | exception Cuda_error { message; _ } ->
        if contains message "broken by cu_mem_alloc" then "broken by itself" else message
  in
  let outcome = Domain.join (Domain.spawn breaks) in
  Alcotest.(check string) "the other capture" "broken by itself" outcome;
  incr s p;
  Alcotest.(check int) "this one is whole" 2 (Graph.node_count (Graph.end_capture s));
  check_healthy s;
  check_healthy other

(* 45: the third of ten calls is a wrong one. *)
let case_45 mode () =
  let s = stream () and p = device_ints 1 in
  Graph.begin_capture ~mode s;
  for i = 1 to 10 do
    if i = 3 then
      check_cuda_error "at the call" "STREAM_CAPTURE_UNSUPPORTED" [ "cu_mem_alloc" ]
        (fun () -> Deviceptr.mem_alloc ~size_in_bytes:4)
    else match incr s p with () -> () | exception Cuda_error _ when i > 3 -> ()
  done;
  check_cuda_error "at the end" "STREAM_CAPTURE_INVALIDATED" [ "broken by cu_mem_alloc" ]
    (fun () -> Graph.end_capture s);
  check_healthy s

(* 46: why a graph cannot be instantiated. *)
let case_46 () =
  let s = stream () and p = device_ints 1 in
  let graph =
    capture s (fun () ->
        let q = Stream.mem_alloc s ~size_in_bytes:4 in
        Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:p ~src:q s;
        Stream.mem_free s q)
  in
  let first = Graph.instantiate graph in
  check_cuda_error "a second exec" "NOT_SUPPORTED" [ "cu_graph_instantiate"; "exec" ]
    (fun () -> Graph.instantiate graph);
  Graph.launch first s;
  Stream.synchronize s;
  Graph.exec_destroy first;
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s

(* 52: no memory for another exec: the one that there is goes on. *)
let case_52 () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 in
      let graph = capture s (fun () -> incr s p) in
      let old = Graph.instantiate graph in
      ignore (Simulator.fail "cuGraphInstantiateWithFlags=OUT_OF_MEMORY");
      Fun.protect
        ~finally:(fun () -> ignore (Simulator.fail ""))
        (fun () ->
          check_cuda_error "no memory" "OUT_OF_MEMORY" [ "cu_graph_instantiate" ]
            (fun () -> Graph.instantiate graph);
          Graph.launch old s;
          Stream.synchronize s;
          Alcotest.(check (list int)) "the old one" [ 1 ] (read p));
      Graph.exec_destroy old;
      Graph.launch (Graph.instantiate graph) s;
      Stream.synchronize s;
      Alcotest.(check (list int)) "the new one" [ 2 ] (read p))

(* 54: execs are destroyed by some domains while others launch theirs. *)
let case_54 () =
  let p = device_ints 1 in
  let launcher () =
    here ();
    let s = stream () and mine = device_ints 1 in
    let exec = Graph.instantiate (capture ~mode:RELAXED s (fun () -> incr s mine)) in
    for _ = 1 to 250 do
      Graph.launch exec s
    done;
    Stream.synchronize s;
    read mine = [ 250 ]
  in
  let destroyer () =
    here ();
    let s = stream () in
    let graph = capture ~mode:RELAXED s (fun () -> incr s p) in
    let execs = List.init 250 (fun _ -> Graph.instantiate graph) in
    List.iter Graph.exec_destroy execs;
    true
  in
  let domains =
    List.concat (List.init 4 (fun _ -> List.map Domain.spawn [ launcher; destroyer ]))
  in
  Alcotest.(check (list bool))
    "all right"
    (List.init 8 (fun _ -> true))
    (List.map Domain.join domains)

let () =
  start ();
  ignore (Lazy.force incr_kernel);
  let each name case = in_each_mode name (fun mode -> case mode ()) in
  Alcotest.run "cases"
    [
      ("kept alive", [ test "case 10: last used by the call" case_10 ]);
      ( "captures",
        each "case 19: modules inside" case_19
        @ [
            test "case 45: the third of ten, GLOBAL" (case_45 GLOBAL);
            test "case 45: the third of ten, THREAD_LOCAL" (case_45 THREAD_LOCAL);
          ]
        @ [
            test "case 46: instantiated twice" case_46; test "case 52: no memory" case_52;
          ] );
      ( "domains",
        each "case 23: waits and streams" case_23
        @ [
            test "case 23: each breaks its own, GLOBAL" (case_23_own GLOBAL);
            test "case 23: each breaks its own, THREAD_LOCAL" (case_23_own THREAD_LOCAL);
          ]
        @ each "case 29: copies, blocking stream" (case_29 true)
        @ each "case 29: copies, non-blocking stream" (case_29 false)
        @ [ test "case 54: destroyed and launched" case_54 ] );
      ("end", [ no_misuse ]);
    ]
