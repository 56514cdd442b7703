//! What is not accepted, by name and line; and what must not crash the front end.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;
use cudagraph_ptx::{CompileError, Program};

fn refused(source: &str) -> CompileError {
    match Program::compile(source.as_bytes()) {
        Ok(_) => panic!("compiles: {source}"),
        Err(error) => error,
    }
}

/// The error of one line among others; it must name that line.
fn body_error(line: &str) -> String {
    let error = refused(&kernel(&format!("\n{line}\n")));
    assert_eq!(error.line, 10, "{error}");
    error.message
}

#[test]
fn unsupported_families_are_named() {
    for (line, name) in [
        (
            "tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%f5,%f6}];",
            "tex.2d.v4.f32.s32",
        ),
        ("suld.b.1d.b32.trap %r1, [s, {%r2}];", "suld.b.1d.b32.trap"),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [%d1];",
            "wmma.load.a",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2};",
            "mma.sync",
        ),
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("mbarrier.init.shared.b64 [%r1], 1;", "mbarrier.init"),
        ("vmad.u32.u32.u32 %r1, %r2, %r3, %r4;", "vmad.u32.u32.u32"),
        ("vshl.u32.u32.u32.wrap %r1, %r2, %r3;", "vshl.u32"),
    ] {
        let message = body_error(line);
        assert!(
            message.starts_with("unsupported instruction") && message.contains(name),
            "{message}"
        );
    }
}

#[test]
fn unknown_instructions_and_modifiers_are_named() {
    assert_eq!(
        body_error("frobnicate.u32 %r1, %r2;"),
        "unknown instruction `frobnicate.u32`"
    );
    assert_eq!(
        body_error("add.wobbly.s32 %r1, %r2, %r3;"),
        "`add.wobbly.s32`: unknown modifier `.wobbly`"
    );
    assert!(body_error("add.s32 %r1, %r2;").contains("expected 3 operands, found 2"));
    assert!(body_error("add.s32 %r1, %r2, %d3;").contains("`%d3` is a register of type `.b64`"));
    assert!(body_error("add.f32 %f1, %f2, %nope;").contains("`%nope` is not a register"));
    assert!(body_error("add.f32 %f1, %f2, 1;").contains("integer constant"));
    assert!(body_error("fma.f32 %f1, %f2, %f3, %f4;").contains("rounding mode"));
    assert!(body_error("fma.rn.oob.f16x2 %r1, %r2, %r3, %r4;").contains("modifier `.oob`"));
    assert!(body_error("fma.rn.f32x2 %d1, %d2, %d3, %d4;").contains("`fma.rn.f32x2`"));
    assert!(body_error("add.sat.f64 %g1, %g2, %g3;").contains("modifier `.sat`"));
    assert!(body_error("cvt.pack.sat.u8.s32 %r1, %r2, %r3;").contains("a third operand"));
    assert!(body_error("lop3.or.b32 %r1, %r2, %r3, %r4, 0x80, %p1;").contains("a predicate"));
    assert!(body_error("vset4.u32.u32 %r1, %r2, %r3, %r4;").contains("comparison is missing"));
    assert!(body_error("mapa.u32 %r1, %r2;").contains("expected 3 operands, found 2"));
    assert!(body_error("pmevent %r1;").contains("must be a constant"));
    assert!(body_error("mov.u32 %r1, %envreg32;").contains("unknown name `%envreg32`"));
    assert!(body_error("bra NOWHERE;").contains("unknown label `NOWHERE`"));
    assert!(body_error("mov.u64 %d1, nothing;").contains("unknown name `nothing`"));
    assert!(body_error("st.param.u32 [out], %r1;").contains("only be read"));
    assert!(body_error("ld.shared.u32 %r1, [out];").contains("another state space"));
    assert!(body_error("call nobody, ();").contains("unknown function `nobody`"));
}

#[test]
fn pairs_and_halves_are_in_registers_of_plain_bits() {
    for line in [
        "{ .reg .u32 %u; add.u16x2 %u, %r1, %r2; }",
        "{ .reg .u32 %u; min.s16x2 %r1, %u, %r2; }",
        "{ .reg .s32 %u; fma.rn.f16x2 %r1, %r2, %r3, %u; }",
        "{ .reg .f16x2 %u; neg.bf16x2 %r1, %u; }",
        "{ .reg .f16x2 %u; add.f32 %f1, %f2, %u; }",
        "{ .reg .f16 %u; neg.bf16 %h1, %u; }",
        "{ .reg .u32 %u; red.global.add.noftz.f16x2 [%d1], %u; }",
    ] {
        let message = body_error(line);
        assert!(message.contains("`%u` is a register of type"), "{message}");
    }
    for line in [
        "add.u16x2 %r1, %r2, 5;",
        "fma.rn.f16x2 %r1, %r2, %r3, 0;",
        "add.f16 %h1, %h2, 0f3f800000;",
        "fma.rn.bf16 %h1, %h2, %h3, 1;",
    ] {
        let message = body_error(line);
        assert!(
            message.contains("a constant cannot be of type"),
            "{message}"
        );
    }
    for line in [
        ".reg .bf16 %u;",
        ".reg .bf16x2 %u;",
        ".reg .s16x2 %u;",
        ".shared .u16x2 cell;",
    ] {
        let message = body_error(line);
        assert!(message.contains("the type of an instruction"), "{message}");
    }
    compile(&kernel(
        "{ .reg .f16x2 %u; add.u16x2 %u, %r1, %u; add.u32 %u, %u, %r1; fma.rn.f16x2 %r1, %u, %u, %r2; }",
    ));
}

