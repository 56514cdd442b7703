//! What a GPU makes of NaN, subnormals and carries, rule by rule. The corpus has the answers of a
//! GPU that these rules were read off.
#![allow(clippy::unwrap_used)]

mod common;
use common::*;

/// The words that one thread stores; `body` leaves them in `%r1`, `%r2` and so on.
fn first<const N: usize>(body: &str) -> [u32; N] {
    let stores: String = (1..=N)
        .map(|i| format!("st.global.u32 [%out+{}], %r{i};\n", 4 * (i - 1)))
        .collect();
    let heap = Heap::default();
    let out = heap.alloc(4 * N);
    let program = compile(&kernel(&format!("{body}\n{stores}")));
    run(&program, "k", 1, 1, &Args::new().with(out), &heap).unwrap();
    heap.read::<u32>(out, N).try_into().unwrap()
}

const LOAD_NANS: &str = "mov.b32 %f1, 0xff812345; mov.b32 %f2, 0x3f800000;\n\
    mov.b64 %g1, 0xfff0000012345678; mov.b64 %g2, 0x7ffabcdeabcdef01; mov.b64 %g3, 0x3ff0000000000000;\n\
    mov.b16 %h1, 0xfc01; mov.b16 %h2, 0xff81;\n";

#[test]
fn single_and_half_precision_have_one_nan() {
    for operation in [
        "add.f32 %f3, %f1, %f2;",
        "mul.ftz.f32 %f3, %f2, %f1;",
        "neg.f32 %f3, %f1;",
        "neg.ftz.f32 %f3, %f1;",
        "abs.f32 %f3, %f1;",
        "min.NaN.f32 %f3, %f1, %f2;",
        "cvt.rni.f32.f32 %f3, %f1;",
        "cvt.f32.f16 %f3, %h1;",
    ] {
        let body = format!("{LOAD_NANS} {operation} mov.b32 %r1, %f3;");
        assert_eq!(first(&body), [0x7fff_ffff], "{operation}");
    }
    for operation in [
        "neg.f16 %h3, %h1;",
        "abs.f16 %h3, %h1;",
        "neg.bf16 %h3, %h2;",
        "abs.bf16 %h3, %h2;",
        "add.f16 %h3, %h1, %h1;",
        "cvt.rn.f16.f32 %h3, %f1;",
        "cvt.rn.bf16.f32 %h3, %f1;",
    ] {
        let body = format!("{LOAD_NANS} {operation} cvt.u32.u16 %r1, %h3;");
        assert_eq!(first(&body), [0x7fff], "{operation}");
    }
}

#[test]
fn double_precision_hands_on_the_nan_defined_later_made_quiet() {
    const FIRST: [u32; 2] = [0x1234_5678, 0xfff8_0000];
    const SECOND: [u32; 2] = [0xabcd_ef01, 0x7ffa_bcde];
    for (operation, want) in [
        ("add.f64 %g4, %g1, %g2;", SECOND),
        ("add.f64 %g4, %g2, %g1;", SECOND),
        ("add.rz.f64 %g4, %g1, %g2;", SECOND),
        ("sub.f64 %g4, %g1, %g2;", SECOND),
        ("sub.f64 %g4, %g2, %g1;", SECOND),
        ("sub.rp.f64 %g4, %g2, %g1;", SECOND),
        ("sub.rm.f64 %g4, %g3, %g1;", FIRST),
        // A new value in the same register, also where the result replaces it.
        ("mov.f64 %g5, %g1; add.f64 %g4, %g5, %g2;", FIRST),
        ("mov.f64 %g4, %g1; sub.rz.f64 %g4, %g4, %g2;", FIRST),
        ("mul.f64 %g4, %g3, %g2;", SECOND),
        ("mul.rp.f64 %g4, %g2, %g1;", SECOND),
        ("fma.rn.f64 %g4, %g1, %g2, %g1;", SECOND),
        ("fma.rp.f64 %g4, %g2, %g1, %g1;", SECOND),
        // The second factor, then what is added.
        ("fma.rn.f64 %g4, %g1, %g1, %g2;", FIRST),
        ("fma.rz.f64 %g4, %g3, %g3, %g1;", FIRST),
        ("div.rn.f64 %g4, %g1, %g2;", FIRST),
        ("sqrt.rn.f64 %g4, %g1;", FIRST),
        ("min.f64 %g4, %g1, %g2;", SECOND),
        ("max.f64 %g4, %g2, %g1;", SECOND),
        // A sign that is to be changed stays.
        ("neg.f64 %g4, %g1;", FIRST),
        ("abs.f64 %g4, %g1;", FIRST),
    ] {
        let body = format!("{LOAD_NANS} {operation} mov.b64 {{%r1, %r2}}, %g4;");
        assert_eq!(first(&body), want, "{operation}");
    }
}

