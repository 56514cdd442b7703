type t = Owner.event

let sexp_of_t event =
  match Atomic.get event.Owner.state with
  | Some event -> Event.sexp_of_t event
  | None -> Sexplib0.Sexp.Atom "released"

let record ?(blocking_sync = false) ?(interprocess = false) ?external_ stream =
  let captured = Stream.is_capturing stream in
  (* The current context may be another one than the stream's. *)
  let flags =
    (* CUevent_flags *)
    (if blocking_sync then 1 else 0) lor 2 lor if interprocess then 4 else 0
  in
  let event =
    Status.get_memory "Cuda.Delimited_event.record" "cu_event_create" (fun () ->
        Raw.event_create_for (Owner.raw stream) flags)
  in
  Event.record ?external_ event stream;
  let delimited = { Owner.state = Atomic.make (Some event); captured } in
  Owner.add stream delimited;
  delimited

let is_released event = Option.is_none (Atomic.get event.Owner.state)

let query event =
  match Atomic.get event.Owner.state with Some event -> Event.query event | None -> true

let synchronize delimited =
  match Atomic.get delimited.Owner.state with
  | Some event ->
      Event.synchronize event;
      Atomic.set delimited.state None
  | None -> ()

let wait ?external_ stream event =
  match Atomic.get event.Owner.state with
  | Some event -> Event.wait ?external_ stream event
  | None -> ()
