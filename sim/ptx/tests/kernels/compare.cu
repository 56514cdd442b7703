// Comparisons: every operator, ordered and not, combined with other predicates.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

#define TEST(op, ty, con, x, y, bit) \
  asm("{ .reg .pred p; setp." op "." ty " p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(r) : con(x), con(y)); \
  set |= r << bit;
#define FLOATS(ty, con, x, y) \
  set = 0; \
  TEST("eq", ty, con, x, y, 0) TEST("ne", ty, con, x, y, 1) TEST("lt", ty, con, x, y, 2) TEST("le", ty, con, x, y, 3) \
  TEST("gt", ty, con, x, y, 4) TEST("ge", ty, con, x, y, 5) TEST("equ", ty, con, x, y, 6) TEST("neu", ty, con, x, y, 7) \
  TEST("ltu", ty, con, x, y, 8) TEST("leu", ty, con, x, y, 9) TEST("gtu", ty, con, x, y, 10) TEST("geu", ty, con, x, y, 11) \
  TEST("num", ty, con, x, y, 12) TEST("nan", ty, con, x, y, 13)
#define SIGNED(ty, con, x, y) \
  TEST("eq", ty, con, x, y, 0) TEST("ne", ty, con, x, y, 1) TEST("lt", ty, con, x, y, 2) \
  TEST("le", ty, con, x, y, 3) TEST("gt", ty, con, x, y, 4) TEST("ge", ty, con, x, y, 5)
#define UNSIGNED(ty, con, x, y) \
  TEST("lo", ty, con, x, y, 8) TEST("ls", ty, con, x, y, 9) TEST("hi", ty, con, x, y, 10) TEST("hs", ty, con, x, y, 11)

extern "C" __global__ void compare_floats(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r, set;
  float x = __uint_as_float(a[0]), y = __uint_as_float((a[1] & 3) ? a[1] : a[0]);
  double d = __longlong_as_double(((const long long *)a)[1]), e = (a[1] & 1) ? (double)(int)a[0] : d;
  unsigned short h = a[4], g = (a[4] >> 24 & 1) ? a[5] : a[4];
  FLOATS("f32", "f", x, y) o[0] = set;
  FLOATS("ftz.f32", "f", x, __uint_as_float(a[2] & 0x807fffff)) o[1] = set;
  FLOATS("f64", "d", d, e) o[2] = set;
  FLOATS("f16", "h", h, g) o[3] = set;
  FLOATS("bf16", "h", h, g) o[4] = set;
  for (int k = 5; k < 16; k++) o[k] = 0;
  asm("set.lt.f32.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); o[5] = r;
  asm("set.geu.u32.f64 %0, %1, %2;" : "=r"(r) : "d"(d), "d"(e)); o[6] = r;
  asm("set.gt.f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a[6]), "r"(a[7])); o[7] = r;
  asm("set.neu.u32.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a[6]), "r"(a[7])); o[8] = r;
  asm("{ .reg .pred p, q; setp.ltu.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }" : "=r"(r) : "r"(a[8]), "r"(a[9])); o[9] = r;
  asm("{ .reg .pred p; testp.finite.f32 p, %1; selp.u32 %0, 1, 0, p; testp.infinite.f32 p, %1; @p add.u32 %0, %0, 2;"
      " testp.number.f32 p, %1; @p add.u32 %0, %0, 4; testp.notanumber.f32 p, %1; @p add.u32 %0, %0, 8;"
      " testp.normal.f32 p, %1; @p add.u32 %0, %0, 16; testp.subnormal.f32 p, %1; @p add.u32 %0, %0, 32; }" : "=&r"(r) : "f"(x));
  o[10] = r;
  asm("{ .reg .pred p; testp.normal.f64 p, %1; selp.u32 %0, 1, 0, p; testp.subnormal.f64 p, %1; @p add.u32 %0, %0, 2; }" : "=&r"(r) : "d"(d));
  o[11] = r;
}

extern "C" __global__ void compare_integers(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r, set;
  unsigned x = a[0], y = (a[1] & 3) ? a[1] : a[0];
  unsigned long long u = ((const unsigned long long *)a)[1], v = (a[1] & 4) ? u : ((const unsigned long long *)a)[2];
  unsigned short s = a[6], t = (a[6] >> 24 & 1) ? a[7] : a[6];
  set = 0; SIGNED("s32", "r", x, y) o[0] = set;
  set = 0; SIGNED("u32", "r", x, y) UNSIGNED("u32", "r", x, y) o[1] = set;
  set = 0; SIGNED("s64", "l", u, v) o[2] = set;
  set = 0; SIGNED("u64", "l", u, v) UNSIGNED("u64", "l", u, v) o[3] = set;
  set = 0; SIGNED("s16", "h", s, t) o[4] = set;
  set = 0; SIGNED("u16", "h", s, t) UNSIGNED("u16", "h", s, t) o[5] = set;
  for (int k = 6; k < 16; k++) o[k] = 0;
  // The result and its opposite are combined with a third predicate each.
  asm("{ .reg .pred p, q, c; setp.ne.u32 c, %3, 0; setp.lt.and.s32 p|q, %1, %2, c; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }" : "=&r"(r) : "r"(x), "r"(y), "r"(a[8] & 1)); o[6] = r;
  asm("{ .reg .pred p, q, c; setp.ne.u32 c, %3, 0; setp.lt.or.s32 p|q, %1, %2, !c; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }" : "=&r"(r) : "r"(x), "r"(y), "r"(a[8] & 1)); o[7] = r;
  asm("{ .reg .pred p, q, c; setp.ne.u32 c, %3, 0; setp.gt.xor.u32 p|q, %1, %2, c; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }" : "=&r"(r) : "r"(x), "r"(y), "r"(a[8] & 1)); o[8] = r;
  asm("{ .reg .pred c; setp.ne.u32 c, %3, 0; set.le.xor.u32.s32 %0, %1, %2, c; }" : "=r"(r) : "r"(x), "r"(y), "r"(a[8] & 1)); o[9] = r;
  asm("slct.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(a[9])); o[10] = r;
  unsigned long long w;
  asm("slct.u64.f32 %0, %1, %2, %3;" : "=l"(w) : "l"(u), "l"(v), "f"(__uint_as_float(a[10]))); o[11] = w; o[12] = w >> 32;
  asm("{ .reg .pred p, q, s; setp.lt.u32 p, %1, %2; setp.ne.u32 q, %3, 0; xor.pred s, p, q; not.pred q, q; or.pred s, s, q; and.pred p, p, s; selp.u32 %0, 5, 9, p; @s add.u32 %0, %0, 64; }" : "=&r"(r) : "r"(x), "r"(y), "r"(a[11] & 1)); o[13] = r;
  asm("{ .reg .pred p, q; setp.ne.u32 q, %4, 0; lop3.or.b32 %0|p, %1, %2, %3, 0x40, q; @p add.u32 %0, %0, 1; }" : "=&r"(r) : "r"(a[12] & 3), "r"(a[13] & 3), "r"(a[14] & 3), "r"(a[15] & 1)); o[14] = r;
  asm("cnot.b32 %0, %1;" : "=r"(r) : "r"(a[12] & 1)); o[15] = r;
}
