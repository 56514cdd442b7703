(* One process, two libraries: other_library.c makes and uses handles of the driver without us. *)

open Cuda
open Support

external other_stream : unit -> nativeint = "other_stream_create"
external other_stream_destroy : nativeint -> int = "other_stream_destroy"
external other_context : unit -> nativeint = "other_context"
external other_context_destroy : nativeint -> int = "other_context_destroy"
external other_memory : int -> nativeint = "other_memory"
external other_free : nativeint -> int = "other_free"
external other_begin_capture : nativeint -> int = "other_begin_capture"
external other_end_capture : nativeint -> nativeint = "other_end_capture"
external other_instantiate : nativeint -> nativeint = "other_instantiate"
external other_launch : nativeint -> nativeint -> int = "other_launch"
external other_graph_destroy : nativeint -> int = "other_graph_destroy"
external other_exec_destroy : nativeint -> int = "other_exec_destroy"
external other_synchronize : nativeint -> int = "other_synchronize"
external other_fill : Stream.t -> Deviceptr.t -> int -> int = "other_fill"
external other_replay : Graph.exec -> Stream.t -> int = "other_replay"
external other_nodes : Graph.t -> int = "other_nodes"
external other_thread_mode : unit -> int = "other_thread_mode"

let ok name status = Alcotest.(check int) name 0 status

let collect () =
  Gc.full_major ();
  Gc.full_major ();
  Context.synchronize ()

let capture s f = fst (Graph.with_capture s f)

(* A value whose end can be seen. *)
let watched () =
  let gone = ref false in
  let value = ref 0 in
  Gc.finalise (fun _ -> gone := true) value;
  (value, gone)

let borrowed_stream () =
  let handle = other_stream () and p = device_ints 1 in
  let s = Interop.stream handle in
  incr s p;
  let exec = Graph.instantiate (capture s (fun () -> incr s p)) in
  for _ = 1 to 300 do
    Graph.launch exec s
  done;
  Stream.synchronize s;
  Alcotest.(check (list int)) "used as our own" [ 301 ] (read p);
  Alcotest.(check bool) "the same handle" true (handle = Interop.stream_handle s);
  (* Work is pending when its last value and the stream itself are gone. *)
  let enqueue () =
    let q = device_ints ~value:5 1 in
    Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:p ~src:q (Interop.stream handle)
  in
  enqueue ();
  gc_storm ();
  ok "ours to keep, theirs to destroy" (other_synchronize handle);
  Alcotest.(check (list int)) "what it used was kept" [ 5 ] (read p);
  ok "still alive" (other_stream_destroy handle)

(* There is no room for the event that would tell when the work of a borrowed stream is done: what it uses is
   not let go before. *)
let no_event_to_mark () =
  only_on_simulator (fun () ->
      let handle = other_stream () and gone = ref false in
      let scratch = device_ints 1 and busy = kernel "busy" in
      let[@inline never] enqueue () =
        let s = Interop.stream handle and value = ref 0 in
        Gc.finalise (fun _ -> gone := true) value;
        ok "rules" (Simulator.fail "cuEventCreate=OUT_OF_MEMORY");
        Fun.protect ~finally:(fun () -> ignore (Simulator.fail "")) @@ fun () ->
        run busy ~threads:1 s [ Tensor scratch; Int 3_000_000 ];
        Interop.keep_for s value
      in
      enqueue ();
      Gc.full_major ();
      ignore (Event.create ());
      Gc.full_major ();
      let early = !gone && not (Stream.is_ready (Interop.stream handle)) in
      Alcotest.(check bool) "let go too early" false early;
      collect ();
      ok "still alive" (other_stream_destroy handle))

let gone_before_us () =
  let handle = other_stream () in
  let s = Interop.stream handle in
  incr s (device_ints 1);
  ok "synchronized" (other_synchronize handle);
  ok "destroyed by its owner" (other_stream_destroy handle);
  Interop.keep_alive s;
  collect ();
  collect ()

let owned_stream () =
  only_on_simulator (fun () ->
      collect ();
      let before = Simulator.live "stream" in
      ignore (Interop.stream ~own:true (other_stream ()));
      collect ();
      Alcotest.(check int) "destroyed here" before (Simulator.live "stream"))

