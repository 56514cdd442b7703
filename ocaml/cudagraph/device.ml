open Sexplib0.Sexp_conv

type t = Raw.device

let sexp_of_t device =
  Sexplib0.Sexp.List [ Atom "Cu_device"; Atom (string_of_int device) ]

let get_count () =
  Status.get "Cuda.Device.get_count" "cu_device_get_count" (Raw.device_count ())

let get ~ordinal = Status.get "Cuda.Device.get" "cu_device_get" (Raw.device_get ordinal)

let primary_ctx_reset device =
  Status.check "Cuda.Device.primary_ctx_reset" "cu_device_primary_ctx_reset"
    (Raw.primary_ctx_reset device)

let get_free_and_total_mem () =
  Status.get "Cuda.Device.get_free_and_total_mem" "cu_mem_get_info" (Raw.mem_info ())

type p2p_attribute =
  | PERFORMANCE_RANK of int
  | ACCESS_SUPPORTED of bool
  | NATIVE_ATOMIC_SUPPORTED of bool
  | CUDA_ARRAY_ACCESS_SUPPORTED of bool

let sexp_of_p2p_attribute attribute =
  let named name argument = Sexplib0.Sexp.List [ Atom name; argument ] in
  match attribute with
  | PERFORMANCE_RANK n -> named "PERFORMANCE_RANK" (sexp_of_int n)
  | ACCESS_SUPPORTED b -> named "ACCESS_SUPPORTED" (sexp_of_bool b)
  | NATIVE_ATOMIC_SUPPORTED b -> named "NATIVE_ATOMIC_SUPPORTED" (sexp_of_bool b)
  | CUDA_ARRAY_ACCESS_SUPPORTED b -> named "CUDA_ARRAY_ACCESS_SUPPORTED" (sexp_of_bool b)

(* CUdevice_P2PAttribute *)
let get_p2p_attributes ~dst ~src =
  let get attribute =
    Status.get "Cuda.Device.get_p2p_attributes" "cu_device_get_p2p_attribute"
      (Raw.device_link_attribute attribute dst src)
  in
  let rank = get 1 in
  let access = get 2 <> 0 in
  let atomic = get 3 <> 0 in
  let arrays = get 4 <> 0 in
  [
    CUDA_ARRAY_ACCESS_SUPPORTED arrays;
    NATIVE_ATOMIC_SUPPORTED atomic;
    ACCESS_SUPPORTED access;
    PERFORMANCE_RANK rank;
  ]

let can_access_peer ~dst ~src =
  Status.get "Cuda.Device.can_access_peer" "cu_device_can_access_peer"
    (Raw.device_can_access_peer dst src)

type computemode = DEFAULT | PROHIBITED | EXCLUSIVE_PROCESS | UNCATEGORIZED of int64

let computemode_of_int = function
  | 0 -> DEFAULT
  | 2 -> PROHIBITED
  | 3 -> EXCLUSIVE_PROCESS
  | other -> UNCATEGORIZED (Int64.of_int other)

let sexp_of_computemode = function
  | DEFAULT -> Sexplib0.Sexp.Atom "DEFAULT"
  | PROHIBITED -> Atom "PROHIBITED"
  | EXCLUSIVE_PROCESS -> Atom "EXCLUSIVE_PROCESS"
  | UNCATEGORIZED n -> List [ Atom "UNCATEGORIZED"; sexp_of_int64 n ]

type flush_GPU_direct_RDMA_writes_options = HOST | MEMOPS

let sexp_of_flush_GPU_direct_RDMA_writes_options = function
  | HOST -> Sexplib0.Sexp.Atom "HOST"
  | MEMOPS -> Atom "MEMOPS"

type mem_allocation_handle_type =
  | NONE
  | POSIX_FILE_DESCRIPTOR
  | WIN32
  | WIN32_KMT
  | FABRIC

let sexp_of_mem_allocation_handle_type = function
  | NONE -> Sexplib0.Sexp.Atom "NONE"
  | POSIX_FILE_DESCRIPTOR -> Atom "POSIX_FILE_DESCRIPTOR"
  | WIN32 -> Atom "WIN32"
  | WIN32_KMT -> Atom "WIN32_KMT"
  | FABRIC -> Atom "FABRIC"

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

