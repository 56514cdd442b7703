(* A launch that can block lets other domains run; one that cannot keeps nothing it does not need. *)

open Cuda
open Support

(* Launches without a single wait: what they use is let go all the same. *)
let kept_while_never_waited () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 in
      let copy = kernel "copy" in
      let before = Simulator.live "memory" in
      for i = 1 to 20_000 do
        run copy ~threads:1 s [ Tensor p; Tensor (device_ints ~value:i 1); Int 1 ];
        if i mod 1000 = 0 then Gc.full_major ()
      done;
      ignore (Event.create ());
      Gc.full_major ();
      let live = Simulator.live "memory" - before in
      if live > 3000 then Alcotest.failf "%d allocations of 20000 are still live" live;
      Stream.synchronize s;
      Alcotest.(check (list int)) "the last one" [ 20_000 ] (read p))

(* The longest time for which another domain that collects all the time stands still. *)
let pause f =
  let longest = ref 0. and stop = Atomic.make false in
  let watcher =
    Domain.spawn (fun () ->
        let last = ref (Unix.gettimeofday ()) in
        while not (Atomic.get stop) do
          Gc.minor ();
          let now = Unix.gettimeofday () in
          longest := Float.max !longest (now -. !last);
          last := now
        done)
  in
  Fun.protect f ~finally:(fun () ->
      Atomic.set stop true;
      Domain.join watcher);
  !longest

(* A busy machine, too, lets a domain stand for a moment, but not in each of [tries]. *)
let rec check_pause ?(tries = 1) name f =
  let longest = pause f in
  if longest > 0.05 then
    if tries > 1 then check_pause ~tries:(tries - 1) name f
    else Alcotest.failf "%s: the other domain stood for %.3f s" name longest

let graph_of s p =
  let graph, () = Graph.with_capture ~mode:RELAXED s (fun () -> incr s p) in
  Graph.instantiate graph

(* 67: launches into a full queue. The work is held up until another domain has collected, which it
   cannot while one keeps the runtime. *)
let full_queue_on_simulator launch s =
  let count = Atomic.make 0 in
  Simulator.call "cusimPause";
  let collector =
    Domain.spawn (fun () ->
        let rec until_stopped before =
          Unix.sleepf 0.05;
          let now = Atomic.get count in
          if now < 600 || now > before then until_stopped now
        in
        until_stopped 0;
        Gc.minor ();
        Gc.full_major ();
        let blocked = Atomic.get count < 1500 in
        Simulator.call "cusimResume";
        blocked)
  in
  for _ = 1 to 1500 do
    launch ();
    Atomic.incr count
  done;
  Alcotest.(check bool) "the queue was full" true (Domain.join collector);
  Stream.synchronize s

let full_queue () =
  let s = stream () and p = device_ints 1 and scratch = device_ints 1 in
  let exec = graph_of s p in
  incr s p;
  Graph.launch exec s;
  busy s scratch;
  Stream.synchronize s;
  let fill name launch =
    if Simulator.present () then full_queue_on_simulator launch s
    else
      check_pause name (fun () ->
          for _ = 1 to 100 do
            busy s scratch
          done;
          for _ = 1 to 1500 do
            launch ()
          done;
          Stream.synchronize s)
  in
  fill "launches" (fun () -> incr s p);
  fill "graph launches" (fun () -> Graph.launch exec s);
  let event = Event.create () in
  fill "events between launches" (fun () ->
      Event.record event s;
      Event.wait s event;
      incr s p);
  Alcotest.(check (list int)) "all were done" [ 4502 ] (read p)

(* 67: launches while another domain is in a call that waits with the driver's lock held; the
   simulator has no such lock. *)
