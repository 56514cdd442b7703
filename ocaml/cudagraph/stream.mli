(** Streams: queues of work, each done in order, side by side with the others.

    What enqueued work uses (the kernel's module, the memory among its arguments, the
    bigarrays of copies, events) is kept until the stream is known to be idle: by
    {!synchronize}, by {!is_ready} when it is true, by [Context.synchronize]. Work on a
    stream that captures is kept by the graph instead. A stream whose value is dropped
    completes its work first. *)

type t = Owner.t
(** A stream. *)

val sexp_of_t : t -> Sexplib0.Sexp.t
(** The driver's handle, and how many resources are kept for work that may be pending. *)

val mem_alloc : t -> size_in_bytes:int -> Deviceptr.t
(** [mem_alloc stream ~size_in_bytes] is memory from the device's pool. The stream's later
    work may use it at once, other streams after an event recorded here. It goes back to
    the pool when neither the program nor pending or captured work uses it, in the order
    of the stream, and never inside a capture. 0 bytes are the null pointer.

    On a stream that captures, the graph allocates the memory when it is launched: the
    address is that of every launch, and valid from the launch until it is freed by
    {!mem_free}, in this capture, in another one or at once. A graph whose memory is still
    allocated cannot be launched again, unless it was instantiated with
    [~auto_free_on_launch:true]. Using the memory while it is not allocated raises
    [Invalid_argument]. Driver: [cuMemAllocAsync]. *)

val mem_free : t -> Deviceptr.t -> unit
(** [mem_free stream ptr] gives memory of {!mem_alloc} back once the work that the stream
    has so far is done; or, if work of other streams, an open capture, a graph or an exec
    uses it, when the last of them goes. [ptr] cannot be used any more either way. On a
    stream that captures, the graph frees what it or another graph allocates. Freeing
    again does nothing. Raises [Invalid_argument] for memory of [Deviceptr.mem_alloc] or
    of another context than the stream's, and in a capture for memory that no graph
    allocates. Driver: [cuMemFreeAsync]. *)

val memcpy_H_to_D_unsafe :
  dst:Deviceptr.t -> src:unit Ctypes.ptr -> size_in_bytes:int -> t -> unit
(** [memcpy_H_to_D_unsafe ~dst ~src ~size_in_bytes stream] copies bytes from an address
    that the caller keeps valid until the work, or the graph that captures it, is done
    with it. Driver: [cuMemcpyHtoDAsync]. *)

val memcpy_H_to_D :
  ?host_offset:int ->
  ?length:int ->
  ?dst_offset:int ->
  dst:Deviceptr.t ->
  src:('a, 'b, 'c) Bigarray.Genarray.t ->
  t ->
  unit
(** [memcpy_H_to_D ~dst ~src stream] enqueues what [Deviceptr.memcpy_H_to_D] does at once.
    The bigarray is kept. In a capture, its content is read at each launch of the graph,
    during the call to [Graph.launch]; changing it while a launch is being made is a race.
    Driver: [cuMemcpyHtoDAsync]. *)

(** Arguments of a kernel. Where the driver can tell (CUDA 12.4 and newer), their number
    and sizes are checked against the kernel; elsewhere missing ones are 0. *)
type kernel_param =
  | Tensor of Deviceptr.t  (** The address of device memory. *)
  | Tensor_at of Deviceptr.region
      (** An address inside device memory; the whole block is kept. *)
  | Int of int  (** A C [int]; [Invalid_argument] if it does not fit. *)
  | Size_t of Unsigned.size_t  (** A C [size_t]. *)
  | Single of float  (** A C [float]. *)
  | Double of float  (** A C [double]. *)

val sexp_of_kernel_param : kernel_param -> Sexplib0.Sexp.t

val no_stream : t
(** The NULL stream of whatever context is current when it is used. It cannot capture, and
    is refused with [Cuda_error] on a thread that captures, unless the capture is
    [RELAXED]. *)

val launch_kernel :
  Module_.func ->
  grid_dim_x:int ->
  ?grid_dim_y:int ->
  ?grid_dim_z:int ->
  block_dim_x:int ->
  ?block_dim_y:int ->
  ?block_dim_z:int ->
  shared_mem_bytes:int ->
  t ->
  kernel_param list ->
  unit
(** [launch_kernel func ~grid_dim_x ~block_dim_x ~shared_mem_bytes stream params] enqueues
    a kernel: the grid in blocks, the block in threads (directions not given are 1),
    dynamic shared memory of a block in bytes, for which a kernel that needs more than the
    usual 48 KiB is told so. Raises [Invalid_argument], naming the argument and its limit,
    for what the device or the kernel does not admit, and for a kernel that was loaded
    into another context than the stream's. Memory of another device is passed on: without
    [Context.enable_peer_access] the kernel's access to it is illegal, which ends the
    context. Blocks, without stopping other domains, when the launch queue is full.
    Driver: [cuLaunchKernel]. *)

val memcpy_D_to_H_unsafe :
  dst:unit Ctypes.ptr -> src:Deviceptr.t -> size_in_bytes:int -> t -> unit
(** [memcpy_D_to_H_unsafe ~dst ~src ~size_in_bytes stream] copies bytes to an address that
    the caller keeps valid until the work, or the graph that captures it, is done with it.
    Driver: [cuMemcpyDtoHAsync]. *)

val memcpy_D_to_H :
  ?host_offset:int ->
  ?length:int ->
  ?src_offset:int ->
  dst:('a, 'b, 'c) Bigarray.Genarray.t ->
  src:Deviceptr.t ->
  t ->
  unit
(** [memcpy_D_to_H ~dst ~src stream] enqueues what [Deviceptr.memcpy_D_to_H] does at once.
    The content is there after {!synchronize}. The bigarray is kept. Driver:
    [cuMemcpyDtoHAsync]. *)

val memcpy_D_to_D :
  ?kind:('a, 'b) Bigarray.kind ->
  ?length:int ->
  ?size_in_bytes:int ->
  ?dst_offset:int ->
  ?src_offset:int ->
  dst:Deviceptr.t ->
  src:Deviceptr.t ->
  t ->
  unit
(** [memcpy_D_to_D ~dst ~src stream] enqueues what [Deviceptr.memcpy_D_to_D] does at once.
    Driver: [cuMemcpyDtoDAsync]. *)

val memcpy_peer :
  ?kind:('a, 'b) Bigarray.kind ->
  ?length:int ->
  ?size_in_bytes:int ->
  ?dst_offset:int ->
  ?src_offset:int ->
  dst:Deviceptr.t ->
  dst_ctx:Context.t ->
  src:Deviceptr.t ->
  src_ctx:Context.t ->
  t ->
  unit
(** [memcpy_peer ~dst ~dst_ctx ~src ~src_ctx stream] enqueues what [Deviceptr.memcpy_peer]
    does at once. Driver: [cuMemcpyPeerAsync]. *)

(** Who may use managed memory. *)
type attach_mem =
  | GLOBAL  (** Every stream of every device. *)
  | HOST  (** The host alone. *)
  | SINGLE_stream  (** One stream, and the host while that stream is idle. *)

val sexp_of_attach_mem : attach_mem -> Sexplib0.Sexp.t

val attach_mem : t -> Deviceptr.t -> int -> attach_mem -> unit
(** [attach_mem stream ptr length attach] changes who may use managed memory, in the order
    of the stream. [length] is in bytes: 0 or the whole allocation. Raises [Cuda_error]
    for memory that is not managed. Driver: [cuStreamAttachMemAsync]. *)

val create : ?non_blocking:bool -> ?lower_priority:int -> unit -> t
(** [create ()] is a new stream of the current context. A blocking stream (the default)
    and the NULL stream wait for each other; a [non_blocking] one ignores the NULL stream,
    and is the better one for captures. Smaller numbers of [lower_priority] (0) go first.
    Driver: [cuStreamCreateWithPriority], [cuStreamDestroy]. *)

val get_context : t -> Context.t
(** [get_context stream] is the context that the stream was made in. Driver:
    [cuStreamGetCtx]. *)

val get_id : t -> Unsigned.uint64
(** [get_id stream] is a number that no other stream of the process has. Driver:
    [cuStreamGetId]. *)

val is_ready : t -> bool
(** [is_ready stream] is whether all its work is done. Raises [Cuda_error] for a stream
    that captures. Driver: [cuStreamQuery]. *)

val synchronize : t -> unit
(** [synchronize stream] waits until all its work is done, then lets go of what only that
    work kept, and releases the delimited events of the stream. Other domains run
    meanwhile. Raises [Cuda_error] for work that failed, and for a stream that captures.
    Driver: [cuStreamSynchronize]. *)

val memset_d8 : ?offset:int -> Deviceptr.t -> Unsigned.uchar -> length:int -> t -> unit
(** [memset_d8 ptr value ~length stream] enqueues what [Deviceptr.memset_d8] does at once.
    Driver: [cuMemsetD8Async]. *)

val memset_d16 : ?offset:int -> Deviceptr.t -> Unsigned.ushort -> length:int -> t -> unit
(** [memset_d16 ptr value ~length stream] enqueues what [Deviceptr.memset_d16] does at
    once. Driver: [cuMemsetD16Async]. *)

val memset_d32 : ?offset:int -> Deviceptr.t -> Unsigned.uint32 -> length:int -> t -> unit
(** [memset_d32 ptr value ~length stream] enqueues what [Deviceptr.memset_d32] does at
    once. Driver: [cuMemsetD32Async]. *)

val total_unreleased_unfinished_delimited_events : t -> int * int * int
(** [total_unreleased_unfinished_delimited_events stream] counts the delimited events that
    were recorded on the stream since it was last synchronized: all of them, those that
    are in use and were not released, and those of the latter that have not happened,
    which is said of every event recorded inside a capture. Driver: [cuEventQuery]. *)

val get_total_live_streams : unit -> int
(** [get_total_live_streams ()] is how many streams are in use by the program or by
    captured work. *)

(** {1 Beyond cudajit} *)

val is_capturing : t -> bool
(** [is_capturing stream] is whether work on the stream goes into a capture, valid or
    broken. Driver: [cuStreamIsCapturing]. *)

(** Arguments of a kernel, of every type that C has. *)
module Argument : sig
  type t =
    | Param of kernel_param
    | Int8 of int
        (** 8 bits, with or without sign; [Invalid_argument] if it does not fit. *)
    | Int16 of int  (** 16 bits, likewise. *)
    | Int32 of int32
    | Int64 of int64
    | Half of float  (** A [__half], the nearest one. *)
    | Bfloat16 of float  (** A [__nv_bfloat16], the nearest one. *)
    | Address of nativeint
        (** A device address that the caller keeps valid until the work, or the graph that
            captures it, is done with it. *)
    | Struct of string
        (** The bytes of a C [struct], padding included: its [sizeof] of them. *)

  val sexp_of_t : t -> Sexplib0.Sexp.t
  (** A struct shows its size in bytes. *)
end

val launch_kernel_with :
  Module_.func ->
  grid_dim_x:int ->
  ?grid_dim_y:int ->
  ?grid_dim_z:int ->
  block_dim_x:int ->
  ?block_dim_y:int ->
  ?block_dim_z:int ->
  shared_mem_bytes:int ->
  t ->
  Argument.t list ->
  unit
(** [launch_kernel_with] is {!launch_kernel} with arguments of any type. Driver:
    [cuLaunchKernel]. *)
