(* Module, and launches of its kernels. *)

open Cuda
open Support
open Table

let number = string_of_int
let nul = "a\000b"

let loading () =
  let header = ".version 7.0\n.target sm_70\n.address_size 64\n" in
  let ways wrong ending text =
    [
      row "Module.load_ptx" wrong ending (fun () -> Module.load_ptx text);
      row "Module.load_data_ex" wrong ending (fun () ->
          Module.load_data_ex (Nvrtc.of_ptx text) []);
    ]
  in
  let option wrong ending option =
    [
      row "Module.load_ptx" wrong ending (fun () ->
          Module.load_ptx ~options:[ option ] Ptx.text);
      row "Module.load_data_ex" wrong ending (fun () ->
          Module.load_data_ex (Nvrtc.of_ptx Ptx.text) [ option ]);
      row "Module.load_file" wrong ending (fun () ->
          let path = Filename.temp_file "kernels" ".ptx" in
          Out_channel.with_open_bin path (fun file -> output_string file Ptx.text);
          Fun.protect
            ~finally:(fun () -> Sys.remove path)
            (fun () -> Module.load_file ~options:[ option ] path));
    ]
  in
  let load_file wrong ending path =
    row "Module.load_file" wrong ending (fun () -> Module.load_file path)
  and load_cubin wrong ending image =
    row "Module.load_cubin" wrong ending (fun () -> Module.load_cubin image)
  in
  let fails status parts = fails status "cu_module_load_data_ex" parts in
  let no_log = Bigarray.(Array1.create char c_layout 0) in
  List.concat
    [
      ways "no text" (fails "INVALID_IMAGE" [ {|begins with ""|}; ".version" ]) "";
      ways "a text that is no PTX"
        (fails "INVALID_IMAGE" [ {|begins with "nonsense"|}; ".version" ])
        "nonsense";
      ways "PTX with an error" (fails "INVALID_PTX" [ "line 4" ]) (header ^ "nonsense");
      [
        row "Module.load_ptx" "a NUL inside" (invalid [ "NUL at byte 1 of 3" ]) (fun () ->
            Module.load_ptx nul);
      ];
      option "MAX_REGISTERS -1" (invalid [ "MAX_REGISTERS -1" ]) (MAX_REGISTERS (-1));
      option "MAX_REGISTERS max_int"
        (invalid [ "MAX_REGISTERS " ^ number max_int ])
        (MAX_REGISTERS max_int);
      option "THREADS_PER_BLOCK -1"
        (invalid [ "THREADS_PER_BLOCK -1" ])
        (THREADS_PER_BLOCK (-1));
      option "OPTIMIZATION_LEVEL 5"
        (invalid [ "OPTIMIZATION_LEVEL 5"; "0"; "4" ])
        (OPTIMIZATION_LEVEL 5);
      option "OPTIMIZATION_LEVEL min_int"
        (invalid [ "OPTIMIZATION_LEVEL " ^ number min_int ])
        (OPTIMIZATION_LEVEL min_int);
      option "an empty log" works (ERROR_LOG_BUFFER no_log);
      [
        row "Module.load_ptx" "an empty log for an error" (fails "INVALID_PTX" [])
          (fun () ->
            Module.load_ptx ~options:[ ERROR_LOG_BUFFER no_log ] (header ^ "nonsense"));
        load_cubin "nothing" (invalid [ "image"; "cubin" ]) "";
        load_cubin "PTX" (invalid [ "image"; "cubin" ]) Ptx.text;
        load_cubin "the beginning of one" (fails "INVALID_IMAGE" []) "\x7fELF";
        load_file "no file" (invalid [ "/no/such.ptx"; "No such file" ]) "/no/such.ptx";
        load_file "no name" (invalid [ "No such file" ]) "";
        load_file "a NUL in the name" (invalid [ "No such file" ]) nul;
        load_file "a folder" (invalid [ "/"; "s a directory" ]) "/";
        row "Module.load_file" "an empty file" (invalid [ ".ptx is empty" ]) (fun () ->
            let path = Filename.temp_file "empty" ".ptx" in
            Fun.protect
              ~finally:(fun () -> Sys.remove path)
              (fun () -> Module.load_file path));
      ];
    ]

