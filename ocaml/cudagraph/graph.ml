open Sexplib0.Sexp_conv

type t = Raw.graph
type exec = Raw.exec

let sexp_of_info (info : Raw.graph_info) : Sexplib0.Sexp.t =
  let state : Sexplib0.Sexp.t =
    if info.live then List [ Atom "address"; Atom (Status.pp_address info.address) ]
    else Atom "destroyed"
  in
  List
    [
      state;
      List [ Atom "nodes"; sexp_of_int info.nodes ];
      List [ Atom "held"; sexp_of_int info.held ];
    ]

let sexp_of_t graph = sexp_of_info (Raw.graph_info graph)
let sexp_of_exec exec = sexp_of_info (Raw.exec_info exec)

type capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

let sexp_of_capture_mode mode =
  Sexplib0.Sexp.Atom
    (match mode with
    | GLOBAL -> "GLOBAL"
    | THREAD_LOCAL -> "THREAD_LOCAL"
    | RELAXED -> "RELAXED")

(* CUstreamCaptureMode *)
let int_of_mode = function GLOBAL -> 0 | THREAD_LOCAL -> 1 | RELAXED -> 2

(* A domain that ends closes its captures: nobody else could. *)
let closed_at_exit =
  Domain.DLS.new_key (fun () ->
      if not (Domain.is_main_domain ()) then Domain.at_exit Raw.close_captures)

let begin_capture ?(mode = GLOBAL) stream =
  Domain.DLS.get closed_at_exit;
  Status.check "Cuda.Graph.begin_capture" "cu_stream_begin_capture"
    (Raw.begin_capture (Owner.raw stream) (int_of_mode mode))

let end_capture stream =
  let graph =
    Status.get "Cuda.Graph.end_capture" "cu_stream_end_capture"
      (Raw.end_capture (Owner.raw stream))
  in
  Status.report_releases ();
  graph

let instantiate graph =
  Status.get_memory "Cuda.Graph.instantiate" "cu_graph_instantiate" (fun () ->
      Raw.instantiate graph 0)

let launch exec stream =
  let message = "cu_graph_launch" and raw = Owner.raw stream in
  let status = Raw.graph_launch exec raw in
  let status =
    (* The memory that the graph allocates is taken now. *)
    if status <> 0 && Status.made_room ~stream:raw message status then
      Raw.graph_launch exec raw
    else status
  in
  Status.check "Cuda.Graph.launch" message status

let destroy graph =
  Status.check "Cuda.Graph.destroy" "cu_graph_destroy" (Raw.graph_destroy graph)

let exec_destroy exec =
  Status.check "Cuda.Graph.exec_destroy" "cu_graph_exec_destroy" (Raw.exec_destroy exec)

let with_capture ?(mode = GLOBAL) stream f =
  Domain.DLS.get closed_at_exit;
  let raw = Owner.raw stream in
  (* The handler of a signal may raise between any two calls, but not between a call and what notes it:
     what was begun and not ended is closed. *)
  let is_open = ref false in
  match
    let status = Raw.begin_capture raw (int_of_mode mode) in
    is_open := status = 0;
    Status.check "Cuda.Graph.begin_capture" "cu_stream_begin_capture" status;
    let result = f () in
    let ended = Raw.end_capture raw in
    is_open := false;
    let graph = Status.get "Cuda.Graph.end_capture" "cu_stream_end_capture" ended in
    Status.report_releases ();
    (graph, result)
  with
  | captured -> captured
  | exception error ->
      let backtrace = Printexc.get_raw_backtrace () in
      if !is_open then Raw.abandon_capture raw;
      Printexc.raise_with_backtrace error backtrace

let instantiate_with ?(auto_free_on_launch = false) graph =
  Status.get_memory "Cuda.Graph.instantiate_with" "cu_graph_instantiate" (fun () ->
      Raw.instantiate graph (Bool.to_int auto_free_on_launch))

let node_count graph = (Raw.graph_info graph).nodes
