//! The structures that C passes lie in memory as the driver's own do: size, alignment and the place of each
//! field, compared with declarations that were made from its header.
#![allow(missing_docs)]

use cudagraph_sim::api::*;
use cudarc::driver::sys;
use std::mem::{align_of, offset_of, size_of};

/// Compares a structure with the driver's.
macro_rules! same {
    ($ours:ident = $theirs:ident { $($our:ident => $their:ident),* $(,)? }) => {{
        same!(part of $ours = $theirs { $($our => $their),* });
        assert_eq!(
            (size_of::<$ours>(), align_of::<$ours>()),
            (size_of::<sys::$theirs>(), align_of::<sys::$theirs>()),
            stringify!($theirs)
        );
    }};
    (part of $ours:ident = $theirs:ident { $($our:ident => $their:ident),* $(,)? }) => {{
        $(assert_eq!(
            offset_of!($ours, $our),
            offset_of!(sys::$theirs, $their),
            "{} in {}", stringify!($their), stringify!($theirs)
        );)*
    }};
}

#[test]
fn copies() {
    same!(
        Memcpy2d = CUDA_MEMCPY2D {
            src_x => srcXInBytes,
            src_y => srcY,
            src_type => srcMemoryType,
            src_host => srcHost,
            src_device => srcDevice,
            src_array => srcArray,
            src_pitch => srcPitch,
            dst_x => dstXInBytes,
            dst_y => dstY,
            dst_type => dstMemoryType,
            dst_host => dstHost,
            dst_device => dstDevice,
            dst_array => dstArray,
            dst_pitch => dstPitch,
            width => WidthInBytes,
            height => Height,
        }
    );
    macro_rules! of_a_box {
        ($theirs:ident, $src_context:ident, $dst_context:ident) => {
            same!(
                Memcpy3d = $theirs {
                    src_x => srcXInBytes,
                    src_y => srcY,
                    src_z => srcZ,
                    src_lod => srcLOD,
                    src_type => srcMemoryType,
                    src_host => srcHost,
                    src_device => srcDevice,
                    src_array => srcArray,
                    src_context => $src_context,
                    src_pitch => srcPitch,
                    src_height => srcHeight,
                    dst_x => dstXInBytes,
                    dst_y => dstY,
                    dst_z => dstZ,
                    dst_lod => dstLOD,
                    dst_type => dstMemoryType,
                    dst_host => dstHost,
                    dst_device => dstDevice,
                    dst_array => dstArray,
                    dst_context => $dst_context,
                    dst_pitch => dstPitch,
                    dst_height => dstHeight,
                    width => WidthInBytes,
                    height => Height,
                    depth => Depth,
                }
            )
        };
    }
    of_a_box!(CUDA_MEMCPY3D, reserved0, reserved1);
    of_a_box!(CUDA_MEMCPY3D_PEER, srcContext, dstContext);
}

#[test]
fn nodes() {
    same!(
        KernelParams = CUDA_KERNEL_NODE_PARAMS_v1 {
            function => func,
            grid => gridDimX,
            block => blockDimX,
            shared => sharedMemBytes,
            params => kernelParams,
            extra => extra,
        }
    );
    macro_rules! of_a_kernel {
        ($theirs:ident) => {
            same!(part of KernelParams = $theirs {
                function => func,
                grid => gridDimX,
                block => blockDimX,
                shared => sharedMemBytes,
                params => kernelParams,
                extra => extra,
            });
            same!(KernelParams2 = $theirs {
                first => func,
                kernel => kern,
                context => ctx,
            });
        };
    }
    of_a_kernel!(CUDA_KERNEL_NODE_PARAMS_v2);
    of_a_kernel!(CUDA_KERNEL_NODE_PARAMS_v3);
    same!(
        MemsetParams = CUDA_MEMSET_NODE_PARAMS_v1 {
            dst => dst,
            pitch => pitch,
            value => value,
            element => elementSize,
            width => width,
            height => height,
        }
    );
    same!(part of MemsetParams = CUDA_MEMSET_NODE_PARAMS_v2 {
        dst => dst,
        pitch => pitch,
        value => value,
        element => elementSize,
        width => width,
        height => height,
    });
    same!(
        HostParams = CUDA_HOST_NODE_PARAMS_v1 {
            function => fn_,
            data => userData,
        }
    );
    same!(part of HostParams = CUDA_HOST_NODE_PARAMS_v2 {
        function => fn_,
        data => userData,
    });
    macro_rules! of_memory {
        ($theirs:ident) => {
            same!(
                AllocParams = $theirs {
                    pool => poolProps,
                    access => accessDescs,
                    access_count => accessDescCount,
                    size => bytesize,
                    address => dptr,
                }
            )
        };
    }
    of_memory!(CUDA_MEM_ALLOC_NODE_PARAMS_v1);
    of_memory!(CUDA_MEM_ALLOC_NODE_PARAMS_v2);
    same!(
        MemcpyBody = CUDA_MEMCPY_NODE_PARAMS {
            flags => flags,
            reserved => reserved,
            context => copyCtx,
            copy => copyParams,
        }
    );
    same!(
        NodeParams = CUgraphNodeParams {
            kind => type_,
            reserved => reserved0,
            body => __bindgen_anon_1,
            reserved_end => reserved2,
        }
    );
    same!(
        EdgeData = CUgraphEdgeData {
            from_port => from_port,
            to_port => to_port,
            kind => type_,
            reserved => reserved,
        }
    );
}

#[test]
fn graphs_and_launches() {
    same!(
        InstantiateParams = CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags => flags,
            upload => hUploadStream,
            error_node => hErrNode_out,
            result => result_out,
        }
    );
    same!(
        UpdateInfo = CUgraphExecUpdateResultInfo {
            result => result,
            error_node => errorNode,
            error_from => errorFromNode,
        }
    );
    same!(
        LaunchConfig = CUlaunchConfig {
            grid => gridDimX,
            block => blockDimX,
            shared => sharedMemBytes,
            stream => hStream,
            attributes => attrs,
            count => numAttrs,
        }
    );
    same!(part of LaunchAttribute = CUlaunchAttribute {
        id => id,
        pad => pad,
        value => value,
    });
    assert_eq!(
        size_of::<LaunchAttribute>(),
        size_of::<sys::CUlaunchAttribute>()
    );
}

#[test]
fn memory_and_contexts() {
    same!(Location = CUmemLocation { kind => type_, id => id });
    same!(AccessDesc = CUmemAccessDesc { location => location, flags => flags });
    same!(
        PoolProps = CUmemPoolProps {
            kind => allocType,
            handles => handleTypes,
            location => location,
            security => win32SecurityAttributes,
            most => maxSize,
            usage => usage,
            reserved => reserved,
        }
    );
    same!(
        CtxParams = CUctxCreateParams {
            affinity => execAffinityParams,
            count => numExecAffinityParams,
            cig => cigParams,
        }
    );
}
