(* Run by test_driver in a process of its own: does one thing and prints how it ended. *)

open Cuda

let report f =
  match f () with
  | () -> print_endline "ok"
  | exception Cuda_error { status; message } ->
      Printf.printf "%s %s\n" (Sexplib0.Sexp.to_string (sexp_of_result status)) message
  | exception Invalid_argument message -> Printf.printf "invalid %s\n" message

let start () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* A launched exec and what belongs to it. *)
let launched () =
  start ();
  let s = Stream.create ~non_blocking:true () in
  let p = Deviceptr.mem_alloc ~size_in_bytes:64 in
  let fill () = Stream.memset_d8 p (Unsigned.UChar.of_int 1) ~length:64 s in
  let graph, () = Graph.with_capture s fill in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  (s, p, graph, exec)

let everything_live () =
  let work = launched () in
  let open_capture = Stream.create ~non_blocking:true () in
  Graph.begin_capture open_capture;
  (work, open_capture, Event.create ())

let () =
  match Sys.argv.(1) with
  | "init" -> report (fun () -> Cuda.init ())
  | "12.0" ->
      start ();
      Printf.printf "version %d\n" (driver_version ());
      let newest = (Device.get_attributes (Device.get ~ordinal:0)).multicast_supported in
      Printf.printf "an attribute of 12.1: %b\n" newest;
      let s = Support.stream () and p = Support.device_ints 1 in
      let graph, () = Graph.with_capture s (fun () -> Support.incr s p) in
      let exec = Graph.instantiate graph in
      for _ = 1 to 3 do
        Graph.launch exec s
      done;
      Stream.synchronize s;
      Printf.printf "after 3 launches: %s\n"
        (String.concat " " (List.map string_of_int (Support.read p)));
      (* It cannot tell that arguments are missing. *)
      for _ = 1 to 100 do
        Support.run (Lazy.force Support.incr_kernel) s [ Tensor p ];
        Support.run (Lazy.force Support.incr_kernel) s []
      done;
      Stream.synchronize s;
      Printf.printf "missing ones are 0: %d\n" (List.hd (Support.read p))
  | "before-init" ->
      report (fun () -> ignore (Device.get_count ()));
      report (fun () -> ignore (Stream.create ()));
      report (fun () -> Stream.synchronize Stream.no_stream)
  | "return" -> ignore (Sys.opaque_identity (everything_live ()))
  | "exit-3" ->
      let live = everything_live () in
      ignore (Sys.opaque_identity live);
      exit 3
  | "exit-in-domain" ->
      let live = everything_live () in
      Domain.join (Domain.spawn (fun () -> if Sys.opaque_identity true then exit 4));
      ignore (Sys.opaque_identity live)
  | "terminated" ->
      let live = everything_live () in
      Unix.kill (Unix.getpid ()) Sys.sigterm;
      Unix.sleep 10;
      ignore (Sys.opaque_identity live)
  | "uncaught" ->
      let live = everything_live () in
      ignore (Sys.opaque_identity live);
      failwith "uncaught"
  | "wild" ->
      (* A kernel that writes outside: the context is broken for good, the program is not. *)
      let s, _, _, exec = launched () in
      let wild = Module.get_function (Module.load_ptx Support.Ptx.text) ~name:"wild" in
      Stream.launch_kernel wild ~grid_dim_x:1 ~block_dim_x:1 ~shared_mem_bytes:0 s
        [ Size_t (Unsigned.Size_t.of_int 16) ];
      report (fun () -> Stream.synchronize s);
      report (fun () -> Graph.launch exec s);
      report (fun () -> ignore (Deviceptr.mem_alloc ~size_in_bytes:4));
      report (fun () -> Graph.exec_destroy exec);
      Gc.full_major ();
      let usable () = Context.is_usable (Context.get_current ()) in
      Printf.printf "usable %b\n" (usable ());
      Device.primary_ctx_reset (Device.get ~ordinal:0);
      (* What it took along is no failure. *)
      Printf.printf "failed releases %d\n" (failed_releases ());
      report start
  | "fork" -> (
      let s, p, _, exec = launched () in
      match Unix.fork () with
      | 0 ->
          report (fun () -> Graph.launch exec s);
          report (fun () -> Deviceptr.mem_free p);
          report (fun () -> Cuda.init ());
          Gc.full_major ();
          exit 0
      | child ->
          let _, status = Unix.waitpid [] child in
          if status <> WEXITED 0 then print_endline "the child failed";
          report (fun () -> Graph.launch exec s))
  | other -> failwith other
