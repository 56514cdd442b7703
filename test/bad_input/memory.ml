(* Deviceptr. *)

open Cuda
open Support
open Table

let number = string_of_int
let freed = Copies.freed_ptr

let allocations =
  let each (name, call, none, alloc) =
    [
      row name "size -1"
        (invalid [ "size_in_bytes -1"; "negative" ])
        (fun () -> alloc (-1));
      row name "size min_int"
        (invalid [ "size_in_bytes " ^ number min_int; "negative" ])
        (fun () -> alloc min_int);
      row name "size 0" (none call) (fun () -> alloc 0);
      row name "more than there is"
        (fails "OUT_OF_MEMORY" call [ "size_in_bytes " ^ number (1 lsl 50) ])
        (fun () -> alloc (1 lsl 50));
      row name "size max_int"
        (fails "OUT_OF_MEMORY" call [ "size_in_bytes " ^ number max_int ])
        (fun () -> alloc max_int);
    ]
  in
  let s = lazy (stream ()) in
  let refused call = fails "INVALID_VALUE" call [ "size_in_bytes 0" ] in
  List.concat_map each
    [
      ( "Deviceptr.mem_alloc",
        "cu_mem_alloc",
        refused,
        fun size_in_bytes -> Deviceptr.mem_alloc ~size_in_bytes );
      ( "Deviceptr.mem_alloc_managed",
        "cu_mem_alloc_managed",
        refused,
        fun size_in_bytes -> Deviceptr.mem_alloc_managed ~size_in_bytes () );
      ( "Stream.mem_alloc",
        "cu_mem_alloc_async",
        (fun _ -> works),
        fun size_in_bytes -> Stream.mem_alloc (Lazy.force s) ~size_in_bytes );
    ]

(* Memory that a graph would allocate, of an exec that was never launched. *)
let unlaunched () =
  let s = stream () in
  let _graph, ptr =
    Graph.with_capture s (fun () -> Stream.mem_alloc s ~size_in_bytes:64)
  in
  ptr

let values () =
  let dead = freed () in
  [
    row "Deviceptr.offset" "an offset outside: refused where it is used" works (fun () ->
        List.map (fun bytes -> Deviceptr.offset dead ~bytes) [ -1; min_int; max_int ]);
    row "Deviceptr.region_of" "freed memory: refused where it is used" works (fun () ->
        Deviceptr.region_of dead);
    row "Deviceptr.sexp_of_t" "freed memory" works (fun () -> Deviceptr.sexp_of_t dead);
    row "Deviceptr.equal" "freed memory" works (fun () -> Deviceptr.equal dead dead);
    row "Deviceptr.hash" "freed memory" works (fun () -> Deviceptr.hash dead);
    row "Deviceptr.string_of" "freed memory" works (fun () -> Deviceptr.string_of dead);
    row "Deviceptr.allocation_size" "freed memory" works (fun () ->
        Deviceptr.allocation_size dead);
    row "Deviceptr.mem_free" "freed memory" works (fun () -> Deviceptr.mem_free dead);
    row "Deviceptr.mem_free" "a module's variable"
      (invalid [ "module"; "variable" ])
      (fun () -> Deviceptr.mem_free (fst (Module.get_global (code ()) ~name:"table")));
    row "Deviceptr.mem_free" "borrowed memory" (invalid [ "borrowed" ]) (fun () ->
        let p = device_ints 4 in
        Deviceptr.mem_free
          (Interop.deviceptr ~keep:p ~size_in_bytes:16 (Interop.deviceptr_handle p)));
    row "Deviceptr.alloc_and_memcpy" "no element"
      (fails "INVALID_VALUE" "cu_mem_alloc" [ "size_in_bytes 0" ]) (fun () ->
        Deviceptr.alloc_and_memcpy (ints 0));
    row "Deviceptr.memcpy_D_to_H" "memory of a graph that was not launched"
      (invalid [ "allocated inside a capture"; "launch" ])
      (fun () -> read (unlaunched ()));
  ]

(* In a capture of the calling thread, what would run once and not be captured is refused. *)
let capturing () =
  let p = device_ints 4 and host = ints 1 and s = stream () in
  let here = Context.get_current () in
  let address = Ctypes.(to_voidp (CArray.start (CArray.make int32_t 8))) in
  let f = Copies.at_once in
  let refused name call run =
    row ("Deviceptr." ^ name) "this thread captures"
      (fails "STREAM_CAPTURE_UNSUPPORTED" call [ "synchronous"; "captur" ])
      (fun () ->
        Graph.begin_capture s;
        Fun.protect run ~finally:(fun () ->
            try ignore (Graph.end_capture s) with Cuda_error _ -> ()))
  in
  [
    refused "memcpy_H_to_D" "cu_memcpy_H_to_D" (fun () -> f.h_to_d ~dst:p ~src:host ());
    refused "memcpy_D_to_H" "cu_memcpy_D_to_H" (fun () -> f.d_to_h ~dst:host ~src:p ());
    refused "memcpy_H_to_D_unsafe" "cu_memcpy_H_to_D" (fun () ->
        f.h_to_d_unsafe ~dst:p ~src:address ~size_in_bytes:4);
    refused "memcpy_D_to_H_unsafe" "cu_memcpy_D_to_H" (fun () ->
        f.d_to_h_unsafe ~dst:address ~src:p ~size_in_bytes:4);
    refused "memcpy_D_to_D" "cu_memcpy_D_to_D" (fun () ->
        f.d_to_d ~size_in_bytes:4 ~dst:p ~src:p ());
    refused "memcpy_peer" "cu_memcpy_peer" (fun () ->
        f.peer ~size_in_bytes:4 ~dst:p ~dst_ctx:here ~src:p ~src_ctx:here ());
    refused "memset_d8" "cu_memset_d8" (fun () -> f.d8 p Unsigned.UChar.one ~length:1);
    refused "memset_d16" "cu_memset_d16" (fun () -> f.d16 p Unsigned.UShort.one ~length:1);
    refused "memset_d32" "cu_memset_d32" (fun () -> f.d32 p Unsigned.UInt32.one ~length:1);
  ]

let rows ~other =
  List.concat [ allocations; values (); Copies.rows Copies.at_once ~other; capturing () ]
