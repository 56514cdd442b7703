(* A graph of two nodes, replayed: what every way of linking must be able to run. *)

open Cuda

let () =
  init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0));
  let stream = Stream.create ~non_blocking:true () in
  let source = Deviceptr.mem_alloc ~size_in_bytes:16 in
  let target = Deviceptr.mem_alloc ~size_in_bytes:16 in
  Graph.begin_capture stream;
  Stream.memset_d32 source (Unsigned.UInt32.of_int 7) ~length:4 stream;
  Stream.memcpy_D_to_D ~size_in_bytes:16 ~dst:target ~src:source stream;
  let step = Graph.instantiate (Graph.end_capture stream) in
  for _ = 1 to 3 do
    Graph.launch step stream
  done;
  Stream.synchronize stream;
  let host = Bigarray.(Genarray.create int32 c_layout [| 4 |]) in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:target ();
  if Bigarray.Genarray.get host [| 3 |] <> 7l then failwith "the graph did not run";
  (* An exception that starts in Rust. *)
  (match Deviceptr.mem_alloc ~size_in_bytes:(-1) with
  | _ -> failwith "a negative size was taken"
  | exception Invalid_argument _ -> ());
  print_endline "graph ok"
