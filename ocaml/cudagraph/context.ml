open Sexplib0.Sexp_conv

type t = Raw.context

let sexp_of_t context = Sexplib0.Sexp.Atom (Status.pp_address (Raw.ctx_address context))

type flag =
  | SCHED_AUTO
  | SCHED_SPIN
  | SCHED_YIELD
  | SCHED_BLOCKING_SYNC
  | SCHED_MASK
  | MAP_HOST
  | LMEM_RESIZE_TO_MAX
  | COREDUMP_ENABLE
  | USER_COREDUMP_ENABLE
  | SYNC_MEMOPS

(* CUctx_flags; SCHED_AUTO is the absence of the others, and never among the flags of a context,
   as in cudajit. *)
let flags_table =
  [
    (SCHED_AUTO, 0x00, "SCHED_AUTO");
    (SCHED_SPIN, 0x01, "SCHED_SPIN");
    (SCHED_YIELD, 0x02, "SCHED_YIELD");
    (SCHED_BLOCKING_SYNC, 0x04, "SCHED_BLOCKING_SYNC");
    (SCHED_MASK, 0x07, "SCHED_MASK");
    (MAP_HOST, 0x08, "MAP_HOST");
    (LMEM_RESIZE_TO_MAX, 0x10, "LMEM_RESIZE_TO_MAX");
    (COREDUMP_ENABLE, 0x20, "COREDUMP_ENABLE");
    (USER_COREDUMP_ENABLE, 0x40, "USER_COREDUMP_ENABLE");
    (SYNC_MEMOPS, 0x80, "SYNC_MEMOPS");
  ]

let bits flag =
  let _, bits, _ = List.find (fun (f, _, _) -> f = flag) flags_table in
  bits

let sexp_of_flag flag =
  let _, _, name = List.find (fun (f, _, _) -> f = flag) flags_table in
  Sexplib0.Sexp.Atom name

type flags = flag list

let sexp_of_flags = sexp_of_list sexp_of_flag

let create flags device =
  let mask = List.fold_left (fun mask flag -> mask lor bits flag) 0 flags in
  Status.get "Cuda.Context.create" "cu_ctx_create" (Raw.ctx_create mask device)

let get_flags () =
  let mask = Status.get "Cuda.Context.get_flags" "cu_ctx_get_flags" (Raw.ctx_flags ()) in
  List.filter_map
    (fun (flag, bits, _) ->
      let single = flag <> SCHED_AUTO && flag <> SCHED_MASK in
      if single && mask land bits = bits then Some flag else None)
    flags_table

let get_primary device =
  Status.get "Cuda.Context.get_primary" "cu_device_primary_ctx_retain"
    (Raw.ctx_primary device)

let get_device () =
  Status.get "Cuda.Context.get_device" "cu_ctx_get_device" (Raw.ctx_device ())

let pop_current () =
  Status.get "Cuda.Context.pop_current" "cu_ctx_pop_current" (Raw.ctx_pop ())

let get_current () =
  Status.get "Cuda.Context.get_current" "cu_ctx_get_current" (Raw.ctx_current ())

let push_current context =
  Status.check "Cuda.Context.push_current" "cu_ctx_push_current" (Raw.ctx_push context)

let set_current context =
  Status.check "Cuda.Context.set_current" "cu_ctx_set_current"
    (Raw.ctx_set_current context)

let synchronize () =
  Status.check "Cuda.Context.synchronize" "cu_ctx_synchronize" (Raw.ctx_synchronize ());
  Status.report_releases ()

let is_usable context =
  Status.get "Cuda.Context.is_usable" "cu_event_create" (Raw.ctx_is_usable context)

let disable_peer_access peer =
  Status.check "Cuda.Context.disable_peer_access" "cu_ctx_disable_peer_access"
    (Raw.ctx_disable_peer_access peer)

let enable_peer_access ?(flags = Unsigned.UInt.zero) peer =
  Status.check "Cuda.Context.enable_peer_access" "cu_ctx_enable_peer_access"
    (Raw.ctx_enable_peer_access peer (Unsigned.UInt.to_int flags))

type limit =
  | STACK_SIZE
  | PRINTF_FIFO_SIZE
  | MALLOC_HEAP_SIZE
  | DEV_RUNTIME_SYNC_DEPTH
  | DEV_RUNTIME_PENDING_LAUNCH_COUNT
  | MAX_L2_FETCH_GRANULARITY
  | PERSISTING_L2_CACHE_SIZE

(* The constructors are in the order of CUlimit, from 0. *)
let int_of_limit = function
  | STACK_SIZE -> 0
  | PRINTF_FIFO_SIZE -> 1
  | MALLOC_HEAP_SIZE -> 2
  | DEV_RUNTIME_SYNC_DEPTH -> 3
  | DEV_RUNTIME_PENDING_LAUNCH_COUNT -> 4
  | MAX_L2_FETCH_GRANULARITY -> 5
  | PERSISTING_L2_CACHE_SIZE -> 6

let sexp_of_limit limit =
  Sexplib0.Sexp.Atom
    (match limit with
    | STACK_SIZE -> "STACK_SIZE"
    | PRINTF_FIFO_SIZE -> "PRINTF_FIFO_SIZE"
    | MALLOC_HEAP_SIZE -> "MALLOC_HEAP_SIZE"
    | DEV_RUNTIME_SYNC_DEPTH -> "DEV_RUNTIME_SYNC_DEPTH"
    | DEV_RUNTIME_PENDING_LAUNCH_COUNT -> "DEV_RUNTIME_PENDING_LAUNCH_COUNT"
    | MAX_L2_FETCH_GRANULARITY -> "MAX_L2_FETCH_GRANULARITY"
    | PERSISTING_L2_CACHE_SIZE -> "PERSISTING_L2_CACHE_SIZE")

let set_limit limit value =
  Status.check "Cuda.Context.set_limit" "cu_ctx_set_limit"
    (Raw.ctx_set_limit (int_of_limit limit) value)

let get_limit limit =
  Status.get "Cuda.Context.get_limit" "cu_ctx_get_limit"
    (Raw.ctx_get_limit (int_of_limit limit))
