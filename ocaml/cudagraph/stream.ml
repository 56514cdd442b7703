open Sexplib0.Sexp_conv

type t = Owner.t

type kernel_param =
  | Tensor of Deviceptr.t
  | Tensor_at of Deviceptr.region
  | Int of int
  | Size_t of Unsigned.size_t
  | Single of float
  | Double of float

let sexp_of_kernel_param param : Sexplib0.Sexp.t =
  let named name argument = Sexplib0.Sexp.List [ Atom name; argument ] in
  match param with
  | Tensor ptr -> named "Tensor" (Deviceptr.sexp_of_t ptr)
  | Tensor_at { base; offset_bytes } ->
      List [ Atom "Tensor_at"; Deviceptr.sexp_of_t base; sexp_of_int offset_bytes ]
  | Int n -> named "Int" (sexp_of_int n)
  | Size_t n -> named "Size_t" (Atom (Unsigned.Size_t.to_string n))
  | Single x -> named "Single" (sexp_of_float x)
  | Double x -> named "Double" (sexp_of_float x)

let no_stream = Owner.of_raw (Raw.stream_null ())

let create ?(non_blocking = false) ?(lower_priority = 0) () =
  Owner.of_raw
    (Status.get_memory "Cuda.Stream.create" "cu_stream_create_with_priority" (fun () ->
         Raw.stream_create non_blocking lower_priority))

let launch_kernel func ~grid_dim_x ?(grid_dim_y = 1) ?(grid_dim_z = 1) ~block_dim_x
    ?(block_dim_y = 1) ?(block_dim_z = 1) ~shared_mem_bytes stream params =
  Status.check "Cuda.Stream.launch_kernel" "cu_launch_kernel"
    (Raw.launch_kernel func grid_dim_x grid_dim_y grid_dim_z block_dim_x block_dim_y
       block_dim_z shared_mem_bytes (Owner.raw stream) params)

module Argument = struct
  type t =
    | Param of kernel_param
    | Int8 of int
    | Int16 of int
    | Int32 of int32
    | Int64 of int64
    | Half of float
    | Bfloat16 of float
    | Address of nativeint
    | Struct of string

  let sexp_of_t argument : Sexplib0.Sexp.t =
    let named name argument = Sexplib0.Sexp.List [ Atom name; argument ] in
    match argument with
    | Param param -> named "Param" (sexp_of_kernel_param param)
    | Int8 n -> named "Int8" (sexp_of_int n)
    | Int16 n -> named "Int16" (sexp_of_int n)
    | Int32 n -> named "Int32" (sexp_of_int32 n)
    | Int64 n -> named "Int64" (sexp_of_int64 n)
    | Half x -> named "Half" (sexp_of_float x)
    | Bfloat16 x -> named "Bfloat16" (sexp_of_float x)
    | Address a -> named "Address" (Atom (Status.pp_address a))
    | Struct bytes -> named "Struct" (sexp_of_int (String.length bytes))

  (* A small integer may be meant with or without a sign. *)
  let check where index argument =
    let inside name n bits =
      if n < -(1 lsl (bits - 1)) || n >= 1 lsl bits then
        invalid_arg
          (Printf.sprintf "%s: argument %d: %s %d does not fit %d bits" where index name n
             bits)
    in
    match argument with
    | Int8 n -> inside "Int8" n 8
    | Int16 n -> inside "Int16" n 16
    | _ -> ()
end

let launch_kernel_with func ~grid_dim_x ?(grid_dim_y = 1) ?(grid_dim_z = 1) ~block_dim_x
    ?(block_dim_y = 1) ?(block_dim_z = 1) ~shared_mem_bytes stream arguments =
  let where = "Cuda.Stream.launch_kernel_with" in
  List.iteri (Argument.check where) arguments;
  Status.check where "cu_launch_kernel"
    (Raw.launch_arguments func grid_dim_x grid_dim_y grid_dim_z block_dim_x block_dim_y
       block_dim_z shared_mem_bytes (Owner.raw stream) arguments)

let mem_alloc stream ~size_in_bytes =
  let stream = Owner.raw stream in
  Status.get_memory ~stream "Cuda.Stream.mem_alloc" "cu_mem_alloc_async" (fun () ->
      Raw.stream_mem_alloc stream size_in_bytes)

let mem_free stream ptr =
  Status.check "Cuda.Stream.mem_free" "cu_mem_free_async"
    (Raw.stream_mem_free (Owner.raw stream) ptr)

let memcpy_H_to_D_unsafe ~dst ~src ~size_in_bytes stream =
  Status.check "Cuda.Stream.memcpy_H_to_D_unsafe" "cu_memcpy_H_to_D_async"
    (Raw.h2d_async_unsafe dst
       (Ctypes.raw_address_of_ptr src)
       size_in_bytes (Owner.raw stream))

let memcpy_H_to_D ?host_offset ?length ?(dst_offset = 0) ~dst ~src stream =
  let where = "Cuda.Stream.memcpy_H_to_D" in
  let from, bytes =
    Host.interval ~where ~name:"src" ?host_offset ?length ~reserved:dst_offset src
  in
  Status.check where "cu_memcpy_H_to_D_async"
    (Raw.h2d_async dst dst_offset src from bytes (Owner.raw stream))

