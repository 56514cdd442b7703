(* Two devices: copies between them, peer access, and what must not be mixed. *)

open Cuda
open Support
open Table

let ordinal n = Device.get ~ordinal:n

(* [f ()] with another context current. *)
let on = Streams.made_in

(* 8 integers on a device. *)
let numbers context value = on context (fun () -> device_ints ~value 8)

let links () =
  let a = ordinal 0 and b = ordinal 1 in
  Alcotest.(check int) "two" 2 (Device.get_count ());
  Alcotest.(check bool) "a to b" true (Device.can_access_peer ~dst:a ~src:b);
  Alcotest.(check bool) "b to a" true (Device.can_access_peer ~dst:b ~src:a);
  Alcotest.(check bool) "a to itself" false (Device.can_access_peer ~dst:a ~src:a);
  Alcotest.(check bool)
    "the link says so too" true
    (List.mem (Device.ACCESS_SUPPORTED true) (Device.get_p2p_attributes ~dst:a ~src:b))

let copies ~here ~there () =
  let p = numbers here 3 and q = numbers there 5 in
  let back = numbers here 0 in
  Deviceptr.memcpy_peer ~kind:Bigarray.int32 ~length:2 ~dst_offset:4 ~src_offset:8 ~dst:q
    ~dst_ctx:there ~src:p ~src_ctx:here ();
  Alcotest.(check (list int)) "at once" [ 5; 3; 3; 5; 5; 5; 5; 5 ] (read ~n:8 q);
  (* There, doubled by a kernel of that device, and back: in the order of one stream of each. *)
  let s = stream () and far = on there stream in
  let append = on there (fun () -> kernel "append_digit") in
  Stream.memcpy_peer ~size_in_bytes:32 ~dst:q ~dst_ctx:there ~src:p ~src_ctx:here far;
  run append far [ Tensor q; Int 7; Int 8 ];
  let copied = on there (fun () -> Event.create ()) in
  Event.record copied far;
  Event.wait s copied;
  Stream.memcpy_peer ~size_in_bytes:32 ~dst:back ~dst_ctx:here ~src:q ~src_ctx:there s;
  Stream.synchronize s;
  Alcotest.(check (list int))
    "there and back"
    (List.init 8 (fun _ -> 37))
    (read ~n:8 back);
  (* The same in a graph. *)
  let graph, () =
    Graph.with_capture s (fun () ->
        Stream.memset_d32 p (Unsigned.UInt32.of_int 9) ~length:8 s;
        Stream.memcpy_peer ~size_in_bytes:16 ~dst:q ~dst_ctx:there ~src:p ~src_ctx:here s)
  in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "captured" [ 9; 9; 9; 9; 37; 37; 37; 37 ] (read ~n:8 q)

