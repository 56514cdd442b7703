(** Handles of the driver, out to and in from other libraries in the same process.

    {b Out.} A [*_handle] function is the driver's own handle, as C has it. It is valid as
    long as the value is alive: use {!keep_alive} after the last use of the handle.

    {b In.} A handle of another library becomes a value. It stays that library's, and is
    never destroyed here, unless [~own:true] and the call returns. [?keep] is any OCaml
    value that keeps the handle valid: it stays alive as long as the program, pending or
    captured work needs the handle; that of a graph or exec, also what its work uses, as
    long as the graph, its execs and their launches. Only these two take it together with
    [~own:true]. Do not give what refers back to the new value: neither would ever go. A
    handle is trusted: the driver does not check it, so a wrong one may crash the process.
    Where the driver cannot tell the context of a handle, the current one is taken. All of
    them raise [Invalid_argument] for a handle of 0.

    {b Captures.} Work on a stream whose capture another library has begun goes into that
    capture, and what it uses is kept by that library's graph. {!stream_handle} and
    {!event_handle} note that somebody else may capture from then on; each later operation
    on the stream asks the driver, and launches there let go of the OCaml runtime. *)

val device_handle : Device.t -> int
(** [device_handle device] is the CUdevice. *)

val device : int -> Device.t
(** [device n] is the device that the driver numbers [n]. Raises [Invalid_argument] when
    there is none. *)

val context_handle : Context.t -> nativeint
(** [context_handle context] is the CUcontext. *)

val context : nativeint -> Context.t
(** [context handle] is a context made elsewhere, never destroyed here. Driver:
    [cuCtxGetDevice]. *)

val stream_handle : Stream.t -> nativeint
(** [stream_handle stream] is the CUstream; 0 for [Stream.no_stream]. *)

val stream : ?own:bool -> ?keep:'k -> nativeint -> Stream.t
(** [stream handle] is a stream made elsewhere, such as one of cuBLAS or of C code.
    Driver: [cuStreamGetCtx], [cuStreamGetFlags]. *)

val deviceptr_handle : Deviceptr.t -> nativeint
(** [deviceptr_handle ptr] is the CUdeviceptr: an address. *)

val deviceptr_uint64 : Deviceptr.t -> Unsigned.uint64
(** [deviceptr_uint64 ptr] is the same as ctypes bindings write it. *)

val deviceptr : ?own:bool -> ?keep:'k -> size_in_bytes:int -> nativeint -> Deviceptr.t
(** [deviceptr ~size_in_bytes address] is memory allocated elsewhere; with [~own:true] it
    is freed here by [cuMemFree]. Accesses are checked against [size_in_bytes]. Driver:
    [cuPointerGetAttribute]. *)

val deviceptr_of_uint64 :
  ?own:bool -> ?keep:'k -> size_in_bytes:int -> Unsigned.uint64 -> Deviceptr.t
(** [deviceptr_of_uint64] is {!deviceptr} of an address as ctypes bindings write it. *)

val module_handle : Module_.t -> nativeint
(** [module_handle m] is the CUmodule. *)

val module_ : ?own:bool -> ?keep:'k -> nativeint -> Module_.t
(** [module_ handle] is a module loaded elsewhere into the current context. *)

val func_handle : Module_.func -> nativeint
(** [func_handle func] is the CUfunction. *)

val func : ?keep:'k -> name:string -> nativeint -> Module_.func
(** [func ~name handle] is a kernel of a module loaded elsewhere; [name] is for messages.
    Driver: [cuFuncGetModule]. *)

val event_handle : Event.t -> nativeint
(** [event_handle event] is the CUevent. *)

val event : ?own:bool -> ?keep:'k -> nativeint -> Event.t
(** [event handle] is an event made elsewhere in the current context. *)

val graph_handle : Graph.t -> nativeint
(** [graph_handle graph] is the CUgraph; 0 once destroyed. What the captured work uses is
    kept by [graph], so that must outlive every exec that others make of the handle. *)

val graph : ?own:bool -> ?keep:'k -> nativeint -> Graph.t
(** [graph handle] is a graph made elsewhere. Driver: [cuGraphGetNodes]. *)

val exec_handle : Graph.exec -> nativeint
(** [exec_handle exec] is the CUgraphExec; 0 once destroyed. *)

val exec : ?own:bool -> ?keep:'k -> nativeint -> Graph.exec
(** [exec handle] is an executable graph made elsewhere. *)

val keep_alive : 'a -> unit
(** [keep_alive value] does nothing, after everything before it. *)

val keep_for : Stream.t -> 'k -> unit
(** [keep_for stream value] keeps the value alive for what another library has just
    enqueued on the stream: until that work is done, or, where the stream captures, for as
    long as the graph and what is made of it. *)

val bigarray_of_managed :
  ('a, 'b) Bigarray.kind ->
  'c Bigarray.layout ->
  int array ->
  Deviceptr.t ->
  ('a, 'b, 'c) Bigarray.Genarray.t
(** [bigarray_of_managed kind layout dimensions ptr] is the content of managed memory, of
    [Deviceptr.mem_alloc_managed], for the host to read and write. It and all its parts
    keep the memory. Synchronize the streams that use the memory before the host does.
    Raises [Invalid_argument] for memory that is not managed or too small. *)
