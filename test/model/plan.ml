(* From a random program to the calls that are made, and what memory must hold afterwards.

   The model is sequential: it does each piece of work when it is enqueued, and that of a graph when
   it is launched. Where two streams use one thing the plan puts an event between them, so any order
   that the driver is free to choose has the same result. *)

open Program

(** Elements of a buffer and of a host array. *)
let elements = 4

(** What was last told to use a thing, and may still do so. *)
type place = On_stream of int | After_event of int

type buffer = {
  id : int;
  pool : bool;
  mutable content : int array;
  mutable used : place option;
}

type host = {
  host_id : int;
  mutable host_content : int array;
  mutable host_used : place option;
  mutable host_written : place option;  (** The device's last write alone. *)
}

(* Names are numbers that are never used again; the calls say what each is. *)

type order = { before : int; after : int }

type call =
  | Make_buffer of int * int
  | Make_pool_buffer of { buffer : int; stream : int; value : int }
  | Make_host of int * int
  | Make_stream of int
  | Make_event of int
  | Do of work * int  (** With the names of things instead of slots. *)
  | Order of order  (** A new event from one stream to another. *)
  | Mark of { event : int; stream : int }
  | Await of { stream : int; event : int }
  | Ask_event of int
  | Ask_stream of int
  | Wait_stream of int
  | Wait_event of int
  | Wait_all  (** May be refused: another domain may capture. *)
  | Give_back of int
  | Give_back_on of { stream : int; buffer : int }
  | Forget of thing * int
  | Clean of collection
  | Record of {
      stream : int;
      mode : mode;
      graph : int;
      nodes : int;
      calls : call list;
      finish : finish;
    }
  | Make_exec of { graph : int; exec : int }
  | Run of { exec : int; stream : int }
  | End_graph of int
  | End_exec of int
  | Expect of int * int list
  | Expect_host of int * int list
  | Expect_refusal of int  (** A synchronous copy inside a capture. *)

(* A piece of captured work: what it does to memory, and what it uses. *)
type recorded = {
  apply : unit -> unit;
  buffers : buffer list;
  read : host list;
  written : host list;
}

type graph = {
  graph_id : int;
  work : recorded list;
  has_memory : bool;
  mutable execs : int;
}

type exec = { exec_id : int; of_graph : graph }
type event = { event_id : int; mutable in_capture : bool }

type open_capture = {
  mode : mode;
  origin : int;
  mutable joined : int list;
  mutable last : (int * int) list;  (** Which stream used a buffer last. *)
  mutable host_roles : (int * [ `Read | `Written ]) list;
  mutable recorded : recorded list;
  mutable memory : bool;
  mutable nodes : int;
}

type state = {
  mutable next : int;
  buffers : buffer option array;
  hosts : host option array;
  streams : int option array;
  events : event option array;
  graphs : graph option array;
  execs : exec option array;
  mutable captures : open_capture list;  (** Innermost first. *)
  mutable calls : call list;  (** Latest first. *)
}

exception Skip
(** The step cannot be made here: it is passed over. *)

let slots = 3

let start () =
  {
    next = 0;
    buffers = Array.make slots None;
    hosts = Array.make slots None;
    streams = Array.make slots None;
    events = Array.make slots None;
    graphs = Array.make slots None;
    execs = Array.make slots None;
    captures = [];
    calls = [];
  }

let emit state call = state.calls <- call :: state.calls

let fresh state =
  let n = state.next in
  state.next <- n + 1;
  n

let in_c_int n =
  (((n land 0xffffffff) lxor 0x80000000) - 0x80000000 [@ocamlformat "disable"])

(* Calls that would break the innermost captures, all of which are of this thread, or be refused. *)
let strict state = List.exists (fun c -> c.mode <> RELAXED) state.captures
let unless_strict state = if strict state then raise Skip

let capture_of state stream =
  List.find_opt (fun c -> List.mem stream c.joined) state.captures

let is_capturing state stream = capture_of state stream <> None

(* Things by slot; one that is missing is made, where that is allowed. *)

let make_buffer state slot value =
  unless_strict state;
  let id = fresh state in
  emit state (Make_buffer (id, value));
  let buffer = { id; pool = false; content = Array.make elements value; used = None } in
  state.buffers.(slot) <- Some buffer;
  buffer

let buffer state slot =
  match state.buffers.(slot) with
  | Some buffer -> buffer
  | None -> make_buffer state slot 0

let make_host state slot value =
  let host_id = fresh state in
  emit state (Make_host (host_id, value));
  let host_content = Array.make elements value in
  let host = { host_id; host_content; host_used = None; host_written = None } in
  state.hosts.(slot) <- Some host;
  host

let host state slot =
  match state.hosts.(slot) with Some host -> host | None -> make_host state slot 0

let make_stream state slot =
  let id = fresh state in
  emit state (Make_stream id);
  state.streams.(slot) <- Some id;
  id

let stream state slot =
  match state.streams.(slot) with Some id -> id | None -> make_stream state slot

let make_event state slot =
  let event = { event_id = fresh state; in_capture = false } in
  emit state (Make_event event.event_id);
  state.events.(slot) <- Some event;
  event

let event state slot =
  match state.events.(slot) with Some event -> event | None -> make_event state slot

let present = function Some thing -> thing | None -> raise Skip

(* Order *)

let order state ~before ~after =
  if before <> after then emit state (Order { before; after })

(* What [place] has is done before what [stream], which does not capture, is told from now on. *)
let order_after state place stream =
  match place with
  | None -> ()
  | Some (On_stream before) ->
      if is_capturing state before then raise Skip;
      order state ~before ~after:stream
  | Some (After_event event) -> emit state (Await { stream; event })

(* What [place] has is done now. *)
let wait_for state place =
  match place with
  | None -> ()
  | Some (On_stream s) ->
      unless_strict state;
      if is_capturing state s then raise Skip;
      emit state (Wait_stream s)
  | Some (After_event e) ->
      unless_strict state;
      emit state (Wait_event e)

let can_order state = function
  | Some (On_stream s) -> not (is_capturing state s)
  | Some (After_event _) | None -> true

let can_wait state place = place = None || ((not (strict state)) && can_order state place)

(* Work *)

let apply_map buffer f () =
  buffer.content <- Array.map (fun x -> in_c_int (f x)) buffer.content

let nothing = { apply = ignore; buffers = []; read = []; written = [] }

(* The work with names for slots, and what it means. *)
let understand state work =
  match work with
  | Incr b ->
      let b = buffer state b in
      (Incr b.id, { nothing with apply = apply_map b (fun x -> x + 1); buffers = [ b ] })
  | Incr_by_own_module b ->
      unless_strict state;
      let b = buffer state b in
      ( Incr_by_own_module b.id,
        { nothing with apply = apply_map b (fun x -> x + 1); buffers = [ b ] } )
  | Append (b, d) ->
      let b = buffer state b in
      ( Append (b.id, d),
        { nothing with apply = apply_map b (fun x -> (10 * x) + d); buffers = [ b ] } )
  | Fill (b, v) ->
      let b = buffer state b in
      (Fill (b.id, v), { nothing with apply = apply_map b (fun _ -> v); buffers = [ b ] })
  | Copy { dst; src } ->
      let d = buffer state dst and s = buffer state src in
      if d == s then raise Skip;
      let apply () = d.content <- Array.copy s.content in
      (Copy { dst = d.id; src = s.id }, { nothing with apply; buffers = [ d; s ] })
  | Upload { host = h; dst } ->
      let h = host state h and d = buffer state dst in
      let apply () = d.content <- Array.copy h.host_content in
      ( Upload { host = h.host_id; dst = d.id },
        { nothing with apply; buffers = [ d ]; read = [ h ] } )
  | Download { src; host = h } ->
      let h = host state h and s = buffer state src in
      let apply () = h.host_content <- Array.copy s.content in
      ( Download { src = s.id; host = h.host_id },
        { nothing with apply; buffers = [ s ]; written = [ h ] } )
  | Scratch { dst; value } ->
      let d = buffer state dst in
      ( Scratch { dst = d.id; value },
        { nothing with apply = apply_map d (fun _ -> value); buffers = [ d ] } )
  | Busy -> (Busy, nothing)

(* Pieces of work that run on [stream] now: everything in order with what used the same before. The
   bytes of a host array may be read during the call. *)
let enqueue state stream pieces call =
  let buffers = List.concat_map (fun (p : recorded) -> p.buffers) pieces in
  let read = List.concat_map (fun p -> p.read) pieces in
  let written = List.concat_map (fun p -> p.written) pieces in
  if
    not
      (List.for_all (fun (b : buffer) -> can_order state b.used) buffers
      && List.for_all (fun h -> can_wait state h.host_written) read
      && List.for_all (fun h -> can_order state h.host_used) read
      && List.for_all (fun h -> can_order state h.host_used) written)
  then raise Skip;
  let here = Some (On_stream stream) in
  List.iter
    (fun h ->
      wait_for state h.host_written;
      h.host_written <- None;
      order_after state h.host_used stream;
      h.host_used <- here)
    read;
  List.iter
    (fun h ->
      order_after state h.host_used stream;
      h.host_written <- here;
      h.host_used <- here)
    written;
  List.iter
    (fun (b : buffer) ->
      order_after state b.used stream;
      b.used <- here)
    buffers;
  emit state call;
  List.iter (fun p -> p.apply ()) pieces

let nodes = function Scratch _ -> 4 | _ -> 1

(* A piece of work that becomes part of a graph. A host array is either read or written by one. *)
let record state capture stream work piece =
  let role name h =
    match List.assoc_opt h.host_id capture.host_roles with
    | Some other when other <> name -> raise Skip
    | Some _ -> ()
    | None -> capture.host_roles <- (h.host_id, name) :: capture.host_roles
  in
  List.iter (role `Read) piece.read;
  List.iter (role `Written) piece.written;
  let touch id =
    Option.iter
      (fun before -> order state ~before ~after:stream)
      (List.assoc_opt id capture.last);
    capture.last <- (id, stream) :: capture.last
  in
  List.iter (fun (b : buffer) -> touch b.id) piece.buffers;
  List.iter (fun h -> touch h.host_id) (piece.read @ piece.written);
  emit state (Do (work, stream));
  capture.recorded <- piece :: capture.recorded;
  capture.nodes <- capture.nodes + nodes work;
  match work with Scratch _ -> capture.memory <- true | _ -> ()

let work state w slot =
  let stream = stream state slot in
  let named, piece = understand state w in
  match capture_of state stream with
  | Some capture -> record state capture stream named piece
  | None ->
      (match w with Scratch _ -> unless_strict state | _ -> ());
      enqueue state stream [ piece ] (Do (named, stream))

(* Everything whose last use was on [stream] is known by an event from now on. *)
let leave state stream =
  let event = fresh state in
  emit state (Make_event event);
  emit state (Mark { event; stream });
  let moved = function
    | Some (On_stream s) when s = stream -> Some (After_event event)
    | place -> place
  in
  fun (buffers, hosts) ->
    List.iter (fun (b : buffer) -> b.used <- moved b.used) buffers;
    List.iter
      (fun h ->
        h.host_used <- moved h.host_used;
        h.host_written <- moved h.host_written)
      hosts

(* Buffers and hosts that a slot or a graph still knows. *)
let known state =
  let of_graph g =
    ( List.concat_map (fun (p : recorded) -> p.buffers) g.work,
      List.concat_map (fun p -> p.read @ p.written) g.work )
  in
  let list slots = List.filter_map Fun.id (Array.to_list slots) in
  let graphs = list state.graphs @ List.map (fun x -> x.of_graph) (list state.execs) in
  let parts = List.map of_graph graphs in
  let open_parts =
    List.map
      (fun c ->
        of_graph { graph_id = 0; work = c.recorded; has_memory = false; execs = 0 })
      state.captures
  in
  let all = parts @ open_parts in
  ( list state.buffers @ List.concat_map fst all,
    list state.hosts @ List.concat_map snd all )

let drop_stream state slot =
  let s = present state.streams.(slot) in
  (match capture_of state s with
  | Some c when c.origin = s -> raise Skip
  | Some c ->
      let here = Some (On_stream s) in
      let buffers, hosts = known state in
      if
        List.exists (fun (b : buffer) -> b.used = here) buffers
        || List.exists (fun h -> h.host_used = here || h.host_written = here) hosts
      then raise Skip;
      (* Joined back first; the capture keeps it. *)
      order state ~before:s ~after:c.origin;
      c.joined <- List.filter (( <> ) s) c.joined;
      c.last <- List.map (fun (id, on) -> (id, if on = s then c.origin else on)) c.last
  | None -> (leave state s) (known state));
  state.streams.(slot) <- None;
  emit state (Forget (Stream, s))

let forget state slots slot kind id =
  let thing = present slots.(slot) in
  slots.(slot) <- None;
  emit state (Forget (kind, id thing))

let drop state thing slot =
  match thing with
  | Buffer -> forget state state.buffers slot Buffer (fun (b : buffer) -> b.id)
  | Host -> forget state state.hosts slot Host (fun h -> h.host_id)
  | Event -> forget state state.events slot Event (fun e -> e.event_id)
  | Graph -> forget state state.graphs slot Graph (fun g -> g.graph_id)
  | Exec -> forget state state.execs slot Exec (fun x -> x.exec_id)
  | Stream -> drop_stream state slot

let free_on state stream_slot slot =
  let b = present state.buffers.(slot) in
  let s = stream state stream_slot in
  if (not b.pool) || is_capturing state s || not (can_order state b.used) then raise Skip;
  unless_strict state;
  order_after state b.used s;
  emit state (Give_back_on { stream = s; buffer = b.id });
  state.buffers.(slot) <- None

let check state slot =
  let b = present state.buffers.(slot) in
  if strict state then emit state (Expect_refusal b.id)
  else (
    wait_for state b.used;
    b.used <- None;
    emit state (Expect (b.id, Array.to_list b.content)))

(* Steps *)

let rec step state = function
  | New_buffer (slot, value) -> ignore (make_buffer state slot value)
  | New_pool_buffer { buffer; stream = on; value } ->
      unless_strict state;
      let stream = stream state on in
      if is_capturing state stream then raise Skip;
      let id = fresh state in
      emit state (Make_pool_buffer { buffer = id; stream; value });
      let content = Array.make elements value in
      state.buffers.(buffer) <-
        Some { id; pool = true; content; used = Some (On_stream stream) }
  | New_host (slot, value) -> ignore (make_host state slot value)
  | New_stream slot ->
      if state.streams.(slot) <> None then drop_stream state slot;
      ignore (make_stream state slot)
  | New_event slot -> ignore (make_event state slot)
  | Work (w, slot) -> work state w slot
  | Record { event = e; stream = s } ->
      let stream = stream state s and event = event state e in
      emit state (Mark { event = event.event_id; stream });
      event.in_capture <- is_capturing state stream
  | Wait { stream = s; event = e } ->
      let stream = stream state s and event = event state e in
      if event.in_capture || is_capturing state stream then raise Skip;
      emit state (Await { stream; event = event.event_id })
  | Query e ->
      let event = event state e in
      if event.in_capture then raise Skip;
      emit state (Ask_event event.event_id)
  | Ready s ->
      let stream = stream state s in
      if is_capturing state stream then raise Skip;
      emit state (Ask_stream stream)
  | Synchronize s ->
      let stream = stream state s in
      wait_for state (Some (On_stream stream))
  | Synchronize_all ->
      if state.captures <> [] then raise Skip;
      emit state Wait_all
  | Free slot ->
      let b = present state.buffers.(slot) in
      emit state (Give_back b.id);
      state.buffers.(slot) <- None
  | Free_on { stream; buffer } -> free_on state stream buffer
  | Drop (thing, slot) -> drop state thing slot
  | Collect Poison ->
      unless_strict state;
      emit state (Clean Poison)
  | Collect c -> emit state (Clean c)
  | Fork slot -> (
      let stream = stream state slot in
      match state.captures with
      | capture :: _ when not (is_capturing state stream) ->
          order state ~before:capture.origin ~after:stream;
          capture.joined <- stream :: capture.joined
      | _ -> raise Skip)
  | Capture c -> capture state c
  | Instantiate { graph; exec } ->
      let of_graph = present state.graphs.(graph) in
      unless_strict state;
      (* A graph that allocates has one exec at a time. *)
      if of_graph.has_memory && of_graph.execs > 0 then raise Skip;
      of_graph.execs <- of_graph.execs + 1;
      let exec_id = fresh state in
      emit state (Make_exec { graph = of_graph.graph_id; exec = exec_id });
      state.execs.(exec) <- Some { exec_id; of_graph }
  | Launch_alone { exec; stream; seen } ->
      if state.execs.(exec) = None then raise Skip;
      let forget slot =
        let but_seen = if slot = seen then [] else [ Buffer ] in
        let all = but_seen @ [ Host; Graph ] in
        List.iter (fun thing -> try drop state thing slot with Skip -> ()) all
      in
      List.iter forget (List.init slots Fun.id);
      emit state (Clean (if strict state then Major else Poison));
      step state (Launch { exec; stream })
  | Launch { exec; stream = s } ->
      let x = present state.execs.(exec) and stream = stream state s in
      if is_capturing state stream then raise Skip;
      if x.of_graph.has_memory then unless_strict state;
      let call = Run { exec = x.exec_id; stream } in
      enqueue state stream (List.rev x.of_graph.work) call
  | Destroy slot ->
      let g = present state.graphs.(slot) in
      emit state (End_graph g.graph_id);
      state.graphs.(slot) <- None
  | Destroy_exec slot ->
      let x = present state.execs.(slot) in
      emit state (End_exec x.exec_id);
      state.execs.(slot) <- None
  | Check slot -> check state slot

and steps state list = List.iter (fun s -> try step state s with Skip -> ()) list

and capture state { stream = slot; mode; graph; body; finish } =
  let origin = stream state slot in
  if is_capturing state origin then raise Skip;
  if finish = Dropped then (leave state origin) (known state);
  let c =
    {
      mode;
      origin;
      joined = [ origin ];
      last = [];
      host_roles = [];
      recorded = [];
      memory = false;
      nodes = 0;
    }
  in
  let outside = state.calls in
  state.calls <- [];
  state.captures <- c :: state.captures;
  steps state body;
  let others = List.filter (( <> ) origin) c.joined in
  let finish =
    match finish with
    | Unjoined when others = [] -> Ended
    | Dropped when others <> [] -> Raised
    | finish -> finish
  in
  if finish = Ended then
    List.iter (fun before -> order state ~before ~after:origin) others;
  if finish = Unjoined then emit state (Do (Busy, List.hd others));
  state.captures <- List.tl state.captures;
  let graph_id = fresh state in
  let calls = List.rev state.calls in
  state.calls <- outside;
  emit state
    (Record { stream = origin; mode; graph = graph_id; nodes = c.nodes; calls; finish });
  match finish with
  | Ended ->
      state.graphs.(graph) <-
        Some { graph_id; work = c.recorded; has_memory = c.memory; execs = 0 }
  | Dropped -> state.streams.(slot) <- None
  | Raised | Broken | Unjoined -> ()

let finally state =
  let wait_for place =
    match place with
    | Some (On_stream s) -> emit state (Wait_stream s)
    | Some (After_event e) -> emit state (Wait_event e)
    | None -> ()
  in
  let buffer (b : buffer) =
    wait_for b.used;
    emit state (Expect (b.id, Array.to_list b.content))
  in
  let host h =
    wait_for h.host_used;
    emit state (Expect_host (h.host_id, Array.to_list h.host_content))
  in
  Array.iter (Option.iter buffer) state.buffers;
  Array.iter (Option.iter host) state.hosts

(** The calls of one domain. *)
let of_steps list =
  let state = start () in
  steps state list;
  finally state;
  List.rev state.calls

let of_program = List.map of_steps
