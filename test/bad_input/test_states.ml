(* Every function before init, in a forked child, on a domain without a context, after a reset; in this
   order, since a process that has had domains cannot fork. *)

open Cuda
open Support
open Table

let before_init () =
  check
    (States.rows_without_values "before init" (fun _ need driver ->
         if need = Nothing then works
         else fails "NOT_INITIALIZED" driver [ "Cuda.init was not called" ])
    @ [
        row "Interop.device" "before init"
          (fails "NOT_INITIALIZED" "cu_" [ "Cuda.init was not called" ]) (fun () ->
            Interop.device 0);
      ])

(* The mistakes that a forked child finds. *)
let in_child rows =
  let from, into = Unix.pipe () in
  match Unix.fork () with
  | 0 ->
      let channel = Unix.out_channel_of_descr into in
      List.iter (fun text -> output_string channel (text ^ "\n")) (mistakes rows);
      Gc.full_major ();
      flush channel;
      Unix._exit 0
  | child ->
      Unix.close into;
      let channel = Unix.in_channel_of_descr from in
      let found = In_channel.input_all channel in
      close_in channel;
      let _, status = Unix.waitpid [] child in
      Alcotest.(check bool) "the child's exit code is 0" true (status = WEXITED 0);
      found

let forked () =
  let device = Device.get ~ordinal:0 in
  let rows =
    States.rows "in a forked child" (States.values ()) (fun _ need driver ->
        if need = Nothing then works else fails "NOT_INITIALIZED" driver [ "forked" ])
    @ [
        row "init" "in a forked child" (fails "NOT_INITIALIZED" "cu_init" [ "forked" ])
          (fun () -> Cuda.init ());
        row "Device.primary_ctx_reset" "in a forked child"
          (fails "NOT_INITIALIZED" "cu_device_primary_ctx_reset" [ "forked" ]) (fun () ->
            Device.primary_ctx_reset device);
      ]
  in
  Alcotest.(check string) "mistakes" "" (in_child rows);
  check_healthy (stream ())

let without_context () =
  let rows =
    States.rows "no current context" (States.values ()) (fun _ need driver ->
        match need with
        | Current -> fails "INVALID_CONTEXT" driver [ "Context.set_current" ]
        | Nothing | Driver | Value | Name -> works)
  in
  let found =
    Domain.join
      (Domain.spawn (fun () ->
           let found = mistakes rows in
           (* Whatever was called, nothing was left on the domain's stack. *)
           match Context.get_current () with
           | _ -> "a context is current afterwards" :: found
           | exception Cuda_error _ -> found))
  in
  Alcotest.(check (list string)) "mistakes" [] found;
  check_healthy (stream ())

let after_reset () =
  let values = States.values () in
  Context.synchronize ();
  let rows =
    States.rows "after a reset" values (fun _ need driver ->
        match need with
        | Value | Current -> fails "CONTEXT_IS_DESTROYED" driver [ "reset" ]
        | Nothing | Driver | Name -> works)
  in
  Device.primary_ctx_reset values.device;
  check rows;
  Gc.full_major ();
  (* A new primary context is as good as the first one; the kernels of [Support] are gone. *)
  start ();
  let s = stream () and p = device_ints ~value:6 1 in
  run (kernel "incr") s [ Tensor p; Int 1 ];
  Stream.synchronize s;
  Alcotest.(check (list int)) "a new context" [ 7 ] (read p)

let () =
  let first = test "before init" before_init in
  Alcotest.run "states" ~and_exit:false [ ("nothing", [ first ]) ];
  start ();
  Alcotest.run "states"
    [
      ( "values",
        [
          test "a forked child" forked;
          test "a domain without a context" without_context;
          test "after the reset of the context" after_reset;
        ] );
      ("end", [ no_misuse ]);
    ]
