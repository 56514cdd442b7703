let where name = "Cudagraph_cudajit." ^ name

(* cudajit's values are abstract, and shown as S-expressions: a handle as @ and hex digits. *)
let handle_in what sexp =
  let refuse shown = failwith (where what ^ ": no handle of cudajit 0.7.2: " ^ shown) in
  match (sexp : Sexplib0.Sexp.t) with
  | List _ -> refuse (Sexplib0.Sexp.to_string sexp)
  | Atom text -> (
      if not (String.starts_with ~prefix:"@" text) then refuse text;
      let digits = String.sub text 1 (String.length text - 1) in
      match Nativeint.of_string_opt ("0x" ^ digits) with
      | Some handle -> handle
      | None -> refuse text)

let stream_handle stream =
  let fields =
    match Cuda.Stream.sexp_of_t stream with List fields -> fields | Atom _ -> []
  in
  let handle : Sexplib0.Sexp.t -> _ = function
    | List [ Atom "stream"; handle ] -> Some (handle_in "Stream" handle)
    | _ -> None
  in
  match List.find_map handle fields with
  | Some handle -> handle
  | None -> failwith (where "Stream: no stream of cudajit 0.7.2")

(* cudajit's driver was loaded by the linker, ours by name or as CUDAGRAPH_DRIVER says: a handle
   of one means nothing to the other, unless they are the same. *)
let start () =
  Cudagraph.init ();
  let theirs =
    handle_in "Context" (Cuda.Context.sexp_of_t (Cuda.Context.get_current ()))
  in
  let ours =
    match Cudagraph.Context.get_current () with
    | context -> Cudagraph.Interop.context_handle context
    | exception (Cudagraph.Cuda_error _ | Invalid_argument _) -> 0n
  in
  if not (Nativeint.equal theirs ours) then
    failwith
      (Printf.sprintf
         "%s: cudajit uses another driver than cudagraph, which has loaded %s: see \
          CUDAGRAPH_DRIVER"
         (where "Stream")
         (Cudagraph.driver_description ()))

(* Our stream for each of cudajit's that is alive. A program has few. *)
type known = { theirs : Cuda.Stream.t Weak.t; ours : Cudagraph.Stream.t }

let known : known list Atomic.t = Atomic.make []

let find stream =
  let same { theirs; _ } =
    match Weak.get theirs 0 with Some other -> other == stream | None -> false
  in
  List.find_opt same (Atomic.get known)

let rec add entry =
  let entries = Atomic.get known in
  let live = List.filter (fun { theirs; _ } -> Weak.check theirs 0) entries in
  if not (Atomic.compare_and_set known entries (entry :: live)) then add entry

let interop stream =
  match find stream with
  | Some { ours; _ } -> ours
  | None ->
      start ();
      let handle = stream_handle stream in
      if Nativeint.equal handle 0n then Cudagraph.Stream.no_stream
      else
        let theirs = Weak.create 1 in
        Weak.set theirs 0 (Some stream);
        let ours = Cudagraph.Interop.stream handle in
        add { theirs; ours };
        ours

module Module = struct
  include Cuda.Module

  let get_function m ~name =
    let func = Cuda.Module.get_function m ~name in
    (* The closure keeps the module as long as the function lives. *)
    Gc.finalise (fun _ -> Cudagraph.Interop.keep_alive m) func;
    func
end

module Stream = struct
  include Cuda.Stream

  let interop = interop
  let is_capturing stream = Cudagraph.Stream.is_capturing (interop stream)
  let keep stream value = Cudagraph.Interop.keep_for (interop stream) value

  (* Outside of a capture cudajit itself keeps the arguments of launches. *)
  let keep_captured stream value = if is_capturing stream then keep stream value

  let launch_kernel func ~grid_dim_x ?grid_dim_y ?grid_dim_z ~block_dim_x ?block_dim_y
      ?block_dim_z ~shared_mem_bytes stream params =
    Cuda.Stream.launch_kernel func ~grid_dim_x ?grid_dim_y ?grid_dim_z ~block_dim_x
      ?block_dim_y ?block_dim_z ~shared_mem_bytes stream params;
    keep_captured stream (func, params)

  let memcpy_H_to_D ?host_offset ?length ?dst_offset ~dst ~src stream =
    Cuda.Stream.memcpy_H_to_D ?host_offset ?length ?dst_offset ~dst ~src stream;
    keep stream (dst, src)

  let memcpy_D_to_H ?host_offset ?length ?src_offset ~dst ~src stream =
    Cuda.Stream.memcpy_D_to_H ?host_offset ?length ?src_offset ~dst ~src stream;
    keep stream (dst, src)

  let memcpy_D_to_D ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst ~src stream
      =
    Cuda.Stream.memcpy_D_to_D ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst
      ~src stream;
    keep stream (dst, src)

  let memcpy_peer ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst ~dst_ctx ~src
      ~src_ctx stream =
    Cuda.Stream.memcpy_peer ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst
      ~dst_ctx ~src ~src_ctx stream;
    keep stream (dst, src, dst_ctx, src_ctx)

  let memset_d8 ?offset ptr value ~length stream =
    Cuda.Stream.memset_d8 ?offset ptr value ~length stream;
    keep stream ptr

  let memset_d16 ?offset ptr value ~length stream =
    Cuda.Stream.memset_d16 ?offset ptr value ~length stream;
    keep stream ptr

  let memset_d32 ?offset ptr value ~length stream =
    Cuda.Stream.memset_d32 ?offset ptr value ~length stream;
    keep stream ptr

  let synchronize stream =
    Cuda.Stream.synchronize stream;
    Option.iter (fun { ours; _ } -> Cudagraph.Stream.synchronize ours) (find stream)
end

module Graph = struct
  module G = Cudagraph.Graph

  type t = G.t
  type exec = G.exec

  let sexp_of_t = G.sexp_of_t
  let sexp_of_exec = G.sexp_of_exec

  type capture_mode = G.capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

  let sexp_of_capture_mode = G.sexp_of_capture_mode
  let begin_capture ?(mode = RELAXED) stream = G.begin_capture ~mode (interop stream)
  let end_capture stream = G.end_capture (interop stream)
  let instantiate = G.instantiate
  let launch exec stream = G.launch exec (interop stream)
  let destroy = G.destroy
  let exec_destroy = G.exec_destroy
  let with_capture ?(mode = RELAXED) stream f = G.with_capture ~mode (interop stream) f
  let instantiate_with = G.instantiate_with
  let node_count = G.node_count
end
