//! Memory in stream order, and the pools that it comes from.

mod common;
use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;

fn pool_props(most: usize) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: 0,
        },
        win32SecurityAttributes: null_mut(),
        maxSize: most,
        usage: 0,
        reserved: [0; 54],
    }
}

fn attribute(pool: CUmemoryPool, number: CUmemPool_attribute) -> u64 {
    let mut value = 0u64;
    cu!(cuMemPoolGetAttribute(
        pool,
        number,
        std::ptr::from_mut(&mut value).cast::<c_void>()
    ));
    value
}

use CUmemPool_attribute::*;

#[test]
fn memory_lives_from_its_allocation_to_its_free_in_the_stream() {
    let s = Session::new();
    let (stream, set, add) = (s.stream(), s.kernel(c"set"), s.kernel(c"add"));
    let result = upload(&[0; 4]);
    let gate = Gate::default();
    gate.close(stream);
    let memory: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
    assert_eq!(launch(set, 4, memory, 3, stream), CUresult::CUDA_SUCCESS);
    assert_eq!(launch(add, 4, memory, 4, stream), CUresult::CUDA_SUCCESS);
    cu!(cuMemcpyDtoDAsync_v2(result, memory, 16, stream));
    cu!(cuMemFreeAsync(memory, stream));
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(result, 4), [7; 4]);
    fails!(INVALID_VALUE, cuMemFreeAsync(memory, stream));
}

