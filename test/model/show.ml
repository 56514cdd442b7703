(* The calls of a plan, as one would write them. *)

open Program
open Plan

let mode mode = Sexplib0.Sexp.to_string (Cuda.Graph.sexp_of_capture_mode mode)

let work = function
  | Incr b, s -> Printf.sprintf "incr s%d b%d" s b
  | Incr_by_own_module b, s ->
      Printf.sprintf "run (kernel ~from:(code ()) \"incr\") s%d b%d" s b
  | Append (b, d), s -> Printf.sprintf "append s%d b%d %d" s b d
  | Fill (b, v), s -> Printf.sprintf "Stream.memset_d32 b%d %d s%d" b v s
  | Copy { dst; src }, s ->
      Printf.sprintf "Stream.memcpy_D_to_D ~dst:b%d ~src:b%d s%d" dst src s
  | Upload { host; dst }, s ->
      Printf.sprintf "Stream.memcpy_H_to_D ~dst:b%d ~src:h%d s%d" dst host s
  | Download { src; host }, s ->
      Printf.sprintf "Stream.memcpy_D_to_H ~dst:h%d ~src:b%d s%d" host src s
  | Scratch { dst; value }, s ->
      Printf.sprintf
        "let t = Stream.mem_alloc s%d in memset t %d; copy ~dst:b%d ~src:t; \
         Stream.mem_free s%d t"
        s value dst s
  | Busy, s -> Printf.sprintf "busy s%d" s

let thing = function
  | Buffer -> "b"
  | Host -> "h"
  | Stream -> "s"
  | Event -> "e"
  | Graph -> "g"
  | Exec -> "x"

let ints list = String.concat "; " (List.map string_of_int list)

let rec call indent call =
  let line format = Printf.ksprintf (fun text -> [ indent ^ text ]) format in
  match call with
  | Make_buffer (b, v) -> line "let b%d = device_ints ~value:%d %d" b v elements
  | Make_pool_buffer { buffer; stream; value } ->
      line "let b%d = Stream.mem_alloc s%d in memset b%d %d s%d" buffer stream buffer
        value stream
  | Make_host (h, v) -> line "let h%d = ints ~value:%d %d" h v elements
  | Make_stream s -> line "let s%d = Stream.create ~non_blocking:true ()" s
  | Make_event e -> line "let e%d = Event.create ()" e
  | Do (w, s) -> line "%s" (work (w, s))
  | Order { before; after } ->
      line "let e = Event.create () in Event.record e s%d; Event.wait s%d e" before after
  | Mark { event; stream } -> line "Event.record e%d s%d" event stream
  | Await { stream; event } -> line "Event.wait s%d e%d" stream event
  | Ask_event e -> line "Event.query e%d" e
  | Ask_stream s -> line "Stream.is_ready s%d" s
  | Wait_stream s -> line "Stream.synchronize s%d" s
  | Wait_event e -> line "Event.synchronize e%d" e
  | Wait_all -> line "Context.synchronize ()"
  | Give_back b -> line "Deviceptr.mem_free b%d" b
  | Give_back_on { stream; buffer } -> line "Stream.mem_free s%d b%d" stream buffer
  | Forget (t, n) -> line "(* %s%d is dropped *)" (thing t) n
  | Clean Minor -> line "Gc.minor ()"
  | Clean Major -> line "Gc.full_major ()"
  | Clean Compact -> line "Gc.compact ()"
  | Clean Poison -> line "gc_storm ()"
  | Record { stream; mode = m; graph; nodes; calls; finish } -> (
      let body = List.concat_map (lines (indent ^ "  ")) calls in
      let by_hand = line "Graph.begin_capture ~mode:%s s%d;" (mode m) stream @ body in
      let inside =
        line "let g%d = with_capture ~mode:%s s%d (fun () ->" graph (mode m) stream @ body
      in
      match finish with
      | Ended -> inside @ line ") (* %d nodes *)" nodes
      | Raised -> inside @ line "  raise Exit)"
      | Broken ->
          by_hand
          @ line "Stream.synchronize s%d; (* raises *)" stream
          @ line "Graph.end_capture s%d (* raises *)" stream
      | Unjoined -> by_hand @ line "Graph.end_capture s%d (* raises *)" stream
      | Dropped ->
          by_hand @ line "(* s%d is dropped *) Gc.full_major (); Event.create ()" stream)
  | Make_exec { graph; exec } -> line "let x%d = Graph.instantiate g%d" exec graph
  | Run { exec; stream } -> line "Graph.launch x%d s%d" exec stream
  | End_graph g -> line "Graph.destroy g%d" g
  | End_exec x -> line "Graph.exec_destroy x%d" x
  | Expect (b, values) -> line "assert (read b%d = [ %s ])" b (ints values)
  | Expect_host (h, values) -> line "assert (h%d = [ %s ])" h (ints values)
  | Expect_refusal b -> line "read b%d (* refused *)" b

and lines indent c = call indent c

let program plan =
  let domain number calls =
    Printf.sprintf "(* domain %d *)" number :: List.concat_map (lines "") calls
  in
  String.concat "\n" (List.concat (List.mapi domain plan))
