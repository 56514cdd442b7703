(* Compile-time test: Cuda.Graph has the documented interface, in full and with the documented
   constructors, and Cuda and Nvrtc have the whole interface of cudajit. The signatures are written
   out here, not taken from the library, so that a changed .mli does not compile. *)

(* A signature is not used other than by the check. *)
[@@@warning "-32-34-37-60-69"]

open Sexplib0

module type CUDA_GRAPH = sig
  type stream
  type t
  type exec

  val sexp_of_t : t -> Sexp.t
  val sexp_of_exec : exec -> Sexp.t

  type capture_mode = GLOBAL | THREAD_LOCAL | RELAXED

  val sexp_of_capture_mode : capture_mode -> Sexp.t
  val begin_capture : ?mode:capture_mode -> stream -> unit
  val end_capture : stream -> t
  val instantiate : t -> exec
  val launch : exec -> stream -> unit
  val destroy : t -> unit
  val exec_destroy : exec -> unit
end

(* The constructors are the library's own, so a program may mix the two names. *)
module _ :
  CUDA_GRAPH
    with type stream := Cuda.Stream.t
     and type t = Cuda.Graph.t
     and type exec = Cuda.Graph.exec
     and type capture_mode = Cuda.Graph.capture_mode =
  Cuda.Graph

module type ADDITIONS = sig
  open Cuda

  val with_capture : ?mode:Graph.capture_mode -> Stream.t -> (unit -> 'a) -> Graph.t * 'a
  val instantiate_with : ?auto_free_on_launch:bool -> Graph.t -> Graph.exec
  val node_count : Graph.t -> int
end

module _ : ADDITIONS = Cuda.Graph

module type CUDA = sig
  type result

  val sexp_of_result : result -> Sexp.t

  exception Cuda_error of { status : result; message : string }

  val is_success : result -> bool
  val cuda_call_hook : (message:string -> status:result -> unit) option ref
  val init : ?flags:int -> unit -> unit

  type bigstring = (char, Bigarray.int8_unsigned_elt, Bigarray.c_layout) Bigarray.Array1.t

  val driver_description : unit -> string
  val driver_version : unit -> int
end

module _ : CUDA with type result = Cudagraph.result = Cuda

module type DEVICE = sig
  type t

  val sexp_of_t : t -> Sexp.t
  val get_count : unit -> int
  val get : ordinal:int -> t
  val primary_ctx_reset : t -> unit
  val get_free_and_total_mem : unit -> int * int

  type p2p_attribute =
    | PERFORMANCE_RANK of int
    | ACCESS_SUPPORTED of bool
    | NATIVE_ATOMIC_SUPPORTED of bool
    | CUDA_ARRAY_ACCESS_SUPPORTED of bool

  val sexp_of_p2p_attribute : p2p_attribute -> Sexp.t
  val get_p2p_attributes : dst:t -> src:t -> p2p_attribute list
  val can_access_peer : dst:t -> src:t -> bool

  type computemode = DEFAULT | PROHIBITED | EXCLUSIVE_PROCESS | UNCATEGORIZED of int64

  val sexp_of_computemode : computemode -> Sexp.t
  val computemode_of_int : int -> computemode

  type flush_GPU_direct_RDMA_writes_options = HOST | MEMOPS

  val sexp_of_flush_GPU_direct_RDMA_writes_options :
    flush_GPU_direct_RDMA_writes_options -> Sexp.t

  type mem_allocation_handle_type =
    | NONE
    | POSIX_FILE_DESCRIPTOR
    | WIN32
    | WIN32_KMT
    | FABRIC

  val sexp_of_mem_allocation_handle_type : mem_allocation_handle_type -> Sexp.t

  type attributes = {
    name : string;
    max_threads_per_block : int;
    max_block_dim_x : int;
    max_block_dim_y : int;
    max_block_dim_z : int;
    max_grid_dim_x : int;
    max_grid_dim_y : int;
    max_grid_dim_z : int;
    max_shared_memory_per_block : int;
    total_constant_memory : int;
    warp_size : int;
    max_pitch : int;
    max_registers_per_block : int;
    clock_rate : int;
    texture_alignment : int;
    multiprocessor_count : int;
    kernel_exec_timeout : bool;
    integrated : bool;
    can_map_host_memory : bool;
    compute_mode : computemode;
    maximum_texture1d_width : int;
    maximum_texture2d_width : int;
    maximum_texture2d_height : int;
    maximum_texture3d_width : int;
    maximum_texture3d_height : int;
    maximum_texture3d_depth : int;
    maximum_texture2d_layered_width : int;
    maximum_texture2d_layered_height : int;
    maximum_texture2d_layered_layers : int;
    surface_alignment : int;
    concurrent_kernels : bool;
    ecc_enabled : bool;
    pci_bus_id : int;
    pci_device_id : int;
    tcc_driver : bool;
    memory_clock_rate : int;
    global_memory_bus_width : int;
    l2_cache_size : int;
    max_threads_per_multiprocessor : int;
    async_engine_count : int;
    unified_addressing : bool;
    maximum_texture1d_layered_width : int;
    maximum_texture1d_layered_layers : int;
    maximum_texture2d_gather_width : int;
    maximum_texture2d_gather_height : int;
    maximum_texture3d_width_alternate : int;
    maximum_texture3d_height_alternate : int;
    maximum_texture3d_depth_alternate : int;
    pci_domain_id : int;
    texture_pitch_alignment : int;
    maximum_texturecubemap_width : int;
    maximum_texturecubemap_layered_width : int;
    maximum_texturecubemap_layered_layers : int;
    maximum_surface1d_width : int;
    maximum_surface2d_width : int;
    maximum_surface2d_height : int;
    maximum_surface3d_width : int;
    maximum_surface3d_height : int;
    maximum_surface3d_depth : int;
    maximum_surface1d_layered_width : int;
    maximum_surface1d_layered_layers : int;
    maximum_surface2d_layered_width : int;
    maximum_surface2d_layered_height : int;
    maximum_surface2d_layered_layers : int;
    maximum_surfacecubemap_width : int;
    maximum_surfacecubemap_layered_width : int;
    maximum_surfacecubemap_layered_layers : int;
    maximum_texture2d_linear_width : int;
    maximum_texture2d_linear_height : int;
    maximum_texture2d_linear_pitch : int;
    maximum_texture2d_mipmapped_width : int;
    maximum_texture2d_mipmapped_height : int;
    compute_capability_major : int;
    compute_capability_minor : int;
    maximum_texture1d_mipmapped_width : int;
    stream_priorities_supported : bool;
    global_l1_cache_supported : bool;
    local_l1_cache_supported : bool;
    max_shared_memory_per_multiprocessor : int;
    max_registers_per_multiprocessor : int;
    managed_memory : bool;
    multi_gpu_board : bool;
    multi_gpu_board_group_id : int;
    host_native_atomic_supported : bool;
    single_to_double_precision_perf_ratio : int;
    pageable_memory_access : bool;
    concurrent_managed_access : bool;
    compute_preemption_supported : bool;
    can_use_host_pointer_for_registered_mem : bool;
    cooperative_launch : bool;
    max_shared_memory_per_block_optin : int;
    can_flush_remote_writes : bool;
    host_register_supported : bool;
    pageable_memory_access_uses_host_page_tables : bool;
    direct_managed_mem_access_from_host : bool;
    virtual_memory_management_supported : bool;
    handle_type_posix_file_descriptor_supported : bool;
    handle_type_win32_handle_supported : bool;
    handle_type_win32_kmt_handle_supported : bool;
    max_blocks_per_multiprocessor : int;
    generic_compression_supported : bool;
    max_persisting_l2_cache_size : int;
    max_access_policy_window_size : int;
    gpu_direct_rdma_with_cuda_vmm_supported : bool;
    reserved_shared_memory_per_block : int;
    sparse_cuda_array_supported : bool;
    read_only_host_register_supported : bool;
    timeline_semaphore_interop_supported : bool;
    memory_pools_supported : bool;
    gpu_direct_rdma_supported : bool;
    gpu_direct_rdma_flush_writes_options : flush_GPU_direct_RDMA_writes_options list;
    gpu_direct_rdma_writes_ordering : bool;
    mempool_supported_handle_types : mem_allocation_handle_type list;
    cluster_launch : bool;
    deferred_mapping_cuda_array_supported : bool;
    can_use_64_bit_stream_mem_ops : bool;
    can_use_stream_wait_value_nor : bool;
    dma_buf_supported : bool;
    ipc_event_supported : bool;
    mem_sync_domain_count : int;
    tensor_map_access_supported : bool;
    unified_function_pointers : bool;
    multicast_supported : bool;
  }

  val sexp_of_attributes : attributes -> Sexp.t
  val get_attributes : t -> attributes
end

module _ :
  DEVICE
    with type t = Cuda.Device.t
     and type computemode = Cuda.Device.computemode
     and type flush_GPU_direct_RDMA_writes_options =
      Cuda.Device.flush_GPU_direct_RDMA_writes_options
     and type mem_allocation_handle_type = Cuda.Device.mem_allocation_handle_type
     and type attributes = Cuda.Device.attributes =
  Cuda.Device

module type CONTEXT = sig
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

  val sexp_of_flag : flag -> Sexp.t

  type flags = flag list

  val sexp_of_flags : flags -> Sexp.t

  type t

  val sexp_of_t : t -> Sexp.t
  val create : flags -> Cuda.Device.t -> t
  val get_flags : unit -> flags
  val get_primary : Cuda.Device.t -> t
  val get_device : unit -> Cuda.Device.t
  val pop_current : unit -> t
  val get_current : unit -> t
  val push_current : t -> unit
  val set_current : t -> unit
  val synchronize : unit -> unit
  val disable_peer_access : t -> unit
  val enable_peer_access : ?flags:Unsigned.uint -> t -> unit

  type limit =
    | STACK_SIZE
    | PRINTF_FIFO_SIZE
    | MALLOC_HEAP_SIZE
    | DEV_RUNTIME_SYNC_DEPTH
    | DEV_RUNTIME_PENDING_LAUNCH_COUNT
    | MAX_L2_FETCH_GRANULARITY
    | PERSISTING_L2_CACHE_SIZE

  val sexp_of_limit : limit -> Sexp.t
  val set_limit : limit -> int -> unit
  val get_limit : limit -> int
end

module _ : CONTEXT with type t = Cuda.Context.t = Cuda.Context

module type DEVICEPTR = sig
  type t
  type region = { base : t; offset_bytes : int }

  val offset : t -> bytes:int -> region
  val region_of : t -> region
  val sexp_of_t : t -> Sexp.t
  val equal : t -> t -> bool
  val hash : t -> int
  val string_of : t -> string
  val mem_alloc : size_in_bytes:int -> t
  val mem_free : t -> unit
  val memcpy_H_to_D_unsafe : dst:t -> src:unit Ctypes.ptr -> size_in_bytes:int -> unit

  val memcpy_H_to_D :
    ?host_offset:int ->
    ?length:int ->
    ?dst_offset:int ->
    dst:t ->
    src:('a, 'b, 'c) Bigarray.Genarray.t ->
    unit ->
    unit

  val alloc_and_memcpy : ('a, 'b, 'c) Bigarray.Genarray.t -> t
  val memcpy_D_to_H_unsafe : dst:unit Ctypes.ptr -> src:t -> size_in_bytes:int -> unit

  val memcpy_D_to_H :
    ?host_offset:int ->
    ?length:int ->
    ?src_offset:int ->
    dst:('a, 'b, 'c) Bigarray.Genarray.t ->
    src:t ->
    unit ->
    unit

  val memcpy_D_to_D :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:t ->
    src:t ->
    unit ->
    unit

  val memcpy_peer :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:t ->
    dst_ctx:Cuda.Context.t ->
    src:t ->
    src_ctx:Cuda.Context.t ->
    unit ->
    unit

  val memset_d8 : ?offset:int -> t -> Unsigned.uchar -> length:int -> unit
  val memset_d16 : ?offset:int -> t -> Unsigned.ushort -> length:int -> unit
  val memset_d32 : ?offset:int -> t -> Unsigned.uint32 -> length:int -> unit
end

module type DEVICEPTR_ADDITIONS = sig
  type t

  val allocation_size : t -> int
  val mem_alloc_managed : ?only_host:bool -> size_in_bytes:int -> unit -> t
end

module _ : DEVICEPTR_ADDITIONS with type t = Cuda.Deviceptr.t = Cuda.Deviceptr

module _ :
  DEVICEPTR with type t = Cuda.Deviceptr.t and type region = Cuda.Deviceptr.region =
  Cuda.Deviceptr

module type MODULE = sig
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

  val sexp_of_jit_target : jit_target -> Sexp.t

  type jit_fallback = PREFER_PTX | PREFER_BINARY

  val sexp_of_jit_fallback : jit_fallback -> Sexp.t

  type jit_cache_mode = NONE | CG | CA

  val sexp_of_jit_cache_mode : jit_cache_mode -> Sexp.t

  type jit_option =
    | MAX_REGISTERS of int
    | THREADS_PER_BLOCK of int
    | WALL_TIME of { milliseconds : float }
    | INFO_LOG_BUFFER of Cuda.bigstring
    | ERROR_LOG_BUFFER of Cuda.bigstring
    | OPTIMIZATION_LEVEL of int
    | TARGET_FROM_CUCONTEXT
    | TARGET of jit_target
    | FALLBACK_STRATEGY of jit_fallback
    | GENERATE_DEBUG_INFO of bool
    | LOG_VERBOSE of bool
    | GENERATE_LINE_INFO of bool
    | CACHE_MODE of jit_cache_mode
    | POSITION_INDEPENDENT_CODE of bool

  val sexp_of_jit_option : jit_option -> Sexp.t

  type func
  type t

  val load_data_ex : Nvrtc.compile_to_ptx_result -> jit_option list -> t
  val get_function : t -> name:string -> func
  val get_global : t -> name:string -> Cuda.Deviceptr.t * Unsigned.size_t
end

module type MODULE_ADDITIONS = sig
  type jit_option
  type func
  type t

  val load_ptx : ?options:jit_option list -> string -> t
  val load_cubin : string -> t
  val load_file : ?options:jit_option list -> string -> t

  module Func : sig
    val name : func -> string

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

    val sexp_of_attributes : attributes -> Sexp.t
    val get_attributes : func -> attributes
    val set_max_dynamic_shared_size : func -> int -> unit
    val max_active_blocks : ?shared_mem_bytes:int -> block_size:int -> func -> int

    type suggestion = { grid_dim_x : int; block_dim_x : int }

    val suggest_launch :
      ?shared_mem_bytes:int -> ?block_size_limit:int -> func -> suggestion
  end
end

module _ :
  MODULE_ADDITIONS
    with type t = Cuda.Module.t
     and type func = Cuda.Module.func
     and type jit_option = Cuda.Module.jit_option =
  Cuda.Module

module _ : MODULE with type t = Cuda.Module.t and type func = Cuda.Module.func =
  Cuda.Module

module type STREAM = sig
  type device := Cuda.Deviceptr.t
  type t

  val sexp_of_t : t -> Sexp.t
  val mem_alloc : t -> size_in_bytes:int -> device
  val mem_free : t -> device -> unit

  val memcpy_H_to_D_unsafe :
    dst:device -> src:unit Ctypes.ptr -> size_in_bytes:int -> t -> unit

  val memcpy_H_to_D :
    ?host_offset:int ->
    ?length:int ->
    ?dst_offset:int ->
    dst:device ->
    src:('a, 'b, 'c) Bigarray.Genarray.t ->
    t ->
    unit

  type kernel_param =
    | Tensor of Cuda.Deviceptr.t
    | Tensor_at of Cuda.Deviceptr.region
    | Int of int
    | Size_t of Unsigned.size_t
    | Single of float
    | Double of float

  val sexp_of_kernel_param : kernel_param -> Sexp.t
  val no_stream : t

  val launch_kernel :
    Cuda.Module.func ->
    grid_dim_x:int ->
    ?grid_dim_y:int ->
    ?grid_dim_z:int ->
    block_dim_x:int ->
    ?block_dim_y:int ->
    ?block_dim_z:int ->
    shared_mem_bytes:int ->
    t ->
    kernel_param list ->
    unit

  val memcpy_D_to_H_unsafe :
    dst:unit Ctypes.ptr -> src:device -> size_in_bytes:int -> t -> unit

  val memcpy_D_to_H :
    ?host_offset:int ->
    ?length:int ->
    ?src_offset:int ->
    dst:('a, 'b, 'c) Bigarray.Genarray.t ->
    src:device ->
    t ->
    unit

  val memcpy_D_to_D :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:device ->
    src:device ->
    t ->
    unit

  val memcpy_peer :
    ?kind:('a, 'b) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:device ->
    dst_ctx:Cuda.Context.t ->
    src:device ->
    src_ctx:Cuda.Context.t ->
    t ->
    unit

  type attach_mem = GLOBAL | HOST | SINGLE_stream

  val sexp_of_attach_mem : attach_mem -> Sexp.t
  val attach_mem : t -> device -> int -> attach_mem -> unit
  val create : ?non_blocking:bool -> ?lower_priority:int -> unit -> t
  val get_context : t -> Cuda.Context.t
  val get_id : t -> Unsigned.uint64
  val is_ready : t -> bool
  val synchronize : t -> unit
  val memset_d8 : ?offset:int -> device -> Unsigned.uchar -> length:int -> t -> unit
  val memset_d16 : ?offset:int -> device -> Unsigned.ushort -> length:int -> t -> unit
  val memset_d32 : ?offset:int -> device -> Unsigned.uint32 -> length:int -> t -> unit
  val total_unreleased_unfinished_delimited_events : t -> int * int * int
  val get_total_live_streams : unit -> int
end

module _ :
  STREAM with type t = Cuda.Stream.t and type kernel_param = Cuda.Stream.kernel_param =
  Cuda.Stream

module type STREAM_ADDITIONS = sig
  type t

  val is_capturing : t -> bool

  module Argument : sig
    type t =
      | Param of Cuda.Stream.kernel_param
      | Int8 of int
      | Int16 of int
      | Int32 of int32
      | Int64 of int64
      | Half of float
      | Bfloat16 of float
      | Address of nativeint
      | Struct of string

    val sexp_of_t : t -> Sexp.t
  end

  val launch_kernel_with :
    Cuda.Module.func ->
    grid_dim_x:int ->
    ?grid_dim_y:int ->
    ?grid_dim_z:int ->
    block_dim_x:int ->
    ?block_dim_y:int ->
    ?block_dim_z:int ->
    shared_mem_bytes:int ->
    t ->
    Argument.t list ->
    unit
end

module _ : STREAM_ADDITIONS with type t = Cuda.Stream.t = Cuda.Stream

module type EVENT = sig
  type t

  val sexp_of_t : t -> Sexp.t

  val create :
    ?blocking_sync:bool -> ?enable_timing:bool -> ?interprocess:bool -> unit -> t

  val elapsed_time : start:t -> end_:t -> float
  val query : t -> bool
  val record : ?external_:bool -> t -> Cuda.Stream.t -> unit
  val synchronize : t -> unit
  val wait : ?external_:bool -> Cuda.Stream.t -> t -> unit
end

module _ : EVENT with type t = Cuda.Event.t = Cuda.Event

module type DELIMITED_EVENT = sig
  type t

  val sexp_of_t : t -> Sexp.t

  val record :
    ?blocking_sync:bool -> ?interprocess:bool -> ?external_:bool -> Cuda.Stream.t -> t

  val is_released : t -> bool
  val query : t -> bool
  val synchronize : t -> unit
  val wait : ?external_:bool -> Cuda.Stream.t -> t -> unit
end

module _ : DELIMITED_EVENT with type t = Cuda.Delimited_event.t = Cuda.Delimited_event

module type NVRTC = sig
  type result

  val sexp_of_result : result -> Sexp.t

  exception Nvrtc_error of { status : result; message : string }

  val is_success : result -> bool

  type compile_to_ptx_result = {
    log : string option;
    ptx : char Ctypes.ptr;
    ptx_length : int;
  }

  val sexp_of_compile_to_ptx_result : compile_to_ptx_result -> Sexp.t

  val compile_to_ptx :
    cu_src:string ->
    name:string ->
    options:string list ->
    with_debug:bool ->
    compile_to_ptx_result

  val string_from_ptx : compile_to_ptx_result -> string
  val compilation_log : compile_to_ptx_result -> string option
  val of_ptx : string -> compile_to_ptx_result
end

module _ : NVRTC with type compile_to_ptx_result = Cudagraph.Nvrtc.compile_to_ptx_result =
  Nvrtc