let sexp_of_attributes a =
  let field (name, value) = Sexplib0.Sexp.List [ Atom name; value ] in
  Sexplib0.Sexp.List
    (List.map field
       [
         ("name", sexp_of_string a.name);
         ("max_threads_per_block", sexp_of_int a.max_threads_per_block);
         ("max_block_dim_x", sexp_of_int a.max_block_dim_x);
         ("max_block_dim_y", sexp_of_int a.max_block_dim_y);
         ("max_block_dim_z", sexp_of_int a.max_block_dim_z);
         ("max_grid_dim_x", sexp_of_int a.max_grid_dim_x);
         ("max_grid_dim_y", sexp_of_int a.max_grid_dim_y);
         ("max_grid_dim_z", sexp_of_int a.max_grid_dim_z);
         ("max_shared_memory_per_block", sexp_of_int a.max_shared_memory_per_block);
         ("total_constant_memory", sexp_of_int a.total_constant_memory);
         ("warp_size", sexp_of_int a.warp_size);
         ("max_pitch", sexp_of_int a.max_pitch);
         ("max_registers_per_block", sexp_of_int a.max_registers_per_block);
         ("clock_rate", sexp_of_int a.clock_rate);
         ("texture_alignment", sexp_of_int a.texture_alignment);
         ("multiprocessor_count", sexp_of_int a.multiprocessor_count);
         ("kernel_exec_timeout", sexp_of_bool a.kernel_exec_timeout);
         ("integrated", sexp_of_bool a.integrated);
         ("can_map_host_memory", sexp_of_bool a.can_map_host_memory);
         ("compute_mode", sexp_of_computemode a.compute_mode);
         ("maximum_texture1d_width", sexp_of_int a.maximum_texture1d_width);
         ("maximum_texture2d_width", sexp_of_int a.maximum_texture2d_width);
         ("maximum_texture2d_height", sexp_of_int a.maximum_texture2d_height);
         ("maximum_texture3d_width", sexp_of_int a.maximum_texture3d_width);
         ("maximum_texture3d_height", sexp_of_int a.maximum_texture3d_height);
         ("maximum_texture3d_depth", sexp_of_int a.maximum_texture3d_depth);
         ("maximum_texture2d_layered_width", sexp_of_int a.maximum_texture2d_layered_width);
         ( "maximum_texture2d_layered_height",
           sexp_of_int a.maximum_texture2d_layered_height );
         ( "maximum_texture2d_layered_layers",
           sexp_of_int a.maximum_texture2d_layered_layers );
         ("surface_alignment", sexp_of_int a.surface_alignment);
         ("concurrent_kernels", sexp_of_bool a.concurrent_kernels);
         ("ecc_enabled", sexp_of_bool a.ecc_enabled);
         ("pci_bus_id", sexp_of_int a.pci_bus_id);
         ("pci_device_id", sexp_of_int a.pci_device_id);
         ("tcc_driver", sexp_of_bool a.tcc_driver);
         ("memory_clock_rate", sexp_of_int a.memory_clock_rate);
         ("global_memory_bus_width", sexp_of_int a.global_memory_bus_width);
         ("l2_cache_size", sexp_of_int a.l2_cache_size);
         ("max_threads_per_multiprocessor", sexp_of_int a.max_threads_per_multiprocessor);
         ("async_engine_count", sexp_of_int a.async_engine_count);
         ("unified_addressing", sexp_of_bool a.unified_addressing);
         ("maximum_texture1d_layered_width", sexp_of_int a.maximum_texture1d_layered_width);
         ( "maximum_texture1d_layered_layers",
           sexp_of_int a.maximum_texture1d_layered_layers );
         ("maximum_texture2d_gather_width", sexp_of_int a.maximum_texture2d_gather_width);
         ("maximum_texture2d_gather_height", sexp_of_int a.maximum_texture2d_gather_height);
         ( "maximum_texture3d_width_alternate",
           sexp_of_int a.maximum_texture3d_width_alternate );
         ( "maximum_texture3d_height_alternate",
           sexp_of_int a.maximum_texture3d_height_alternate );
         ( "maximum_texture3d_depth_alternate",
           sexp_of_int a.maximum_texture3d_depth_alternate );
         ("pci_domain_id", sexp_of_int a.pci_domain_id);
         ("texture_pitch_alignment", sexp_of_int a.texture_pitch_alignment);
         ("maximum_texturecubemap_width", sexp_of_int a.maximum_texturecubemap_width);
         ( "maximum_texturecubemap_layered_width",
           sexp_of_int a.maximum_texturecubemap_layered_width );
         ( "maximum_texturecubemap_layered_layers",
           sexp_of_int a.maximum_texturecubemap_layered_layers );
         ("maximum_surface1d_width", sexp_of_int a.maximum_surface1d_width);
         ("maximum_surface2d_width", sexp_of_int a.maximum_surface2d_width);
         ("maximum_surface2d_height", sexp_of_int a.maximum_surface2d_height);
         ("maximum_surface3d_width", sexp_of_int a.maximum_surface3d_width);
         ("maximum_surface3d_height", sexp_of_int a.maximum_surface3d_height);
         ("maximum_surface3d_depth", sexp_of_int a.maximum_surface3d_depth);
         ("maximum_surface1d_layered_width", sexp_of_int a.maximum_surface1d_layered_width);
         ( "maximum_surface1d_layered_layers",
           sexp_of_int a.maximum_surface1d_layered_layers );
         ("maximum_surface2d_layered_width", sexp_of_int a.maximum_surface2d_layered_width);
         ( "maximum_surface2d_layered_height",
           sexp_of_int a.maximum_surface2d_layered_height );
         ( "maximum_surface2d_layered_layers",
           sexp_of_int a.maximum_surface2d_layered_layers );
         ("maximum_surfacecubemap_width", sexp_of_int a.maximum_surfacecubemap_width);
         ( "maximum_surfacecubemap_layered_width",
           sexp_of_int a.maximum_surfacecubemap_layered_width );
         ( "maximum_surfacecubemap_layered_layers",
           sexp_of_int a.maximum_surfacecubemap_layered_layers );
         ("maximum_texture2d_linear_width", sexp_of_int a.maximum_texture2d_linear_width);
         ("maximum_texture2d_linear_height", sexp_of_int a.maximum_texture2d_linear_height);
         ("maximum_texture2d_linear_pitch", sexp_of_int a.maximum_texture2d_linear_pitch);
         ( "maximum_texture2d_mipmapped_width",
           sexp_of_int a.maximum_texture2d_mipmapped_width );
         ( "maximum_texture2d_mipmapped_height",
           sexp_of_int a.maximum_texture2d_mipmapped_height );
         ("compute_capability_major", sexp_of_int a.compute_capability_major);
         ("compute_capability_minor", sexp_of_int a.compute_capability_minor);
         ( "maximum_texture1d_mipmapped_width",
           sexp_of_int a.maximum_texture1d_mipmapped_width );
         ("stream_priorities_supported", sexp_of_bool a.stream_priorities_supported);
         ("global_l1_cache_supported", sexp_of_bool a.global_l1_cache_supported);
         ("local_l1_cache_supported", sexp_of_bool a.local_l1_cache_supported);
         ( "max_shared_memory_per_multiprocessor",
           sexp_of_int a.max_shared_memory_per_multiprocessor );
         ( "max_registers_per_multiprocessor",
           sexp_of_int a.max_registers_per_multiprocessor );
         ("managed_memory", sexp_of_bool a.managed_memory);
         ("multi_gpu_board", sexp_of_bool a.multi_gpu_board);
         ("multi_gpu_board_group_id", sexp_of_int a.multi_gpu_board_group_id);
         ("host_native_atomic_supported", sexp_of_bool a.host_native_atomic_supported);
         ( "single_to_double_precision_perf_ratio",
           sexp_of_int a.single_to_double_precision_perf_ratio );
         ("pageable_memory_access", sexp_of_bool a.pageable_memory_access);
         ("concurrent_managed_access", sexp_of_bool a.concurrent_managed_access);
         ("compute_preemption_supported", sexp_of_bool a.compute_preemption_supported);
         ( "can_use_host_pointer_for_registered_mem",
           sexp_of_bool a.can_use_host_pointer_for_registered_mem );
         ("cooperative_launch", sexp_of_bool a.cooperative_launch);
         ( "max_shared_memory_per_block_optin",
           sexp_of_int a.max_shared_memory_per_block_optin );
         ("can_flush_remote_writes", sexp_of_bool a.can_flush_remote_writes);
         ("host_register_supported", sexp_of_bool a.host_register_supported);
         ( "pageable_memory_access_uses_host_page_tables",
           sexp_of_bool a.pageable_memory_access_uses_host_page_tables );
         ( "direct_managed_mem_access_from_host",
           sexp_of_bool a.direct_managed_mem_access_from_host );
         ( "virtual_memory_management_supported",
           sexp_of_bool a.virtual_memory_management_supported );
         ( "handle_type_posix_file_descriptor_supported",
           sexp_of_bool a.handle_type_posix_file_descriptor_supported );
         ( "handle_type_win32_handle_supported",
           sexp_of_bool a.handle_type_win32_handle_supported );
         ( "handle_type_win32_kmt_handle_supported",
           sexp_of_bool a.handle_type_win32_kmt_handle_supported );
         ("max_blocks_per_multiprocessor", sexp_of_int a.max_blocks_per_multiprocessor);
         ("generic_compression_supported", sexp_of_bool a.generic_compression_supported);
         ("max_persisting_l2_cache_size", sexp_of_int a.max_persisting_l2_cache_size);
         ("max_access_policy_window_size", sexp_of_int a.max_access_policy_window_size);
         ( "gpu_direct_rdma_with_cuda_vmm_supported",
           sexp_of_bool a.gpu_direct_rdma_with_cuda_vmm_supported );
         ( "reserved_shared_memory_per_block",
           sexp_of_int a.reserved_shared_memory_per_block );
         ("sparse_cuda_array_supported", sexp_of_bool a.sparse_cuda_array_supported);
         ( "read_only_host_register_supported",
           sexp_of_bool a.read_only_host_register_supported );
         ( "timeline_semaphore_interop_supported",
           sexp_of_bool a.timeline_semaphore_interop_supported );
         ("memory_pools_supported", sexp_of_bool a.memory_pools_supported);
         ("gpu_direct_rdma_supported", sexp_of_bool a.gpu_direct_rdma_supported);
         ( "gpu_direct_rdma_flush_writes_options",
           sexp_of_list sexp_of_flush_GPU_direct_RDMA_writes_options
             a.gpu_direct_rdma_flush_writes_options );
         ( "gpu_direct_rdma_writes_ordering",
           sexp_of_bool a.gpu_direct_rdma_writes_ordering );
         ( "mempool_supported_handle_types",
           sexp_of_list sexp_of_mem_allocation_handle_type
             a.mempool_supported_handle_types );
         ("cluster_launch", sexp_of_bool a.cluster_launch);
         ( "deferred_mapping_cuda_array_supported",
           sexp_of_bool a.deferred_mapping_cuda_array_supported );
         ("can_use_64_bit_stream_mem_ops", sexp_of_bool a.can_use_64_bit_stream_mem_ops);
         ("can_use_stream_wait_value_nor", sexp_of_bool a.can_use_stream_wait_value_nor);
         ("dma_buf_supported", sexp_of_bool a.dma_buf_supported);
         ("ipc_event_supported", sexp_of_bool a.ipc_event_supported);
         ("mem_sync_domain_count", sexp_of_int a.mem_sync_domain_count);
         ("tensor_map_access_supported", sexp_of_bool a.tensor_map_access_supported);
         ("unified_function_pointers", sexp_of_bool a.unified_function_pointers);
         ("multicast_supported", sexp_of_bool a.multicast_supported);
       ])