#[test]
fn a_number_wins_over_nan_in_min_and_max() {
    for operation in ["min.f64 %g4, %g1, %g3;", "max.f64 %g4, %g3, %g2;"] {
        let body = format!("{LOAD_NANS} {operation} mov.b64 {{%r1, %r2}}, %g4;");
        assert_eq!(first(&body), [0, 0x3ff0_0000], "{operation}");
    }
}

#[test]
fn conversions_keep_what_a_nan_carries_where_both_sides_can() {
    for (operation, want) in [
        ("cvt.f64.f32 %g4, %f1;", [0xa000_0000, 0xfff8_2468]),
        // Flushing goes through single precision, which has one NaN.
        ("cvt.ftz.f64.f32 %g4, %f1;", [0xe000_0000, 0x7fff_ffff]),
        ("cvt.f64.f16 %g4, %h1;", [0xe000_0000, 0x7fff_ffff]),
    ] {
        let body = format!("{LOAD_NANS} {operation} mov.b64 {{%r1, %r2}}, %g4;");
        assert_eq!(first(&body), want, "{operation}");
    }
    for (operation, want) in [
        ("cvt.rn.f32.f64 %f3, %g2;", 0x7fd5_e6f5),
        ("cvt.rz.ftz.f32.f64 %f3, %g1;", 0xffc0_0000),
        ("cvt.f32.bf16 %f3, %h2;", 0xff81_0000),
    ] {
        let body = format!("{LOAD_NANS} {operation} mov.b32 %r1, %f3;");
        assert_eq!(first(&body), [want], "{operation}");
    }
    for (operation, want) in [
        ("cvt.rn.f16.f64 %h3, %g1;", 0xfe00),
        ("cvt.rn.f16.f64 %h3, %g2;", 0x7eaf),
    ] {
        let body = format!("{LOAD_NANS} {operation} cvt.u32.u16 %r1, %h3;");
        assert_eq!(first(&body), [want], "{operation}");
    }
}

#[test]
fn eight_bit_floats_saturate_to_their_largest_number() {
    for (value, format, want) in [
        ("0f447A0000", "e4m3x2", 0x7e),
        ("0fC47A0000", "e4m3x2", 0xfe),
        ("0f7F800000", "e4m3x2", 0x7e),
        ("0f7FC00000", "e4m3x2", 0x7f),
        ("0fFFC00000", "e4m3x2", 0x7f),
        ("0f4F000000", "e5m2x2", 0x7b),
        ("0f7F800000", "e5m2x2", 0x7b),
        ("0f7FC00000", "e5m2x2", 0x7f),
    ] {
        let body = format!(
            "mov.f32 %f1, {value}; mov.f32 %f2, 0f00000000;\n\
             cvt.rn.satfinite.{format}.f32 %h1, %f2, %f1; cvt.u32.u16 %r1, %h1;"
        );
        assert_eq!(first(&body), [want], "{value} {format}");
    }
}

#[test]
fn a_subtraction_sets_the_carry_when_it_borrows_nothing() {
    // 5 - 3 borrows nothing, 3 - 5 borrows.
    assert_eq!(
        first(
            "mov.u32 %r8, 5; mov.u32 %r9, 3; mov.u32 %r7, 10;\n\
             sub.cc.u32 %r6, %r8, %r9; subc.u32 %r1, %r7, 0;\n\
             sub.cc.u32 %r6, %r9, %r8; subc.u32 %r2, %r7, 0;\n\
             sub.cc.u32 %r6, %r8, %r9; addc.u32 %r3, %r7, 0;\n\
             sub.cc.u32 %r6, %r9, %r8; addc.u32 %r4, %r7, 0;\n\
             add.cc.u32 %r6, %r8, %r9; subc.u32 %r5, %r7, 0;"
        ),
        [10, 9, 11, 10, 9]
    );
}

