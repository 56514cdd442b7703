(* A library of somebody else whose stubs take our values: with_stubs.c, in C and in C++. *)

external bytes : Cuda.Deviceptr.t -> int = "with_stubs_bytes"
external stream : Cuda.Stream.t -> nativeint = "with_stubs_stream"

let () =
  let open Cuda in
  let mine = Stream.create () in
  assert (stream mine = Interop.stream_handle mine);
  assert (stream Stream.no_stream = 0n);
  assert (bytes (Deviceptr.mem_alloc ~size_in_bytes:48) = 48)
