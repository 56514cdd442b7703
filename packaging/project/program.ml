open Cuda

let () =
  init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let stream = Stream.create ~non_blocking:true () in
  let memory = Deviceptr.mem_alloc ~size_in_bytes:16 in
  Graph.begin_capture stream;
  Stream.memset_d32 memory (Unsigned.UInt32.of_int 42) ~length:4 stream;
  Graph.launch (Graph.instantiate (Graph.end_capture stream)) stream;
  Stream.synchronize stream;
  let host = Bigarray.(Genarray.create int32 c_layout [| 4 |]) in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:memory ();
  Printf.printf "%ld on %s\n" (Bigarray.Genarray.get host [| 3 |]) (driver_description ())