let names () =
  let m = code () in
  let in_module what get name =
    let missing ?(status = "NOT_FOUND") wrong asked =
      row name wrong
        (fails status
           (if what = "kernel" then "cu_module_get_function" else "cu_module_get_global")
           [ what; Printf.sprintf "%S" asked ])
        (fun () -> get m asked)
    in
    [
      missing "no such name" "nothing";
      missing ~status:"INVALID_VALUE" "the empty name" "";
      (if what = "kernel" then missing "a name of the other kind" "table"
       else missing ~status:"INVALID_VALUE" "a name of the other kind" "incr");
      row name "a NUL in the name" (invalid [ "NUL" ]) (fun () -> get m nul);
    ]
  in
  in_module "kernel"
    (fun m name -> ignore (Module.get_function m ~name))
    "Module.get_function"
  @ in_module "variable"
      (fun m name -> ignore (Module.get_global m ~name))
      "Module.get_global"

let func () =
  let f = kernel "incr" in
  let shared n parts =
    row "Module.Func.set_max_dynamic_shared_size" (number n) (invalid parts) (fun () ->
        Module.Func.set_max_dynamic_shared_size f n)
  and blocks wrong ?shared_mem_bytes block_size parts =
    row "Module.Func.max_active_blocks" wrong (invalid parts) (fun () ->
        Module.Func.max_active_blocks ?shared_mem_bytes ~block_size f)
  and suggest wrong ?shared_mem_bytes ?block_size_limit parts =
    row "Module.Func.suggest_launch" wrong (invalid parts) (fun () ->
        Module.Func.suggest_launch ?shared_mem_bytes ?block_size_limit f)
  in
  [
    shared (-1) [ "-1"; "incr" ];
    shared min_int [ number min_int ];
    shared max_int [ number max_int ];
    shared 1_000_000 [ "1000000"; "0 and "; "incr"; "bytes" ];
    blocks "no thread" 0 [ "block_size 0"; "1 and " ];
    blocks "block_size -1" (-1) [ "block_size -1"; "1 and " ];
    row "Module.Func.max_active_blocks" "more threads than a block has: none can run"
      works (fun () -> assert (Module.Func.max_active_blocks ~block_size:1025 f = 0));
    blocks "block_size min_int" min_int [ "block_size " ^ number min_int ];
    blocks "block_size max_int" max_int [ "block_size " ^ number max_int ];
    blocks "shared memory" ~shared_mem_bytes:(-1) 32 [ "shared_mem_bytes -1"; "negative" ];
    suggest "shared memory" ~shared_mem_bytes:(-1) [ "shared_mem_bytes -1"; "negative" ];
    suggest "a limit" ~block_size_limit:(-1) [ "block_size_limit -1" ];
    suggest "a large limit" ~block_size_limit:max_int
      [ "block_size_limit " ^ number max_int ];
  ]

type launch =
  ?grid_dim_y:int ->
  ?grid_dim_z:int ->
  ?block_dim_x:int ->
  ?block_dim_y:int ->
  ?block_dim_z:int ->
  ?shared_mem_bytes:int ->
  ?grid_dim_x:int ->
  Module.func ->
  Stream.t ->
  Stream.kernel_param list ->
  unit

let plain : launch =
 fun ?grid_dim_y ?grid_dim_z ?(block_dim_x = 32) ?block_dim_y ?block_dim_z
     ?(shared_mem_bytes = 0) ?(grid_dim_x = 1) f s params ->
  Stream.launch_kernel f ~grid_dim_x ?grid_dim_y ?grid_dim_z ~block_dim_x ?block_dim_y
    ?block_dim_z ~shared_mem_bytes s params

