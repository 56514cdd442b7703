(** CUDA graphs and the CUDA driver.

    The library [cudagraph.cuda] has the same modules under the name [Cuda],
    [cudagraph.nvrtc] has {!module-Nvrtc} at top level. *)

type result
(** The answer of a driver function: a CUresult. *)

val sexp_of_result : result -> Sexplib0.Sexp.t
(** The driver's name for it, as [CUDA_ERROR_INVALID_VALUE]. *)

exception Cuda_error of { status : result; message : string }
(** A driver function failed. [message] begins with the function's name in snake case,
    such as [cu_graph_instantiate]; where there is more to say, [": "] and an explanation
    follow. What this library refuses before it calls the driver raises
    [Invalid_argument]. *)

val is_success : result -> bool
(** [is_success status] is whether nothing went wrong. *)

val cuda_call_hook : (message:string -> status:result -> unit) option ref
(** When set, called after each driver function with its name in snake case and its
    answer, before an exception is raised. Not called for what is released because a value
    is garbage. *)

val init : ?flags:int -> unit -> unit
(** [init ()] loads the driver and starts it; to be called first, and harmless when
    repeated. The environment variable [CUDAGRAPH_DRIVER] says which driver: unset or
    [system] the installed one, [sim] the simulator, or else a path. Raises [Cuda_error]
    when there is none, saying what was tried. Driver: [cuInit]. *)

module Device = Device
module Context = Context

type bigstring = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t
(** Bytes outside of the OCaml heap. *)

module Deviceptr = Deviceptr
module Module = Module_
module Stream = Stream
module Event = Event
module Delimited_event = Delimited_event
module Graph = Graph
module Nvrtc = Nvrtc

(** {1 Beyond cudajit} *)

module Interop = Interop

val driver_description : unit -> string
(** [driver_description ()] tells people which driver was loaded. *)

val driver_version : unit -> int
(** [driver_version ()] is the CUDA version of the driver, 12040 for 12.4. Driver:
    [cuDriverGetVersion]. *)

val failed_releases : unit -> int
(** [failed_releases ()] is how many destructions the driver has refused, of what was
    garbage or let go by work that is done. They raise nothing anywhere. *)

val failed_release_hook : (message:string -> status:result -> unit) option ref
(** When set, told of each such refusal once, with the driver function in snake case, by
    the next call that allocates, waits, ends a capture or instantiates. What it raises is
    dropped. *)
