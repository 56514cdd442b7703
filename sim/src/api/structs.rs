//! The structures that C passes, as the driver lays them out. Handles and addresses are plain numbers.

use std::ffi::c_void;

/// CUctxCreateParams
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct CtxParams {
    pub affinity: usize,
    pub count: i32,
    pub cig: usize,
}

/// CUDA_MEMCPY2D
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Memcpy2d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_type: u32,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: usize,
    pub src_pitch: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_type: u32,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: usize,
    pub dst_pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// CUDA_MEMCPY3D
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Memcpy3d {
    pub src_x: usize,
    pub src_y: usize,
    pub src_z: usize,
    pub src_lod: usize,
    pub src_type: u32,
    pub src_host: u64,
    pub src_device: u64,
    pub src_array: usize,
    /// Reserved; the context in CUDA_MEMCPY3D_PEER, which is otherwise the same.
    pub src_context: usize,
    pub src_pitch: usize,
    pub src_height: usize,
    pub dst_x: usize,
    pub dst_y: usize,
    pub dst_z: usize,
    pub dst_lod: usize,
    pub dst_type: u32,
    pub dst_host: u64,
    pub dst_device: u64,
    pub dst_array: usize,
    /// As `src_context`.
    pub dst_context: usize,
    pub dst_pitch: usize,
    pub dst_height: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// CUDA_KERNEL_NODE_PARAMS, the first form
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct KernelParams {
    pub function: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub params: *const *const c_void,
    pub extra: *const *const c_void,
}

/// CUDA_KERNEL_NODE_PARAMS_v2
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct KernelParams2 {
    pub first: KernelParams,
    pub kernel: usize,
    pub context: usize,
}

/// CUDA_MEMSET_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct MemsetParams {
    pub dst: u64,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

/// CUDA_HOST_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct HostParams {
    pub function: usize,
    pub data: usize,
}

/// CUmemLocation
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct Location {
    pub kind: i32,
    pub id: i32,
}

/// CUmemAccessDesc
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct AccessDesc {
    pub location: Location,
    pub flags: i32,
}

/// CUmemPoolProps
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct PoolProps {
    pub kind: i32,
    pub handles: i32,
    pub location: Location,
    pub security: usize,
    pub most: usize,
    pub usage: u16,
    pub reserved: [u8; 54],
}

/// CUDA_MEM_ALLOC_NODE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct AllocParams {
    pub pool: PoolProps,
    pub access: usize,
    pub access_count: usize,
    pub size: usize,
    pub address: u64,
}

/// CUgraphNodeParams: the kind, then what depends on it
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct NodeParams {
    pub kind: i32,
    pub reserved: [i32; 3],
    pub body: [u64; 29],
    pub reserved_end: u64,
}

/// The body of [`NodeParams`] for a copy (CUDA_MEMCPY_NODE_PARAMS)
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct MemcpyBody {
    pub flags: i32,
    pub reserved: i32,
    pub context: usize,
    pub copy: Memcpy3d,
}

/// CUDA_GRAPH_INSTANTIATE_PARAMS
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct InstantiateParams {
    pub flags: u64,
    pub upload: usize,
    pub error_node: usize,
    pub result: i32,
}

/// CUgraphExecUpdateResultInfo
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct UpdateInfo {
    pub result: i32,
    pub error_node: usize,
    pub error_from: usize,
}

/// CUlaunchAttribute
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct LaunchAttribute {
    pub id: u32,
    pub pad: u32,
    pub value: [u32; 16],
}

/// CUlaunchConfig
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: usize,
    pub attributes: *const LaunchAttribute,
    pub count: u32,
}

/// CUgraphEdgeData
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq)]
#[allow(missing_docs)]
pub struct EdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub kind: u8,
    pub reserved: [u8; 5],
}