let peer_access ~here ~there () =
  let p = numbers here 0 and q = numbers there 4 in
  let copy = kernel "copy" and s = stream () in
  check
    [
      row "Context.disable_peer_access" "not enabled"
        (fails "PEER_ACCESS_NOT_ENABLED" "cu_ctx_disable_peer_access"
           [ "device 0"; "peer of device 1" ])
        (fun () -> Context.disable_peer_access there);
    ];
  Context.enable_peer_access there;
  run copy s [ Tensor p; Tensor q; Int 8 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "read by a kernel" (List.init 8 (fun _ -> 4)) (read ~n:8 p);
  check
    [
      row "Context.enable_peer_access" "twice"
        (fails "PEER_ACCESS_ALREADY_ENABLED" "cu_ctx_enable_peer_access"
           [ "device 0"; "peer of device 1" ])
        (fun () -> Context.enable_peer_access there);
      row "Context.enable_peer_access" "flags"
        (fails "INVALID_VALUE" "cu_ctx_enable_peer_access" [ "flags 3" ]) (fun () ->
          Context.enable_peer_access ~flags:(Unsigned.UInt.of_int 3) there);
    ];
  Context.disable_peer_access there;
  check_healthy s

(* Freed on one device while a kernel of the other has not come to it: freeing waits for its own device. *)
let freed_under_a_peer ~there () =
  let s = on there stream and k = on there (fun () -> kernel "incr") in
  on there (fun () -> Context.enable_peer_access (Context.get_primary (ordinal 0)));
  let p = device_ints 1 in
  run k s [ Tensor p; Int 1 ];
  Stream.synchronize s;
  if Simulator.present () then
    Simulator.paused (fun () ->
        run k s [ Tensor p; Int 1 ];
        Deviceptr.mem_free p);
  Stream.synchronize s;
  Deviceptr.mem_free p;
  on there (fun () -> Context.disable_peer_access (Context.get_primary (ordinal 0)))

(* Nothing of one device is taken for the other's. *)
let mixing ~here ~there () =
  let s = stream () and far = on there stream in
  let p = numbers here 1 and q = numbers there 1 in
  let graph, () = Graph.with_capture s (fun () -> incr s p) in
  let exec = Graph.instantiate graph in
  let incr = kernel "incr" and event = Event.create () in
  let contexts = [ "context"; "stream" ] in
  let managed = on there (fun () -> Deviceptr.mem_alloc_managed ~size_in_bytes:16 ()) in
  let pooled = Stream.mem_alloc s ~size_in_bytes:16 in
  check
    [
      row "Graph.launch" "a stream of the other device" (invalid contexts) (fun () ->
          Graph.launch exec far);
      row "Stream.launch_kernel" "a stream of the other device"
        (invalid ("incr" :: contexts))
        (fun () -> run incr far [ Tensor q; Int 1 ]);
      row "Event.record" "a stream of the other device" (invalid contexts) (fun () ->
          Event.record event far);
      row "Event.wait" "a stream of the other device" works (fun () ->
          Event.wait far event);
      row "Stream.mem_free" "a stream of the other device" (invalid contexts) (fun () ->
          Stream.mem_free far pooled);
      row "Deviceptr.memcpy_peer" "contexts changed round"
        (invalid [ "dst_ctx"; "dst was allocated in" ])
        (fun () ->
          Deviceptr.memcpy_peer ~size_in_bytes:4 ~dst:p ~dst_ctx:there ~src:q
            ~src_ctx:here ());
      row "Stream.memcpy_peer" "a src_ctx of the other device"
        (invalid [ "src_ctx"; "src was allocated in" ])
        (fun () ->
          Stream.memcpy_peer ~size_in_bytes:4 ~dst:p ~dst_ctx:here ~src:q ~src_ctx:here s);
      row "Stream.memcpy_D_to_D"
        "memory of both devices, which have one space of addresses" works (fun () ->
          Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:p ~src:q s);
      row "Deviceptr.memset_d8" "memory of the device that is not current" works
        (fun () -> Deviceptr.memset_d8 q Unsigned.UChar.zero ~length:4);
      row "Delimited_event.record" "a stream of the device that is not current" works
        (fun () -> Delimited_event.synchronize (Delimited_event.record far));
      row "Stream.synchronize" "a stream of the device that is not current" works
        (fun () -> Stream.synchronize far);
      row "Deviceptr.mem_free" "memory of the device that is not current" works (fun () ->
          Deviceptr.mem_free managed);
    ];
  Stream.synchronize s;
  (* What was refused has left both as they were. *)
  check_healthy s;
  Alcotest.(check (list int)) "the fill" [ 0; 1 ] (read ~n:2 q)

(* A finalizer runs wherever the garbage collector does: it frees on the right device, and what is
   current on its thread stays so. *)
let finalisation ~there () =
  only_on_simulator (fun () ->
      Gc.full_major ();
      Context.synchronize ();
      let before = Simulator.ledger () in
      let make () =
        let s = stream () and p = device_ints 4 in
        let e = Event.create () in
        let exec =
          Graph.instantiate
            (fst (Graph.with_capture s (fun () -> Stream.memset_d8 p Unsigned.UChar.one ~length:4 s)))
        in
        Graph.launch exec s;
        Event.record e s;
        Stream.synchronize s
      in
      on there make;
      let collect current =
        Gc.full_major ();
        Gc.full_major ();
        (* Drains what the collector has let go. *)
        let s = stream () in
        Stream.synchronize s;
        let now = Context.get_current () in
        Alcotest.(check string)
          "what is current stays so"
          (sexp (Context.sexp_of_t current))
          (sexp (Context.sexp_of_t now))
      in
      (* Here device 0 is current. *)
      collect (Context.get_current ());
      (* And on a domain that device 1 is current on, what device 0 made. *)
      make ();
      Domain.join
        (Domain.spawn (fun () ->
             Context.set_current there;
             collect there));
      Gc.full_major ();
      Gc.full_major ();
      Context.synchronize ();
      on there Context.synchronize;
      Alcotest.(check (list (pair string int))) "nothing left" before (Simulator.ledger ()))
[@@ocamlformat "disable"]

(* A capture on a stream of device 1 while device 0 is current, all by a domain that never had a
   context: the stream's context is what counts. *)
let cold ~there () =
  let far = on there stream and q = numbers there 0 in
  let incr = on there (fun () -> kernel "incr") in
  let captured () =
    Graph.with_capture far (fun () ->
        run incr far [ Tensor q; Int 8 ];
        Stream.memset_d32 ~offset:28 q (Unsigned.UInt32.of_int 40) ~length:1 far)
  in
  let from_here, () = captured () in
  let nodes =
    Domain.join
      (Domain.spawn (fun () ->
           let graph, () = captured () in
           let exec = Graph.instantiate graph in
           Graph.launch exec far;
           Stream.synchronize far;
           Graph.node_count graph))
  in
  Alcotest.(check int) "the graph is not empty" 2 nodes;
  Graph.launch (Graph.instantiate from_here) far;
  Stream.synchronize far;
  Alcotest.(check (list int)) "launched twice" [ 2; 2; 2; 2; 2; 2; 2; 40 ] (read ~n:8 q);
  let empty, () = Graph.with_capture far ignore in
  Alcotest.(check int) "an empty graph can be told" 0 (Graph.node_count empty)

let made_in context =
  on context (fun () ->
      let s = stream () and p = device_ints 4 in
      let fill () = Stream.memset_d8 p Unsigned.UChar.one ~length:4 s in
      (s, p, Event.create (), fst (Graph.with_capture s fill)))

(* The program's value of a context goes before those of its contents, or the context itself does. *)
let context_first ~there () =
  let s, p, e, graph =
    let context = Context.create [] (ordinal 1) in
    ignore (Context.pop_current ());
    made_in context
  in
  Gc.full_major ();
  Gc.full_major ();
  Event.record e s;
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "its contents keep it" [ 0x01010101 ] (read p);
  let _, p, _, graph = made_in there in
  Device.primary_ctx_reset (ordinal 1);
  check
    [
      row "Graph.instantiate" "of a device that was reset"
        (fails "CONTEXT_IS_DESTROYED" "cu_graph_instantiate" [ "reset" ]) (fun () ->
          Graph.instantiate graph);
      row "Deviceptr.mem_free" "of a device that was reset" works (fun () ->
          Deviceptr.mem_free p);
      row "Graph.destroy" "of a device that was reset" works (fun () ->
          Graph.destroy graph);
    ];
  Gc.full_major ();
  (* The other device goes on. *)
  check_healthy (stream ())

(* A kernel of device 0 without access to the memory of device 1: the context is lost, and says so. *)
let no_access () =
  let q = numbers (Context.get_primary (ordinal 1)) 1 in
  let s = stream () in
  incr s q;
  check
    [
      row "Stream.synchronize" "a kernel used memory of a device without access"
        (fails "ILLEGAL_ADDRESS" "cu_stream_synchronize" []) (fun () ->
          Stream.synchronize s);
    ];
  Alcotest.(check bool) "it can tell" false (Context.is_usable (Context.get_current ()))

let () =
  Unix.putenv "CUDAGRAPH_SIM_DEVICES" "2";
  start ();
  if Device.get_count () < 2 then print_endline "skipped: this machine has one device"
  else
    let here = Context.get_current () and there = Context.get_primary (ordinal 1) in
    Alcotest.run "two devices"
      [
        ( "copies",
          [
            test "links" links;
            test "between the devices" (copies ~here ~there);
            test "peer access" (peer_access ~here ~there);
            test "freed under a peer" (freed_under_a_peer ~there);
          ] );
        ( "mixing",
          [
            test "what belongs to the other device" (mixing ~here ~there);
            test "captures from cold domains" (cold ~there);
          ] );
        ( "releases",
          [
            test "finalizers anywhere" (finalisation ~there);
            test "the context goes first" (context_first ~there);
          ] );
        ("end", [ no_misuse; test "no access to a device" no_access ]);
      ]
