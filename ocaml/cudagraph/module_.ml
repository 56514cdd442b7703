open Sexplib0.Sexp_conv

let where name = "Cuda.Module." ^ name

type jit_target =
  | COMPUTE_30
  | COMPUTE_32
  | COMPUTE_35
  | COMPUTE_37
  | COMPUTE_50
  | COMPUTE_52
  | COMPUTE_53
  | COMPUTE_60
  | COMPUTE_61
  | COMPUTE_62
  | COMPUTE_70
  | COMPUTE_72
  | COMPUTE_75
  | COMPUTE_80
  | COMPUTE_86
  | COMPUTE_87
  | COMPUTE_89
  | COMPUTE_90
  | COMPUTE_90A

(* CUjit_target *)
let target = function
  | COMPUTE_30 -> (30, "COMPUTE_30")
  | COMPUTE_32 -> (32, "COMPUTE_32")
  | COMPUTE_35 -> (35, "COMPUTE_35")
  | COMPUTE_37 -> (37, "COMPUTE_37")
  | COMPUTE_50 -> (50, "COMPUTE_50")
  | COMPUTE_52 -> (52, "COMPUTE_52")
  | COMPUTE_53 -> (53, "COMPUTE_53")
  | COMPUTE_60 -> (60, "COMPUTE_60")
  | COMPUTE_61 -> (61, "COMPUTE_61")
  | COMPUTE_62 -> (62, "COMPUTE_62")
  | COMPUTE_70 -> (70, "COMPUTE_70")
  | COMPUTE_72 -> (72, "COMPUTE_72")
  | COMPUTE_75 -> (75, "COMPUTE_75")
  | COMPUTE_80 -> (80, "COMPUTE_80")
  | COMPUTE_86 -> (86, "COMPUTE_86")
  | COMPUTE_87 -> (87, "COMPUTE_87")
  | COMPUTE_89 -> (89, "COMPUTE_89")
  | COMPUTE_90 -> (90, "COMPUTE_90")
  | COMPUTE_90A -> (0x10000 + 90, "COMPUTE_90A")

let sexp_of_jit_target t = Sexplib0.Sexp.Atom (snd (target t))

type jit_fallback = PREFER_PTX | PREFER_BINARY

let fallback = function
  | PREFER_PTX -> (0, "PREFER_PTX")
  | PREFER_BINARY -> (1, "PREFER_BINARY")

let sexp_of_jit_fallback f = Sexplib0.Sexp.Atom (snd (fallback f))

type jit_cache_mode = NONE | CG | CA

let cache_mode = function NONE -> (0, "NONE") | CG -> (1, "CG") | CA -> (2, "CA")
let sexp_of_jit_cache_mode c = Sexplib0.Sexp.Atom (snd (cache_mode c))

type log = Raw.bigstring

type jit_option =
  | MAX_REGISTERS of int
  | THREADS_PER_BLOCK of int
  | WALL_TIME of { milliseconds : float }
  | INFO_LOG_BUFFER of log
  | ERROR_LOG_BUFFER of log
  | OPTIMIZATION_LEVEL of int
  | TARGET_FROM_CUCONTEXT
  | TARGET of jit_target
  | FALLBACK_STRATEGY of jit_fallback
  | GENERATE_DEBUG_INFO of bool
  | LOG_VERBOSE of bool
  | GENERATE_LINE_INFO of bool
  | CACHE_MODE of jit_cache_mode
  | POSITION_INDEPENDENT_CODE of bool

let sexp_of_jit_option option : Sexplib0.Sexp.t =
  let log buffer = sexp_of_int (Bigarray.Array1.dim buffer) in
  let named name argument = Sexplib0.Sexp.List [ Atom name; argument ] in
  match option with
  | MAX_REGISTERS n -> named "MAX_REGISTERS" (sexp_of_int n)
  | THREADS_PER_BLOCK n -> named "THREADS_PER_BLOCK" (sexp_of_int n)
  | WALL_TIME { milliseconds } ->
      named "WALL_TIME"
        (List [ List [ Atom "milliseconds"; sexp_of_float milliseconds ] ])
  | INFO_LOG_BUFFER buffer -> named "INFO_LOG_BUFFER" (log buffer)
  | ERROR_LOG_BUFFER buffer -> named "ERROR_LOG_BUFFER" (log buffer)
  | OPTIMIZATION_LEVEL n -> named "OPTIMIZATION_LEVEL" (sexp_of_int n)
  | TARGET_FROM_CUCONTEXT -> Atom "TARGET_FROM_CUCONTEXT"
  | TARGET t -> named "TARGET" (sexp_of_jit_target t)
  | FALLBACK_STRATEGY f -> named "FALLBACK_STRATEGY" (sexp_of_jit_fallback f)
  | GENERATE_DEBUG_INFO b -> named "GENERATE_DEBUG_INFO" (sexp_of_bool b)
  | LOG_VERBOSE b -> named "LOG_VERBOSE" (sexp_of_bool b)
  | GENERATE_LINE_INFO b -> named "GENERATE_LINE_INFO" (sexp_of_bool b)
  | CACHE_MODE c -> named "CACHE_MODE" (sexp_of_jit_cache_mode c)
  | POSITION_INDEPENDENT_CODE b -> named "POSITION_INDEPENDENT_CODE" (sexp_of_bool b)

type t = Raw.modul
type func = Raw.func

