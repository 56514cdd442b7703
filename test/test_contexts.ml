(* Contexts: flags as they were asked for, and limits. *)

open Cuda
open Support

let device () = Device.get ~ordinal:0

(* [f] with a new context current; the one before is current again after it. *)
let inside flags f =
  let before = Context.get_current () in
  let context = Context.create flags (device ()) in
  Context.set_current context;
  Fun.protect f ~finally:(fun () ->
      Context.set_current before;
      ignore (Sys.opaque_identity context))

let text flags = sexp (Context.sexp_of_flags flags)

(* MAP_HOST is left out: drivers set it on their own. *)
let flags_of asked =
  inside asked (fun () -> List.filter (( <> ) Context.MAP_HOST) (Context.get_flags ()))

(* Without SCHED_AUTO, which is the absence of the others, every flag is itself; none is added. *)
let flags_without_auto () =
  List.iter
    (fun flags ->
      Alcotest.(check string) (text flags) (text flags) (text (flags_of flags)))
    Context.
      [
        [ SCHED_SPIN ];
        [ SCHED_YIELD ];
        [ SCHED_BLOCKING_SYNC ];
        [ SCHED_BLOCKING_SYNC; LMEM_RESIZE_TO_MAX ];
        [ SCHED_SPIN; LMEM_RESIZE_TO_MAX ];
        [ LMEM_RESIZE_TO_MAX ];
      ]

let flags_with_auto () =
  let check asked got =
    Alcotest.(check string) (text asked) (text got) (text (flags_of asked))
  in
  check [] [];
  check [ SCHED_AUTO ] [];
  check [ SCHED_AUTO; LMEM_RESIZE_TO_MAX ] [ LMEM_RESIZE_TO_MAX ];
  check [ SCHED_AUTO; SCHED_YIELD ] [ SCHED_YIELD ]

(* Flags are those of the current context, whichever was made last. *)
let flags_of_the_current () =
  inside [ SCHED_YIELD ] (fun () ->
      inside [ SCHED_SPIN ] (fun () -> ());
      let flags = List.filter (( <> ) Context.MAP_HOST) (Context.get_flags ()) in
      Alcotest.(check string) "still" "(SCHED_YIELD)" (text flags))

let limits () =
  inside [] (fun () ->
      let check name limit value =
        Context.set_limit limit value;
        let got = Context.get_limit limit in
        if got < value then Alcotest.failf "%s: %d, asked for %d" name got value
      in
      check "stack" STACK_SIZE 2048;
      check "printf" PRINTF_FIFO_SIZE 65536;
      check "heap" MALLOC_HEAP_SIZE 8192)

let () =
  start ();
  Alcotest.run "contexts"
    [
      ( "flags",
        [
          test "without SCHED_AUTO" flags_without_auto;
          test "with SCHED_AUTO" flags_with_auto;
          test "of the current context" flags_of_the_current;
        ] );
      ("limits", [ test "set and read" limits ]);
      ("end", [ no_misuse ]);
    ]
