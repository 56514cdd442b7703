(* A library made with cudagraph, part of it in C. *)

open Cudagraph

external enqueue : Stream.t -> Deviceptr.t -> float -> unit = "fill_enqueue"

(* Enqueues: all numbers of the memory become [value]. *)
let fill stream memory value =
  enqueue stream memory value;
  (* What C enqueues is not known to cudagraph: without this, the memory could be freed before it is filled, or
     before the graph of a capture is launched. *)
  Interop.keep_for stream memory
