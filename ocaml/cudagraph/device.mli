(** Devices and their attributes. *)

type t = Raw.device
(** A GPU, as numbered by the driver. *)

val sexp_of_t : t -> Sexplib0.Sexp.t

val get_count : unit -> int
(** [get_count ()] is the number of GPUs. Driver: [cuDeviceGetCount]. *)

val get : ordinal:int -> t
(** [get ~ordinal] is a GPU by its position, from 0. Raises [Cuda_error] when there is no
    such GPU. Driver: [cuDeviceGet]. *)

val primary_ctx_reset : t -> unit
(** [primary_ctx_reset device] destroys everything in the device's primary context. Values
    made in it are dead from then on: using one raises, releasing one does nothing.
    Captures in it are over. Waits for the calls that other threads are in, also for those
    that wait for the device, and for work of other contexts that uses memory of this one,
    unless its stream captures. Driver: [cuDevicePrimaryCtxReset]. *)

val get_free_and_total_mem : unit -> int * int
(** [get_free_and_total_mem ()] is the free and the total memory, in bytes, of the current
    context's device. Driver: [cuMemGetInfo]. *)

(** What the link between two devices can do. *)
type p2p_attribute =
  | PERFORMANCE_RANK of int  (** Smaller is faster, among the links of a machine. *)
  | ACCESS_SUPPORTED of bool  (** Kernels can use the other device's memory. *)
  | NATIVE_ATOMIC_SUPPORTED of bool  (** Atomics work over the link. *)
  | CUDA_ARRAY_ACCESS_SUPPORTED of bool  (** CUDA arrays can be used over the link. *)

val sexp_of_p2p_attribute : p2p_attribute -> Sexplib0.Sexp.t

val get_p2p_attributes : dst:t -> src:t -> p2p_attribute list
(** [get_p2p_attributes ~dst ~src] is one of each. Raises [Cuda_error] when both are the
    same device. Driver: [cuDeviceGetP2PAttribute]. *)

val can_access_peer : dst:t -> src:t -> bool
(** [can_access_peer ~dst ~src] is whether kernels on [dst] can be let use the memory of
    [src], by [Context.enable_peer_access]. Driver: [cuDeviceCanAccessPeer]. *)

(** How many contexts a device admits. *)
type computemode =
  | DEFAULT  (** Any number. *)
  | PROHIBITED  (** None. *)
  | EXCLUSIVE_PROCESS  (** Those of one process. *)
  | UNCATEGORIZED of int64  (** A mode without a name here, as the driver's number. *)

val sexp_of_computemode : computemode -> Sexplib0.Sexp.t

val computemode_of_int : int -> computemode
(** [computemode_of_int n] is the mode that the driver numbers [n]; it never raises. *)

(** Ways to make what other devices have written into a GPU's memory (GPUDirect RDMA)
    visible. *)
type flush_GPU_direct_RDMA_writes_options =
  | HOST  (** By a call of the host, [cuFlushGPUDirectRDMAWrites]. *)
  | MEMOPS  (** By memory operations of a stream that flush. *)

val sexp_of_flush_GPU_direct_RDMA_writes_options :
  flush_GPU_direct_RDMA_writes_options -> Sexplib0.Sexp.t

(** Kinds of handle by which memory can be shared between processes. *)
type mem_allocation_handle_type =
  | NONE  (** None: the memory stays in its process. *)
  | POSIX_FILE_DESCRIPTOR
  | WIN32  (** A handle of Windows NT. *)
  | WIN32_KMT  (** A handle of Direct3D's kernel mode. *)
  | FABRIC  (** A handle that is valid on other machines of the same fabric, too. *)

val sexp_of_mem_allocation_handle_type : mem_allocation_handle_type -> Sexplib0.Sexp.t

type attributes = {
  name : string;  (** As the driver gives it, e.g. "NVIDIA H200". *)
  max_threads_per_block : int;  (** Threads in all three directions together. *)
  max_block_dim_x : int;
  max_block_dim_y : int;
  max_block_dim_z : int;
  max_grid_dim_x : int;
  max_grid_dim_y : int;
  max_grid_dim_z : int;
  max_shared_memory_per_block : int;  (** Bytes, without opt-in. *)
  total_constant_memory : int;  (** Bytes. *)
  warp_size : int;  (** Threads. *)
  max_pitch : int;  (** Bytes. *)
  max_registers_per_block : int;  (** Registers of 32 bits. *)
  clock_rate : int;  (** Kilohertz. *)
  texture_alignment : int;  (** Bytes. *)
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
  surface_alignment : int;  (** Bytes. *)
  concurrent_kernels : bool;  (** Whether kernels of one context may run side by side. *)
  ecc_enabled : bool;
  pci_bus_id : int;
  pci_device_id : int;
  tcc_driver : bool;
  memory_clock_rate : int;  (** Kilohertz. *)
  global_memory_bus_width : int;  (** Bits. *)
  l2_cache_size : int;  (** Bytes. *)
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
  texture_pitch_alignment : int;  (** Bytes. *)
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
  maximum_texture2d_linear_pitch : int;  (** Bytes. *)
  maximum_texture2d_mipmapped_width : int;
  maximum_texture2d_mipmapped_height : int;
  compute_capability_major : int;
  compute_capability_minor : int;
  maximum_texture1d_mipmapped_width : int;
  stream_priorities_supported : bool;
  global_l1_cache_supported : bool;
  local_l1_cache_supported : bool;
  max_shared_memory_per_multiprocessor : int;  (** Bytes. *)
  max_registers_per_multiprocessor : int;
  managed_memory : bool;
  multi_gpu_board : bool;
  multi_gpu_board_group_id : int;
  host_native_atomic_supported : bool;
  single_to_double_precision_perf_ratio : int;
  pageable_memory_access : bool;  (** Whether kernels may read ordinary host memory. *)
  concurrent_managed_access : bool;
  compute_preemption_supported : bool;
  can_use_host_pointer_for_registered_mem : bool;
  cooperative_launch : bool;
  max_shared_memory_per_block_optin : int;  (** Bytes. *)
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
  max_persisting_l2_cache_size : int;  (** Bytes. *)
  max_access_policy_window_size : int;  (** Bytes. *)
  gpu_direct_rdma_with_cuda_vmm_supported : bool;
  reserved_shared_memory_per_block : int;  (** Bytes. *)
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
(** What a device is and can do. An attribute that the driver does not know reads as 0,
    false or empty. *)

val sexp_of_attributes : attributes -> Sexplib0.Sexp.t

val get_attributes : t -> attributes
(** [get_attributes device] asks for all attributes. Driver: [cuDeviceGetName],
    [cuDeviceGetAttribute]. *)