let with_arguments : launch =
 fun ?grid_dim_y ?grid_dim_z ?(block_dim_x = 32) ?block_dim_y ?block_dim_z
     ?(shared_mem_bytes = 0) ?(grid_dim_x = 1) f s params ->
  Stream.launch_kernel_with f ~grid_dim_x ?grid_dim_y ?grid_dim_z ~block_dim_x
    ?block_dim_y ?block_dim_z ~shared_mem_bytes s
    (List.map (fun param -> Stream.Argument.Param param) params)

(* Both ways to launch, on a stream, on the NULL stream and into a capture. *)
let launches ~other name (launch : launch) =
  let f = kernel "incr" and every = kernel "every_param" and p = device_ints 4 in
  let dead = Copies.freed_ptr () in
  let a_size = Stream.Size_t Unsigned.Size_t.one in
  let grid_limit axis = if axis = "x" then 0x7fffffff else 65535 in
  let block_limit axis = if axis = "z" then 64 else 1024 in
  let on_stream where run_on =
    let row wrong ending call =
      row name (wrong ^ where) (invalid ending) (fun () -> run_on call)
    in
    let of_incr ?(p = p) () = [ Stream.Tensor p; Int 0 ] in
    let dimension n =
      let x what axis limit n =
        [ Printf.sprintf "%s_%s %d" what axis n; "1 and " ^ number limit ]
      in
      let grid axis = x "grid_dim" axis (grid_limit axis) n
      and block axis = x "block_dim" axis (block_limit axis) n in
      let wrong what axis = Printf.sprintf "%s_%s %d" what axis n in
      [
        row (wrong "grid" "x") (grid "x") (fun s -> launch ~grid_dim_x:n f s (of_incr ()));
        row (wrong "grid" "y") (grid "y") (fun s -> launch ~grid_dim_y:n f s (of_incr ()));
        row (wrong "grid" "z") (grid "z") (fun s -> launch ~grid_dim_z:n f s (of_incr ()));
        row (wrong "block" "x") (block "x") (fun s ->
            launch ~block_dim_x:n f s (of_incr ()));
        row (wrong "block" "y") (block "y") (fun s ->
            launch ~block_dim_y:n f s (of_incr ()));
        row (wrong "block" "z") (block "z") (fun s ->
            launch ~block_dim_z:n f s (of_incr ()));
      ]
    in
    let shared n =
      row
        ("shared memory " ^ number n)
        [ "shared_mem_bytes " ^ number n; "0 and"; "incr" ]
        (fun s -> launch ~shared_mem_bytes:n f s (of_incr ()))
    in
    let params wrong parts params = row wrong parts (fun s -> launch every s params) in
    let region bytes =
      params
        ("a region at " ^ number bytes)
        [ "argument 0"; "every_param"; "offset_bytes " ^ number bytes; "16 bytes" ]
        [ Tensor_at (Deviceptr.offset p ~bytes); Int 0; a_size; Single 0.; Double 0. ]
    in
    List.concat
      [
        List.concat_map dimension [ 0; -1; min_int; max_int; 1 lsl 32 ];
        [
          row "2048 threads" [ "2 x 1024 x 1"; "2048 threads"; "incr"; "1024" ] (fun s ->
              launch ~block_dim_x:2 ~block_dim_y:1024 f s (of_incr ()));
        ];
        List.map shared [ -1; 1_000_000; min_int; max_int ];
        List.map region [ -1; 17; min_int; max_int ];
        [
          params "too few" [ "every_param"; "5 arguments"; "got 1" ] [ Tensor p ];
          params "none" [ "every_param"; "5 arguments"; "got 0" ] [];
          params "too many"
            [ "every_param"; "5 arguments"; "got 6" ]
            [ Tensor p; Int 0; a_size; Single 0.; Double 0.; Int 0 ];
          params "an Int that does not fit"
            [ "argument 1"; "every_param"; "Int 2147483648"; "32 bits" ]
            [ Tensor p; Int 0x8000_0000; a_size; Single 0.; Double 0. ];
          params "Int min_int"
            [ "argument 1"; "Int " ^ number min_int ]
            [ Tensor p; Int min_int; a_size; Single 0.; Double 0. ];
          params "a Double for a float"
            [ "argument 3"; "Double has 8 bytes"; "4" ]
            [ Tensor p; Int 0; a_size; Double 0.; Double 0. ];
          params "an Int for a pointer"
            [ "argument 0"; "Int has 4 bytes"; "8" ]
            [ Int 0; Int 0; a_size; Single 0.; Double 0. ];
          params "a Tensor for an int"
            [ "argument 1"; "Tensor has 8 bytes"; "4" ]
            [ Tensor p; Tensor p; a_size; Single 0.; Double 0. ];
          row "freed memory" [ "argument 0"; "incr"; "freed" ] (fun s ->
              launch f s (of_incr ~p:dead ()));
          row "a region of freed memory" [ "argument 0"; "incr"; "freed" ] (fun s ->
              launch f s [ Tensor_at (Deviceptr.region_of dead); Int 0 ]);
        ];
      ]
  in
  let s = stream () in
  let capturing call =
    let s = stream () in
    Graph.begin_capture s;
    Fun.protect
      (fun () -> call s)
      ~finally:(fun () ->
        (* What was refused before the driver was asked leaves the capture as it is. *)
        assert (Graph.node_count (Graph.end_capture s) = 0))
  in
  let foreign =
    Context.push_current other;
    let s = stream () in
    ignore (Context.pop_current ());
    s
  in
  List.concat
    [
      on_stream "" (fun call -> call s);
      on_stream ", the NULL stream" (fun call -> call Stream.no_stream);
      on_stream ", captured" capturing;
      [
        row name "a stream of another context"
          (invalid [ "incr"; "context"; "stream" ])
          (fun () -> launch f foreign [ Tensor p; Int 0 ]);
      ];
    ]

