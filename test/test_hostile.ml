(* Domains and threads do whatever comes to mind with shared streams and execs: errors are allowed,
   a crash, an illegal access, a dead handle or a leak is not. *)

open Cuda
open Support

let rounds = 2000
let shared = lazy (stream ())

let execs =
  lazy
    (let s = Lazy.force shared and p = device_ints 1 in
     let exec _ =
       Atomic.make (Graph.instantiate (fst (Graph.with_capture s (fun () -> incr s p))))
     in
     Array.init 8 exec)

let act state ~own ~blocking ~event ~memory =
  let any list = List.nth list (Random.State.int state (List.length list)) in
  let s = any [ own; own; blocking; Lazy.force shared ] in
  let exec = (Lazy.force execs).(Random.State.int state 8) in
  match Random.State.int state 16 with
  | 0 -> Graph.launch (Atomic.get exec) s
  | 1 -> Graph.exec_destroy (Atomic.get exec)
  | 2 ->
      let work () =
        incr own (device_ints 1);
        if Random.State.int state 5 = 0 then raise Not_found
      in
      let graph, () = Graph.with_capture ~mode:(any modes) own work in
      Atomic.set exec (Graph.instantiate graph)
  | 3 -> Graph.begin_capture ~mode:(any modes) s
  | 4 -> ignore (Graph.end_capture s)
  | 5 -> ignore (Stream.is_ready s)
  | 6 -> Stream.synchronize s
  | 7 -> Event.record event s
  | 8 -> Event.wait s event
  | 9 -> ignore (Event.query event)
  | 10 ->
      let q = device_ints 1 in
      incr s q;
      Deviceptr.mem_free q
  | 11 -> Context.synchronize ()
  | 12 -> ignore (code ())
  | 13 -> if Random.State.int state 10 = 0 then Gc.full_major () else Gc.minor ()
  | 14 -> Stream.memcpy_H_to_D ~dst:memory ~src:(ints 8) s
  | _ -> ignore (read memory)

let worker memory seed () =
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let state = Random.State.make [| seed |] in
  let own = stream () and blocking = Stream.create () and event = Event.create () in
  for _ = 1 to rounds do
    try act state ~own ~blocking ~event ~memory
    with Cuda_error _ | Invalid_argument _ | Not_found -> ()
  done

let hostile () =
  let memory = device_ints 8 in
  ignore (Lazy.force incr_kernel);
  ignore (Lazy.force execs);
  let domains = List.init 3 (fun i -> Domain.spawn (worker memory i)) in
  let thread = Thread.create (worker memory 100) () in
  List.iter Domain.join domains;
  Thread.join thread;
  (try ignore (Graph.end_capture (Lazy.force shared)) with Cuda_error _ -> ());
  Array.iter (fun exec -> Graph.exec_destroy (Atomic.get exec)) (Lazy.force execs);
  (* Twice: a stream may still be busy the first time. *)
  for _ = 1 to 2 do
    Gc.full_major ();
    Gc.full_major ();
    Context.synchronize ()
  done;
  only_on_simulator (fun () ->
      let live kind = (kind, Simulator.live kind) in
      Alcotest.(check (list (pair string int)))
        "what the test itself holds"
        [ ("module", 1); ("stream", 1); ("exec", 0); ("memory", 1) ]
        (List.map live [ "module"; "stream"; "exec"; "memory" ]);
      (* With them the stream that is left marks how far its work is. *)
      Alcotest.(check bool) "a few events" true (Simulator.live "event" <= 4);
      ignore (Sys.opaque_identity memory));
  check_healthy (Lazy.force shared)

let () =
  start ();
  Alcotest.run "hostile"
    [ ("threads", [ test "anything goes" hostile ]); ("end", [ no_misuse ]) ]
