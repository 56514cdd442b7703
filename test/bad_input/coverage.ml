(* Whether the rows name everything that the interfaces offer. *)

(* What cannot be called wrongly, and why. *)
let nothing_wrong =
  let of_enumeration = "takes a constructor or a plain value, and looks at nothing else" in
  List.map
    (fun name -> (name, of_enumeration))
    [
      "Context.sexp_of_flag"; "Context.sexp_of_flags"; "Context.sexp_of_limit";
      "Device.sexp_of_p2p_attribute"; "Device.sexp_of_computemode";
      "Device.sexp_of_flush_GPU_direct_RDMA_writes_options";
      "Device.sexp_of_mem_allocation_handle_type"; "Device.sexp_of_attributes";
      "Graph.sexp_of_capture_mode"; "Module.sexp_of_jit_target"; "Module.sexp_of_jit_fallback";
      "Module.sexp_of_jit_cache_mode"; "Module.sexp_of_jit_option";
      "Module.Func.sexp_of_attributes"; "Stream.sexp_of_attach_mem"; "sexp_of_result";
      "is_success"; "Nvrtc.sexp_of_result"; "Nvrtc.is_success"; "Nvrtc.Program.sexp_of_target";
    ]
  @ [
      ("Stream.sexp_of_kernel_param", "writes what it is given; memory as Deviceptr.sexp_of_t");
      ("Stream.Argument.sexp_of_t", "writes what it is given, as Stream.sexp_of_kernel_param");
      ("cuda_call_hook", "a reference of the program's own; see the test of modules");
      ("failed_release_hook", "likewise");
      ("Nvrtc.sexp_of_compile_to_ptx_result", "writes what a compilation has given");
      ("Nvrtc.string_from_ptx", "reads what a compilation or Nvrtc.of_ptx has given");
      ("Nvrtc.compilation_log", "a field of a record");
      ("Nvrtc.of_ptx", "keeps any text; Module.load_data_ex refuses what is no PTX");
      ("Nvrtc.Program.image", "a part of a program, which there is only if it compiled");
      ("Nvrtc.Program.log", "likewise");
      ("Nvrtc.Program.is_cached", "likewise");
      ("Nvrtc.Program.to_load", "likewise");
      ("Nvrtc.Program.sexp_of_t", "likewise");
      ("Nvrtc.Program.lowered_name", "needs a program that compiled: see the test of Nvrtc");
    ]
[@@ocamlformat "disable"]

(* Rows of their own: it ends the context that all others use. *)
let elsewhere = [ "Device.primary_ctx_reset" ]

(* [named] by the rows, and the names of [Values.all], must be the same. *)
let check named =
  let named = named @ States.names @ elsewhere in
  let harmless = List.map fst nothing_wrong in
  let missing =
    List.filter (fun name -> not (List.mem name (named @ harmless))) Values.all
  in
  let unknown =
    List.filter (fun name -> not (List.mem name Values.all)) (named @ harmless)
  in
  let both = List.filter (fun name -> List.mem name named) harmless in
  let none what = Alcotest.(check (list string)) what [] in
  Alcotest.(check bool) "the interfaces were read" true (List.length Values.all > 150);
  none "values that no row names" missing;
  none "names that no interface has" unknown;
  none "called harmless and named by a row" both
