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
    and sizes are checked against the kernel. *)
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
    dynamic shared memory of a block in bytes. Raises [Invalid_argument], naming the
    argument and its limit, for what the device or the kernel does not admit. Blocks,
    without stopping other domains, when the launch queue is full. Driver:
    [cuLaunchKernel]. *)

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
