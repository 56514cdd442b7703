(* Nvrtc where there is no library, and Interop. *)

open Cuda
open Support
open Table

let number = string_of_int
let nul = "a\000b"
let nowhere = "/no/such/libnvrtc.so"

let nvrtc =
  let compile ?target ?name ?options ?headers ?expressions ?cache source () =
    Nvrtc.Program.compile ?target ?name ?options ?headers ?expressions ?cache source
  in
  let wrong what parts call = row "Nvrtc.Program.compile" what (invalid parts) call in
  let absent name call =
    row name "no library" (nvrtc_fails "NOT_FOUND" [ nowhere ]) call
  in
  let plain ?(options = []) ?(name = "k.cu") cu_src () =
    Nvrtc.compile_to_ptx ~cu_src ~name ~options ~with_debug:false
  in
  [
    absent "Nvrtc.version" (fun () -> ignore (Nvrtc.version ()));
    absent "Nvrtc.library" (fun () -> ignore (Nvrtc.library ()));
    absent "Nvrtc.include_folders" (fun () -> ignore (Nvrtc.include_folders ()));
    absent "Nvrtc.supported_architectures" (fun () ->
        ignore (Nvrtc.supported_architectures ()));
    absent "Nvrtc.compile_to_ptx" (fun () -> ignore (plain "" ()));
    absent "Nvrtc.Program.compile" (fun () -> ignore (compile "" ()));
    row "Nvrtc.compile_to_ptx" "a NUL in the source"
      (invalid [ "source has a NUL at byte 1 of 3" ])
      (plain nul);
    row "Nvrtc.compile_to_ptx" "a NUL in the name"
      (invalid [ "name has a NUL" ])
      (plain ~name:nul "");
    row "Nvrtc.compile_to_ptx" "a NUL in an option"
      (invalid [ "option 1 has a NUL" ])
      (plain ~options:[ "-G"; nul ] "");
    wrong "a NUL in the source" [ "source has a NUL" ] (compile nul);
    wrong "a NUL in the name" [ "name has a NUL" ] (compile ~name:nul "");
    wrong "a NUL in an option" [ "option 0 has a NUL" ] (compile ~options:[ nul ] "");
    wrong "a NUL in a header" [ "header 0 has a NUL" ]
      (compile ~headers:[ ("a.h", nul) ] "");
    wrong "a NUL in a header's name"
      [ "name of header 0 has a NUL" ]
      (compile ~headers:[ (nul, "") ] "");
    wrong "a NUL in an expression"
      [ "name expression 0 has a NUL" ]
      (compile ~expressions:[ nul ] "");
    wrong "an architecture"
      [ "architecture \"90\""; "sm_90" ]
      (compile ~target:(CUBIN "90") "");
    wrong "no architecture"
      [ "architecture \"\""; "sm_90" ]
      (compile ~target:(CUBIN "") "");
    wrong "two architectures" [ "-arch=sm_90"; "CUBIN" ]
      (compile ~target:(CUBIN "sm_80") ~options:[ "-arch=sm_90" ] "");
  ]

let interop ~here =
  let s = stream () and p = device_ints 4 and e = Event.create () and m = code () in
  let both name call =
    row ("Interop." ^ name) "own and keep" (invalid [ "own and keep" ]) call
  in
  let zero name call = row ("Interop." ^ name) "handle 0" (invalid [ "0" ]) call in
  let device wrong parts n =
    row "Interop.device" wrong (invalid parts) (fun () -> Interop.device n)
  in
  let size name of_size =
    let negative n =
      row name
        ("size " ^ number n)
        (invalid [ number n; "negative" ])
        (fun () -> of_size n)
    in
    List.map negative [ -1; min_int ]
  in
  let address = Interop.deviceptr_handle p in
  let managed = Deviceptr.mem_alloc_managed ~size_in_bytes:16 () in
  let dead = Deviceptr.mem_alloc_managed ~size_in_bytes:16 () in
  Deviceptr.mem_free dead;
  let array wrong parts ?(ptr = managed) dimensions =
    row "Interop.bigarray_of_managed" wrong (invalid parts) (fun () ->
        Interop.bigarray_of_managed Bigarray.int32 Bigarray.c_layout dimensions ptr)
  in
  let graph = Graphs.captured s in
  let exec = Graph.instantiate graph in
  Graph.destroy graph;
  Graph.exec_destroy exec;
  List.concat
    [
      [
        device "-1" [ "device -1"; "1 devices" ] (-1);
        device "99" [ "device 99"; "1 devices" ] 99;
        device "min_int" [ "device " ^ number min_int ] min_int;
        device "max_int" [ "device " ^ number max_int ] max_int;
        zero "context" (fun () -> ignore (Interop.context 0n));
        zero "stream" (fun () -> ignore (Interop.stream 0n));
        zero "deviceptr" (fun () -> ignore (Interop.deviceptr ~size_in_bytes:4 0n));
        zero "deviceptr_of_uint64" (fun () ->
            ignore (Interop.deviceptr_of_uint64 ~size_in_bytes:4 Unsigned.UInt64.zero));
        zero "module_" (fun () -> ignore (Interop.module_ 0n));
        zero "func" (fun () -> ignore (Interop.func ~name:"k" 0n));
        zero "event" (fun () -> ignore (Interop.event 0n));
        zero "graph" (fun () -> ignore (Interop.graph 0n));
        zero "exec" (fun () -> ignore (Interop.exec 0n));
        both "stream" (fun () ->
            Interop.(ignore (stream ~own:true ~keep:p (stream_handle s))));
        both "event" (fun () ->
            Interop.(ignore (event ~own:true ~keep:p (event_handle e))));
        both "module_" (fun () ->
            Interop.(ignore (module_ ~own:true ~keep:p (module_handle m))));
        both "deviceptr" (fun () ->
            ignore (Interop.deviceptr ~own:true ~keep:p ~size_in_bytes:16 address));
        both "deviceptr_of_uint64" (fun () ->
            let address = Interop.deviceptr_uint64 p in
            ignore
              (Interop.deviceptr_of_uint64 ~own:true ~keep:p ~size_in_bytes:16 address));
        row "Interop.stream" "one of the driver's own streams"
          (invalid [ "stream handle 2" ]) (fun () -> Interop.stream 2n);
        array "too many bytes" [ "20 bytes"; "16 bytes" ] [| 5 |];
        array "a negative dimension" [ "dimension -1"; "negative" ] [| 2; -1 |];
        array "dimensions that overflow" [ "too large" ] [| max_int; max_int |];
        array "17 dimensions" [ "16 dimensions" ] (Array.make 17 1);
        array "ordinary memory" [ "not managed" ] ~ptr:p [| 4 |];
        array "freed memory" [ "freed" ] ~ptr:dead [| 4 |];
        row "Interop.graph_handle" "a destroyed graph" works (fun () ->
            assert (Interop.graph_handle graph = 0n));
        row "Interop.exec_handle" "a destroyed exec" works (fun () ->
            assert (Interop.exec_handle exec = 0n));
        row "Interop.context_handle" "any" works (fun () -> Interop.context_handle here);
      ];
      size "Interop.deviceptr" (fun size_in_bytes ->
          Interop.deviceptr ~size_in_bytes address);
      size "Interop.deviceptr_of_uint64" (fun size_in_bytes ->
          Interop.deviceptr_of_uint64 ~size_in_bytes (Interop.deviceptr_uint64 p));
    ]

let rows ~here = nvrtc @ interop ~here
