(* What the tests share. *)

module Documented = Documented
module Ptx = Ptx
open Cuda

(* The simulator unless the user says otherwise; a GPU with CUDAGRAPH_DRIVER=system. *)
let () =
  if Sys.getenv_opt "CUDAGRAPH_DRIVER" = None then Unix.putenv "CUDAGRAPH_DRIVER" "sim"

let start () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0))

(* What is garbage at the end goes too: a checker of leaks is told only of what is lost. *)
let () =
  at_exit (fun () ->
      Gc.full_major ();
      Gc.full_major ();
      try Context.synchronize () with _ -> ())

let contains text part =
  let n = String.length part in
  let rec at i =
    i + n <= String.length text && (String.sub text i n = part || at (i + 1))
  in
  at 0

let sexp = Sexplib0.Sexp.to_string

(* The simulator's own instruments. *)
module Simulator = struct
  external count : string -> string -> int = "support_count"
  external call : string -> unit = "support_call"
  external fail : string -> int = "support_fail"
  external calls_of_all : unit -> int = "support_calls_of_all"

  let present () = contains (Cuda.driver_description ()) "simulator"
  let live kind = count "cusimLive" kind
  let faults () = count "cusimFaults" ""
  let bad_handles () = count "cusimBadHandles" ""
  let calls name = count "cusimCalls" name

  (* Everything that the simulator counts, by kind. *)
  let kinds =
    [
      "context"; "module"; "stream"; "event"; "graph"; "exec"; "memory"; "async"; "host";
      "object"; "pool";
    ]
  [@@ocamlformat "disable"]

  let ledger () = List.map (fun kind -> (kind, live kind)) kinds

  (* Runs [f] while whatever is enqueued stays pending. *)
  let paused f =
    call "cusimPause";
    Fun.protect f ~finally:(fun () -> call "cusimResume")
end

(* Runs a test that only the simulator can check; says so elsewhere. *)
let only_on_simulator f =
  if Simulator.present () then f ()
  else print_endline "skipped: only the simulator can check this"

let ints ?(value = 0) n =
  let array = Bigarray.(Genarray.create int32 c_layout [| n |]) in
  Bigarray.Genarray.fill array (Int32.of_int value);
  array

let device_ints ?value n = Deviceptr.alloc_and_memcpy (ints ?value n)

let read ?(n = 1) ptr =
  let host = ints n in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:ptr ();
  List.init n (fun i -> Int32.to_int (Bigarray.Genarray.get host [| i |]))

let code () = Module.load_ptx Ptx.text
let kernel ?(from = code ()) name = Module.get_function from ~name
let stream () = Stream.create ~non_blocking:true ()

let run func ?(threads = 32) stream params =
  Stream.launch_kernel func ~grid_dim_x:1 ~block_dim_x:threads ~shared_mem_bytes:0 stream
    params

let incr_kernel = lazy (kernel "incr")
let incr ?(n = 1) stream ptr = run (Lazy.force incr_kernel) stream [ Tensor ptr; Int n ]
let append_kernel = lazy (kernel "append_digit")

let append stream ptr digit =
  run (Lazy.force append_kernel) stream [ Tensor ptr; Int digit; Int 1 ]

let busy_kernel = lazy (kernel "busy")

(* Keeps the stream busy for some milliseconds. *)
let busy stream scratch =
  run (Lazy.force busy_kernel) ~threads:1 stream [ Tensor scratch; Int 3_000_000 ]

(* Everything that can be collected is, and what was freed is allocated again and overwritten. *)
let gc_storm () =
  Gc.full_major ();
  Gc.full_major ();
  Gc.compact ();
  let poison =
    List.init 32 (fun i ->
        let size = 256 lsl (i mod 4) in
        let p = Deviceptr.mem_alloc ~size_in_bytes:size in
        Deviceptr.memset_d8 p (Unsigned.UChar.of_int 0xAB) ~length:size;
        p)
  in
  let host = List.init 16 (fun i -> ints ~value:0x0BAD0BAD (16 lsl (i mod 6))) in
  List.iter Deviceptr.mem_free poison;
  ignore (Sys.opaque_identity host)

let modes = [ Graph.GLOBAL; THREAD_LOCAL; RELAXED ]
let mode_name mode = sexp (Graph.sexp_of_capture_mode mode)

(* The stream does plain work and a fresh capture. *)
let check_healthy s =
  let p = device_ints 1 in
  incr s p;
  Stream.synchronize s;
  let graph, () = Graph.with_capture ~mode:RELAXED s (fun () -> incr s p) in
  let exec = Graph.instantiate graph in
  Graph.launch exec s;
  Stream.synchronize s;
  Alcotest.(check (list int)) "the stream is healthy" [ 2 ] (read p)

let status_name status = sexp (Cuda.sexp_of_result status)

(* [f] fails with a driver's status, and a text that holds [parts]. *)
let check_cuda_error name status parts f =
  match f () with
  | _ -> Alcotest.failf "%s: no error" name
  | exception Cuda_error { status = got; message } ->
      Alcotest.(check string)
        (name ^ ": status") ("CUDA_ERROR_" ^ status) (status_name got);
      List.iter
        (fun part ->
          Alcotest.(check bool)
            (Printf.sprintf "%s: %S names %S" name message part)
            true (contains message part))
        parts

(* [f] is refused, with a text that holds [parts]. *)
let check_invalid name parts f =
  match f () with
  | _ -> Alcotest.failf "%s: no error" name
  | exception Invalid_argument message ->
      List.iter
        (fun part ->
          Alcotest.(check bool)
            (Printf.sprintf "%s: %S names %S" name message part)
            true (contains message part))
        parts

(* At the end of a file: nothing was used that was gone. *)
let no_misuse =
  Alcotest.test_case "no illegal access, no dead handle" `Quick (fun () ->
      only_on_simulator (fun () ->
          Alcotest.(check (pair int int))
            "faults and dead handles" (0, 0)
            (Simulator.faults (), Simulator.bad_handles ())))

let test name f = Alcotest.test_case name `Quick f

let in_each_mode name f =
  List.map (fun m -> test (name ^ ", " ^ mode_name m) (fun () -> f m)) modes
