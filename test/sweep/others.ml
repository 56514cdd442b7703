(* Scenarios in which another library has handles of ours, or we of it; and captures on blocking
   streams. *)

open Cuda
open Support
open Scenarios

external other_stream : unit -> nativeint = "sweep_stream"
external other_stream_destroy : nativeint -> unit = "sweep_stream_destroy"
external other_memory : unit -> nativeint = "sweep_memory"
external other_memory_free : nativeint -> unit = "sweep_memory_free"
external other_event : unit -> nativeint = "sweep_event"
external other_event_destroy : nativeint -> unit = "sweep_event_destroy"
external other_begin : nativeint -> bool = "sweep_begin"
external other_end : nativeint -> nativeint = "sweep_end"
external other_graph_destroy : nativeint -> unit = "sweep_graph_destroy"
external other_instantiate : nativeint -> nativeint = "sweep_instantiate"
external other_launch : nativeint -> nativeint -> bool = "sweep_launch"
external other_exec_destroy : nativeint -> unit = "sweep_exec_destroy"

(* Runs [f] with a handle of the other library, which destroys it afterwards; not at all if the driver
   gives none. *)
let lent make destroy f =
  let handle = make () in
  if handle <> 0n then
    Fun.protect ~finally:(fun () -> destroy handle) (fun () -> f handle)

(* What the other library made is used like our own. *)
let borrowed _ =
  lent other_memory other_memory_free (fun memory ->
      lent other_event other_event_destroy (fun event ->
          lent other_stream other_stream_destroy (fun their_stream ->
              let s = Interop.stream their_stream and e = Interop.event event in
              let p = Interop.deviceptr ~size_in_bytes:4 memory in
              let own = stream () and q = device_ints 1 in
              append s p 1;
              Event.record e s;
              Event.wait own e;
              copy own ~dst:q ~src:p;
              Stream.synchronize own;
              let graph = capture s (fun () -> append s p 2) in
              Graph.launch (Graph.instantiate graph) s;
              Stream.synchronize s;
              expect_ints "both saw it" [ 1; 12 ] (read q @ read p))))

(* A handle is ours from the call that takes it, unless that raises. *)
let taken make destroy take =
  let handle = make () in
  if handle = 0n then None
  else
    match take handle with
    | value -> Some value
    | exception error ->
        destroy handle;
        raise error

let owned _ =
  let memory () =
    taken other_memory other_memory_free
      (Interop.deviceptr ~own:true ?keep:None ~size_in_bytes:4)
  in
  let event () =
    taken other_event other_event_destroy (Interop.event ~own:true ?keep:None)
  in
  match taken other_stream other_stream_destroy (Interop.stream ~own:true ?keep:None) with
  | None -> ()
  | Some s ->
      Option.iter
        (fun p ->
          append s p 1;
          Option.iter (fun e -> Event.record e s) (event ());
          append s p 2;
          Stream.synchronize s;
          expect_ints "used" [ 12 ] (read p))
        (memory ())

(* A graph and an exec that we take over. *)
let owned_graph s =
  let p = device_ints 1 in
  lent other_stream other_stream_destroy (fun stream ->
      if other_begin stream then (
        let recorded =
          match append (Interop.stream stream) p 3 with
          | () -> Ok ()
          | exception error -> Error error
        in
        let graph () =
          taken
            (fun () -> other_end stream)
            other_graph_destroy
            (Interop.graph ~own:true ?keep:None)
        in
        let graph = graph () in
        Result.iter_error raise recorded;
        Option.iter
          (fun graph ->
            let exec =
              taken
                (fun () -> other_instantiate (Interop.graph_handle graph))
                other_exec_destroy
                (Interop.exec ~own:true ?keep:None)
            in
            Option.iter
              (fun exec ->
                Graph.launch exec s;
                Stream.synchronize s;
                expect_ints "launched" [ 3 ] (read p))
              exec;
            Interop.keep_alive graph)
          graph))

(* We work on a stream that the other library captures: its graph keeps what we used. *)
let captured_by_them s =
  let seen = device_ints 1 in
  lent other_stream other_stream_destroy (fun stream ->
      if other_begin stream then (
        let record () =
          let theirs = Interop.stream stream in
          let p = device_ints ~value:4 1 and f = kernel "incr" in
          run f theirs [ Tensor p; Int 1 ];
          Stream.memcpy_H_to_D ~dst:p ~src:(ints ~value:6 1) theirs;
          copy theirs ~dst:seen ~src:p
        in
        let recorded =
          match record () with () -> Ok () | exception error -> Error error
        in
        lent
          (fun () -> other_end stream)
          other_graph_destroy
          (fun graph ->
            Result.iter_error raise recorded;
            collect ();
            lent
              (fun () -> other_instantiate graph)
              other_exec_destroy
              (fun exec ->
                if other_launch exec (Interop.stream_handle s) then (
                  Stream.synchronize s;
                  expect_ints "what we used was kept" [ 6 ] (read seen))));
        Result.iter_error raise recorded))

(* Captures on blocking streams, which the NULL stream would break, with memory of the graph that a
   fork uses and frees. *)
let blocking_capture mode _ =
  let s = Stream.create () and fork = Stream.create () in
  let seen = device_ints 1 and p = device_ints 1 in
  let graph =
    capture ~mode s (fun () ->
        let q = Stream.mem_alloc s ~size_in_bytes:4 in
        set s q 7 ~n:1;
        let forked = Event.create () and joined = Event.create () in
        Event.record forked s;
        Event.wait fork forked;
        incr fork q;
        copy fork ~dst:seen ~src:q;
        Stream.mem_free fork q;
        ignore (must_fail "work on the NULL stream" (fun () -> incr Stream.no_stream p));
        Event.record joined fork;
        Event.wait s joined)
  in
  let exec = Graph.instantiate graph in
  for _ = 1 to 2 do
    Graph.launch exec s;
    incr s p
  done;
  Graph.launch exec Stream.no_stream;
  Stream.synchronize s;
  Context.synchronize ();
  expect_ints "captured and launched" [ 8; 2 ] (read seen @ read p)

let all =
  [
    ("borrowed handles", borrowed);
    ("owned handles", owned);
    ("owned graph", owned_graph);
    ("captured by another library", captured_by_them);
  ]
  @ List.map
      (fun mode -> ("blocking capture " ^ mode_name mode, blocking_capture mode))
      modes
