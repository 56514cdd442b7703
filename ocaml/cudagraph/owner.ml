type event = { state : Raw.event option Atomic.t; captured : bool }

(* Events are numbered as they come. [released] is the number up to which a synchronize has
   released them. [room] is how many entries there may be before the dead ones are dropped, so
   that a stream that is never synchronized stays small. *)
type events = { next : int; released : int; room : int; entries : event Weak.t list }
type t = { raw : Raw.stream; events : events Atomic.t }

let least_room = 64
let none = { next = 0; released = 0; room = least_room; entries = [] }
let of_raw raw = { raw; events = Atomic.make none }
let raw owner = owner.raw

let rec update owner change =
  let events = Atomic.get owner.events in
  if not (Atomic.compare_and_set owner.events events (change events)) then
    update owner change

let live entry =
  match Weak.get entry 0 with
  | Some event when Option.is_some (Atomic.get event.state) -> Some event
  | _ -> None

let sweep entries = List.filter (fun entry -> Option.is_some (live entry)) entries

let add owner event =
  let entry = Weak.create 1 in
  Weak.set entry 0 (Some event);
  update owner (fun events ->
      let next = events.next + 1 and room = events.room - 1 in
      if room > 0 then { events with next; room; entries = entry :: events.entries }
      else
        let entries = entry :: sweep events.entries in
        { events with next; room = max least_room (List.length entries); entries })

type mark = events

let mark owner = Atomic.get owner.events

let release owner (mark : mark) =
  if mark.entries <> [] || mark.next > mark.released then (
    List.iter
      (fun entry -> Option.iter (fun event -> Atomic.set event.state None) (live entry))
      mark.entries;
    update owner (fun events ->
        let entries = sweep events.entries in
        {
          events with
          released = max events.released mark.next;
          room = max least_room (List.length entries);
          entries;
        }))

let recorded owner =
  let events = Atomic.get owner.events in
  events.next - events.released

let unreleased owner = List.filter_map live (Atomic.get owner.events).entries