#[test]
fn a_kernel_behind_the_free_meets_dead_memory() {
    alone!();
    let s = Session::new();
    let (stream, set) = (s.stream(), s.kernel(c"set"));
    let memory: CUdeviceptr = get!(cuMemAllocAsync(1 << 21, stream));
    cu!(cuMemFreeAsync(memory, stream));
    cu!(cuStreamSynchronize(stream));
    let pool: CUmemoryPool = get!(cuDeviceGetDefaultMemPool(0));
    cu!(cuMemPoolTrimTo(pool, 0));
    assert_eq!(launch(set, 4, memory, 3, stream), CUresult::CUDA_SUCCESS);
    fails!(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}

#[test]
fn the_plain_free_takes_stream_ordered_memory_too() {
    let s = Session::new();
    let stream = s.stream();
    let memory: CUdeviceptr = get!(cuMemAllocAsync(16, stream));
    cu!(cuStreamSynchronize(stream));
    cu!(cuMemFree_v2(memory));
    fails!(INVALID_VALUE, cuMemFree_v2(memory));
    let plain = words(4);
    // And the other way round.
    cu!(cuMemFreeAsync(plain, stream));
    cu!(cuStreamSynchronize(stream));
    fails!(INVALID_VALUE, cuMemFree_v2(plain));
}

#[test]
fn a_pool_counts_what_is_used_of_it() {
    let s = Session::new();
    let stream = s.stream();
    let pool: CUmemoryPool = get!(cuMemPoolCreate(&pool_props(0)));
    assert_eq!(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    let a: CUdeviceptr = get!(cuMemAllocFromPoolAsync(1000, pool, stream));
    let b: CUdeviceptr = get!(cuMemAllocFromPoolAsync(3000, pool, stream));
    cu!(cuStreamSynchronize(stream));
    let used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    assert!((4000..8192).contains(&used), "{used}");
    assert!(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= used);
    cu!(cuMemFreeAsync(a, stream));
    cu!(cuMemFreeAsync(b, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_eq!(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), used);
    cu!(cuMemPoolTrimTo(pool, 0));
    assert_eq!(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    let mut zero = 0u64;
    let high = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    cu!(cuMemPoolSetAttribute(
        pool,
        high,
        std::ptr::from_mut(&mut zero).cast()
    ));
    assert_eq!(attribute(pool, high), 0);
    cu!(cuMemPoolDestroy(pool));
    fails!(INVALID_VALUE, cuMemPoolDestroy(pool));
}

#[test]
fn settings_are_kept_and_what_cannot_be_set_is_refused() {
    let _s = Session::new();
    let pool: CUmemoryPool = get!(cuMemPoolCreate(&pool_props(0)));
    let threshold = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    assert_eq!(attribute(pool, threshold), 0);
    let mut value = 1u64 << 30;
    let place = std::ptr::from_mut(&mut value).cast::<c_void>();
    cu!(cuMemPoolSetAttribute(pool, threshold, place));
    assert_eq!(attribute(pool, threshold), 1 << 30);
    let mut reuse = 0i32;
    let place_of_int = std::ptr::from_mut(&mut reuse).cast::<c_void>();
    let follow = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
    assert_eq!(attribute(pool, follow) as i32, 1);
    cu!(cuMemPoolSetAttribute(pool, follow, place_of_int));
    assert_eq!(attribute(pool, follow) as i32, 0);
    let used = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    fails!(INVALID_VALUE, cuMemPoolSetAttribute(pool, used, place));
    let high = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    fails!(INVALID_VALUE, cuMemPoolSetAttribute(pool, high, place));
    cu!(cuMemPoolDestroy(pool));
}

#[test]
fn a_pool_of_the_program_serves_its_device() {
    let s = Session::new();
    let stream = s.stream();
    let standard: CUmemoryPool = get!(cuDeviceGetDefaultMemPool(0));
    let pool: CUmemoryPool = get!(cuMemPoolCreate(&pool_props(0)));
    cu!(cuDeviceSetMemPool(0, pool));
    let current: CUmemoryPool = get!(cuDeviceGetMemPool(0));
    assert_eq!(current, pool);
    let memory: CUdeviceptr = get!(cuMemAllocAsync(512, stream));
    assert!(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) >= 512);
    cu!(cuMemFreeAsync(memory, stream));
    cu!(cuStreamSynchronize(stream));
    // Its device goes back to the first pool when it is destroyed.
    cu!(cuMemPoolDestroy(pool));
    let current: CUmemoryPool = get!(cuDeviceGetMemPool(0));
    assert_eq!(current, standard);
    let refused = status!(cuMemPoolDestroy(standard));
    assert_ne!(refused, CUresult::CUDA_SUCCESS);
}

#[test]
fn memory_of_a_destroyed_pool_can_still_be_used_and_freed() {
    let s = Session::new();
    let (stream, set) = (s.stream(), s.kernel(c"set"));
    let pool: CUmemoryPool = get!(cuMemPoolCreate(&pool_props(0)));
    let memory: CUdeviceptr = get!(cuMemAllocFromPoolAsync(16, pool, stream));
    cu!(cuMemPoolDestroy(pool));
    assert_eq!(launch(set, 4, memory, 3, stream), CUresult::CUDA_SUCCESS);
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [3; 4]);
    cu!(cuMemFreeAsync(memory, stream));
    cu!(cuStreamSynchronize(stream));
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let s = Session::new();
    let stream = s.stream();
    let mut memory = 0;
    fails!(OUT_OF_MEMORY, cuMemAllocAsync(&mut memory, 1 << 60, stream));
    let small: CUmemoryPool = get!(cuMemPoolCreate(&pool_props(1 << 21)));
    let refused = status!(cuMemAllocFromPoolAsync(&mut memory, 1 << 30, small, stream));
    assert_eq!(refused, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    cu!(cuMemPoolDestroy(small));
}

#[test]
fn no_bytes_are_the_null_pointer() {
    let s = Session::new();
    let stream = s.stream();
    let none: CUdeviceptr = get!(cuMemAllocAsync(0, stream));
    assert_eq!(none, 0);
    cu!(cuMemFreeAsync(none, stream));
    cu!(cuStreamBeginCapture_v2(
        stream,
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL
    ));
    let none: CUdeviceptr = get!(cuMemAllocAsync(0, stream));
    assert_eq!(none, 0);
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    let mut nodes = 9;
    cu!(cuGraphGetNodes(graph, null_mut(), &mut nodes));
    assert_eq!(nodes, 0);
    cu!(cuGraphDestroy(graph));
}
