(** Statuses of driver calls, and the one way in which they become exceptions. *)

type t
(** A CUresult. *)

exception Cuda_error of { status : t; message : string }

val sexp_of_t : t -> Sexplib0.Sexp.t
val is_success : t -> bool
val cuda_call_hook : (message:string -> status:t -> unit) option ref
val failed_release_hook : (message:string -> status:t -> unit) option ref

val report_releases : unit -> unit
(** Tells the hook of the releases that have failed since it was told last. *)

val check : string -> string -> Raw.status -> unit
(** [check where message status] returns if [status] is success. Otherwise it raises
    [Invalid_argument], with [where] in front, for what the core refused, and
    {!Cuda_error}, with the driver function [message] in front, for what the driver
    refused. *)

val get : string -> string -> ('a, Raw.status) result -> 'a
(** {!check} for calls that give a value. *)

val ready : string -> string -> Raw.status -> bool
(** {!check} for queries: [false] when the status is CUDA_ERROR_NOT_READY. *)

val made_room : ?stream:Raw.stream -> string -> Raw.status -> bool
(** Whether a call that failed is to be made once more: memory was short, so that garbage
    was collected and what it held given back, also what only work that is done has
    needed; [stream] is asked for it even if another library knows it. Never while this
    thread captures. *)

val get_memory :
  ?stream:Raw.stream -> string -> string -> (unit -> ('a, Raw.status) result) -> 'a
(** {!get} for allocations: when memory is short, makes room as {!made_room} says and
    tries once more. *)

val pp_address : nativeint -> string
