(* The interface of Cuda.Graph as it is documented. *)

open Cuda

module type GRAPH = sig
  type t
  type exec

  val sexp_of_t : t -> Sexplib0.Sexp.t
  val sexp_of_exec : exec -> Sexplib0.Sexp.t

  type capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

  val sexp_of_capture_mode : capture_mode -> Sexplib0.Sexp.t
  val begin_capture : ?mode:capture_mode -> Stream.t -> unit
  val end_capture : Stream.t -> t
  val instantiate : t -> exec
  val launch : exec -> Stream.t -> unit
  val destroy : t -> unit
  val exec_destroy : exec -> unit
end
