type t = Owner.event

let sexp_of_t event =
  match Atomic.get event.Owner.state with
  | Some event -> Event.sexp_of_t event
  | None -> Sexplib0.Sexp.Atom "released"

let record ?blocking_sync ?interprocess ?external_ stream =
  let captured = Stream.is_capturing stream in
  let event = Event.create ?blocking_sync ?interprocess () in
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