let memcpy_D_to_H_unsafe ~dst ~src ~size_in_bytes stream =
  Status.check "Cuda.Stream.memcpy_D_to_H_unsafe" "cu_memcpy_D_to_H_async"
    (Raw.d2h_async_unsafe
       (Ctypes.raw_address_of_ptr dst)
       src size_in_bytes (Owner.raw stream))

let memcpy_D_to_H ?host_offset ?length ?(src_offset = 0) ~dst ~src stream =
  let where = "Cuda.Stream.memcpy_D_to_H" in
  let into, bytes =
    Host.interval ~where ~name:"dst" ?host_offset ?length ~reserved:src_offset dst
  in
  Status.check where "cu_memcpy_D_to_H_async"
    (Raw.d2h_async dst into src src_offset bytes (Owner.raw stream))

let memcpy_D_to_D ?kind ?length ?size_in_bytes ?(dst_offset = 0) ?(src_offset = 0) ~dst
    ~src stream =
  let where = "Cuda.Stream.memcpy_D_to_D" in
  let bytes = Host.device_bytes ~where ?kind ?length ?size_in_bytes () in
  Status.check where "cu_memcpy_D_to_D_async"
    (Raw.d2d_async dst dst_offset src src_offset bytes (Owner.raw stream))

let memcpy_peer ?kind ?length ?size_in_bytes ?(dst_offset = 0) ?(src_offset = 0) ~dst
    ~dst_ctx ~src ~src_ctx stream =
  let where = "Cuda.Stream.memcpy_peer" in
  let bytes = Host.device_bytes ~where ?kind ?length ?size_in_bytes () in
  Status.check where "cu_memcpy_peer_async"
    (Raw.peer_async
       { memory = dst; offset = dst_offset; context = dst_ctx }
       { memory = src; offset = src_offset; context = src_ctx }
       bytes (Owner.raw stream))

type attach_mem = GLOBAL | HOST | SINGLE_stream

let sexp_of_attach_mem attach =
  Sexplib0.Sexp.Atom
    (match attach with
    | GLOBAL -> "GLOBAL"
    | HOST -> "HOST"
    | SINGLE_stream -> "SINGLE_stream")

(* CUmemAttach_flags *)
let int_of_attach = function GLOBAL -> 1 | HOST -> 2 | SINGLE_stream -> 4

let attach_mem stream ptr length attach =
  Status.check "Cuda.Stream.attach_mem" "cu_stream_attach_mem_async"
    (Raw.stream_attach (Owner.raw stream) ptr length (int_of_attach attach))

let memset_d8 ?(offset = 0) ptr value ~length stream =
  Status.check "Cuda.Stream.memset_d8" "cu_memset_d8_async"
    (Raw.memset_async ptr offset 1 (Unsigned.UChar.to_int value) length (Owner.raw stream))

let memset_d16 ?(offset = 0) ptr value ~length stream =
  Status.check "Cuda.Stream.memset_d16" "cu_memset_d16_async"
    (Raw.memset_async ptr offset 2
       (Unsigned.UShort.to_int value)
       length (Owner.raw stream))

let memset_d32 ?(offset = 0) ptr value ~length stream =
  Status.check "Cuda.Stream.memset_d32" "cu_memset_d32_async"
    (Raw.memset_async ptr offset 4
       (Unsigned.UInt32.to_int value)
       length (Owner.raw stream))

let get_context stream =
  Status.get "Cuda.Stream.get_context" "cu_stream_get_ctx"
    (Raw.stream_context (Owner.raw stream))

let get_id stream =
  let id =
    Status.get "Cuda.Stream.get_id" "cu_stream_get_id" (Raw.stream_id (Owner.raw stream))
  in
  Unsigned.UInt64.of_int64 (Int64.of_nativeint id)

let is_ready stream =
  Status.ready "Cuda.Stream.is_ready" "cu_stream_query"
    (Raw.stream_query (Owner.raw stream))

let synchronize stream =
  (* An event that another domain records meanwhile may not have happened. *)
  let mark = Owner.mark stream in
  Status.check "Cuda.Stream.synchronize" "cu_stream_synchronize"
    (Raw.stream_synchronize (Owner.raw stream));
  Owner.release stream mark;
  Status.report_releases ()

(* To ask about an event that was recorded inside a capture would break the capture. *)
let finished (event : Owner.event) =
  match Atomic.get event.state with
  | None -> true
  | Some raw ->
      (not event.captured)
      && Status.ready "Cuda.Stream.total_unreleased_unfinished_delimited_events"
           "cu_event_query" (Raw.event_query raw)

let total_unreleased_unfinished_delimited_events stream =
  let unreleased = Owner.unreleased stream in
  let unfinished = List.filter (fun event -> not (finished event)) unreleased in
  (Owner.recorded stream, List.length unreleased, List.length unfinished)

let is_capturing stream =
  Status.get "Cuda.Stream.is_capturing" "cu_stream_is_capturing"
    (Raw.stream_is_capturing (Owner.raw stream))

let get_total_live_streams () = Raw.streams_live ()

let sexp_of_t stream =
  Sexplib0.Sexp.List
    [
      List
        [
          Atom "stream"; Atom (Status.pp_address (Raw.stream_address (Owner.raw stream)));
        ];
      List [ Atom "held"; sexp_of_int (Raw.stream_held (Owner.raw stream)) ];
    ]
