(** Events for one use: made and recorded in one call, and let go by themselves.

    A delimited event belongs to the stream that it was recorded on. It is released when
    it or its stream is synchronized, and otherwise when it is garbage. A released event
    has happened: asking it answers at once, and waiting for it does nothing. The driver's
    event behind it is destroyed some time after the release, once no work uses it. *)

type t
(** A moment in the work of the stream that owns it. *)

val sexp_of_t : t -> Sexplib0.Sexp.t
(** The driver's handle, or [released]. *)

val record : ?blocking_sync:bool -> ?interprocess:bool -> ?external_:bool -> Stream.t -> t
(** [record stream] is a new event, after all work enqueued on the stream so far. It does
    not know its time. A thread that waits for it sleeps if [blocking_sync] (false), and
    other processes may use it if [interprocess] (false); [external_] (false) is as for
    [Event.record]. Raises [Cuda_error] as [Event.create] and [Event.record] do. Driver:
    [cuEventCreate], [cuEventRecordWithFlags], [cuEventDestroy]. *)

val is_released : t -> bool
(** [is_released event] is whether it or its stream was synchronized. *)

val query : t -> bool
(** [query event] is whether all work before it is done; true for a released event. It
    releases nothing. Raises [Cuda_error] for an event that was recorded inside a capture,
    and breaks that capture if it is still open. Driver: [cuEventQuery]. *)

val synchronize : t -> unit
(** [synchronize event] waits until all work before it is done, then releases it; does
    nothing for a released event. Other domains run meanwhile. Raises [Cuda_error], and
    releases nothing, for work that failed and, as {!query} does, for an event that was
    recorded inside a capture. Driver: [cuEventSynchronize]. *)

val wait : ?external_:bool -> Stream.t -> t -> unit
(** [wait stream event] makes later work on the stream wait for the event, as [Event.wait]
    does; does nothing for a released event. Driver: [cuStreamWaitEvent]. *)
