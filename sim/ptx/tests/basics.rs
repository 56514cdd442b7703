//! Kernels of a few lines: control flow, memory, barriers, collectives.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;

#[test]
fn stores_its_thread_index() {
    assert_eq!(
        words("st.global.u32 [%at], %t;"),
        (0..32).collect::<Vec<u32>>()
    );
}

#[test]
fn lanes_that_went_different_ways_meet_again() {
    let out = words(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 100;\n\
         @%p1 bra EVEN; mov.u32 %r2, 7; bra JOIN;\n\
         EVEN: add.u32 %r2, %r2, %t;\n\
         JOIN: activemask.b32 %r3; sub.u32 %r2, %r2, %r3; st.global.u32 [%at], %r2;",
    );
    for (lane, word) in out.iter().enumerate() {
        let value = if lane % 2 == 0 { 100 + lane as u32 } else { 7 };
        assert_eq!(*word, value.wrapping_sub(u32::MAX), "lane {lane}");
    }
}

#[test]
fn loops_with_different_trip_counts() {
    let out = words(
        "mov.u32 %r1, 0; mov.u32 %r2, 0;\n\
         LOOP: setp.ge.u32 %p1, %r1, %t; @%p1 bra DONE;\n\
         add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra LOOP;\n\
         DONE: st.global.u32 [%at], %r2;",
    );
    for (lane, word) in out.iter().enumerate() {
        assert_eq!(*word as usize, lane * lane.saturating_sub(1) / 2);
    }
}

#[test]
fn a_lock_between_threads_of_a_warp() {
    let source = kernel(
        "TRY: atom.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;\n\
         ld.volatile.global.u32 %r2, [%out+4]; add.u32 %r2, %r2, 1;\n\
         st.volatile.global.u32 [%out+4], %r2; membar.gl;\n\
         atom.global.exch.b32 %r3, [%out], 0;",
    );
    let heap = Heap::default();
    let out = heap.alloc(64);
    run(&compile(&source), "k", 4, 64, &Args::new().with(out), &heap).unwrap();
    assert_eq!(heap.read::<u32>(out, 2), [0, 256]);
}
