(** Contexts: what allocations, modules and streams belong to.

    Each thread has a stack of contexts; the top one is current. A context that is on a
    thread's stack is kept, even when its value is not, so
    [Context.set_current (Context.get_primary device)] is safe. *)

(** Options of a context. *)
type flag =
  | SCHED_AUTO  (** The driver chooses how a thread waits. *)
  | SCHED_SPIN  (** A waiting thread spins. *)
  | SCHED_YIELD  (** A waiting thread yields between looks. *)
  | SCHED_BLOCKING_SYNC  (** A waiting thread sleeps. *)
  | SCHED_MASK  (** All bits of the four above. *)
  | MAP_HOST  (** Host memory can be mapped; always so in current drivers. *)
  | LMEM_RESIZE_TO_MAX  (** Local memory grown for a launch stays. *)
  | COREDUMP_ENABLE  (** Faults of kernels leave a core dump. *)
  | USER_COREDUMP_ENABLE  (** A core dump can be asked for through a pipe. *)
  | SYNC_MEMOPS  (** Synchronous memory operations always synchronize. *)

val sexp_of_flag : flag -> Sexplib0.Sexp.t

type flags = flag list

val sexp_of_flags : flags -> Sexplib0.Sexp.t

type t = Raw.context
(** A context. *)

val sexp_of_t : t -> Sexplib0.Sexp.t

val create : flags -> Device.t -> t
(** [create flags device] is a new context, pushed on the calling thread's stack; most
    programs want {!get_primary}. It is destroyed when nothing made in it is left. Driver:
    [cuCtxCreate]. *)

val get_flags : unit -> flags
(** [get_flags ()] is the options of the current context; [SCHED_AUTO], the absence of the
    other ways to wait, is never among them. Driver: [cuCtxGetFlags]. *)

val get_primary : Device.t -> t
(** [get_primary device] is the context that all users of a device share. It does not
    become current. It is released when nothing made in it is left. Driver:
    [cuDevicePrimaryCtxRetain], [cuDevicePrimaryCtxRelease]. *)

val get_device : unit -> Device.t
(** [get_device ()] is the device of the current context. Driver: [cuCtxGetDevice]. *)

val pop_current : unit -> t
(** [pop_current ()] takes the current context off the thread's stack. Raises [Cuda_error]
    when there is none. Driver: [cuCtxPopCurrent]. *)

val get_current : unit -> t
(** [get_current ()] is the thread's current context. Raises [Cuda_error] when there is
    none. Driver: [cuCtxGetCurrent]. *)

val push_current : t -> unit
(** [push_current context] puts a context on top of the thread's stack. Driver:
    [cuCtxPushCurrent]. *)

val set_current : t -> unit
(** [set_current context] replaces the top of the thread's stack. Driver:
    [cuCtxSetCurrent]. *)

val synchronize : unit -> unit
(** [synchronize ()] waits for all work in the current context, then lets go of what only
    that work kept alive. Other domains run meanwhile. Raises [Cuda_error] while a stream
    of any thread captures: the driver cannot wait for a capture. Driver:
    [cuCtxSynchronize]. *)

val disable_peer_access : t -> unit
(** [disable_peer_access peer] undoes {!enable_peer_access}. Raises [Cuda_error] when
    access is not enabled. Driver: [cuCtxDisablePeerAccess]. *)

val enable_peer_access : ?flags:Unsigned.uint -> t -> unit
(** [enable_peer_access peer] lets kernels in the current context use the memory of
    [peer], a context of another device; not the other way round. The driver knows no
    [flags] so far (0). Raises [Cuda_error] when the devices cannot, or when access is
    already enabled. Driver: [cuCtxEnablePeerAccess]. *)

(** Resources of a context that can be bounded. *)
type limit =
  | STACK_SIZE  (** Bytes of stack of a GPU thread. *)
  | PRINTF_FIFO_SIZE  (** Bytes of the buffer of kernels' [printf]. *)
  | MALLOC_HEAP_SIZE  (** Bytes of the heap of kernels' [malloc]. *)
  | DEV_RUNTIME_SYNC_DEPTH  (** How deep launches by kernels may synchronize. *)
  | DEV_RUNTIME_PENDING_LAUNCH_COUNT  (** Launches by kernels that may be pending. *)
  | MAX_L2_FETCH_GRANULARITY  (** Bytes, from 0 to 128; a hint. *)
  | PERSISTING_L2_CACHE_SIZE  (** Bytes of the cache that may be set aside. *)

val sexp_of_limit : limit -> Sexplib0.Sexp.t

val set_limit : limit -> int -> unit
(** [set_limit limit n] bounds a resource of the current context. Driver: [cuCtxSetLimit].
*)

val get_limit : limit -> int
(** [get_limit limit] is the bound in force. Driver: [cuCtxGetLimit]. *)

(** {1 Beyond cudajit} *)

val is_usable : t -> bool
(** [is_usable context] is whether work can still be done in it. It is [false] for good
    once a kernel has made an illegal access or failed otherwise in a way that brings the
    context down, and once it was reset. The driver does not recover from such a kernel in
    the same process, not even by [Device.primary_ctx_reset]: start another process. Work
    that is pending may still bring the context down. Driver: [cuEventCreate]. *)
