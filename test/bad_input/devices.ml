(* Device, Context, and the top level. *)

open Cuda
open Table

let number = string_of_int
let device () = Device.get ~ordinal:0

let devices () =
  [
    row "Device.get" "ordinal -1"
      (fails "INVALID_DEVICE" "cu_device_get" [ "ordinal -1" ]) (fun () ->
        Device.get ~ordinal:(-1));
    row "Device.get" "ordinal 99"
      (fails "INVALID_DEVICE" "cu_device_get" [ "ordinal 99"; "devices" ])
      (fun () -> Device.get ~ordinal:99);
    row "Device.get" "ordinal min_int"
      (invalid [ "ordinal " ^ number min_int; "C int" ])
      (fun () -> Device.get ~ordinal:min_int);
    row "Device.get" "ordinal max_int"
      (invalid [ "ordinal " ^ number max_int; "C int" ])
      (fun () -> Device.get ~ordinal:max_int);
    row "Device.get_p2p_attributes" "twice the same device"
      (fails "INVALID_DEVICE" "cu_device_get_p2p_attribute" [ "dst"; "src"; "device 0" ])
      (fun () -> Device.get_p2p_attributes ~dst:(device ()) ~src:(device ()));
    row "Device.can_access_peer" "twice the same device: not a peer of itself" works
      (fun () -> assert (not (Device.can_access_peer ~dst:(device ()) ~src:(device ()))));
    row "Device.computemode_of_int" "numbers that no mode has" works (fun () ->
        List.iter
          (fun n -> assert (Device.computemode_of_int n = UNCATEGORIZED (Int64.of_int n)))
          [ -1; 1; 4; min_int; max_int ]);
  ]

let contexts ~here ~other =
  let limit wrong ending limit n =
    row "Context.set_limit" wrong ending (fun () -> Context.set_limit limit n)
  in
  let refused status = fails status "cu_ctx_set_limit" in
  let negative n = invalid [ "value " ^ number n; "negative" ] in
  (* On a domain of its own, whose stack of contexts is empty. *)
  let alone call () = Domain.join (Domain.spawn call) in
  [
    row "Context.create" "two ways to wait"
      (fails "INVALID_VALUE" "cu_ctx_create" [ "flags"; "SCHED_SPIN"; "SCHED_YIELD" ])
      (fun () -> Context.create [ SCHED_SPIN; SCHED_YIELD ] (device ()));
    row "Context.create" "a mask"
      (fails "INVALID_VALUE" "cu_ctx_create" [ "flags"; "SCHED_MASK" ])
      (fun () -> Context.create [ SCHED_MASK ] (device ()));
    limit "-1" (negative (-1)) STACK_SIZE (-1);
    limit "min_int" (negative min_int) MALLOC_HEAP_SIZE min_int;
    limit "more than there is"
      (refused "INVALID_VALUE" [ "STACK_SIZE"; number max_int ])
      STACK_SIZE max_int;
    row "Context.enable_peer_access" "the current context itself"
      (fails "PEER_ACCESS_UNSUPPORTED" "cu_ctx_enable_peer_access"
         [ "peer"; "current context" ])
      (fun () -> Context.enable_peer_access here);
    row "Context.enable_peer_access" "another context of the same device"
      (fails "PEER_ACCESS_UNSUPPORTED" "cu_ctx_enable_peer_access"
         [ "peer"; "same device 0" ])
      (fun () -> Context.enable_peer_access other);
    row "Context.enable_peer_access" "unknown flags"
      (fails "INVALID_VALUE" "cu_ctx_enable_peer_access" [ "flags 1" ]) (fun () ->
        Context.enable_peer_access ~flags:Unsigned.UInt.one other);
    row "Context.disable_peer_access" "another context of the same device"
      (fails "PEER_ACCESS_NOT_ENABLED" "cu_ctx_disable_peer_access"
         [ "peer"; "same device 0" ])
      (fun () -> Context.disable_peer_access other);
    row "Context.pop_current" "an empty stack"
      (fails "INVALID_CONTEXT" "cu_ctx_pop_current" [ "Context.set_current" ])
      (alone (fun () -> ignore (Context.pop_current ())));
    row "Context.get_current" "an empty stack"
      (fails "INVALID_CONTEXT" "cu_ctx_get_current" [ "Context.set_current" ])
      (alone (fun () -> ignore (Context.get_current ())));
    row "Context.synchronize" "a thread captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" "cu_ctx_synchronize" [ "captur" ]) (fun () ->
        let s = Support.stream () in
        Graph.begin_capture s;
        Fun.protect Context.synchronize ~finally:(fun () ->
            try ignore (Graph.end_capture s) with Cuda_error _ -> ()));
  ]

let top =
  [
    row "init" "flags 1" (fails "INVALID_VALUE" "cu_init" [ "flags 1" ]) (fun () ->
        Cuda.init ~flags:1 ());
    row "init" "flags -1"
      (invalid [ "flags -1"; "C unsigned int" ])
      (fun () -> Cuda.init ~flags:(-1) ());
    row "init" "flags that a C unsigned int cannot hold"
      (invalid [ "flags " ^ number (1 lsl 32); "C unsigned int" ])
      (fun () -> Cuda.init ~flags:(1 lsl 32) ());
  ]

let rows ~here ~other = List.concat [ devices (); contexts ~here ~other; top ]
