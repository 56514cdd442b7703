(* Graph. *)

open Cuda
open Support
open Table

let captured s =
  let p = device_ints 1 in
  fst (Graph.with_capture s (fun () -> incr s p))

let rows ~other =
  let s = stream () in
  let graph = captured s in
  let exec = Graph.instantiate graph and dead_exec = Graph.instantiate graph in
  let dead = captured s in
  Graph.destroy dead;
  Graph.exec_destroy dead_exec;
  let foreign = Streams.made_in other stream in
  let destroyed what = invalid [ what ^ " was destroyed" ] in
  let capturing = Streams.capturing in
  let no_capture = fails "ILLEGAL_STATE" "cu_stream_end_capture" [ "not begun" ] in
  [
    row "Graph.begin_capture" "the NULL stream"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_stream_begin_capture" [ "NULL stream" ])
      (fun () -> Graph.begin_capture Stream.no_stream);
    row "Graph.begin_capture" "a stream that captures"
      (fails "ILLEGAL_STATE" "cu_stream_begin_capture" [ "captur" ])
      (capturing (fun s -> Graph.begin_capture s));
    row "Graph.with_capture" "the NULL stream"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_stream_begin_capture" [ "NULL stream" ])
      (fun () -> Graph.with_capture Stream.no_stream ignore);
    row "Graph.with_capture" "a stream that captures"
      (fails "ILLEGAL_STATE" "cu_stream_begin_capture" [ "captur" ])
      (capturing (fun s -> ignore (Graph.with_capture s ignore)));
    row "Graph.with_capture" "the function ends the capture" no_capture (fun () ->
        Graph.with_capture s (fun () -> Graph.end_capture s));
    row "Graph.end_capture" "a stream that does not capture" no_capture (fun () ->
        Graph.end_capture s);
    row "Graph.end_capture" "the NULL stream" no_capture (fun () ->
        Graph.end_capture Stream.no_stream);
    row "Graph.end_capture" "another thread"
      (fails "STREAM_CAPTURE_WRONG_THREAD" "cu_stream_end_capture" [ "thread" ])
      (capturing (fun s ->
           Domain.join (Domain.spawn (fun () -> ignore (Graph.end_capture s)))));
    row "Graph.end_capture" "a call that breaks the capture is named"
      (fails "STREAM_CAPTURE_INVALIDATED" "cu_stream_end_capture" [ "cu_mem_alloc" ])
      (fun () ->
        Graph.begin_capture s;
        (try ignore (Deviceptr.mem_alloc ~size_in_bytes:4) with Cuda_error _ -> ());
        Graph.end_capture s);
    row "Graph.instantiate" "a destroyed graph" (destroyed "graph") (fun () ->
        Graph.instantiate dead);
    row "Graph.instantiate_with" "a destroyed graph" (destroyed "graph") (fun () ->
        Graph.instantiate_with ~auto_free_on_launch:true dead);
    row "Graph.launch" "a destroyed exec" (destroyed "exec") (fun () ->
        Graph.launch dead_exec s);
    row "Graph.launch" "a stream of another context"
      (invalid [ "exec"; "context"; "stream" ])
      (fun () -> Graph.launch exec foreign);
    row "Graph.launch" "a stream that captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_graph_launch" [ "capturing" ])
      (capturing (fun s -> Graph.launch exec s));
    row "Graph.launch" "the NULL stream while this thread captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_graph_launch" [ "NULL stream" ])
      (capturing (fun _ -> Graph.launch exec Stream.no_stream));
    row "Graph.destroy" "a destroyed graph" works (fun () -> Graph.destroy dead);
    row "Graph.destroy" "a borrowed graph" (invalid [ "borrowed" ]) (fun () ->
        Graph.destroy (Interop.graph ~keep:graph (Interop.graph_handle graph)));
    row "Graph.exec_destroy" "a destroyed exec" works (fun () ->
        Graph.exec_destroy dead_exec);
    row "Graph.exec_destroy" "a borrowed exec" (invalid [ "borrowed" ]) (fun () ->
        Graph.exec_destroy (Interop.exec ~keep:exec (Interop.exec_handle exec)));
    row "Graph.node_count" "a destroyed graph" works (fun () ->
        assert (Graph.node_count dead = 1));
    row "Graph.sexp_of_t" "a destroyed graph" works (fun () ->
        assert (contains (sexp (Graph.sexp_of_t dead)) "destroyed"));
    row "Graph.sexp_of_exec" "a destroyed exec" works (fun () ->
        assert (contains (sexp (Graph.sexp_of_exec dead_exec)) "destroyed"));
  ]
