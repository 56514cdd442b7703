(** Device memory, and operations on it that have completed when they return.

    None of these copies and fills may be made by a thread that captures a stream, unless
    it captures in mode [RELAXED]: they would run once, now, and not be part of the graph.
    They raise [Cuda_error] instead. *)

type t = Raw.deviceptr
(** A block of device memory that knows its size. Whatever reaches outside of it is
    refused with [Invalid_argument] before the driver is called, and so is any use after
    {!mem_free}. *)

type region = { base : t; offset_bytes : int }
(** A place inside [base], [offset_bytes] bytes from its start. A region owns nothing: it
    is part of its base, which it keeps. *)

val offset : t -> bytes:int -> region
(** [offset ptr ~bytes] is the place [bytes] bytes into [ptr]. *)

val region_of : t -> region
(** [region_of ptr] is [offset ptr ~bytes:0]. *)

val sexp_of_t : t -> Sexplib0.Sexp.t
(** The address, the size in bytes and whether it was freed. *)

val equal : t -> t -> bool
(** [equal a b] is whether both start at the same address. *)

val hash : t -> int
(** [hash ptr] is the address, less the bits that an [int] cannot hold. *)

val string_of : t -> string
(** [string_of ptr] is the address in hexadecimal. *)

val mem_alloc : size_in_bytes:int -> t
(** [mem_alloc ~size_in_bytes] is new memory of the current context, of undefined content,
    aligned for any type. It goes back when neither the program nor pending or captured
    work uses it. When memory is short, streams are asked how far they are, but not waited
    for, garbage is collected and the allocation tried once more, unless this thread
    captures. Driver: [cuMemAlloc], [cuMemFree]. *)

val mem_free : t -> unit
(** [mem_free ptr] frees the memory at once, waiting for the device to be idle; or, if an
    open capture, a graph or an exec uses the memory, when the last of them goes. [ptr]
    cannot be used any more either way. Freeing again does nothing. Raises
    [Invalid_argument] for the memory of a module's variable. Driver: [cuMemFree]. *)

val memcpy_H_to_D_unsafe : dst:t -> src:unit Ctypes.ptr -> size_in_bytes:int -> unit
(** [memcpy_H_to_D_unsafe ~dst ~src ~size_in_bytes] copies bytes from an address that the
    caller vouches for. Driver: [cuMemcpyHtoD]. *)

val memcpy_H_to_D :
  ?host_offset:int ->
  ?length:int ->
  ?dst_offset:int ->
  dst:t ->
  src:('a, 'b, 'c) Bigarray.Genarray.t ->
  unit ->
  unit
(** [memcpy_H_to_D ~dst ~src ()] copies a bigarray to the device: [length] elements from
    element [host_offset] (0), to byte [dst_offset] (0) of [dst]. Without [length]: as
    many bytes as are left in [src], less [dst_offset]. Driver: [cuMemcpyHtoD]. *)

val alloc_and_memcpy : ('a, 'b, 'c) Bigarray.Genarray.t -> t
(** [alloc_and_memcpy src] is new device memory with the content of [src]. *)

val memcpy_D_to_H_unsafe : dst:unit Ctypes.ptr -> src:t -> size_in_bytes:int -> unit
(** [memcpy_D_to_H_unsafe ~dst ~src ~size_in_bytes] copies bytes to an address that the
    caller vouches for. Driver: [cuMemcpyDtoH]. *)

val memcpy_D_to_H :
  ?host_offset:int ->
  ?length:int ->
  ?src_offset:int ->
  dst:('a, 'b, 'c) Bigarray.Genarray.t ->
  src:t ->
  unit ->
  unit
(** [memcpy_D_to_H ~dst ~src ()] copies from the device into a bigarray: [length]
    elements, to element [host_offset] (0), from byte [src_offset] (0) of [src]. Without
    [length]: as many bytes as are left in [dst], less [src_offset]. Driver:
    [cuMemcpyDtoH]. *)

val memcpy_D_to_D :
  ?kind:('a, 'b) Bigarray.kind ->
  ?length:int ->
  ?size_in_bytes:int ->
  ?dst_offset:int ->
  ?src_offset:int ->
  dst:t ->
  src:t ->
  unit ->
  unit
(** [memcpy_D_to_D ~dst ~src ()] copies on the device, from byte [src_offset] to byte
    [dst_offset]: either [length] elements of [kind], or [size_in_bytes]. Driver:
    [cuMemcpyDtoD]. *)

val memcpy_peer :
  ?kind:('a, 'b) Bigarray.kind ->
  ?length:int ->
  ?size_in_bytes:int ->
  ?dst_offset:int ->
  ?src_offset:int ->
  dst:t ->
  dst_ctx:Context.t ->
  src:t ->
  src_ctx:Context.t ->
  unit ->
  unit
(** [memcpy_peer ~dst ~dst_ctx ~src ~src_ctx ()] is {!memcpy_D_to_D} between the memories
    of two contexts, mostly of two devices. Raises [Invalid_argument] for a context that
    the memory was not allocated in. Driver: [cuMemcpyPeer]. *)

val memset_d8 : ?offset:int -> t -> Unsigned.uchar -> length:int -> unit
(** [memset_d8 ptr value ~length] fills [length] bytes from byte [offset] (0). Driver:
    [cuMemsetD8]. *)

val memset_d16 : ?offset:int -> t -> Unsigned.ushort -> length:int -> unit
(** [memset_d16 ptr value ~length] fills [length] elements of 2 bytes from byte [offset]
    (0), a multiple of 2. Driver: [cuMemsetD16]. *)

val memset_d32 : ?offset:int -> t -> Unsigned.uint32 -> length:int -> unit
(** [memset_d32 ptr value ~length] fills [length] elements of 4 bytes from byte [offset]
    (0), a multiple of 4. Driver: [cuMemsetD32]. *)

(** {1 Beyond cudajit} *)

val allocation_size : t -> int
(** [allocation_size ptr] is the size of the whole allocation in bytes. *)

val mem_alloc_managed : ?only_host:bool -> size_in_bytes:int -> unit -> t
(** [mem_alloc_managed ~size_in_bytes ()] is memory that the device and the host both use
    at one address, see [Interop.bigarray_of_managed]. With [only_host] (false) no kernel
    may use it until [Stream.attach_mem] says which. Otherwise as {!mem_alloc}. Driver:
    [cuMemAllocManaged]. *)
