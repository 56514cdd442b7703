(* Every function with every kind of wrong argument; the stream is healthy after each group. *)

open Cuda
open Support

let () =
  (* NVRTC must not be found: before anything asks for it. *)
  Unix.putenv "CUDAGRAPH_NVRTC" Outside.nowhere;
  start ();
  let here = Context.get_current () in
  let other = Context.create [] (Device.get ~ordinal:0) in
  ignore (Context.pop_current ());
  let s = stream () in
  let named = ref [] in
  let group name rows =
    named := Table.names rows @ !named;
    test name (fun () ->
        Table.check rows;
        check_healthy s)
  in
  Alcotest.run "bad input"
    [
      ( "arguments",
        [
          group "device, context, top level" (Devices.rows ~here ~other);
          group "deviceptr" (Memory.rows ~other);
          group "module, launches" (Kernels.rows ~other);
          group "stream, events" (Streams.rows ~other);
          group "graph" (Graphs.rows ~other);
          group "nvrtc, interop" (Outside.rows ~here);
        ] );
      ("coverage", [ test "every value has a row" (fun () -> Coverage.check !named) ]);
      ("end", [ no_misuse ]);
    ]
