(* Another library of the process. What it makes and takes are the driver's handles, as bindings have them that know nothing
   of cudagraph. *)

external create_stream : unit -> nativeint = "neighbour_create_stream"
external destroy_stream : nativeint -> unit = "neighbour_destroy_stream"
external allocate : bytes:int -> nativeint = "neighbour_allocate"
external free : nativeint -> unit = "neighbour_free"

(* Enqueues: all [n] numbers become [value]. *)
external fill : stream:nativeint -> memory:nativeint -> n:int -> float -> unit
  = "neighbour_fill"

external begin_capture : nativeint -> unit = "neighbour_begin_capture"

(* The captured graph. *)
external end_capture : nativeint -> nativeint = "neighbour_end_capture"
