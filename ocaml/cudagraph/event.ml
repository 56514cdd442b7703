type t = Raw.event

let sexp_of_t event = Sexplib0.Sexp.Atom (Status.pp_address (Raw.event_address event))

let create ?(blocking_sync = false) ?(enable_timing = false) ?(interprocess = false) () =
  (* CUevent_flags *)
  let flags =
    (if blocking_sync then 1 else 0)
    lor (if enable_timing then 0 else 2)
    lor if interprocess then 4 else 0
  in
  Status.get_memory "Cuda.Event.create" "cu_event_create" (fun () ->
      Raw.event_create flags)

let elapsed_time ~start ~end_ =
  Status.get "Cuda.Event.elapsed_time" "cu_event_elapsed_time"
    (Raw.event_elapsed start end_)

let query event = Status.ready "Cuda.Event.query" "cu_event_query" (Raw.event_query event)

let record ?(external_ = false) event stream =
  Status.check "Cuda.Event.record" "cu_event_record_with_flags"
    (Raw.event_record event (Owner.raw stream) external_)

let synchronize event =
  Status.check "Cuda.Event.synchronize" "cu_event_synchronize"
    (Raw.event_synchronize event)

let wait ?(external_ = false) stream event =
  Status.check "Cuda.Event.wait" "cu_stream_wait_event"
    (Raw.event_wait (Owner.raw stream) event external_)
