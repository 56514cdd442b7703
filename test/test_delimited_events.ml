(* Cuda.Delimited_event, and the sizes that the OCaml side refuses. *)

open Cuda
open Support

let counts = Stream.total_unreleased_unfinished_delimited_events

let check_counts name expected s =
  Alcotest.(check (triple int int int)) name expected (counts s)

(* When how much has happened is a matter of time. *)
let check_unreleased name expected s =
  let total, unreleased, _ = counts s in
  Alcotest.(check (pair int int)) name expected (total, unreleased)

let rec await_ready s = if not (Stream.is_ready s) then await_ready s
let released = Alcotest.(check bool)

let own_synchronize () =
  let s = stream () and p = device_ints 1 in
  incr s p;
  let first = Delimited_event.record s in
  let second = Delimited_event.record ~blocking_sync:true s in
  released "not released by itself" false (Delimited_event.is_released first);
  Alcotest.(check bool)
    "the driver's handle" true
    (contains (sexp (Delimited_event.sexp_of_t first)) "0x");
  Delimited_event.synchronize first;
  released "released" true (Delimited_event.is_released first);
  Alcotest.(check string)
    "and says so" "released"
    (sexp (Delimited_event.sexp_of_t first));
  released "the other one is not" false (Delimited_event.is_released second);
  Delimited_event.synchronize first;
  Alcotest.(check bool) "has happened" true (Delimited_event.query first);
  check_unreleased "one was released" (2, 1) s;
  Delimited_event.synchronize second;
  check_counts "both were" (2, 0, 0) s

let owner_synchronize () =
  let s = stream () and other = stream () and p = device_ints 1 in
  incr s p;
  let mine = List.init 3 (fun _ -> Delimited_event.record s) in
  let foreign = Delimited_event.record other in
  check_unreleased "its own" (1, 1) other;
  Stream.synchronize s;
  List.iter
    (fun e -> released "with its stream" true (Delimited_event.is_released e))
    mine;
  released "not with another stream" false (Delimited_event.is_released foreign);
  check_counts "a new start" (0, 0, 0) s;
  let later = Delimited_event.record s in
  check_unreleased "counted again" (1, 1) s;
  Stream.synchronize s;
  released "and released again" true (Delimited_event.is_released later);
  Stream.synchronize other;
  released "with its own stream" true (Delimited_event.is_released foreign)

let pending () =
  only_on_simulator (fun () ->
      let s = stream () and p = device_ints 1 in
      Simulator.paused (fun () ->
          incr s p;
          let event = Delimited_event.record s in
          Alcotest.(check bool) "not yet" false (Delimited_event.query event);
          check_counts "one is unfinished" (1, 1, 1) s);
      Stream.synchronize s;
      check_counts "all is done" (0, 0, 0) s)

let waiting () =
  let s = stream () and other = stream () and p = device_ints 1 in
  append s p 1;
  busy s (device_ints 1);
  append s p 2;
  let event = Delimited_event.record s in
  Delimited_event.wait other event;
  append other p 3;
  Stream.synchronize other;
  Alcotest.(check (list int)) "one after the other" [ 123 ] (read p);
  Delimited_event.synchronize event;
  Delimited_event.wait other event;
  append other p 4;
  Stream.synchronize other;
  Alcotest.(check (list int)) "nothing to wait for" [ 1234 ] (read p)

(* Events that nobody has are not kept by a stream that is never synchronized. *)
let dropped () =
  let s = stream () in
  let live () = if Simulator.present () then Simulator.live "event" else 0 in
  let before = live () in
  let kept = Delimited_event.record s in
  for _ = 1 to 1000 do
    ignore (Sys.opaque_identity (Delimited_event.record s))
  done;
  (* An idle stream lets go of its work, a new event of what the collector has found. *)
  await_ready s;
  Gc.full_major ();
  ignore (Event.create ());
  check_counts "those in use" (1001, 1, 0) s;
  let left = live () - before in
  Alcotest.(check bool) (Printf.sprintf "%d events left" left) true (left <= 10);
  Stream.synchronize s;
  released "the one in use" true (Delimited_event.is_released kept)

