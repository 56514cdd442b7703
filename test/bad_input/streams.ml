(* Stream but for launches, Event, Delimited_event. *)

open Cuda
open Support
open Table

let number = string_of_int

(* What [make] makes in another context. *)
let made_in context make =
  Context.push_current context;
  Fun.protect make ~finally:(fun () -> ignore (Context.pop_current ()))

(* [call s] while the stream [s] captures; the capture ends whatever happens. *)
let capturing call () =
  let s = stream () in
  Graph.begin_capture s;
  Fun.protect
    (fun () -> call s)
    ~finally:(fun () -> try ignore (Graph.end_capture s) with Cuda_error _ -> ())

let streams ~other =
  let s = stream () and managed = Deviceptr.mem_alloc_managed ~size_in_bytes:16 () in
  let p = device_ints 4 and dead = Deviceptr.mem_alloc_managed ~size_in_bytes:16 () in
  Deviceptr.mem_free dead;
  let pooled () = Stream.mem_alloc s ~size_in_bytes:16 in
  let freed_pooled = pooled () in
  Stream.mem_free s freed_pooled;
  let foreign = made_in other stream in
  let free wrong ending s ptr =
    row "Stream.mem_free" wrong ending (fun () -> Stream.mem_free s ptr)
  in
  let attach wrong ending ?(s = s) ?(ptr = managed) length how =
    row "Stream.attach_mem" wrong ending (fun () -> Stream.attach_mem s ptr length how)
  in
  let length n =
    attach ("length " ^ number n) (invalid [ "length " ^ number n; "16 bytes" ]) n HOST
  in
  let create n =
    row "Stream.create"
      ("priority " ^ number n)
      (invalid [ "lower_priority " ^ number n; "C int" ])
      (fun () -> Stream.create ~lower_priority:n ())
  in
  let asked name call run =
    row name "a stream that captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" call [])
      (capturing (fun s -> run s))
  in
  List.concat
    [
      List.map create [ min_int; max_int; 1 lsl 31 ];
      [
        row "Stream.create" "priorities out of range, which count as the nearest" works
          (fun () ->
            List.map
              (fun lower_priority -> Stream.create ~lower_priority ())
              [ -1000; 1000 ]);
        free "memory of Deviceptr.mem_alloc" (invalid [ "Deviceptr.mem_free" ]) s p;
        free "managed memory" (invalid [ "Deviceptr.mem_free" ]) s managed;
        free "a module's variable"
          (invalid [ "module"; "variable" ])
          s
          (fst (Module.get_global (code ()) ~name:"table"));
        free "freed memory" works s freed_pooled;
        free "freed memory, on another stream" works (stream ()) freed_pooled;
        free "memory of another context" (invalid [ "context" ]) foreign (pooled ());
        row "Stream.mem_free" "in a capture, memory that no graph allocates"
          (invalid [ "allocated outside of any capture" ])
          (let outside = pooled () in
           capturing (fun s -> Stream.mem_free s outside));
        attach "ordinary memory"
          (fails "INVALID_VALUE" "cu_stream_attach_mem_async" [ "managed" ])
          ~ptr:p 0 HOST;
        attach "freed memory" (invalid [ "freed" ]) ~ptr:dead 0 HOST;
        attach "one stream, which is none"
          (fails "INVALID_VALUE" "cu_stream_attach_mem_async" [ "SINGLE_stream" ])
          ~s:Stream.no_stream 0 SINGLE_stream;
        asked "Stream.is_ready" "cu_stream_query" (fun s -> ignore (Stream.is_ready s));
        asked "Stream.synchronize" "cu_stream_synchronize" Stream.synchronize;
        row "Stream.total_unreleased_unfinished_delimited_events"
          "a stream that captures: nothing is asked of the driver" works
          (capturing (fun s ->
               let e = Delimited_event.record s in
               assert (Stream.total_unreleased_unfinished_delimited_events s = (1, 1, 1));
               Delimited_event.wait s e));
        row "Stream.is_capturing" "the NULL stream" works (fun () ->
            assert (not (Stream.is_capturing Stream.no_stream)));
      ];
      List.map length [ -1; 4; 17; min_int; max_int ];
    ]

