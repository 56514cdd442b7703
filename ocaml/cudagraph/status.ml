type t = int

exception Cuda_error of { status : t; message : string }

(* CUresult, as numbered by the driver. *)
let names =
  [
    (0, "CUDA_SUCCESS"); (1, "CUDA_ERROR_INVALID_VALUE"); (2, "CUDA_ERROR_OUT_OF_MEMORY");
    (3, "CUDA_ERROR_NOT_INITIALIZED"); (4, "CUDA_ERROR_DEINITIALIZED");
    (5, "CUDA_ERROR_PROFILER_DISABLED"); (6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED");
    (7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"); (8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED");
    (34, "CUDA_ERROR_STUB_LIBRARY"); (46, "CUDA_ERROR_DEVICE_UNAVAILABLE");
    (100, "CUDA_ERROR_NO_DEVICE"); (101, "CUDA_ERROR_INVALID_DEVICE");
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"); (200, "CUDA_ERROR_INVALID_IMAGE");
    (201, "CUDA_ERROR_INVALID_CONTEXT"); (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT");
    (205, "CUDA_ERROR_MAP_FAILED"); (206, "CUDA_ERROR_UNMAP_FAILED");
    (207, "CUDA_ERROR_ARRAY_IS_MAPPED"); (208, "CUDA_ERROR_ALREADY_MAPPED");
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU"); (210, "CUDA_ERROR_ALREADY_ACQUIRED");
    (211, "CUDA_ERROR_NOT_MAPPED"); (212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY");
    (213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"); (214, "CUDA_ERROR_ECC_UNCORRECTABLE");
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"); (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE");
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"); (218, "CUDA_ERROR_INVALID_PTX");
    (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"); (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE");
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"); (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED");
    (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY");
    (225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"); (226, "CUDA_ERROR_CONTAINED");
    (300, "CUDA_ERROR_INVALID_SOURCE"); (301, "CUDA_ERROR_FILE_NOT_FOUND");
    (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND");
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"); (304, "CUDA_ERROR_OPERATING_SYSTEM");
    (400, "CUDA_ERROR_INVALID_HANDLE"); (401, "CUDA_ERROR_ILLEGAL_STATE");
    (402, "CUDA_ERROR_LOSSY_QUERY"); (500, "CUDA_ERROR_NOT_FOUND");
    (600, "CUDA_ERROR_NOT_READY"); (700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"); (702, "CUDA_ERROR_LAUNCH_TIMEOUT");
    (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING");
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED");
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"); (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE");
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"); (710, "CUDA_ERROR_ASSERT");
    (711, "CUDA_ERROR_TOO_MANY_PEERS"); (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED");
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"); (714, "CUDA_ERROR_HARDWARE_STACK_ERROR");
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"); (716, "CUDA_ERROR_MISALIGNED_ADDRESS");
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"); (718, "CUDA_ERROR_INVALID_PC");
    (719, "CUDA_ERROR_LAUNCH_FAILED"); (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"); (800, "CUDA_ERROR_NOT_PERMITTED");
    (801, "CUDA_ERROR_NOT_SUPPORTED"); (802, "CUDA_ERROR_SYSTEM_NOT_READY");
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE");
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"); (806, "CUDA_ERROR_MPS_RPC_FAILURE");
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY"); (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED");
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"); (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED");
    (811, "CUDA_ERROR_CDP_NOT_SUPPORTED"); (812, "CUDA_ERROR_CDP_VERSION_MISMATCH");
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"); (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE");
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"); (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
    (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"); (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT");
    (907, "CUDA_ERROR_CAPTURED_EVENT"); (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD");
    (909, "CUDA_ERROR_TIMEOUT"); (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE");
    (911, "CUDA_ERROR_EXTERNAL_DEVICE"); (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE");
    (913, "CUDA_ERROR_FUNCTION_NOT_LOADED"); (914, "CUDA_ERROR_INVALID_RESOURCE_TYPE");
    (915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"); (916, "CUDA_ERROR_KEY_ROTATION");
    (917, "CUDA_ERROR_STREAM_DETACHED"); (999, "CUDA_ERROR_UNKNOWN");
  ]
[@@ocamlformat "disable"]

let sexp_of_t status =
  match List.assoc_opt status names with
  | Some name -> Sexplib0.Sexp.Atom name
  | None -> List [ Atom "CUDA_ERROR_UNCATEGORIZED"; Atom (string_of_int status) ]

let is_success status = status = 0
let not_ready = 600
let out_of_memory = 2

let () =
  Printexc.register_printer (function
    | Cuda_error { status; message } ->
        Some (message ^ ": " ^ Sexplib0.Sexp.to_string (sexp_of_t status))
    | _ -> None)

let cuda_call_hook : (message:string -> status:t -> unit) option ref = ref None

let call_hook message status =
  match !cuda_call_hook with
  | Some hook when status <> Raw.invalid_argument -> hook ~message ~status
  | _ -> ()

let failed_release_hook : (message:string -> status:t -> unit) option ref = ref None

let report_releases () =
  match !failed_release_hook with
  | None -> ()
  | Some hook ->
      let rec report () =
        match Raw.take_failed_release () with
        | None -> ()
        | Some (message, status) ->
            (* Nobody who makes the call that reports expects an exception from here. *)
            (try hook ~message ~status with _ -> ());
            report ()
      in
      report ()

let fail where message status =
  (* Taken before the hook, which may make calls of its own. *)
  let detail = Raw.detail () in
  call_hook message status;
  if status = Raw.invalid_argument then invalid_arg (where ^ ": " ^ detail)
  else
    let message = if detail = "" then message else message ^ ": " ^ detail in
    raise (Cuda_error { status; message })

let check where message status =
  if status = 0 then call_hook message 0 else fail where message status

let get where message = function
  | Ok value ->
      call_hook message 0;
      value
  | Error status -> fail where message status

let ready where message status =
  if status = not_ready then (
    call_hook message status;
    false)
  else (
    check where message status;
    true)

(* Whether it is worth to try again. Garbage may hold what is missing; it is not collected in the midst of
   a capture. *)
let made_room ?stream message status =
  status = out_of_memory
  && (not (Raw.captures_here ()))
  &&
  (ignore (Raw.detail ());
   call_hook message status;
   (* Work that is done needs nothing any more, even if nobody has waited for it. Nor is it waited for here:
      it may need what this thread does next. This stream is asked even if another library knows it. *)
   Option.iter (fun stream -> ignore (Raw.stream_query stream)) stream;
   (* Before garbage is collected: some of it may be held by that work alone. *)
   Raw.release_done ();
   Gc.full_major ();
   Raw.make_room ();
   true)

let get_memory ?stream where message allocate =
  let got =
    match allocate () with
    | Error status when made_room ?stream message status ->
        get where message (allocate ())
    | result -> get where message result
  in
  report_releases ();
  got

let pp_address address = Printf.sprintf "0x%nx" address
