//! Copies and fills: rows, rectangles and boxes, between host and device, at once and in stream order.

mod common;
use common::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn rectangle() -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: HOST,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: DEVICE,
        dstHost: null_mut(),
        dstDevice: 0,
        dstArray: null_mut(),
        dstPitch: 0,
        WidthInBytes: 0,
        Height: 0,
    }
}

/// Bytes that tell where they are.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i % 251) as u8).collect()
}

fn bytes_at(memory: CUdeviceptr, count: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; count];
    cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), memory, count));
    bytes
}

#[test]
fn a_rectangle_goes_from_one_pitch_to_another() {
    let s = Session::new();
    let (mut memory, mut pitch) = (0, 0);
    cu!(cuMemAllocPitch_v2(&mut memory, &mut pitch, 50, 8, 4));
    assert!(pitch >= 50 && pitch % 256 == 0, "{pitch}");
    cu!(cuMemsetD8_v2(memory, 0xee, pitch * 8));
    let source = pattern(40 * 10);
    let mut copy = rectangle();
    copy.srcHost = source.as_ptr().cast();
    (copy.srcPitch, copy.srcXInBytes, copy.srcY) = (40, 3, 2);
    copy.dstDevice = memory;
    (copy.dstPitch, copy.dstXInBytes, copy.dstY) = (pitch, 5, 1);
    (copy.WidthInBytes, copy.Height) = (17, 6);
    cu!(cuMemcpy2D_v2(&copy));
    let there = bytes_at(memory, pitch * 8);
    for y in 0..8 {
        for x in 0..pitch {
            let inside = (1..7).contains(&y) && (5..22).contains(&x);
            let want = match inside {
                true => source[(y - 1 + 2) * 40 + x - 5 + 3],
                false => 0xee,
            };
            assert_eq!(there[y * pitch + x], want, "row {y}, byte {x}");
        }
    }
    // And back, in stream order, to rows that touch.
    let mut result = vec![0u8; 17 * 6];
    let mut back = rectangle();
    (back.srcMemoryType, back.srcDevice) = (DEVICE, memory);
    (back.srcPitch, back.srcXInBytes, back.srcY) = (pitch, 5, 1);
    (back.dstMemoryType, back.dstHost) = (HOST, result.as_mut_ptr().cast());
    (back.dstPitch, back.WidthInBytes, back.Height) = (17, 17, 6);
    let stream = s.stream();
    cu!(cuMemcpy2DAsync_v2(&back, stream));
    cu!(cuStreamSynchronize(stream));
    let rows = (0..6).flat_map(|y| source[(y + 2) * 40 + 3..][..17].to_vec());
    assert_eq!(result, rows.collect::<Vec<u8>>());
    // The form without rules for the pitch does the same.
    result.fill(0);
    cu!(cuMemcpy2DUnaligned_v2(&back));
    assert_eq!(result[16], source[2 * 40 + 3 + 16]);
}

#[test]
fn a_box_goes_from_one_height_to_another() {
    let s = Session::new();
    let source = pattern(8 * 6 * 5);
    let memory: CUdeviceptr = get!(cuMemAlloc_v2(16 * 7 * 4));
    cu!(cuMemsetD8_v2(memory, 0, 16 * 7 * 4));
    let mut copy = copy_params((DEVICE, memory), (HOST, source.as_ptr() as u64), 4);
    (copy.srcPitch, copy.srcHeight) = (8, 6);
    (copy.srcXInBytes, copy.srcY, copy.srcZ) = (1, 2, 1);
    (copy.dstPitch, copy.dstHeight) = (16, 7);
    (copy.dstXInBytes, copy.dstY, copy.dstZ) = (6, 3, 1);
    (copy.Height, copy.Depth) = (3, 2);
    let stream = s.stream();
    cu!(cuMemcpy3DAsync_v2(&copy, stream));
    cu!(cuStreamSynchronize(stream));
    let there = bytes_at(memory, 16 * 7 * 4);
    for z in 0..4 {
        for y in 0..7 {
            for x in 0..16 {
                let inside = (1..3).contains(&z) && (3..6).contains(&y) && (6..10).contains(&x);
                let want = match inside {
                    true => source[(z * 6 + y - 1) * 8 + x - 5],
                    false => 0,
                };
                assert_eq!(there[(z * 7 + y) * 16 + x], want, "{x} {y} {z}");
            }
        }
    }
    let mut result = [0u8; 4];
    let back = CUDA_MEMCPY3D {
        srcPitch: 16,
        srcHeight: 7,
        srcXInBytes: 6,
        srcY: 3,
        srcZ: 2,
        ..copy_params((HOST, result.as_mut_ptr() as u64), (DEVICE, memory), 4)
    };
    cu!(cuMemcpy3D_v2(&back));
    assert_eq!(result, source[(2 * 6 + 2) * 8 + 1..][..4]);
}

