type t = Raw.event

let where name = "Cuda.Event." ^ name
let sexp_of_t event = Sexplib0.Sexp.Atom (Status.pp_address (Raw.event_address event))

let create ?(blocking_sync = false) ?(enable_timing = false) ?(interprocess = false) () =
  (* CUevent_flags *)
  let flags =
    (if blocking_sync then 1 else 0)
    lor (if enable_timing then 0 else 2)
    lor if interprocess then 4 else 0
  in
  Status.get_memory (where "create") "cu_event_create" (fun () -> Raw.event_create flags)

let elapsed_time ~start ~end_ =
  Status.get (where "elapsed_time") "cu_event_elapsed_time" (Raw.event_elapsed start end_)

let query event = Status.ready (where "query") "cu_event_query" (Raw.event_query event)

let record ?(external_ = false) event stream =
  Status.check (where "record") "cu_event_record_with_flags"
    (Raw.event_record event (Owner.raw stream) external_)

let synchronize event =
  Status.check (where "synchronize") "cu_event_synchronize" (Raw.event_synchronize event)

let wait ?(external_ = false) stream event =
  Status.check (where "wait") "cu_stream_wait_event"
    (Raw.event_wait (Owner.raw stream) event external_)