(* The driver answers INVALID_VALUE for an attribute that it does not know, being too old or too
   new: that reads as 0, so that the record can always be filled. *)
let attribute device number =
  match Raw.device_attribute device number with
  | Error 1 ->
      ignore (Raw.detail ());
      0
  | answer -> Status.get "Cuda.Device.get_attributes" "cu_device_get_attribute" answer

let handle_types mask =
  if mask = 0 then [ NONE ]
  else
    List.filter_map
      (fun (bit, handle_type) -> if mask land bit <> 0 then Some handle_type else None)
      [ (1, POSIX_FILE_DESCRIPTOR); (2, WIN32); (4, WIN32_KMT); (8, FABRIC) ]

(* The numbers are those of CUdevice_attribute. *)
let get_attributes device =
  let int = attribute device in
  let bool number = int number <> 0 in
  let flags number known =
    let mask = int number in
    List.filter_map
      (fun (bit, flag) -> if mask land bit <> 0 then Some flag else None)
      known
  in
  {
    name =
      Status.get "Cuda.Device.get_attributes" "cu_device_get_name"
        (Raw.device_name device);
    max_threads_per_block = int 1;
    max_block_dim_x = int 2;
    max_block_dim_y = int 3;
    max_block_dim_z = int 4;
    max_grid_dim_x = int 5;
    max_grid_dim_y = int 6;
    max_grid_dim_z = int 7;
    max_shared_memory_per_block = int 8;
    total_constant_memory = int 9;
    warp_size = int 10;
    max_pitch = int 11;
    max_registers_per_block = int 12;
    clock_rate = int 13;
    texture_alignment = int 14;
    multiprocessor_count = int 16;
    kernel_exec_timeout = bool 17;
    integrated = bool 18;
    can_map_host_memory = bool 19;
    compute_mode = computemode_of_int (int 20);
    maximum_texture1d_width = int 21;
    maximum_texture2d_width = int 22;
    maximum_texture2d_height = int 23;
    maximum_texture3d_width = int 24;
    maximum_texture3d_height = int 25;
    maximum_texture3d_depth = int 26;
    maximum_texture2d_layered_width = int 27;
    maximum_texture2d_layered_height = int 28;
    maximum_texture2d_layered_layers = int 29;
    surface_alignment = int 30;
    concurrent_kernels = bool 31;
    ecc_enabled = bool 32;
    pci_bus_id = int 33;
    pci_device_id = int 34;
    tcc_driver = bool 35;
    memory_clock_rate = int 36;
    global_memory_bus_width = int 37;
    l2_cache_size = int 38;
    max_threads_per_multiprocessor = int 39;
    async_engine_count = int 40;
    unified_addressing = bool 41;
    maximum_texture1d_layered_width = int 42;
    maximum_texture1d_layered_layers = int 43;
    maximum_texture2d_gather_width = int 45;
    maximum_texture2d_gather_height = int 46;
    maximum_texture3d_width_alternate = int 47;
    maximum_texture3d_height_alternate = int 48;
    maximum_texture3d_depth_alternate = int 49;
    pci_domain_id = int 50;
    texture_pitch_alignment = int 51;
    maximum_texturecubemap_width = int 52;
    maximum_texturecubemap_layered_width = int 53;
    maximum_texturecubemap_layered_layers = int 54;
    maximum_surface1d_width = int 55;
    maximum_surface2d_width = int 56;
    maximum_surface2d_height = int 57;
    maximum_surface3d_width = int 58;
    maximum_surface3d_height = int 59;
    maximum_surface3d_depth = int 60;
    maximum_surface1d_layered_width = int 61;
    maximum_surface1d_layered_layers = int 62;
    maximum_surface2d_layered_width = int 63;
    maximum_surface2d_layered_height = int 64;
    maximum_surface2d_layered_layers = int 65;
    maximum_surfacecubemap_width = int 66;
    maximum_surfacecubemap_layered_width = int 67;
    maximum_surfacecubemap_layered_layers = int 68;
    maximum_texture2d_linear_width = int 70;
    maximum_texture2d_linear_height = int 71;
    maximum_texture2d_linear_pitch = int 72;
    maximum_texture2d_mipmapped_width = int 73;
    maximum_texture2d_mipmapped_height = int 74;
    compute_capability_major = int 75;
    compute_capability_minor = int 76;
    maximum_texture1d_mipmapped_width = int 77;
    stream_priorities_supported = bool 78;
    global_l1_cache_supported = bool 79;
    local_l1_cache_supported = bool 80;
    max_shared_memory_per_multiprocessor = int 81;
    max_registers_per_multiprocessor = int 82;
    managed_memory = bool 83;
    multi_gpu_board = bool 84;
    multi_gpu_board_group_id = int 85;
    host_native_atomic_supported = bool 86;
    single_to_double_precision_perf_ratio = int 87;
    pageable_memory_access = bool 88;
    concurrent_managed_access = bool 89;
    compute_preemption_supported = bool 90;
    can_use_host_pointer_for_registered_mem = bool 91;
    cooperative_launch = bool 95;
    max_shared_memory_per_block_optin = int 97;
    can_flush_remote_writes = bool 98;
    host_register_supported = bool 99;
    pageable_memory_access_uses_host_page_tables = bool 100;
    direct_managed_mem_access_from_host = bool 101;
    virtual_memory_management_supported = bool 102;
    handle_type_posix_file_descriptor_supported = bool 103;
    handle_type_win32_handle_supported = bool 104;
    handle_type_win32_kmt_handle_supported = bool 105;
    max_blocks_per_multiprocessor = int 106;
    generic_compression_supported = bool 107;
    max_persisting_l2_cache_size = int 108;
    max_access_policy_window_size = int 109;
    gpu_direct_rdma_with_cuda_vmm_supported = bool 110;
    reserved_shared_memory_per_block = int 111;
    sparse_cuda_array_supported = bool 112;
    read_only_host_register_supported = bool 113;
    timeline_semaphore_interop_supported = bool 114;
    memory_pools_supported = bool 115;
    gpu_direct_rdma_supported = bool 116;
    gpu_direct_rdma_flush_writes_options = flags 117 [ (1, HOST); (2, MEMOPS) ];
    gpu_direct_rdma_writes_ordering = bool 118;
    mempool_supported_handle_types = handle_types (int 119);
    cluster_launch = bool 120;
    deferred_mapping_cuda_array_supported = bool 121;
    can_use_64_bit_stream_mem_ops = bool 122;
    can_use_stream_wait_value_nor = bool 123;
    dma_buf_supported = bool 124;
    ipc_event_supported = bool 125;
    mem_sync_domain_count = int 126;
    tensor_map_access_supported = bool 127;
    unified_function_pointers = bool 129;
    multicast_supported = bool 132;
  }