#[test]
fn the_kind_of_memory_can_be_left_to_the_address() {
    let s = Session::new();
    let (a, b) = (upload(&[1, 2, 3, 4]), words(4));
    let mut here = [9u32, 8, 7, 6];
    let at = here.as_mut_ptr() as u64;
    cu!(cuMemcpy(b, a, 16));
    assert_eq!(download(b, 4), [1, 2, 3, 4]);
    cu!(cuMemcpy(b, at, 16));
    assert_eq!(download(b, 4), [9, 8, 7, 6]);
    let stream = s.stream();
    cu!(cuMemcpyAsync(at, a, 16, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(here, [1, 2, 3, 4]);
    let unified = CUmemorytype::CU_MEMORYTYPE_UNIFIED;
    cu!(cuMemcpy3D_v2(&copy_params((unified, b), (unified, at), 8)));
    assert_eq!(download(b, 4), [1, 2, 7, 6]);
    // Host to host.
    let other = [5u32, 5];
    cu!(cuMemcpy(at, other.as_ptr() as u64, 8));
    assert_eq!(here, [5, 5, 3, 4]);
}

#[test]
fn fills_have_elements_of_one_two_and_four_bytes() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 8]), s.stream());
    cu!(cuMemsetD8_v2(memory, 0x11, 3));
    cu!(cuMemsetD16_v2(memory + 4, 0x2233, 2));
    cu!(cuMemsetD32_v2(memory + 8, 0x44556677, 1));
    cu!(cuMemsetD8Async(memory + 12, 0x88, 4, stream));
    cu!(cuMemsetD16Async(memory + 16, 0x99aa, 1, stream));
    cu!(cuMemsetD32Async(memory + 20, 7, 3, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(
        download(memory, 8),
        [0x111111, 0x22332233, 0x44556677, 0x88888888, 0x99aa, 7, 7, 7]
    );
    cu!(cuMemsetD2D32_v2(memory, 8, 1, 1, 4));
    assert_eq!(
        download(memory, 8),
        [1, 0x22332233, 1, 0x88888888, 1, 7, 1, 7]
    );
    cu!(cuMemsetD2D8Async(memory, 16, 0, 5, 2, stream));
    cu!(cuMemsetD2D16Async(memory + 8, 16, 0xffff, 1, 2, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(
        download(memory, 8),
        [0, 0x22332200, 0xffff, 0x88888888, 0, 0, 0xffff, 7]
    );
    // An element lies at a multiple of its size.
    fails!(INVALID_VALUE, cuMemsetD32_v2(memory + 2, 0, 1));
    fails!(INVALID_VALUE, cuMemsetD16_v2(memory + 1, 0, 1));
}

#[test]
fn pinned_and_registered_memory_is_read_when_the_copy_runs() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let pinned: *mut c_void = get!(cuMemAllocHost_v2(16));
    let words = pinned.cast::<[u32; 4]>();
    // SAFETY: pinned memory of this size, which only this thread uses now.
    unsafe { *words = [1; 4] };
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuMemcpyHtoDAsync_v2(memory, pinned, 16, stream));
    // SAFETY: as above; the stream stands at the gate.
    unsafe { *words = [2; 4] };
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [2; 4]);
    let device: CUdeviceptr = get!(cuMemHostGetDevicePointer_v2(pinned, 0));
    assert_eq!(
        launch(s.kernel(c"add"), 4, device, 5, stream),
        CUresult::CUDA_SUCCESS
    );
    cu!(cuStreamSynchronize(stream));
    // SAFETY: as above.
    assert_eq!(unsafe { *words }, [7; 4]);
    cu!(cuMemFreeHost(pinned));
    fails!(INVALID_VALUE, cuMemFreeHost(pinned));

    let mut own = vec![3u32; 1024];
    let at = own.as_mut_ptr().cast::<c_void>();
    cu!(cuMemHostRegister_v2(at, 4096, 0));
    fails!(
        HOST_MEMORY_ALREADY_REGISTERED,
        cuMemHostRegister_v2(at, 4096, 0)
    );
    cu!(cuMemcpyHtoDAsync_v2(memory, at, 16, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(download(memory, 4), [3; 4]);
    cu!(cuMemHostUnregister(at));
    fails!(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(at));
}

#[test]
fn bytes_of_pageable_memory_are_taken_before_the_call_returns() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let mut own = [1u32; 4];
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuMemcpyHtoDAsync_v2(
        memory,
        own.as_ptr().cast(),
        16,
        stream
    ));
    own = [2; 4];
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!((download(memory, 4), own), (vec![1; 4], [2; 4]));
}

