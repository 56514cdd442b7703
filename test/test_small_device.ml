(* A device of 64 MiB. Programs that never wait for a stream: what they drop is given back when memory is short,
   as far as the work that used it is done. Graphs for which there is no room. *)

let () = Unix.putenv "CUDAGRAPH_SIM_MEMORY" "64M"

open Cuda
open Support

let mib = 1 lsl 20
let block () = Deviceptr.mem_alloc ~size_in_bytes:(4 * mib)

(* Nobody else's garbage is left: to free it would wait for the work of the test. *)
let at_rest () =
  Gc.full_major ();
  Gc.full_major ();
  Context.synchronize ()

let copy_kernel = lazy (kernel "copy")

(* A new block is written and read by work of the stream, and dropped. *)
let[@inline never] use_a_block s ~result value =
  let block = block () in
  Stream.memset_d32 block (Unsigned.UInt32.of_int value) ~length:1 s;
  run (Lazy.force copy_kernel) ~threads:1 s [ Tensor result; Tensor block; Int 1 ]

(* The work of the stream is over, without the stream being asked: no more is known of it than after some
   time. *)
let some_time_later s =
  let over = Event.create () in
  Event.record over s;
  Event.synchronize over

(* 800 MiB pass through the device. *)
let never_synchronized () =
  let s = stream () and result = device_ints 1 in
  at_rest ();
  for i = 1 to 200 do
    use_a_block s ~result i;
    some_time_later s
  done;
  Alcotest.(check (list int)) "the last one" [ 200 ] (read result)

let on_two_streams () =
  let streams = [ stream (); stream () ] in
  let results = List.map (fun _ -> device_ints 1) streams in
  at_rest ();
  for i = 1 to 100 do
    List.iter2 (fun s result -> use_a_block s ~result i) streams results;
    List.iter some_time_later streams
  done;
  Alcotest.(check (list int))
    "the last ones" [ 100; 100 ]
    (List.concat_map (fun p -> read p) results)

let on_the_null_stream () =
  let result = device_ints 1 in
  at_rest ();
  for i = 1 to 50 do
    use_a_block Stream.no_stream ~result i;
    some_time_later Stream.no_stream
  done;
  Alcotest.(check (list int)) "the last one" [ 50 ] (read result)

(* A stream that was dropped with its work under way. *)
let on_dropped_streams () =
  let result = device_ints 1 in
  at_rest ();
  for i = 1 to 50 do
    let s = stream () in
    use_a_block s ~result i;
    some_time_later s
  done;
  Alcotest.(check (list int)) "the last one" [ 50 ] (read result)

(* The one that is short of memory has another context, and has never seen the stream. *)
let from_another_domain () =
  let s = stream () and result = device_ints 1 in
  at_rest ();
  for i = 1 to 15 do
    use_a_block s ~result i
  done;
  some_time_later s;
  let allocate () =
    ignore (Context.create [] (Device.get ~ordinal:0));
    Deviceptr.mem_free (block ());
    ignore (Context.pop_current ())
  in
  Domain.join (Domain.spawn allocate);
  Stream.synchronize s;
  Alcotest.(check (list int)) "nothing was lost" [ 15 ] (read result)

(* Another domain captures. Its stream has done work as well, and so has the NULL stream, for which it would
   wait: neither is asked. *)
let while_another_captures mode =
  let s = stream () and result = device_ints 1 in
  let captured = Stream.create () in
  at_rest ();
  use_a_block captured ~result 1;
  use_a_block Stream.no_stream ~result 2;
  List.iter some_time_later [ captured; Stream.no_stream ];
  let begun = Atomic.make false and allocated = Atomic.make false in
  let wait_for flag =
    while not (Atomic.get flag) do
      Unix.sleepf 0.001
    done
  in
  let capturing =
    Domain.spawn (fun () ->
        Context.set_current (Stream.get_context captured);
        fst
          (Graph.with_capture ~mode captured (fun () ->
               incr captured result;
               Atomic.set begun true;
               wait_for allocated;
               incr captured result)))
  in
  wait_for begun;
  Fun.protect
    ~finally:(fun () -> Atomic.set allocated true)
    (fun () ->
      for i = 3 to 50 do
        use_a_block s ~result i;
        some_time_later s
      done);
  let graph = Domain.join capturing in
  Alcotest.(check int) "the capture is whole" 2 (Graph.node_count graph);
  let exec = Graph.instantiate graph in
  Graph.launch exec captured;
  Stream.synchronize captured;
  Alcotest.(check (list int)) "and so is its graph" [ 52 ] (read result)

(* Work under way keeps what it uses, and is not waited for: here it cannot end before the allocation has. *)
let work_under_way () =
  let s = stream () and result = device_ints 1 in
  at_rest ();
  Simulator.paused (fun () ->
      for i = 1 to 15 do
        use_a_block s ~result i
      done;
      check_cuda_error "all is in use" "OUT_OF_MEMORY" [ "cu_mem_alloc" ] block);
  some_time_later s;
  Alcotest.(check (list int)) "nothing was lost" [ 15 ] (read result);
  Deviceptr.mem_free (block ())

(* A graph that makes memory, hands on a number by way of it, and frees it. *)
let exec_with s ~blocks ~size ~result value =
  let work () =
    let made = List.init blocks (fun _ -> Stream.mem_alloc s ~size_in_bytes:size) in
    List.iter
      (fun p -> Stream.memset_d32 p (Unsigned.UInt32.of_int value) ~length:1 s)
      made;
    Stream.memcpy_D_to_D ~size_in_bytes:4 ~dst:result ~src:(List.hd made) s;
    List.iter (Stream.mem_free s) made
  in
  Graph.instantiate (fst (Graph.with_capture ~mode:RELAXED s work))

let[@inline never] launch_too_large_a_graph () =
  let s = stream () and result = device_ints 1 in
  let large = exec_with s ~blocks:2 ~size:(40 * mib) ~result 1 in
  let small = exec_with s ~blocks:1 ~size:(40 * mib) ~result 2 in
  let refused () =
    check_cuda_error "no room" "OUT_OF_MEMORY" [ "cu_graph_launch" ] (fun () ->
        Graph.launch large s)
  in
  refused ();
  Graph.launch small s;
  refused ();
  Graph.launch small s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "the other graph's" [ 2 ] (read result)

(* The launch says so, and nothing else comes of it. *)
let too_large_a_graph () =
  at_rest ();
  let before = Simulator.ledger () in
  launch_too_large_a_graph ();
  at_rest ();
  Alcotest.(check (list (pair string int))) "is left" before (Simulator.ledger ())

let small name f = test name (fun () -> only_on_simulator f)

let () =
  start ();
  Alcotest.run "small device"
    [
      ( "work that nobody waits for",
        [
          small "of a stream" never_synchronized;
          small "of two streams" on_two_streams;
          small "of the NULL stream" on_the_null_stream;
          small "of dropped streams" on_dropped_streams;
          small "of another context" from_another_domain;
          small "is not waited for" work_under_way;
        ] );
      ("graphs", [ small "too large a graph" too_large_a_graph ]);
      ( "while another domain captures",
        List.map
          (fun mode -> small (mode_name mode) (fun () -> while_another_captures mode))
          modes );
      ("all of it", [ no_misuse ]);
    ]