#[test]
fn only_global_memory_flushes_what_it_adds() {
    // A subnormal number is added to another in each memory, also through a generic pointer.
    let body = ".shared .b32 cell; .reg .b64 %near;\n\
        mov.b32 %f1, 0x00000400; mov.u64 %near, cell; cvta.shared.u64 %near, %near;\n\
        st.global.f32 [%out], %f1; red.global.add.f32 [%out], %f1; ld.global.u32 %r1, [%out];\n\
        st.global.f32 [%out], %f1; atom.add.f32 %f2, [%out], %f1; ld.global.u32 %r2, [%out];\n\
        st.shared.f32 [cell], %f1; red.shared.add.f32 [cell], %f1; ld.shared.u32 %r3, [cell];\n\
        st.shared.f32 [cell], %f1; atom.add.f32 %f2, [%near], %f1; ld.shared.u32 %r4, [cell];";
    assert_eq!(first(body), [0, 0, 0x800, 0x800]);
}

#[test]
fn global_memory_adds_a_nan_as_it_is() {
    let body = ".shared .align 8 .b64 cell; .reg .f64 %a, %b;\n\
        mov.b64 %a, 0x7ff0000000000001; mov.b64 %b, 0x3ff0000000000000;\n\
        st.global.f64 [%out], %b; red.global.add.f64 [%out], %a; ld.global.v2.u32 {%r1, %r2}, [%out];\n\
        st.shared.f64 [cell], %b; red.shared.add.f64 [cell], %a; ld.shared.v2.u32 {%r3, %r4}, [cell];";
    assert_eq!(first(body), [1, 0x7ff0_0000, 1, 0x7ff8_0000]);
    // Of two, the added one stays; the addition in shared memory loads the other later.
    let body = ".shared .align 8 .b64 cell; .reg .f64 %a, %b;\n\
        mov.b64 %a, 0x7ff0000000000001; mov.b64 %b, 0xfff0000000000002;\n\
        st.global.f64 [%out], %b; red.global.add.f64 [%out], %a; ld.global.v2.u32 {%r1, %r2}, [%out];\n\
        st.shared.f64 [cell], %b; red.shared.add.f64 [cell], %a; ld.shared.v2.u32 {%r3, %r4}, [cell];";
    assert_eq!(first(body), [1, 0x7ff0_0000, 2, 0xfff8_0000]);
}

#[test]
fn integers_are_packed_and_compared_in_parts() {
    assert_eq!(
        first(
            "mov.u32 %r8, 70000; mov.s32 %r9, -5; mov.u32 %r7, 0xabcd1234;\n\
             cvt.pack.sat.s16.s32 %r1, %r8, %r9; cvt.pack.sat.u16.s32 %r2, %r8, %r9;\n\
             cvt.pack.sat.u8.s32.b32 %r3, %r8, %r9, %r7; cvt.pack.sat.s4.s32.b32 %r4, %r9, %r8, %r7;"
        ),
        [0x7fff_fffb, 0xffff_0000, 0x1234_ff00, 0xcd12_34b7]
    );
    assert_eq!(
        first(
            "mov.u32 %r8, 0x01ff7f80; mov.u32 %r9, 0x0201807f; mov.u32 %r7, 1000;\n\
             vset4.u32.u32.lt %r1, %r8, %r9, %r7; vset4.s32.s32.lt %r2, %r8, %r9, %r7;\n\
             vset4.u32.u32.lt.add %r3, %r8, %r9, %r7; vset2.s32.s32.ge %r4, %r8, %r9, %r7;"
        ),
        [0x0100_0100, 0x0101_0001, 1002, 0x0000_0001]
    );
}

#[test]
fn a_three_input_function_also_tests_its_result() {
    assert_eq!(
        first(
            "mov.u32 %r7, 6; mov.u32 %r8, 3; mov.u32 %r9, 1; setp.eq.u32 %p1, %r7, 6; setp.ne.u32 %p2, %r7, 6;\n\
             lop3.and.b32 %r1|%p3, %r7, %r8, %r9, 0x80, %p1; selp.u32 %r2, 1, 0, %p3;\n\
             lop3.and.b32 %r3|%p3, %r7, %r8, %r8, 0x80, %p1; selp.u32 %r4, 1, 0, %p3;\n\
             lop3.or.b32 _|%p3, %r7, %r8, %r9, 0x80, %p2; selp.u32 %r5, 1, 0, %p3;"
        ),
        [0, 0, 2, 1, 0]
    );
}