/// The exec of what `work` captures.
fn captured(stream: CUstream, work: impl FnOnce()) -> CUgraphExec {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    cu!(cuStreamBeginCapture_v2(stream, mode));
    work();
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph));
    instantiate(graph)
}

#[test]
fn a_captured_copy_reads_pageable_memory_at_each_launch() {
    let s = Session::new();
    let (memory, stream) = (upload(&[0; 4]), s.stream());
    let mut own = Box::new([1u32; 4]);
    let from = own.as_ptr();
    let exec = captured(stream, || {
        cu!(cuMemcpyHtoDAsync_v2(memory, from.cast(), 16, stream))
    });
    for round in 2..5 {
        *own = [round; 4];
        let gate = Gate::default();
        gate.close(stream);
        cu!(cuGraphLaunch(exec, stream));
        // Taken during the launch: what is written now is for the next one.
        *own = [100; 4];
        fails!(NOT_READY, cuStreamQuery(stream));
        gate.open();
        cu!(cuStreamSynchronize(stream));
        assert_eq!(download(memory, 4), [round; 4]);
    }
}

/// Checks that a call returns after the stream's work before it.
fn waits(stream: CUstream, call: impl FnOnce()) {
    let (gate, opened) = (Gate::default(), AtomicBool::new(false));
    gate.close(stream);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            opened.store(true, Ordering::SeqCst);
            gate.open();
        });
        call();
        assert!(opened.load(Ordering::SeqCst));
    });
}

#[test]
fn a_copy_to_pageable_memory_returns_when_it_is_done() {
    let s = Session::new();
    let (memory, stream) = (upload(&[7; 4]), s.stream());
    let mut result = [0u32; 4];
    let to = result.as_mut_ptr().cast();
    waits(stream, || cu!(cuMemcpyDtoHAsync_v2(to, memory, 16, stream)));
    assert_eq!(result, [7; 4]);
    // One to memory that the driver knows does not wait.
    let mut pinned = null_mut();
    cu!(cuMemHostAlloc(&mut pinned, 16, 0));
    let gate = Gate::default();
    gate.close(stream);
    cu!(cuMemcpyDtoHAsync_v2(pinned, memory, 16, stream));
    let asked = status!(cuStreamQuery(stream));
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(asked, CUresult::CUDA_ERROR_NOT_READY);
    cu!(cuMemFreeHost(pinned));
}

#[test]
fn a_launch_that_copies_to_pageable_memory_returns_when_it_is_done() {
    let s = Session::new();
    let (memory, stream) = (upload(&[7; 4]), s.stream());
    let mut result = Box::new([0u32; 4]);
    let to = result.as_mut_ptr();
    let exec = captured(stream, || {
        cu!(cuMemcpyDtoHAsync_v2(to.cast(), memory, 16, stream))
    });
    run(exec, stream);
    *result = [0; 4];
    waits(stream, || cu!(cuGraphLaunch(exec, stream)));
    assert_eq!(*result, [7; 4]);
}

