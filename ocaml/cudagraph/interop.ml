let where name = "Cuda.Interop." ^ name
let handle_of_int64 n = Int64.to_nativeint (Unsigned.UInt64.to_int64 n)

(* No driver function stands for taking a handle in: the first one asked is named. *)
let taken name message result = Status.get (where name) message result

(* What is owned here needs nothing that keeps it, and would outlive it until it is destroyed. *)
let check_whose name own keep =
  if own && Option.is_some keep then
    invalid_arg (where name ^ ": own and keep exclude each other")

let device_handle (device : Device.t) : int = device
let device number = taken "device" "cu_device_get_count" (Raw_interop.take_device number)
let context_handle = Raw.ctx_address
let context handle = taken "context" "cu_ctx_get_device" (Raw_interop.take_context handle)
let stream_handle stream = Raw_interop.share_stream (Owner.raw stream)

let stream ?(own = false) ?keep handle =
  check_whose "stream" own keep;
  Owner.of_raw
    (taken "stream" "cu_stream_get_ctx" (Raw_interop.take_stream handle own keep))

let deviceptr_handle ptr = Raw.ptr_address ptr

let deviceptr_uint64 ptr =
  Unsigned.UInt64.of_int64 (Int64.of_nativeint (Raw.ptr_address ptr))

let deviceptr_by name ?(own = false) ?keep ~size_in_bytes address =
  check_whose name own keep;
  taken name "cu_pointer_get_attribute"
    (Raw_interop.take_memory address size_in_bytes own keep)

let deviceptr ?own = deviceptr_by "deviceptr" ?own

let deviceptr_of_uint64 ?own ?keep ~size_in_bytes address =
  deviceptr_by "deviceptr_of_uint64" ?own ?keep ~size_in_bytes (handle_of_int64 address)

let module_handle = Raw.module_address

let module_ ?(own = false) ?keep handle =
  check_whose "module_" own keep;
  taken "module_" "cu_ctx_get_current" (Raw_interop.take_module handle own keep)

let func_handle = Raw_interop.func_address

let func ?keep ~name handle =
  taken "func" "cu_func_get_module" (Raw_interop.take_func handle name keep)

let event_handle = Raw_interop.share_event

let event ?(own = false) ?keep handle =
  check_whose "event" own keep;
  taken "event" "cu_ctx_get_current" (Raw_interop.take_event handle own keep)

let graph_handle graph = (Raw.graph_info graph).address

let graph ?(own = false) ?keep handle =
  taken "graph" "cu_graph_get_nodes" (Raw_interop.take_graph handle own keep)

let exec_handle exec = (Raw.exec_info exec).address

let exec ?(own = false) ?keep handle =
  taken "exec" "cu_ctx_get_current" (Raw_interop.take_exec handle own keep)

let keep_alive value = ignore (Sys.opaque_identity value)

let keep_for stream value =
  Status.check (where "keep_for") "cu_stream_is_capturing"
    (Raw_interop.keep_for (Owner.raw stream) value)

(* CAML_BA_FLOAT32 and so on, in the order of the type of kinds. *)
let kind_flag (type a b) (kind : (a, b) Bigarray.kind) =
  match kind with
  | Float32 -> 0
  | Float64 -> 1
  | Int8_signed -> 2
  | Int8_unsigned -> 3
  | Int16_signed -> 4
  | Int16_unsigned -> 5
  | Int32 -> 6
  | Int64 -> 7
  | Int -> 8
  | Nativeint -> 9
  | Complex32 -> 10
  | Complex64 -> 11
  | Char -> 12
  | _ -> invalid_arg (where "bigarray_of_managed: this kind is not supported")
(* OCaml 5.1 has no other kinds. *)
[@@warning "-redundant-case"]

let bigarray_of_managed (type a b c) (kind : (a, b) Bigarray.kind)
    (layout : c Bigarray.layout) dimensions ptr : (a, b, c) Bigarray.Genarray.t =
  let where = where "bigarray_of_managed" in
  let refuse text = invalid_arg (where ^ ": " ^ text) in
  if Array.length dimensions > 16 then refuse "more than 16 dimensions";
  let bytes =
    Array.fold_left
      (fun bytes n ->
        if n < 0 then refuse (Printf.sprintf "dimension %d is negative" n);
        if n > 0 && bytes > max_int / n then refuse "the dimensions are too large";
        bytes * n)
      (Bigarray.kind_size_in_bytes kind)
      dimensions
  in
  let layout_flag = match layout with C_layout -> 0 | Fortran_layout -> 0x100 in
  Status.get where "cu_mem_alloc_managed"
    (Raw_interop.managed_array ptr (kind_flag kind lor layout_flag) bytes dimensions)
