(* The same library in a bytecode program. *)

open Cuda

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let s = Stream.create ~non_blocking:true () in
  let p = Deviceptr.mem_alloc ~size_in_bytes:16 in
  let graph, () =
    Graph.with_capture s (fun () ->
        (* Six arguments: the twin of bytecode. *)
        Stream.memset_d32 p (Unsigned.UInt32.of_int 7) ~length:4 s)
  in
  Graph.launch (Graph.instantiate graph) s;
  Stream.synchronize s;
  let host = Bigarray.(Genarray.create int32 c_layout [| 4 |]) in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:p ();
  assert (Bigarray.Genarray.get host [| 3 |] = 7l);
  print_endline "bytecode: ok"
