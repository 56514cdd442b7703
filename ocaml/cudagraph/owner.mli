(** A stream with the delimited events that it owns. Apart from [Stream] and
    [Delimited_event], which both need it. *)

type t
(** The core's stream, and what it owns. *)

type event = {
  state : Raw.event option Atomic.t;  (** [None] once it is released. *)
  captured : bool;  (** Recorded inside a capture. *)
}
(** A delimited event. *)

val of_raw : Raw.stream -> t
val raw : t -> Raw.stream

val add : t -> event -> unit
(** [add owner event] makes the owner release the event. The owner does not keep it: an
    event that nobody else has is left to the garbage collector. *)

type mark
(** The events that an owner had at some moment. *)

val mark : t -> mark

val release : t -> mark -> unit
(** [release owner mark] releases the events of the mark, and no later ones. *)

val recorded : t -> int
(** [recorded owner] is how many events were added since the latest {!release}. *)

val unreleased : t -> event list
(** [unreleased owner] is the events that somebody still has and nobody has released. *)
