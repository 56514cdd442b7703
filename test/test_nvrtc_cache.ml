(* The cache of compiled programs. *)

open Support
open Nvrtc_support
open Cuda
module Program = Nvrtc.Program

let entries folder =
  Array.to_list (Sys.readdir folder)
  |> List.map (Filename.concat folder)
  |> List.sort compare

let cache () =
  in_folder @@ fun root ->
  let cache = Filename.concat (Filename.concat root "made") "when needed" in
  let compile ?target ?(name = "k.cu") ?(options = []) ?headers ?expressions
      ?(source = saxpy) () =
    Program.compile ?target ~name ~options ?headers ?expressions ~cache source
  in
  let first = compile () in
  let check_cached what expected program =
    Alcotest.(check bool) (what ^ ": found") expected (Program.is_cached program)
  in
  check_cached "first" false first;
  let again = compile () in
  check_cached "again" true again;
  Alcotest.(check string) "the same" (Program.image first) (Program.image again);
  (* Whatever the result depends on. *)
  let warned =
    "__device__ int f() { return 1; }\n\
     template <int n> __global__ void k() { int unused; }"
  in
  let expressions = [ "k<1>"; "k<2>" ] in
  let different =
    [
      ("another source", fun () -> compile ~source:(saxpy ^ "\n") ());
      ("another name", fun () -> compile ~name:"l.cu" ());
      ("an option", fun () -> compile ~options:[ "-use_fast_math" ] ());
      ("a header", fun () -> compile ~headers:[ ("a.h", "") ] ());
      ("another header", fun () -> compile ~headers:[ ("a.h", " ") ] ());
      ("another target", fun () -> compile ~target:(CUBIN "sm_80") ());
      ("expressions", fun () -> compile ~expressions ~source:warned ());
    ]
  in
  let compiled =
    List.map
      (fun (what, compile) ->
        let p = compile () in
        check_cached what false p;
        p)
      different
  in
  List.iter2
    (fun (what, compile) before ->
      let after = compile () in
      check_cached what true after;
      Alcotest.(check string)
        (what ^ ": image") (Program.image before) (Program.image after);
      Alcotest.(check string) (what ^ ": log") (Program.log before) (Program.log after))
    different compiled;
  let found = compile ~expressions ~source:warned () in
  check_parts "the log is kept" (Program.log found) [ "unused" ];
  List.iter
    (fun e ->
      check_parts "a kernel of that name" (Program.image found)
        [ ".entry " ^ Program.lowered_name found e ])
    expressions;
  (* A failure is not kept. *)
  let before = entries cache in
  for _ = 1 to 2 do
    check_nvrtc_error "an error" "ERROR_COMPILATION" [ "nvrtc_compile_program" ]
      (fun () -> compile ~source:"broken" ())
  done;
  Alcotest.(check (list string)) "no entry" before (entries cache);
  (* Damaged entries are made anew. *)
  let damage change =
    let file = List.hd (entries cache) in
    List.iter (fun other -> if other <> file then Sys.remove other) (entries cache);
    let whole = In_channel.with_open_bin file In_channel.input_all in
    Out_channel.with_open_bin file (fun channel -> output_string channel (change whole))
  in
  List.iter
    (fun (what, change) ->
      List.iter Sys.remove (entries cache);
      check_cached what false (compile ());
      damage change;
      let repaired = compile () in
      check_cached what false repaired;
      Alcotest.(check string) what (Program.image first) (Program.image repaired);
      check_cached (what ^ ", repaired") true (compile ()))
    [
      ("empty", fun _ -> "");
      ("cut", fun whole -> String.sub whole 0 (String.length whole / 2));
      ( "one byte",
        fun whole ->
          String.mapi
            (fun i c -> if i = 100 then Char.chr (Char.code c lxor 1) else c)
            whole );
      ("longer", fun whole -> whole ^ "x");
      ("something else", fun _ -> "an old format");
    ];
  (* A folder in its place. *)
  let file = List.hd (entries cache) in
  Sys.remove file;
  Sys.mkdir file 0o700;
  check_cached "cannot be kept" false (compile ());
  check_cached "cannot be kept" false (compile ());
  Alcotest.(check (list string)) "nothing else is left" [ file ] (entries cache);
  check_invalid "no folder" [ "Nvrtc.Program.compile: cache "; "cannot be made" ]
    (fun () -> Program.compile ~cache:(write_file root "file" "") saxpy);
  check_invalid "no name" [ "cache \"\": " ] (fun () -> Program.compile ~cache:"" saxpy);
  check_invalid "a NUL" [ "cache "; "cannot be made" ] (fun () ->
      Program.compile ~cache:"a\000b" saxpy)