let events ~other =
  let s = stream () in
  let timed () = Event.create ~enable_timing:true () in
  let happened = timed () and unrecorded = timed () and untimed = Event.create () in
  Event.record happened s;
  Event.record untimed s;
  Stream.synchronize s;
  let foreign = made_in other timed in
  let elapsed wrong ending start end_ =
    row "Event.elapsed_time" wrong ending (fun () -> Event.elapsed_time ~start ~end_)
  in
  let handle = fails "INVALID_HANDLE" "cu_event_elapsed_time" in
  (* An event that marks a place in a graph that is made. *)
  let captured = Event.create ~enable_timing:true () in
  let of_capture = stream () in
  ignore (Graph.with_capture of_capture (fun () -> Event.record captured of_capture));
  let delimited, _ =
    let s = stream () in
    let graph, e = Graph.with_capture s (fun () -> Delimited_event.record s) in
    (e, graph)
  in
  let in_capture call = fails "INVALID_VALUE" call [ "inside a capture" ] in
  [
    row "Event.create" "a time and other processes"
      (fails "INVALID_VALUE" "cu_event_create" [ "interprocess"; "enable_timing" ])
      (fun () -> Event.create ~interprocess:true ~enable_timing:true ());
    elapsed "a start without time" (handle [ "enable_timing" ]) untimed happened;
    elapsed "an end without time" (handle [ "enable_timing" ]) happened untimed;
    elapsed "a start that was not recorded" (handle [ "record" ]) unrecorded happened;
    elapsed "an end that was not recorded" (handle [ "record" ]) happened unrecorded;
    elapsed "an event of another context" (handle [ "context" ]) happened foreign;
    elapsed "an event of a capture" (in_capture "cu_event_elapsed_time") captured happened;
    row "Event.query" "an event that was not recorded has happened" works (fun () ->
        assert (Event.query unrecorded));
    row "Event.query" "an event of a capture" (in_capture "cu_event_query") (fun () ->
        Event.query captured);
    row "Event.synchronize" "an event that was not recorded" works (fun () ->
        Event.synchronize unrecorded);
    row "Event.synchronize" "an event of a capture" (in_capture "cu_event_synchronize")
      (fun () -> Event.synchronize captured);
    row "Event.record" "an event of another context"
      (invalid [ "event"; "context"; "stream" ])
      (fun () -> Event.record foreign s);
    row "Event.record" "outside a capture, external"
      (fails "ILLEGAL_STATE" "cu_event_record_with_flags" [ "external_"; "captures" ])
      (fun () -> Event.record ~external_:true (Event.create ()) s);
    row "Event.wait" "outside a capture, external"
      (fails "ILLEGAL_STATE" "cu_stream_wait_event" [ "external_"; "captures" ])
      (fun () -> Event.wait ~external_:true s happened);
    row "Delimited_event.record" "outside a capture, external"
      (fails "ILLEGAL_STATE" "cu_event_record_with_flags" [ "external_"; "captures" ])
      (fun () -> Delimited_event.record ~external_:true s);
    row "Event.wait" "an event of another context" works (fun () -> Event.wait s foreign);
    row "Event.wait" "an event of a capture that is over"
      (fails "INVALID_VALUE" "cu_stream_wait_event" [ "inside a capture" ]) (fun () ->
        Event.wait s captured);
    row "Delimited_event.query" "an event of a capture" (in_capture "cu_event_query")
      (fun () -> Delimited_event.query delimited);
    row "Delimited_event.synchronize" "an event of a capture"
      (in_capture "cu_event_synchronize") (fun () ->
        Delimited_event.synchronize delimited);
    row "Delimited_event.is_released" "an event whose synchronize failed: not released"
      works (fun () -> assert (not (Delimited_event.is_released delimited)));
    row "Delimited_event.wait" "an event of a capture that is over"
      (fails "INVALID_VALUE" "cu_stream_wait_event" [ "inside a capture" ]) (fun () ->
        Delimited_event.wait s delimited);
    row "Delimited_event.record" "the NULL stream while this thread captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_event_record_with_flags" [ "NULL stream" ])
      (capturing (fun _ -> ignore (Delimited_event.record Stream.no_stream)));
  ]

let rows ~other =
  List.concat
    [ Copies.rows (Copies.on (stream ())) ~other; streams ~other; events ~other ]
