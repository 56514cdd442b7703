(** CUDA graphs: capture a sequence of stream operations once, then replay it with one
    launch. *)

type t = Raw.graph
(** A graph: a template of work, not yet executable. It keeps alive everything that the
    captured operations use - kernels and their modules, device memory, bigarrays of
    copies, events - on whichever stream they were captured. So neither
    [Stream.synchronize] nor the garbage collector frees what a replay needs. *)

type exec = Raw.exec
(** An executable graph. It keeps alive what its graph does, also when the graph is gone.
*)

val sexp_of_t : t -> Sexplib0.Sexp.t
(** The driver's handle or [destroyed], the number of nodes, and of resources kept alive.
*)

val sexp_of_exec : exec -> Sexplib0.Sexp.t
(** As {!sexp_of_t}. *)

(** Which calls break an open capture. *)
type capture_mode =
  | GLOBAL
      (** Calls that may be unsafe, such as an allocation, on any thread. Those that this
          library makes on other threads are shielded, and releases never harm a capture,
          so this leaves the calls of the capturing thread and of other libraries. *)
  | THREAD_LOCAL
      (** The same calls, but only on the capturing thread, those of other libraries
          included. *)
  | RELAXED
      (** None. Work that goes around the captured stream runs at once, and is not
          captured. *)

val sexp_of_capture_mode : capture_mode -> Sexplib0.Sexp.t
(** The constructor's name. *)

val begin_capture : ?mode:capture_mode -> Stream.t -> unit
(** [begin_capture stream] starts to record the work enqueued on the stream instead of
    executing it. [mode] is [GLOBAL] unless given. Between this and {!end_capture} each
    operation becomes a node of the graph; a second stream joins by an event
    ([Event.record], [Event.wait]) and must be joined back. A capture whose domain or
    thread ends is closed. Raises [Cuda_error] for a stream that is capturing and for
    [Stream.no_stream]. Driver: [cuStreamBeginCapture]. *)

val end_capture : Stream.t -> t
(** [end_capture stream] ends the capture that {!begin_capture} began, and is the graph.
    Raises [Cuda_error] if the capture was broken, with the call that broke it in the
    message, if a joined stream was not joined back, or, unless [RELAXED], on another
    thread. The capture is over all the same: the stream can be used again, and what was
    captured is let go. The graph is destroyed by {!destroy} or when it is garbage.
    Driver: [cuStreamEndCapture], [cuGraphDestroy]. *)

val instantiate : t -> exec
(** [instantiate graph] is an executable graph; the template may be destroyed afterwards,
    and may be instantiated again. The exec is destroyed by {!exec_destroy} or when it is
    garbage. Raises [Invalid_argument] for a destroyed graph. Driver:
    [cuGraphInstantiate], [cuGraphExecDestroy]. *)

val launch : exec -> Stream.t -> unit
(** [launch exec stream] enqueues all the captured work on a stream of the same context,
    in one call. The stream keeps the exec until it is synchronized, so dropping the last
    reference to a launched exec is safe. Launches of one exec run one after the other.
    Blocks, without stopping other domains, when the launch queue is full, and until the
    work is done if it copies to ordinary host memory, bigarrays included. When there is
    no room for the memory that the graph allocates, streams are asked how far they are,
    but not waited for, garbage is collected and the launch tried once more. Raises
    [Invalid_argument] for a destroyed exec and [Cuda_error] on a stream that captures.
    Driver: [cuGraphLaunch]. *)

val destroy : t -> unit
(** [destroy graph] destroys the template now. Again, it does nothing; without it, the
    finalizer does it. Driver: [cuGraphDestroy]. *)

val exec_destroy : exec -> unit
(** [exec_destroy exec] destroys the executable graph now. Synchronize first the streams
    on which it was launched; if launches are pending all the same, they complete, and
    what they use is kept until then. Again, it does nothing; without it, the finalizer
    does it. Driver: [cuGraphExecDestroy]. *)

(** {1 Beyond the documented interface} *)

val with_capture : ?mode:capture_mode -> Stream.t -> (unit -> 'a) -> t * 'a
(** [with_capture stream f] captures what [f ()] enqueues on the stream, and is the graph
    and the result of [f]. If [f] raises, the capture is closed, what it held is let go,
    and the exception goes on. *)

val instantiate_with : ?auto_free_on_launch:bool -> t -> exec
(** [instantiate_with graph] is {!instantiate} with options. With [auto_free_on_launch]
    (false), a launch first frees what the last one has allocated by [Stream.mem_alloc]
    and nothing has freed, so that a graph which keeps its memory can be launched again. A
    graph that allocates memory can have one exec at a time. *)

val node_count : t -> int
(** [node_count graph] is how many nodes were captured. Driver: [cuGraphGetNodes]. *)