#[test]
fn what_cannot_be_right_is_refused_at_once() {
    let s = Session::new();
    let (memory, stream) = (words(4), s.stream());
    let mut own = [0u32; 16];
    let here = own.as_mut_ptr().cast::<c_void>();
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(memory, here, 17));
    fails!(INVALID_VALUE, cuMemcpyDtoH_v2(here, memory + 8, 16));
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(memory, here, usize::MAX));
    fails!(INVALID_VALUE, cuMemcpyHtoD_v2(0, here, 4));
    fails!(INVALID_VALUE, cuMemcpyHtoDAsync_v2(0x1000, here, 4, stream));
    fails!(INVALID_VALUE, cuMemcpyDtoH_v2(null_mut(), memory, 4));
    fails!(INVALID_VALUE, cuMemsetD8_v2(memory, 0, 17));
    simulator_refuses!(INVALID_VALUE, cuMemsetD32_v2(memory, 0, usize::MAX / 2));
    fails!(INVALID_VALUE, cuMemsetD2D8_v2(memory, 2, 0, 3, 2));
    // Nothing happens for nothing.
    cu!(cuMemcpyHtoD_v2(memory, here, 0));
    let mut copy = rectangle();
    (copy.dstDevice, copy.srcHost) = (memory, here);
    (copy.WidthInBytes, copy.Height) = (8, 2);
    (copy.srcPitch, copy.dstPitch) = (8, 4);
    fails!(INVALID_VALUE, cuMemcpy2D_v2(&copy));
    copy.dstPitch = 8;
    copy.Height = 3;
    fails!(INVALID_VALUE, cuMemcpy2D_v2(&copy));
    copy.Height = usize::MAX;
    fails!(INVALID_VALUE, cuMemcpy2D_v2(&copy));
    (copy.WidthInBytes, copy.Height) = (0, 4);
    cu!(cuMemcpy2D_v2(&copy));
    let mut cube = copy_params((DEVICE, memory), (HOST, here as u64), 4);
    (cube.Depth, cube.dstHeight) = (5, 1);
    fails!(INVALID_VALUE, cuMemcpy3D_v2(&cube));
    cube.Depth = usize::MAX;
    fails!(INVALID_VALUE, cuMemcpy3D_v2(&cube));
    let absurd = copy_params((HOST, here as u64), (HOST, here as u64), 1 << 62);
    assert_ne!(status!(cuMemcpy3D_v2(&absurd)), CUresult::CUDA_SUCCESS);
}

#[test]
fn attributes_of_pointers_are_told() {
    let s = Session::new();
    let memory = words(4);
    let attribute = |number, address| {
        let mut value = 0u64;
        let place = std::ptr::from_mut(&mut value).cast::<c_void>();
        (
            status!(cuPointerGetAttribute(place, number, address)),
            value,
        )
    };
    use CUpointer_attribute::*;
    let ok = CUresult::CUDA_SUCCESS;
    assert_eq!(
        attribute(CU_POINTER_ATTRIBUTE_CONTEXT, memory),
        (ok, s.context as u64)
    );
    assert_eq!(
        attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 8),
        (ok, 2)
    );
    assert_eq!(
        attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 8),
        (ok, memory)
    );
    assert_eq!(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory).1, 16);
    let own = 0u32;
    let (status, _) = attribute(
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        std::ptr::from_ref(&own) as u64,
    );
    assert_eq!(status, CUresult::CUDA_ERROR_INVALID_VALUE);
    let (mut base, mut size) = (0, 0);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, memory + 15));
    assert_eq!((base, size), (memory, 16));
    fails!(
        NOT_FOUND,
        cuMemGetAddressRange_v2(&mut base, &mut size, memory + 16)
    );
}

#[test]
fn managed_memory_is_for_host_and_device() {
    let s = Session::new();
    let stream = s.stream();
    let memory: CUdeviceptr = get!(cuMemAllocManaged(16, 1));
    // SAFETY: managed memory of this size, which only this thread uses now.
    unsafe { *(memory as *mut [u32; 4]) = [1, 2, 3, 4] };
    assert_eq!(
        launch(s.kernel(c"add"), 4, memory, 5, stream),
        CUresult::CUDA_SUCCESS
    );
    cu!(cuStreamSynchronize(stream));
    // SAFETY: as above.
    assert_eq!(unsafe { *(memory as *const [u32; 4]) }, [6, 7, 8, 9]);
    cu!(cuStreamAttachMemAsync(stream, memory, 0, 1));
    cu!(cuMemFree_v2(memory));
}
