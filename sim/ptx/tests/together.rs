//! Blocks and launches that run at the same time.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use cudagraph_ptx::FaultKind;

#[test]
fn a_kernel_waits_for_another_launch() {
    let heap = Heap::default();
    let flag = heap.alloc(64);
    let waiting = compile(&kernel(
        "W: ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;\n\
         atom.global.add.u32 %r2, [%out+4], 1;",
    ));
    let setting = compile(&kernel("st.release.gpu.global.u32 [%out], 1;"));
    // More blocks wait than there are workers.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| run(&waiting, "k", 64, 32, &Args::new().with(flag), &heap).unwrap());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        run(&setting, "k", 1, 1, &Args::new().with(flag), &heap).unwrap();
    });
    assert_eq!(heap.read::<u32>(flag, 2), [1, 3 * 64 * 32]);
}

#[test]
fn blocks_wait_for_each_other() {
    // A barrier of the whole grid, made by hand; the blocks must be resident together.
    let heap = Heap::default();
    let out = heap.alloc(64);
    let program = compile(&kernel(
        "mov.u32 %r5, %nctaid.x; setp.ne.u32 %p2, %t, 0; @%p2 bra JOIN;\n\
         atom.global.add.u32 %r1, [%out], 1;\n\
         W: ld.volatile.global.u32 %r2, [%out]; setp.lt.u32 %p1, %r2, %r5; @%p1 bra W;\n\
         JOIN: bar.sync 0; atom.global.add.u32 %r3, [%out+4], 1;",
    ));
    run(&program, "k", 200, 64, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 2), [200, 200 * 64]);
}

#[test]
fn every_block_runs_once() {
    let heap = Heap::default();
    let (grid, block) = ([7, 5, 3], [4, 3, 2]);
    let out = heap.alloc(4 * 105);
    let program = compile(&kernel(
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;\n\
         mad.lo.u32 %r2, %r3, 5, %r2; mad.lo.u32 %r1, %r2, 7, %r1; mad.wide.u32 %d1, %r1, 4, %out;\n\
         mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.z; mad.lo.u32 %r4, %r5, 3, %r4;\n\
         mad.lo.u32 %r4, %r4, 4, %t; red.global.add.u32 [%d1], %r4;",
    ));
    run_with(&program, "k", grid, block, 0, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 105), [276; 105]);
}

#[test]
fn many_blocks_and_a_fault_among_them() {
    let heap = Heap::default();
    let out = heap.alloc(4096);
    let program = compile(&kernel(
        "mov.u32 %r1, %ctaid.x; red.global.add.u32 [%out], 1;\n\
         setp.eq.u32 %p1, %r1, 30000; @%p1 st.global.u32 [%out+4096], 1;",
    ));
    run(&program, "k", 30_000, 32, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 1), [30_000 * 32]);
    let fault = run(&program, "k", 60_000, 32, &Args::new().with(out), &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert_eq!(fault.block, [30_000, 0, 0]);
}

#[test]
fn launches_from_many_threads() {
    let heap = Heap::default();
    let program = compile(&kernel(
        "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;\n\
         red.global.add.u32 [%out], %r1;",
    ));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let out = heap.alloc(4);
                    run(&program, "k", 40, 64, &Args::new().with(out), &heap).unwrap();
                    assert_eq!(heap.read::<u32>(out, 1), [40 * 64 * 100]);
                }
            });
        }
    });
}
