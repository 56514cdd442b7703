(* Random programs: what a user may write, with small numbers for the names of things. A step whose
   things are not there is passed over by {!Plan}, so every list of steps is a program, and so is
   every part of one. *)

type mode = Cuda.Graph.capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

type work =
  | Incr of int  (** Adds 1 to each element of a buffer. *)
  | Incr_by_own_module of int
      (** The same by the kernel of a module that nobody keeps. *)
  | Append of int * int  (** Multiplies by 10 and adds a digit. *)
  | Fill of int * int  (** Sets each element. *)
  | Copy of { dst : int; src : int }
  | Upload of { host : int; dst : int }
  | Download of { src : int; host : int }
  | Scratch of { dst : int; value : int }
      (** A value by way of stream-ordered memory: in a graph, of its own nodes. *)
  | Busy  (** Takes a while and changes nothing. *)

type thing = Buffer | Host | Stream | Event | Graph | Exec
type collection = Minor | Major | Compact | Poison

(** How a capture ends. *)
type finish =
  | Ended
  | Raised  (** An exception leaves [with_capture]. *)
  | Broken  (** By a call that is forbidden. *)
  | Unjoined  (** A forked stream is not joined back. *)
  | Dropped  (** The stream is dropped, and nobody ends the capture. *)

type step =
  | New_buffer of int * int
  | New_pool_buffer of { buffer : int; stream : int; value : int }
  | New_host of int * int
  | New_stream of int
  | New_event of int
  | Work of work * int
  | Record of { event : int; stream : int }
  | Wait of { stream : int; event : int }
  | Query of int
  | Ready of int
  | Synchronize of int
  | Synchronize_all
  | Free of int
  | Free_on of { stream : int; buffer : int }
  | Drop of thing * int
  | Collect of collection
  | Capture of capture
  | Fork of int  (** The stream joins the innermost capture. *)
  | Instantiate of { graph : int; exec : int }
  | Launch of { exec : int; stream : int }
  | Launch_alone of { exec : int; stream : int; seen : int }
      (** After everything is dropped but the exec and one buffer, and what was free is
          overwritten. *)
  | Destroy of int
  | Destroy_exec of int
  | Check of int

and capture = {
  stream : int;
  mode : mode;
  graph : int;
  body : step list;
  finish : finish;
}

type t = step list list
(** One list of steps for each domain. *)

(* Generating *)

module Gen = QCheck.Gen

(* Mostly the same few, so that steps meet. *)
let slot = Gen.frequencyl [ (5, 0); (3, 1); (1, 2) ]
let value = Gen.int_bound 99

let work =
  let open Gen in
  frequency
    [
      (4, map (fun b -> Incr b) slot);
      (1, map (fun b -> Incr_by_own_module b) slot);
      (3, map2 (fun b d -> Append (b, d)) slot (int_bound 9));
      (2, map2 (fun b v -> Fill (b, v)) slot value);
      (4, map2 (fun dst src -> Copy { dst; src }) slot slot);
      (3, map2 (fun host dst -> Upload { host; dst }) slot slot);
      (2, map2 (fun src host -> Download { src; host }) slot slot);
      (1, map2 (fun dst value -> Scratch { dst; value }) slot value);
      (1, return Busy);
    ]

let thing =
  Gen.frequencyl
    [ (4, Buffer); (3, Host); (2, Stream); (1, Event); (2, Graph); (2, Exec) ]

let collection = Gen.frequencyl [ (3, Minor); (3, Major); (1, Compact); (3, Poison) ]
let mode = Gen.oneofl [ GLOBAL; THREAD_LOCAL; RELAXED ]

let finish =
  Gen.frequencyl [ (8, Ended); (1, Raised); (1, Broken); (1, Unjoined); (1, Dropped) ]

let rec step depth =
  let open Gen in
  frequency
    ([
       (3, map2 (fun b v -> New_buffer (b, v)) slot value);
       ( 1,
         map3
           (fun buffer stream value -> New_pool_buffer { buffer; stream; value })
           slot slot value );
       (2, map2 (fun h v -> New_host (h, v)) slot value);
       (1, map (fun s -> New_stream s) slot);
       (1, map (fun e -> New_event e) slot);
       (14, map2 (fun w s -> Work (w, s)) work slot);
       (1, map2 (fun event stream -> Record { event; stream }) slot slot);
       (1, map2 (fun event stream -> Wait { stream; event }) slot slot);
       (1, map (fun e -> Query e) slot);
       (1, map (fun s -> Ready s) slot);
       (1, map (fun s -> Synchronize s) slot);
       (1, return Synchronize_all);
       (1, map (fun b -> Free b) slot);
       (1, map2 (fun stream buffer -> Free_on { stream; buffer }) slot slot);
       (4, map2 (fun t s -> Drop (t, s)) thing slot);
       (4, map (fun c -> Collect c) collection);
       (3, map2 (fun graph exec -> Instantiate { graph; exec }) slot slot);
       (5, map2 (fun exec stream -> Launch { exec; stream }) slot slot);
       ( 4,
         map3 (fun exec stream seen -> Launch_alone { exec; stream; seen }) slot slot slot
       );
       (1, map (fun g -> Destroy g) slot);
       (1, map (fun x -> Destroy_exec x) slot);
       (2, map (fun b -> Check b) slot);
     ]
    @ (if depth < 2 then [ ((if depth = 0 then 5 else 1), capture depth) ] else [])
    @ if depth > 0 then [ (4, map (fun s -> Fork s) slot) ] else [])

and capture depth =
  let open Gen in
  let* stream = slot and* mode = mode and* graph = slot and* finish = finish in
  let* body = list_size (int_range 1 6) (step (depth + 1)) in
  return (Capture { stream; mode; graph; body; finish })

let one = Gen.map (fun s -> [ s ]) (step 0)

(* A capture that is launched. *)
let replay =
  let open Gen in
  let* captured = capture 0 and* exec = slot and* stream = slot and* seen = slot in
  match captured with
  | Capture c ->
      let* between = list_size (int_bound 2) (step 0) in
      let* alone = bool in
      let last =
        if alone then Launch_alone { exec; stream; seen } else Launch { exec; stream }
      in
      return ((captured :: Instantiate { graph = c.graph; exec } :: between) @ [ last ])
  | other -> return [ other ]

let generate : t Gen.t =
  let open Gen in
  let* domains = frequencyl [ (93, 1); (5, 2); (1, 3); (1, 4) ] in
  list_repeat domains
    (map List.concat (list_size (int_range 1 10) (frequency [ (6, one); (1, replay) ])))

(* Shrinking: fewer domains, fewer steps, smaller captures, plainer ways to end them. *)

let rec shrink_step step yield =
  match step with
  | Capture capture ->
      if capture.finish <> Ended then yield (Capture { capture with finish = Ended });
      QCheck.Shrink.list ~shrink:shrink_step capture.body (fun body ->
          yield (Capture { capture with body }))
  | _ -> ()

let shrink : t QCheck.Shrink.t =
  QCheck.Shrink.list ~shrink:(QCheck.Shrink.list ~shrink:shrink_step)
