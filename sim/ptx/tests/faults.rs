//! What a running kernel must not do: each access is checked, and the fault says where it was.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use cudagraph_ptx::{Fault, FaultKind, Launch};
use std::sync::atomic::AtomicBool;

/// Runs a body whose `%out` has room for 32 words.
fn fault(body: &str) -> Fault {
    let heap = Heap::default();
    let out = heap.alloc(128);
    let program = compile(&kernel(body));
    run(&program, "k", 1, 32, &Args::new().with(out), &heap).unwrap_err()
}

#[test]
fn an_access_past_the_end_names_thread_line_and_address() {
    let heap = Heap::default();
    let out = heap.alloc(128);
    let source = kernel("\nst.global.u32 [%at+4], %t;");
    let program = compile(&source);
    let args = Args::new().with(out);
    let fault = run(&program, "k", 1, 32, &args, &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    assert_eq!(fault.thread, [31, 0, 0]);
    assert_eq!(fault.line, 10);
    assert_eq!(fault.instruction, "st.global.u32 [%at+4], %t;");
    assert_eq!(
        (fault.address, fault.size, fault.write),
        (out + 128, 4, true)
    );
    assert_eq!(
        fault.to_string(),
        format!(
            "kernel `k`: illegal address writing 4 bytes at {:#x}, thread (31,0,0) of block \
             (0,0,0), PTX line 10: `st.global.u32 [%at+4], %t;`",
            out + 128
        )
    );
}

#[test]
fn kinds_of_bad_accesses() {
    use FaultKind::*;
    for (body, kind) in [
        ("ld.global.u32 %r1, [%out+2];", MisalignedAddress),
        (
            "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+8];",
            MisalignedAddress,
        ),
        (
            "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+128];",
            IllegalAddress,
        ),
        (
            "ld.global.u64 %d1, [%out+120]; ld.global.u64 %d1, [%out+128];",
            IllegalAddress,
        ),
        ("mov.u64 %d1, 0; ld.global.u8 %r1, [%d1];", IllegalAddress),
        ("mov.u64 %d1, -1; st.u8 [%d1], %r1;", IllegalAddress),
        ("atom.global.add.u32 %r1, [%out+128], 1;", IllegalAddress),
        ("red.global.add.u32 [%out+1], 1;", MisalignedAddress),
        (
            ".shared .b32 s[4]; st.shared.u32 [s+16], %r1;",
            IllegalAddress,
        ),
        (
            ".shared .b32 s[4]; st.shared.u32 [s-4], %r1;",
            IllegalAddress,
        ),
        (
            ".local .b32 l[4]; st.local.u32 [l+16], %r1;",
            IllegalAddress,
        ),
        (
            ".local .b32 l[4]; mov.u64 %d1, l; cvta.local.u64 %d1, %d1; ld.u32 %r1, [%d1+16];",
            IllegalAddress,
        ),
        ("ld.param.u32 %r1, [out+8];", IllegalAddress),
        (
            "mov.u64 %d1, out; cvta.param.u64 %d1, %d1; st.u32 [%d1], %r1;",
            ReadOnly,
        ),
        ("trap;", Trap),
        (
            "mov.u32 %r1, 0xffff; shfl.sync.idx.b32 %r2, %r1, 0, 31, %r1;",
            IllegalInstruction,
        ),
        ("mov.u32 %r1, 17; barrier.sync %r1;", IllegalInstruction),
    ] {
        let fault = fault(body);
        assert_eq!(fault.kind, kind, "{body}: {fault}");
        assert_eq!(fault.line, 9, "{body}");
    }
}

#[test]
fn freed_memory_is_gone_and_read_only_memory_stays() {
    let heap = Heap::default();
    let out = heap.alloc(128);
    let program = compile(&kernel("st.global.u32 [%at], %t;"));
    let args = Args::new().with(out);
    run(&program, "k", 1, 32, &args, &heap).unwrap();
    heap.free(out);
    let fault = run(&program, "k", 1, 32, &args, &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    let fixed = heap.alloc_with(128, false);
    let fault = run(&program, "k", 1, 32, &Args::new().with(fixed), &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::ReadOnly);
}

#[test]
fn only_lanes_that_take_part_are_checked() {
    let out = words(
        "mov.u64 %d1, 0; setp.lt.u32 %p1, %t, 8;\n\
         @%p1 mov.u64 %d1, %at; @%p1 st.global.u32 [%d1], 5;",
    );
    assert_eq!(out[..10], [5, 5, 5, 5, 5, 5, 5, 5, 0, 0]);
}

#[test]
fn a_barrier_that_some_never_reach_is_a_deadlock() {
    let fault = fault("setp.lt.u32 %p1, %t, 8; @%p1 bra OUT; bar.sync 1, 64; OUT: bar.sync 2, 64;");
    assert_eq!(fault.kind, FaultKind::Deadlock);
    // Threads that have ended are not waited for.
    words("setp.lt.u32 %p1, %t, 8; @%p1 exit; bar.sync 0;");
}

#[test]
fn endless_loops_stop_by_budget_or_cancellation() {
    let heap = Heap::default();
    let program = compile(&kernel("L: bra L;"));
    let params = 0u64.to_le_bytes();
    let mut launch = Launch::new(0, &heap);
    launch.params = &params;
    launch.budget = Some(10_000);
    assert_eq!(
        program.run(&launch).unwrap_err().kind,
        FaultKind::BudgetExceeded
    );
    let cancel = AtomicBool::new(true);
    launch.budget = None;
    launch.cancel = &cancel;
    assert_eq!(program.run(&launch).unwrap_err().kind, FaultKind::Cancelled);
}

#[test]
fn bad_launches() {
    let heap = Heap::default();
    let program = compile(&kernel("").replace(") {\n.reg", ") .maxntid 64 {\n.reg"));
    assert_eq!(program.kernels()[0].max_threads, 64);
    let params = 0u64.to_le_bytes();
    let refused = |change: &dyn Fn(&mut Launch)| {
        let mut launch = Launch::new(0, &heap);
        launch.params = &params;
        change(&mut launch);
        program.run(&launch).unwrap_err().kind
    };
    assert_eq!(refused(&|l| l.block = [65, 1, 1]), FaultKind::InvalidLaunch);
    assert_eq!(refused(&|l| l.block = [0, 1, 1]), FaultKind::InvalidLaunch);
    assert_eq!(refused(&|l| l.grid = [1, 0, 1]), FaultKind::InvalidLaunch);
    assert_eq!(
        refused(&|l| l.grid = [1, 70_000, 1]),
        FaultKind::InvalidLaunch
    );
    assert_eq!(refused(&|l| l.params = &[]), FaultKind::InvalidLaunch);
    assert_eq!(refused(&|l| l.kernel = 7), FaultKind::InvalidLaunch);
    assert_eq!(
        refused(&|l| l.dynamic_shared_bytes = u32::MAX),
        FaultKind::InvalidLaunch
    );
}

#[test]
fn recursion_without_end_overflows_the_stack() {
    let source = format!(
        "{}{}",
        ".version 9.0\n.target sm_90\n.func f() { .local .b8 x[64]; call f; ret; }\n",
        ".entry k() { call f; ret; }"
    );
    let heap = Heap::default();
    let fault = run(&compile(&source), "k", 1, 32, &Args::new(), &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow);
}

#[test]
fn a_failed_assertion_is_named() {
    let source = kernel("call __assertfail, (%d1, %d1, %r1, %d1, %d1);").replace(
        ".visible .entry",
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, \
         .param .b64 e);\n.visible .entry",
    );
    let heap = Heap::default();
    let out = heap.alloc(4);
    let fault = run(&compile(&source), "k", 1, 1, &Args::new().with(out), &heap).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Assert);
}
