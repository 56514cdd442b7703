(** Events: moments in the work of a stream, that other streams and the program can wait
    for. *)

type t = Raw.event
(** An event. *)

val sexp_of_t : t -> Sexplib0.Sexp.t

val create : ?blocking_sync:bool -> ?enable_timing:bool -> ?interprocess:bool -> unit -> t
(** [create ()] is a new event of the current context. All three are false by default: a
    thread that waits for the event sleeps ([blocking_sync]); the event knows its time
    ([enable_timing]); other processes may use it ([interprocess]). Driver:
    [cuEventCreate], [cuEventDestroy]. *)

val elapsed_time : start:t -> end_:t -> float
(** [elapsed_time ~start ~end_] is the milliseconds between two events that have happened
    and know their time. Driver: [cuEventElapsedTime]. *)

val query : t -> bool
(** [query event] is whether all work before the latest {!record} is done. Raises
    [Cuda_error] for an event that was last recorded inside a capture, and breaks that
    capture if it is still open; it harms no other capture. Driver: [cuEventQuery]. *)

val record : ?external_:bool -> t -> Stream.t -> unit
(** [record event stream] puts the event after all work enqueued on the stream so far;
    both must be of one context, else [Invalid_argument] is raised. On a stream that
    captures, it marks a place in the graph, which another stream joins by {!wait}; with
    [external_] it becomes a node that records the event at each launch. Driver:
    [cuEventRecordWithFlags]. *)

val synchronize : t -> unit
(** [synchronize event] waits until all work before the latest {!record} is done. Other
    domains run meanwhile. Driver: [cuEventSynchronize]. *)

val wait : ?external_:bool -> Stream.t -> t -> unit
(** [wait stream event] makes later work on the stream wait for the event. When the event
    was recorded on a stream that captures, this stream joins that capture. Driver:
    [cuStreamWaitEvent]. *)