let captured mode =
  let s = stream () and other = stream () and p = device_ints 1 in
  Graph.begin_capture ~mode s;
  append s p 1;
  let fork = Delimited_event.record s in
  Delimited_event.wait other fork;
  append other p 2;
  let join = Delimited_event.record other in
  Delimited_event.wait s join;
  append s p 3;
  check_counts "it has not happened" (1, 1, 1) s;
  let graph = Graph.end_capture s in
  check_cuda_error "asking" "INVALID_VALUE" [ "cu_event_query" ] (fun () ->
      Delimited_event.query fork);
  check_cuda_error "waiting for it" "INVALID_VALUE" [ "cu_event_synchronize" ] (fun () ->
      Delimited_event.synchronize fork);
  released "still" false (Delimited_event.is_released fork);
  Stream.synchronize s;
  released "with its stream" true (Delimited_event.is_released fork);
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "both streams were captured" [ 123 ] (read p)

let capture_keeps_them () =
  let s = stream () in
  let event = Delimited_event.record s in
  Graph.begin_capture ~mode:THREAD_LOCAL s;
  (match Stream.synchronize s with
  | () -> Alcotest.fail "a capturing stream was synchronized"
  | exception Cuda_error _ -> ());
  released "a failed synchronize releases nothing" false
    (Delimited_event.is_released event);
  (match Graph.end_capture s with _ -> () | exception Cuda_error _ -> ());
  Stream.synchronize s;
  released "a good one does" true (Delimited_event.is_released event)

(* An event is released only when it has happened, whoever synchronizes. *)
let domains () =
  let s = stream () and p = device_ints 1 in
  incr s p;
  Stream.synchronize s;
  let context = Context.get_current () in
  let worker () =
    Context.set_current context;
    for i = 1 to 300 do
      let event = Delimited_event.record s in
      if i mod 7 = 0 then Stream.synchronize s
      else if i mod 5 = 0 then Delimited_event.synchronize event;
      if Delimited_event.is_released event then assert (Delimited_event.query event)
    done
  in
  let domains = List.init 4 (fun _ -> Domain.spawn worker) in
  List.iter Domain.join domains;
  let total, unreleased, _ = counts s in
  Alcotest.(check bool) "plausible" true (0 <= unreleased && unreleased <= total);
  Stream.synchronize s;
  check_counts "none is left" (0, 0, 0) s

let sizes () =
  let p = device_ints 4 and q = device_ints 4 and s = stream () in
  let host = ints 4 in
  check_invalid "a length whose bytes wrap to 0"
    [ "Cuda.Deviceptr.memcpy_D_to_D"; string_of_int min_int; "negative" ]
    (fun () ->
      Deviceptr.memcpy_D_to_D ~kind:Bigarray.float64 ~length:min_int ~dst:p ~src:q ());
  check_invalid "the same, enqueued"
    [ "Cuda.Stream.memcpy_D_to_D"; string_of_int min_int; "negative" ]
    (fun () ->
      Stream.memcpy_D_to_D ~kind:Bigarray.float64 ~length:min_int ~dst:p ~src:q s);
  check_invalid "a negative offset on the device"
    [ "Cuda.Deviceptr.memcpy_H_to_D"; "-8 bytes is negative" ] (fun () ->
      Deviceptr.memcpy_H_to_D ~dst_offset:(-8) ~dst:p ~src:host ());
  check_invalid "the least one"
    [ "Cuda.Stream.memcpy_D_to_H"; string_of_int min_int; "is negative" ]
    (fun () -> Stream.memcpy_D_to_H ~src_offset:min_int ~dst:host ~src:p s)

let () =
  start ();
  Alcotest.run "delimited"
    [
      ( "event",
        [
          test "its own synchronize" own_synchronize;
          test "its stream's synchronize" owner_synchronize;
          test "pending work" pending;
          test "another stream waits" waiting;
          test "dropped events" dropped;
          test "a failed synchronize" capture_keeps_them;
          test "domains" domains;
        ] );
      ("capture", in_each_mode "fork and join" captured);
      ("sizes", [ test "refused" sizes ]);
      ("end", [ no_misuse ]);
    ]