let kept_values () =
  let use () =
    let value, gone = watched () in
    let s = stream () in
    let address = other_memory 4 in
    let p = Interop.deviceptr ~keep:value ~size_in_bytes:4 address in
    Deviceptr.memset_d32 p (Unsigned.UInt32.of_int 3) ~length:1;
    (Graph.instantiate (capture s (fun () -> incr s p)), s, address, gone)
  in
  let exec, s, address, gone = use () in
  collect ();
  Alcotest.(check bool) "kept by the graph" false !gone;
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int))
    "computed" [ 4 ]
    (read (Interop.deviceptr ~size_in_bytes:4 address));
  Graph.exec_destroy exec;
  collect ();
  collect ();
  Alcotest.(check bool) "let go with it" true !gone;
  ok "never freed by us" (other_free address)

(* What a graph of another library needs, its execs need when it is gone. *)
let kept_with_their_graph () =
  let s = stream () in
  let handle = Interop.stream_handle s in
  let use own =
    let value, gone = watched () in
    let address = other_memory 4 in
    let p = Interop.deviceptr ~size_in_bytes:4 address in
    Deviceptr.memset_d32 p (Unsigned.UInt32.of_int 3) ~length:1;
    ok "begin" (other_begin_capture handle);
    incr s p;
    let theirs = other_end_capture handle in
    let exec = Graph.instantiate (Interop.graph ~own ~keep:value theirs) in
    collect ();
    Alcotest.(check bool) "kept by the exec" false !gone;
    Graph.launch exec s;
    Stream.synchronize s;
    Alcotest.(check (list int)) "computed" [ 4 ] (read p);
    Graph.exec_destroy exec;
    if not own then ok "template" (other_graph_destroy theirs);
    (address, gone)
  in
  List.iter
    (fun own ->
      let address, gone = use own in
      collect ();
      collect ();
      Alcotest.(check bool) "let go with it" true !gone;
      ok "freed" (other_free address))
    [ false; true ]

let memory () =
  let address = other_memory 16 in
  let p = Interop.deviceptr ~size_in_bytes:16 address in
  Deviceptr.memcpy_H_to_D ~dst:p ~src:(ints ~value:9 4) ();
  Alcotest.(check (list int)) "read" [ 9; 9; 9; 9 ] (read ~n:4 p);
  check_invalid "past the end" [ "16 bytes" ] (fun () -> read ~n:5 p);
  check_invalid "freed by us" [ "borrowed" ] (fun () -> Deviceptr.mem_free p);
  let q =
    Interop.deviceptr_of_uint64 ~own:true ~size_in_bytes:16 (Interop.deviceptr_uint64 p)
  in
  Alcotest.(check bool) "the same memory" true (Deviceptr.equal p q);
  let before = Simulator.(if present () then live "memory" else 1) in
  Deviceptr.mem_free q;
  let after = Simulator.(if present () then live "memory" else 0) in
  Alcotest.(check int) "freed by us" (before - 1) after

(* 6, 16: another library captures; what we enqueue goes into its graph and is kept by it. *)
let their_capture () =
  let handle = other_stream () and seen = device_ints 1 in
  collect ();
  let live () = if Simulator.present () then Simulator.live "memory" else 0 in
  let before = live () in
  let s = Interop.stream handle in
  ok "begin" (other_begin_capture handle);
  Alcotest.(check bool) "recognised" true (Stream.is_capturing s);
  let enqueue () =
    let p = device_ints ~value:40 1 in
    let copy = kernel ~from:(code ()) "copy" in
    incr s p;
    run copy ~threads:1 s [ Tensor seen; Tensor p; Int 1 ];
    Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:41 1) s
  in
  enqueue ();
  let graph = other_end_capture handle in
  let exec = other_instantiate graph in
  ok "template" (other_graph_destroy graph);
  gc_storm ();
  for _ = 1 to 3 do
    ok "launch" (other_launch exec handle)
  done;
  ok "synchronize" (other_synchronize handle);
  Alcotest.(check (list int)) "memory, module and bigarray were kept" [ 42 ] (read seen);
  ok "exec" (other_exec_destroy exec);
  Interop.keep_alive s;
  (* The driver lets go on a thread of its own, in its time. *)
  let rec wait n =
    collect ();
    if live () > before && n > 0 then (
      Unix.sleepf 0.01;
      wait (n - 1))
  in
  wait 500;
  Alcotest.(check int) "and let go" before (live ());
  ignore (Sys.opaque_identity seen);
  ok "stream" (other_stream_destroy handle)