let driver_is_locked () =
  let s = stream () and other = stream () in
  let p = device_ints 1 and scratch = device_ints 1 in
  incr other p;
  busy s scratch;
  Context.synchronize ();
  let launches () =
    for i = 1 to 2000 do
      incr other p;
      if i mod 100 = 0 then Stream.synchronize other
    done
  in
  let beside waiting () =
    if not (Simulator.present ()) then
      for _ = 1 to 100 do
        busy s scratch
      done;
    let waiter =
      Domain.spawn (fun () ->
          Context.set_current (Stream.get_context s);
          waiting ())
    in
    launches ();
    Domain.join waiter;
    Context.synchronize ()
  in
  let q = device_ints 1 in
  let each =
    [
      ("freeing", fun () -> Deviceptr.mem_free q);
      ("allocating", fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:100_000_000));
      ("loading", fun () -> ignore (code ()));
      ("instantiating", fun () -> ignore (graph_of s p));
    ]
  in
  List.iter
    (fun (name, waiting) ->
      if Simulator.present () then beside waiting ()
      else check_pause name (beside waiting))
    each;
  Alcotest.(check (list int)) "all were done" [ 8001 ] (read p)

(* 67: a launch that copies ordinary host memory waits, in the driver, for the work before it. *)
let host_copies () =
  let s = stream () and p = device_ints 1 and scratch = device_ints 1 in
  busy s scratch;
  let check name copy =
    let host = ints ~value:7 1 in
    let graph, () = Graph.with_capture ~mode:RELAXED s (fun () -> copy host) in
    let exec = Graph.instantiate graph in
    Graph.launch exec s;
    Stream.synchronize s;
    let work () =
      for _ = 1 to if Simulator.present () then 10 else 40 do
        busy s scratch
      done;
      Graph.launch exec s;
      Stream.synchronize s
    in
    check_pause ~tries:5 name work;
    Alcotest.(check (list int)) name [ 7 ] (read p);
    Alcotest.(check int32) name 7l (Bigarray.Genarray.get host [| 0 |])
  in
  check "to the device" (fun src -> Stream.memcpy_H_to_D ~dst:p ~src s);
  check "to the host" (fun dst -> Stream.memcpy_D_to_H ~dst ~src:p s)

let shared_memory () =
  let s = stream () in
  let k = Lazy.force incr_kernel in
  let launch bytes =
    Stream.launch_kernel k ~grid_dim_x:1 ~block_dim_x:1 ~shared_mem_bytes:bytes s
      [ Tensor (device_ints 1); Int 1 ]
  in
  launch 100_000;
  Alcotest.(check bool)
    "the kernel was told" true
    ((Module.Func.get_attributes k).max_dynamic_shared_size_bytes >= 100_000);
  Module.Func.set_max_dynamic_shared_size k 0;
  launch 50_000;
  check_invalid "more than there is" [ "shared_mem_bytes 1000000"; "incr" ] (fun () ->
      launch 1_000_000);
  check_invalid "negative" [ "shared_mem_bytes -1" ] (fun () -> launch (-1));
  Stream.synchronize s

let occupancy () =
  let k = Lazy.force incr_kernel in
  let blocks = Module.Func.max_active_blocks ~block_size:256 k in
  Alcotest.(check bool) "several blocks" true (blocks >= 1 && blocks <= 64);
  let { Module.Func.grid_dim_x; block_dim_x } =
    Module.Func.suggest_launch ~block_size_limit:128 k
  in
  Alcotest.(check bool) "within the limit" true (block_dim_x >= 1 && block_dim_x <= 128);
  Alcotest.(check bool) "a grid" true (grid_dim_x >= 1);
  check_invalid "negative" [ "block_size -1" ] (fun () ->
      Module.Func.max_active_blocks ~block_size:(-1) k);
  Alcotest.(check string) "its name" "incr" (Module.Func.name k);
  let a = Module.Func.get_attributes k in
  Alcotest.(check bool) "registers" true (a.num_regs > 0 && a.max_threads_per_block > 0)

let () =
  start ();
  Alcotest.run "pressure"
    [
      ("memory", [ test "kept while never waited" kept_while_never_waited ]);
      ( "domains",
        [
          test "67: a full queue" full_queue;
          test "67: the driver is locked" driver_is_locked;
          test "67: copies of host memory" host_copies;
        ] );
      ( "kernels",
        [ test "shared memory" shared_memory; test "occupancy" occupancy; no_misuse ] );
    ]