let cache_and_headers () =
  in_folder @@ fun root ->
  let cache = Filename.concat root "cache" in
  let value
      ?(source =
        "#include \"outer.h\"\nextern \"C\" __global__ void k(int *p) { p[0] = N; }") () =
    let program = Program.compile ~options:[ "-I" ^ root ] ~cache source in
    (Program.is_cached program, first_ints (Program.image program) "k")
  in
  let inner n = ignore (write_file root "inner.h" (Printf.sprintf "#define N %d\n" n)) in
  ignore (write_file root "outer.h" "#include <inner.h>\n");
  inner 1;
  let check = Alcotest.(check (pair bool (list int))) in
  check "first" (false, [ 1 ]) (value ());
  check "again" (true, [ 1 ]) (value ());
  inner 2;
  check "a header of a header changed" (false, [ 2 ]) (value ());
  inner 1;
  check "and changed back" (true, [ 1 ]) (value ());
  let computed =
    "#define NAME <inner.h>\n\
     #include NAME\n\
     extern \"C\" __global__ void k(int *p) { p[0] = N; }"
  in
  check "by a macro's name" (false, [ 1 ]) (value ~source:computed ());
  inner 3;
  check "is not kept" (false, [ 3 ]) (value ~source:computed ());
  let asks =
    "#if __has_include(<later.h>)\n\
     #include <later.h>\n\
     #else\n\
     #define N 4\n\
     #endif\n\
     extern \"C\" __global__ void k(int *p) { p[0] = N; }"
  in
  check "not there" (false, [ 4 ]) (value ~source:asks ());
  check "still not" (true, [ 4 ]) (value ~source:asks ());
  ignore (write_file root "later.h" "#define N 5\n");
  check "there" (false, [ 5 ]) (value ~source:asks ());
  if Nvrtc.include_folders () <> [] then (
    let half =
      "#include <cuda_fp16.h>\n\
       extern \"C\" __global__ void k(int *p) { p[0] = \
       __half_as_ushort(__float2half(1.0f)); }"
    in
    check "CUDA's own headers" (false, [ 0x3C00 ]) (value ~source:half ());
    check "are no obstacle" (true, [ 0x3C00 ]) (value ~source:half ()))

(* Many processes and one folder. *)
let cache_argument = "fill-cache"

let fill cache =
  for i = 0 to 11 do
    let source =
      Printf.sprintf "extern \"C\" __global__ void k(int *p) { p[0] = %d; }" (i / 2)
    in
    let program = Program.compile ~cache source in
    print_string (Digest.to_hex (Digest.string (Program.image program)))
  done

let cache_of_many () =
  in_folder @@ fun cache ->
  let program = Sys.executable_name in
  let children =
    List.init 4 (fun _ ->
        Unix.open_process_args_in program [| program; cache_argument; cache |])
  in
  let outputs = List.map In_channel.input_all children in
  List.iter
    (fun child ->
      Alcotest.(check bool) "exit" true (Unix.close_process_in child = WEXITED 0))
    children;
  Alcotest.(check int) "all compiled" (12 * 32) (String.length (List.hd outputs));
  Alcotest.(check int) "and got the same" 1 (List.length (List.sort_uniq compare outputs));
  Alcotest.(check int) "one entry each, and nothing else" 6 (List.length (entries cache));
  List.iter
    (fun entry -> Alcotest.(check bool) entry true (Filename.check_suffix entry ".nvrtc"))
    (entries cache)

let tests () =
  start ();
  Alcotest.run "nvrtc cache"
    [
      ( "cache",
        [
          compiling "what it depends on" cache;
          running "headers" cache_and_headers;
          compiling "many processes" cache_of_many;
        ] );
      ("end", [ no_misuse ]);
    ]

let () =
  match Sys.argv with
  | [| _; argument; cache |] when argument = cache_argument -> fill cache
  | _ -> tests ()