(* What only [launch_kernel_with] takes. *)
let arguments () =
  let open Stream.Argument in
  let p = device_ints 4 and s = stream () and f = kernel "incr" in
  let row wrong parts arguments =
    row "Stream.launch_kernel_with" wrong (invalid parts) (fun () ->
        Stream.launch_kernel_with f ~grid_dim_x:1 ~block_dim_x:1 ~shared_mem_bytes:0 s
          arguments)
  in
  let small name bits of_int n =
    row
      (Printf.sprintf "%s %d" name n)
      [ "argument 1"; Printf.sprintf "%s %d" name n; Printf.sprintf "%d bits" bits ]
      [ Param (Tensor p); of_int n ]
  in
  let sized name bytes argument =
    row (name ^ " for an int")
      [ "argument 1"; "incr"; Printf.sprintf "%s has %d bytes" name bytes; "4" ]
      [ Param (Tensor p); argument ]
  in
  List.concat
    [
      List.map (small "Int8" 8 (fun n -> Int8 n)) [ 256; -129; min_int; max_int ];
      List.map (small "Int16" 16 (fun n -> Int16 n)) [ 65536; -32769; min_int; max_int ];
      [
        sized "Int8" 1 (Int8 1);
        sized "Int16" 2 (Int16 1);
        sized "Int64" 8 (Int64 1L);
        sized "Half" 2 (Half 1.0);
        sized "Bfloat16" 2 (Bfloat16 1.0);
        sized "Address" 8 (Address 16n);
        sized "Struct" 12 (Struct (String.make 12 'x'));
        sized "Struct" 0 (Struct "");
        row "an Int32 for a pointer"
          [ "argument 0"; "Int32 has 4 bytes"; "8" ]
          [ Int32 1l; Int32 1l ];
      ];
    ]

let rows ~other =
  List.concat
    [
      loading ();
      names ();
      func ();
      launches ~other "Stream.launch_kernel" plain;
      launches ~other "Stream.launch_kernel_with" with_arguments;
      arguments ();
    ]
