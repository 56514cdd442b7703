// Numbers of several words: carries, funnel shifts, products.
typedef unsigned long long u64;
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

extern "C" __global__ void wide_carries(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r[4];
  asm("{ add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11; }"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
  for (int k = 0; k < 4; k++) o[k] = r[k];
  asm("{ sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11; }"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
  for (int k = 0; k < 4; k++) o[4 + k] = r[k];
  // 64 by 32 bits, plus 96.
  asm("{ mad.lo.cc.u32 %0, %3, %5, %6; madc.hi.cc.u32 %1, %3, %5, %7; addc.u32 %2, %8, 0; mad.lo.cc.u32 %1, %4, %5, %1; madc.hi.u32 %2, %4, %5, %2; }"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2])
      : "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12]), "r"(a[13]));
  for (int k = 0; k < 3; k++) o[8 + k] = r[k];
  // The flag of one kind of operation read by the other.
  asm("{ .reg .u32 t; add.cc.u32 t, %2, %3; subc.u32 %0, %4, %5; sub.cc.u32 t, %2, %3; addc.u32 %1, %4, %5; }"
      : "=&r"(r[0]), "=&r"(r[1]) : "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]));
  o[11] = r[0];
  o[12] = r[1];
  u64 x = ((const u64 *)a)[2], y = ((const u64 *)a)[3], lo, hi;
  asm("{ mad.lo.cc.u64 %0, %2, %3, %4; madc.hi.u64 %1, %2, %3, %5; }" : "=&l"(lo), "=&l"(hi) : "l"(x), "l"(y), "l"(((const u64 *)a)[4]), "l"(((const u64 *)a)[5]));
  o[13] = lo ^ lo >> 32;
  o[14] = hi;
  o[15] = hi >> 32;
}

extern "C" __global__ void wide_shifts(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __funnelshift_l(a[0], a[1], a[2]);
  o[1] = __funnelshift_lc(a[0], a[1], a[2] & 63);
  o[2] = __funnelshift_r(a[0], a[1], a[2]);
  o[3] = __funnelshift_rc(a[0], a[1], a[2] & 63);
  u64 x = ((const u64 *)a)[2], y = ((const u64 *)a)[3], r;
  unsigned s;
  ((u64 *)o)[2] = __brevll(x) ^ (u64)__clzll(y) << 50 ^ (u64)__popcll(x) << 20 ^ __ffsll(y);
  asm("bfind.u64 %0, %1;" : "=r"(s) : "l"(x >> (a[2] & 63))); o[6] = s;
  asm("bfind.shiftamt.s64 %0, %1;" : "=r"(s) : "l"((long long)x >> (a[2] & 63))); o[7] = s;
  asm("{ .reg .u32 n; cvt.u32.u64 n, %2; and.b32 n, n, 127; shl.b64 %0, %1, n; }" : "=l"(r) : "l"(x), "l"(y)); ((u64 *)o)[4] = r;
  asm("{ .reg .u32 n; cvt.u32.u64 n, %2; and.b32 n, n, 127; shr.s64 %0, %1, n; }" : "=l"(r) : "l"(x), "l"(y)); ((u64 *)o)[5] = r;
  asm("mul.hi.s64 %0, %1, %2;" : "=l"(r) : "l"(x), "l"(y)); ((u64 *)o)[6] = r;
  asm("{ .reg .u32 l, h; mov.b64 {l, h}, %1; mov.b64 %0, {h, l}; }" : "=l"(r) : "l"(x + y)); ((u64 *)o)[7] = r;
}