let a_stream_of_ours_captured_by_them () =
  let s = stream () and p = device_ints 1 in
  let handle = Interop.stream_handle s in
  ok "begin" (other_begin_capture handle);
  incr s p;
  Alcotest.(check (list int)) "captured, not run" [ 0 ] (read p);
  let exec = other_instantiate (other_end_capture handle) in
  ok "launch" (other_launch exec handle);
  Stream.synchronize s;
  Alcotest.(check (list int)) "run" [ 1 ] (read p);
  check_healthy s;
  ok "exec" (other_exec_destroy exec)

let graphs () =
  let s = stream () and p = device_ints 1 in
  let ours = capture s (fun () -> incr s p) in
  Alcotest.(check int) "one node, by C" 1 (other_nodes ours);
  let theirs = Interop.graph (Interop.graph_handle ours) in
  Alcotest.(check int) "one node" 1 (Graph.node_count theirs);
  check_invalid "destroyed by us" [ "borrowed" ] (fun () -> Graph.destroy theirs);
  let exec = Graph.instantiate theirs in
  Graph.launch exec s;
  let handle = other_instantiate (Interop.graph_handle ours) in
  let borrowed = Interop.exec handle in
  Graph.launch borrowed s;
  check_invalid "its exec too" [ "borrowed" ] (fun () -> Graph.exec_destroy borrowed);
  ok "launched by C" (other_replay exec s);
  Stream.synchronize s;
  Alcotest.(check (list int)) "three launches" [ 3 ] (read p);
  let owned = Interop.exec ~own:true handle in
  Graph.exec_destroy owned;
  check_invalid "used after" [ "destroyed" ] (fun () -> Graph.launch owned s);
  Interop.keep_alive ours