(* CUjit_option, with the buffers of logs apart. *)
let encode where options =
  let inside name most n =
    if n < 0 || n > most then
      invalid_arg (Printf.sprintf "%s: %s %d is not between 0 and %d" where name n most);
    n
  in
  let c_int = Int32.to_int Int32.max_int in
  let logs = ref [] in
  let log number buffer =
    logs := !logs @ [ buffer ];
    (number, List.length !logs - 1)
  in
  let number = function
    | MAX_REGISTERS n -> (0, inside "MAX_REGISTERS" c_int n)
    | THREADS_PER_BLOCK n -> (1, inside "THREADS_PER_BLOCK" c_int n)
    | WALL_TIME { milliseconds } -> (2, Int32.to_int (Int32.bits_of_float milliseconds))
    | INFO_LOG_BUFFER buffer -> log 3 buffer
    | ERROR_LOG_BUFFER buffer -> log 5 buffer
    | OPTIMIZATION_LEVEL n -> (7, inside "OPTIMIZATION_LEVEL" 4 n)
    | TARGET_FROM_CUCONTEXT -> (8, 0)
    | TARGET t -> (9, fst (target t))
    | FALLBACK_STRATEGY f -> (10, fst (fallback f))
    | GENERATE_DEBUG_INFO b -> (11, Bool.to_int b)
    | LOG_VERBOSE b -> (12, Bool.to_int b)
    | GENERATE_LINE_INFO b -> (13, Bool.to_int b)
    | CACHE_MODE c -> (14, fst (cache_mode c))
    | POSITION_INDEPENDENT_CODE b -> (30, Bool.to_int b)
  in
  let numbers = List.map number options in
  (Array.of_list numbers, Array.of_list !logs)

let load where image options =
  let options, logs = encode where options in
  Status.get_memory where "cu_module_load_data_ex" (fun () ->
      Raw.module_load image options logs)

(* The driver reads a text up to its NUL: one with more behind it would be cut. *)
let load_ptx ?(options = []) text =
  let where = where "load_ptx" in
  let length = String.length text in
  (match String.index_opt text '\000' with
  | Some at when String.exists (( <> ) '\000') (String.sub text at (length - at)) ->
      invalid_arg
        (Printf.sprintf "%s: the text has a NUL at byte %d of %d" where at length)
  | _ -> ());
  load where text options

let load_data_ex compiled options =
  load (where "load_data_ex") (Nvrtc.string_from_ptx compiled) options

let load_cubin image =
  let where = where "load_cubin" in
  if not (String.starts_with ~prefix:"\x7fELF" image) then
    invalid_arg (where ^ ": the image is not a cubin: it does not begin as an ELF file");
  load where image []

let load_file ?(options = []) path =
  let where = where "load_file" in
  let image =
    try In_channel.with_open_bin path In_channel.input_all
    with Sys_error why ->
      (* The system names the file for some reasons only. *)
      let named = String.starts_with ~prefix:path why in
      invalid_arg (where ^ ": " ^ if named then why else path ^ ": " ^ why)
  in
  if image = "" then invalid_arg (Printf.sprintf "%s: %s is empty" where path);
  load where image options

let get_function m ~name =
  Status.get (where "get_function") "cu_module_get_function" (Raw.module_function m name)

let get_global m ~name =
  let ptr =
    Status.get (where "get_global") "cu_module_get_global" (Raw.module_global m name)
  in
  (ptr, Unsigned.Size_t.of_int (Raw.ptr_size ptr))

module Func = struct
  let where name = where ("Func." ^ name)
  let name = Raw.func_name

  type attributes = {
    max_threads_per_block : int;
    shared_size_bytes : int;
    const_size_bytes : int;
    local_size_bytes : int;
    num_regs : int;
    ptx_version : int;
    binary_version : int;
    max_dynamic_shared_size_bytes : int;
  }

  let sexp_of_attributes a : Sexplib0.Sexp.t =
    let field name n = Sexplib0.Sexp.List [ Atom name; sexp_of_int n ] in
    List
      [
        field "max_threads_per_block" a.max_threads_per_block;
        field "shared_size_bytes" a.shared_size_bytes;
        field "const_size_bytes" a.const_size_bytes;
        field "local_size_bytes" a.local_size_bytes;
        field "num_regs" a.num_regs;
        field "ptx_version" a.ptx_version;
        field "binary_version" a.binary_version;
        field "max_dynamic_shared_size_bytes" a.max_dynamic_shared_size_bytes;
      ]

  (* CUfunction_attribute *)
  let get_attributes func =
    let get n =
      Status.get (where "get_attributes") "cu_func_get_attribute"
        (Raw.func_attribute func n)
    in
    {
      max_threads_per_block = get 0;
      shared_size_bytes = get 1;
      const_size_bytes = get 2;
      local_size_bytes = get 3;
      num_regs = get 4;
      ptx_version = get 5;
      binary_version = get 6;
      max_dynamic_shared_size_bytes = get 8;
    }

  let set_max_dynamic_shared_size func bytes =
    Status.check
      (where "set_max_dynamic_shared_size")
      "cu_func_set_attribute"
      (Raw.func_set_shared_limit func bytes)

  let max_active_blocks ?(shared_mem_bytes = 0) ~block_size func =
    Status.get (where "max_active_blocks")
      "cu_occupancy_max_active_blocks_per_multiprocessor"
      (Raw.func_active_blocks func block_size shared_mem_bytes)

  type suggestion = { grid_dim_x : int; block_dim_x : int }

  let suggest_launch ?(shared_mem_bytes = 0) ?(block_size_limit = 0) func =
    let grid_dim_x, block_dim_x =
      Status.get (where "suggest_launch") "cu_occupancy_max_potential_block_size"
        (Raw.func_best_block func shared_mem_bytes block_size_limit)
    in
    { grid_dim_x; block_dim_x }
end
