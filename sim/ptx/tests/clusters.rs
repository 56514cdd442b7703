//! Clusters of one block, and the shared memory that is reserved for the system.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;

#[test]
fn a_cluster_barrier_is_one_of_the_block() {
    // Each thread reads what the thread at the other end of the block wrote before it arrived.
    let source = kernel(
        ".shared .b32 cells[128]; .reg .b32 %own, %other;\n\
         mov.u32 %own, cells; mad.lo.u32 %own, %t, 4, %own;\n\
         sub.u32 %r1, 127, %t; mov.u32 %other, cells; mad.lo.u32 %other, %r1, 4, %other;\n\
         st.shared.u32 [%own], %t;\n\
         barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n\
         ld.shared.u32 %r2, [%other]; st.global.u32 [%at], %r2;",
    );
    let heap = Heap::default();
    let out = heap.alloc(4 * 128);
    run(
        &compile(&source),
        "k",
        1,
        128,
        &Args::new().with(out),
        &heap,
    )
    .unwrap();
    let want: Vec<u32> = (0..128).rev().collect();
    assert_eq!(heap.read::<u32>(out, 128), want);
}

#[test]
fn whoever_has_arrived_may_do_other_work_first() {
    // Warp 0 arrives, then waits for a flag that warp 1 sets once it is past the barrier.
    let source = kernel(
        ".shared .b32 flag; setp.ge.u32 %p1, %t, 32; st.shared.u32 [flag], 0; bar.sync 0;\n\
         barrier.cluster.arrive; @%p1 bra OTHER;\n\
         SPIN: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN;\n\
         barrier.cluster.wait; st.global.u32 [%at], %r1; bra END;\n\
         OTHER: barrier.cluster.wait; st.volatile.shared.u32 [flag], 7; st.global.u32 [%at], 9;\n\
         END:",
    );
    let heap = Heap::default();
    let out = heap.alloc(4 * 64);
    run(&compile(&source), "k", 1, 64, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 64), [[7; 32], [9; 32]].concat());
}

#[test]
fn threads_that_have_ended_are_not_awaited() {
    let source = kernel(
        "setp.lt.u32 %p1, %t, 40; @%p1 exit; barrier.cluster.arrive; barrier.cluster.wait;\n\
         st.global.u32 [%at], 1;",
    );
    let heap = Heap::default();
    let out = heap.upload(&[0u32; 64]);
    run(&compile(&source), "k", 1, 64, &Args::new().with(out), &heap).unwrap();
    assert_eq!(
        heap.read::<u32>(out, 64),
        [vec![0; 40], vec![1; 24]].concat()
    );
}

#[test]
fn a_wait_without_an_arrival_is_a_deadlock() {
    let source = kernel("barrier.cluster.wait;");
    let heap = Heap::default();
    let out = heap.alloc(4);
    let fault = run(&compile(&source), "k", 1, 32, &Args::new().with(out), &heap).unwrap_err();
    assert_eq!(fault.kind, cudagraph_ptx::FaultKind::Deadlock);
    assert_eq!(fault.instruction, "barrier.cluster.wait;");
}

#[test]
fn the_only_block_of_a_cluster_maps_addresses_to_themselves() {
    let source = kernel(
        ".shared .b32 cell; mov.u32 %r5, cell; mov.u32 %r6, 0; st.shared.u32 [cell], 42;\n\
         mapa.shared::cluster.u32 %r1, cell, 0; ld.shared::cluster.u32 %r2, [%r1];\n\
         mapa.shared::cluster.u32 %r3, %r5, %r6; sub.u32 %r3, %r3, %r5;\n\
         getctarank.shared::cluster.u32 %r4, %r5; add.u32 %r3, %r3, %r4; add.u32 %r2, %r2, %r3;\n\
         st.global.u32 [%at], %r2;",
    );
    let heap = Heap::default();
    let out = heap.alloc(4);
    run(&compile(&source), "k", 1, 1, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 1), [42]);
}

#[test]
fn another_block_of_the_cluster_has_no_memory() {
    let source = kernel(
        ".shared .b32 cell; mapa.shared::cluster.u32 %r1, cell, 1; st.shared::cluster.u32 [%r1], 1;",
    );
    let heap = Heap::default();
    let out = heap.alloc(4);
    let fault = run(&compile(&source), "k", 1, 1, &Args::new().with(out), &heap).unwrap_err();
    assert_eq!(fault.instruction, "st.shared::cluster.u32 [%r1], 1;");
}

#[test]
fn reserved_shared_memory_lies_behind_that_of_the_user() {
    let source = kernel(
        ".shared .b32 cells[5]; mov.u32 %r1, %reserved_smem_offset_begin; mov.u32 %r2, %reserved_smem_offset_end;\n\
         st.shared.u32 [%r1], 5; st.shared.u32 [%r2+-4], 6; ld.shared.u32 %r3, [cells+0];\n\
         mov.u32 %r4, %total_smem_size; mov.u32 %r5, %envreg2; st.global.v4.u32 [%out], {%r1, %r2, %r4, %r5}; pmevent 3;",
    );
    let heap = Heap::default();
    let out = heap.alloc(16);
    let program = compile(&source);
    run(&program, "k", 1, 1, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 4), [32, 32 + 1024, 20, 0]);
    // Who does not ask for it has none.
    let source = kernel(".shared .b32 cells[5]; mov.u32 %r1, cells; st.shared.u32 [%r1+32], 5;");
    assert!(run(&compile(&source), "k", 1, 1, &Args::new().with(out), &heap).is_err());
}