let functions_and_events () =
  let m = code () in
  let f = Module.get_function m ~name:"incr" in
  let s = stream () and p = device_ints 1 in
  let g = Interop.func ~keep:m ~name:"incr" (Interop.func_handle f) in
  run g s [ Tensor p; Int 1 ];
  let e = Event.create () in
  let same = Interop.event ~keep:e (Interop.event_handle e) in
  Event.record same s;
  Event.wait (stream ()) e;
  Event.synchronize e;
  Alcotest.(check bool) "it happened" true (Event.query same);
  Alcotest.(check (list int)) "computed" [ 1 ] (read p);
  let m' = Interop.module_ ~keep:m (Interop.module_handle m) in
  run (Module.get_function m' ~name:"incr") s [ Tensor p; Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "by the module" [ 2 ] (read p);
  let ctx = Context.get_current () in
  let again = Interop.context (Interop.context_handle ctx) in
  Alcotest.(check string)
    "context"
    (sexp (Context.sexp_of_t ctx))
    (sexp (Context.sexp_of_t again));
  let device = Context.get_device () in
  Alcotest.(check string)
    "device"
    (sexp (Device.sexp_of_t device))
    (sexp (Device.sexp_of_t (Interop.device (Interop.device_handle device))))

let from_c () =
  let s = stream () and p = device_ints 3 in
  ok "filled by C" (other_fill s p 17);
  Stream.synchronize s;
  Alcotest.(check (list int)) "all of it" [ 17; 17; 17 ] (read ~n:3 p)

(* The memory is filled by C code, unseen by us; after that only keep_for holds it. *)
let fill_and_keep s p value =
  ok "filled by C" (other_fill s p 17);
  Interop.keep_for s (value, p)

(* The driver lets go on a thread of its own, in its time. *)
let let_go gone =
  let rec wait n =
    collect ();
    if (not !gone) && n > 0 then (
      Unix.sleepf 0.01;
      wait (n - 1))
  in
  wait 500;
  Alcotest.(check bool) "let go" true !gone

let kept_for_pending_work () =
  let s = stream () in
  let enqueue () =
    let value, gone = watched () and p = device_ints 1 in
    let enqueue () = fill_and_keep s p value in
    if Simulator.present () then (
      Simulator.call "cusimPause";
      enqueue ())
    else enqueue ();
    gone
  in
  let gone = enqueue () in
  if Simulator.present () then
    Fun.protect
      (fun () ->
        Gc.full_major ();
        Gc.full_major ();
        Alcotest.(check bool) "kept while it waits" false !gone)
      ~finally:(fun () -> Simulator.call "cusimResume");
  Stream.synchronize s;
  let_go gone

let kept_for_a_capture () =
  let s = stream () and seen = device_ints 1 in
  let value_and_exec () =
    let value, gone = watched () and p = device_ints 1 in
    let record () =
      fill_and_keep s p value;
      Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:seen ~src:p s
    in
    (Graph.instantiate (capture s record), gone)
  in
  let exec, gone = value_and_exec () in
  gc_storm ();
  for _ = 1 to 2 do
    Graph.launch exec s
  done;
  Stream.synchronize s;
  Alcotest.(check (list int)) "filled" [ 17 ] (read seen);
  collect ();
  Alcotest.(check bool) "kept by the exec" false !gone;
  Graph.exec_destroy exec;
  let_go gone

let kept_for_their_capture () =
  let s = stream () in
  let handle = Interop.stream_handle s in
  let record () =
    let value, gone = watched () and p = device_ints 1 in
    ok "begin" (other_begin_capture handle);
    fill_and_keep s p value;
    gone
  in
  let gone = record () in
  let graph = other_end_capture handle in
  let exec = other_instantiate graph in
  ok "template" (other_graph_destroy graph);
  gc_storm ();
  ok "launch" (other_launch exec handle);
  Stream.synchronize s;
  collect ();
  Alcotest.(check bool) "kept by their exec" false !gone;
  ok "exec" (other_exec_destroy exec);
  let_go gone

(* Whatever is done, the thread's own mode is what it was: other libraries count on it. *)
let thread_mode () =
  let s = stream () and p = device_ints 1 in
  let unchanged name f =
    f ();
    Alcotest.(check int) (name ^ ": GLOBAL as before") 0 (other_thread_mode ())
  in
  let graph = capture s (fun () -> incr s p) in
  let exec = Graph.instantiate graph in
  let event = Event.create () in
  Event.record event s;
  Stream.synchronize s;
  let in_capture f =
    match Graph.with_capture s (fun () -> incr s p; f ()) with
    | _ -> ()
    | exception Cuda_error _ -> ()
  in
  List.iter
    (fun (name, f) -> unchanged name f; unchanged (name ^ " in a capture") (fun () -> in_capture f))
    [
      ("query", fun () -> ignore (Event.query event));
      ("is_ready", fun () -> ignore (Stream.is_ready (stream ())));
      ("synchronize", fun () -> Stream.synchronize s);
      ("allocation", fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:4));
      ("allocation on a stream", fun () -> ignore (Stream.mem_alloc s ~size_in_bytes:4));
      ("free", fun () -> Deviceptr.mem_free (Deviceptr.mem_alloc ~size_in_bytes:4));
      ("load", fun () -> ignore (code ()));
      ("instantiate", fun () -> ignore (Graph.instantiate graph));
      ("releases", fun () -> Gc.full_major (); Event.synchronize event);
    ];
  unchanged "destroy" (fun () -> Graph.exec_destroy exec; Graph.destroy graph);
  for _ = 1 to 300 do incr s p done;
  unchanged "marks" (fun () -> incr s p);
  Stream.synchronize s
[@@ocamlformat "disable"]

let wrong_handles () =
  let refused name f = check_invalid name [ "0" ] f in
  refused "stream" (fun () -> ignore (Interop.stream 0n));
  refused "event" (fun () -> ignore (Interop.event 0n));
  refused "graph" (fun () -> ignore (Interop.graph 0n));
  refused "exec" (fun () -> ignore (Interop.exec 0n));
  refused "module" (fun () -> ignore (Interop.module_ 0n));
  refused "func" (fun () -> ignore (Interop.func ~name:"f" 0n));
  refused "context" (fun () -> ignore (Interop.context 0n));
  refused "memory" (fun () -> ignore (Interop.deviceptr ~size_in_bytes:4 0n));
  check_invalid "the thread's stream" [ "stream handle 2" ] (fun () ->
      ignore (Interop.stream 2n));
  check_invalid "negative" [ "-1" ] (fun () ->
      ignore (Interop.deviceptr ~size_in_bytes:(-1) 64n));
  check_invalid "device" [ "device 99"; "devices" ] (fun () -> ignore (Interop.device 99))

let managed () =
  let p = Deviceptr.mem_alloc_managed ~size_in_bytes:64 () in
  let a = Interop.bigarray_of_managed Int32 C_layout [| 4; 4 |] p in
  Bigarray.Genarray.fill a 7l;
  let s = stream () in
  run (Lazy.force incr_kernel) s [ Tensor p; Int 16 ];
  Stream.synchronize s;
  Alcotest.(check int32) "the host sees it" 8l (Bigarray.Genarray.get a [| 3; 3 |]);
  check_invalid "too large" [ "64 bytes"; "68" ] (fun () ->
      ignore (Interop.bigarray_of_managed Int32 C_layout [| 17 |] p));
  check_invalid "negative" [ "dimension -1" ] (fun () ->
      ignore (Interop.bigarray_of_managed Int32 C_layout [| -1 |] p));
  check_invalid "not managed" [ "not managed" ] (fun () ->
      ignore (Interop.bigarray_of_managed Int32 C_layout [| 1 |] (device_ints 1)))

(* Parts of the array keep the memory after everything else is gone. *)
let managed_parts () =
  let live () = if Simulator.present () then Simulator.live "memory" else 0 in
  collect ();
  let before = live () in
  let part () =
    let p = Deviceptr.mem_alloc_managed ~size_in_bytes:4096 () in
    let whole = Interop.bigarray_of_managed Int32 C_layout [| 1024 |] p in
    let second = Interop.bigarray_of_managed Int32 C_layout [| 16 |] p in
    Bigarray.Genarray.fill whole 3l;
    Bigarray.Genarray.set second [| 0 |] 4l;
    Bigarray.Genarray.sub_left (Bigarray.Genarray.sub_left whole 512 512) 256 256
  in
  let kept = part () in
  collect ();
  let other = Deviceptr.mem_alloc_managed ~size_in_bytes:4096 () in
  let fresh = Interop.bigarray_of_managed Int32 C_layout [| 1024 |] other in
  Bigarray.Genarray.fill fresh 9l;
  Alcotest.(check int32) "not overwritten" 3l (Bigarray.Genarray.get kept [| 255 |]);
  ignore (Sys.opaque_identity (kept, fresh));
  if Simulator.present () then (
    collect ();
    (* The next array made lets go of those that are gone. *)
    ignore (Interop.bigarray_of_managed Int32 C_layout [| 1 |] other);
    collect ();
    collect ();
    Alcotest.(check bool) "let go" true (live () <= before + 1));
  ignore (Sys.opaque_identity other)

(* Another domain moves values for as long as [f] runs. *)
let while_values_move f =
  let stop = Atomic.make false in
  let mover =
    Domain.spawn (fun () ->
        while not (Atomic.get stop) do
          Gc.minor ()
        done)
  in
  let finally () =
    Atomic.set stop true;
    Domain.join mover
  in
  Fun.protect ~finally f

(* To keep a value may need room for more of them; what else the call was given stays valid. *)
let many_kept () =
  let handle = Interop.func_handle (kernel "incr") in
  let load_with_logs () =
    let log _ = Bigarray.(Array1.create char c_layout 64) in
    let options = List.init 8 (fun i -> Module.ERROR_LOG_BUFFER (log i)) in
    ignore (Module.load_ptx Ptx.text ~options);
    ignore (Sys.opaque_identity options)
  in
  let take i =
    if i < 2000 && i mod 4 = 0 then load_with_logs ();
    let name = "kernel number " ^ string_of_int i in
    (name, Interop.func ~keep:(ref i) ~name handle)
  in
  let taken = while_values_move (fun () -> List.init 140_000 take) in
  List.iter
    (fun (name, func) -> Alcotest.(check string) "its name" name (Module.Func.name func))
    taken

(* The primary context is reset while a borrowed stream of another context, or a borrowed context, has work with
   memory of it. What [f] gives is run afterwards. *)
let reset_under f =
  let device = Device.get ~ordinal:0 in
  start ();
  let p = device_ints 1 in
  let handle = other_context () in
  let other = Interop.context handle in
  Context.push_current other;
  let busy = kernel "busy" and incr = kernel "incr" and own = device_ints 1 in
  let work s =
    run busy ~threads:1 s [ Tensor own; Int 3_000_000 ];
    run incr s [ Tensor p; Int 1 ];
    run incr s [ Tensor own; Int 1 ]
  in
  let after = f work in
  Device.primary_ctx_reset device;
  after ();
  Context.synchronize ();
  Alcotest.(check bool) "not reset" true (Context.is_usable other);
  ignore (read own);
  ignore (Context.pop_current ());
  start ();
  collect ();
  collect ();
  ok "destroyed by its owner" (other_context_destroy handle)

let reset_under_a_context () =
  reset_under (fun work ->
      let s = stream () in
      work s;
      fun () -> Stream.synchronize s)

let reset_under_a_stream ~gone () =
  reset_under (fun work ->
      let handle = other_stream () in
      let s = Interop.stream handle in
      work s;
      if gone then ok "destroyed by its owner" (other_stream_destroy handle);
      fun () ->
        Interop.keep_alive s;
        if not gone then ok "destroyed" (other_stream_destroy handle))

(* The other context is broken: nobody waits for its work any more. *)
let reset_under_a_broken_context () =
  only_on_simulator (fun () ->
      reset_under (fun work ->
          let handle = other_stream () in
          let[@inline never] enqueue () = work (Interop.stream handle) in
          enqueue ();
          gc_storm ();
          ok "over" (other_synchronize handle);
          ok "rules" (Simulator.fail "cuEventQuery=ILLEGAL_ADDRESS");
          let over = Atomic.make false in
          let resetting =
            Domain.spawn (fun () ->
                Device.primary_ctx_reset (Device.get ~ordinal:0);
                Atomic.set over true)
          in
          let rec wait n =
            if n > 0 && not (Atomic.get over) then (
              Unix.sleepf 0.01;
              wait (n - 1))
          in
          wait 500;
          let in_time = Atomic.get over in
          ok "no rules" (Simulator.fail "");
          Domain.join resetting;
          Alcotest.(check bool) "the reset ends" true in_time;
          fun () -> ok "destroyed" (other_stream_destroy handle)))

let () =
  start ();
  Alcotest.run "interop"
    [
      ( "streams",
        [
          test "borrowed" borrowed_stream;
          test "destroyed by its owner first" gone_before_us;
          test "without an event to mark it" no_event_to_mark;
          test "taken over" owned_stream;
        ] );
      ( "memory",
        [
          test "borrowed and taken over" memory;
          test "a value that keeps it" kept_values;
          test "a value that keeps a graph's work" kept_with_their_graph;
          test "managed" managed;
          test "parts of managed memory" managed_parts;
        ] );
      ( "captures",
        [
          test "of another library" their_capture;
          test "of another library, on our stream" a_stream_of_ours_captured_by_them;
        ] );
      ( "kept for what C code enqueued",
        [
          test "pending work" kept_for_pending_work;
          test "a capture" kept_for_a_capture;
          test "a capture of another library" kept_for_their_capture;
        ] );
      ( "others",
        [
          test "graphs and execs" graphs;
          test "functions, modules, events, contexts" functions_and_events;
          test "C stubs" from_c;
          test "many kept values" many_kept;
          test "the thread's mode" thread_mode;
          test "wrong handles" wrong_handles;
        ] );
      ( "a reset of the primary context",
        [
          test "under a borrowed context" reset_under_a_context;
          test "under a borrowed stream" (reset_under_a_stream ~gone:false);
          test "under a borrowed stream that is gone" (reset_under_a_stream ~gone:true);
          test "under one of a broken context" reset_under_a_broken_context;
        ] );
      ("end", [ no_misuse ]);
    ]