#[test]
fn clusters_of_several_blocks_are_refused() {
    for directive in [".reqnctapercluster 2, 1, 1", ".explicitcluster"] {
        let source = kernel("").replace(") {", &format!(")\n{directive}\n{{"));
        let error = refused(&source);
        assert_eq!(error.line, 5, "{error}");
        assert!(error.message.contains("clusters have one block"), "{error}");
    }
    // A limit is no demand.
    compile(&kernel("").replace(") {", ")\n.maxclusterrank 4\n{"));
}

#[test]
fn printf_is_refused_by_name() {
    let source = kernel("call (%r1), vprintf, (%d1, %d2);").replace(
        ".visible .entry",
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .entry",
    );
    assert!(refused(&source).message.contains("printf"));
}

#[test]
fn the_heap_of_the_device_is_refused_by_name() {
    let source = kernel("call (%d1), malloc, (%d2);").replace(
        ".visible .entry",
        ".extern .func (.param .b64 r) malloc(.param .b64 size);\n.visible .entry",
    );
    assert!(refused(&source)
        .message
        .contains("the device's heap (`malloc`) is not supported"));
}

#[test]
fn absurd_sizes_are_errors() {
    let module = |text: &str| {
        refused(&format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n{text}\n"
        ))
    };
    assert!(module(".shared .b8 x[4294967295];")
        .message
        .contains("too much shared memory"));
    assert!(module(".global .b8 x[18446744073709551615];")
        .message
        .contains("too large"));
    assert!(module(".global .b64 x[1099511627775][1099511627775];")
        .message
        .contains("too large"));
    assert!(module(".const .b8 x[70000];")
        .message
        .contains("constant memory"));
    assert!(module(".entry k(.param .b8 x[99999]) { ret; }")
        .message
        .contains("too large"));
    assert!(module(".entry k() { .local .b8 x[99999999]; ret; }")
        .message
        .contains("local memory"));
    assert!(module(".global .u32 x[2] = {1, 2, 3};")
        .message
        .contains("too long"));
    assert!(module(".global .u32 x = 1 / 0;")
        .message
        .contains("division by zero"));
    assert!(
        module(".extern .global .u32 x; .entry k() { .reg .b64 %d<2>; mov.u64 %d1, x; ret; }")
            .message
            .contains("unresolved")
    );
    assert!(module(".entry k() { .shared .b8 a[40000]; .shared .b8 b[40000]; .reg .b32 %r<3>; ld.shared.u8 %r1, [a]; ld.shared.u8 %r2, [b]; ret; }")
        .message
        .contains("too much shared memory"));
    // Many registers cost nothing until they are used.
    compile(".version 9.0\n.target sm_90\n.entry k() { .reg .b32 %r<4294967295>; mov.u32 %r4294967294, 1; ret; }");
}

#[test]
fn deep_nesting_is_an_error() {
    let module = |text: String| refused(&format!(".version 9.0\n.target sm_90\n{text}"));
    let deep = 100_000;
    module(format!(".global .u32 x = {}1", "(".repeat(deep)));
    module(format!(".global .u32 x = {}1;", "-".repeat(deep)));
    module(format!(".global .u32 x = {}", "{".repeat(deep)));
    module(format!(".entry k() {}", "{".repeat(deep)));
    module(format!(
        ".entry k() {{ .reg .b32 %r<3>; mov.u32 %r1, {}",
        "{".repeat(deep)
    ));
    module(format!(
        ".entry k() {{ .reg .b32 %r<3>; call {}",
        "(".repeat(deep)
    ));
    module(format!(
        ".entry k() {{ .reg .b32 %r<3>; mov.u32 %r1, {}%r2;",
        "%r2|".repeat(deep)
    ));
}

#[test]
fn a_long_chain_of_calls_compiles() {
    let mut source = String::from(".version 9.0\n.target sm_90\n.func f0() { ret; }\n");
    for i in 1..20_000 {
        source.push_str(&format!(".func f{i}() {{ call f{}; ret; }}\n", i - 1));
    }
    source.push_str(".entry k() { call f19999; ret; }\n");
    compile(&source);
}

#[test]
fn truncated_and_garbled_text_is_an_error() {
    let whole = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/kernels/ptx/warp.13.0.default.ptx"
    ))
    .unwrap();
    compile(&whole);
    for end in (0..whole.len()).step_by(37) {
        // Between two functions, a part of a module is a module.
        let _ = Program::compile(&whole.as_bytes()[..end]);
    }
    for at in (0..whole.len()).step_by(53) {
        for byte in [0u8, b'{', b';', b'9', 0xff, b'.'] {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = byte;
            let _ = Program::compile(&bytes);
        }
    }
    assert_eq!(refused("").message, "missing `.version`");
    assert!(refused("\x7fELF").line == 1);
    assert!(refused(".version 9.0\n.target sm_90\n/* never closed")
        .message
        .contains("comment"));
    assert!(refused(".version 99.0\n").message.contains("version"));
    assert!(refused(".version 9.0\n.target arm64\n")
        .message
        .contains("target"));
    assert!(refused(".version 9.0\n.target sm_90\n.address_size 32\n")
        .message
        .contains("64"));
}
