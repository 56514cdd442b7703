// 32-bit integers. Each thread reads 16 words at 16*i and writes 16 words there.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

extern "C" __global__ void int32_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  int x = a[0], y = a[1], z = a[2];
  unsigned u = a[3], v = a[4], w = a[5];
  o[0] = x + y * z;
  o[1] = y ? x / y : 1;
  o[2] = z ? x % z : 2;
  o[3] = v ? u / v : 3;
  o[4] = w ? u % w : 4;
  o[5] = __mulhi(x, y);
  o[6] = __umulhi(u, v);
  o[7] = abs(x) + min(y, z) - max(x, z);
  o[8] = min(u, v) ^ max(v, w);
  o[9] = __sad(x, y, u) + __usad(u, v, w);
  o[10] = __mul24(x, y) + __umul24(u, v);
  o[11] = __hadd(x, y) + __rhadd(y, z) + __uhadd(u, v) + __urhadd(v, w);
  o[12] = x / 7 + y % 13 + u / 10u + v % 1000u;
  o[13] = (x > y) + 2 * (x >= z) + 4 * (u < v) + 8 * (v <= w) + 16 * (x == (int)u) + 32 * (y != (int)v);
  o[14] = x > 0 ? y : z;
  o[15] = -x - ~y;
}

extern "C" __global__ void int32_bits(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned u = a[0], v = a[1], w = a[2];
  int x = a[3];
  o[0] = __popc(u) + 100 * __clz(v) + 10000 * __ffs(w);
  o[1] = __brev(u);
  o[2] = __byte_perm(u, v, w & 0x7777);
  o[3] = __byte_perm(u, v, 0x5140);
  o[4] = __funnelshift_l(u, v, w);
  o[5] = __funnelshift_r(u, v, w);
  o[6] = __funnelshift_lc(u, v, w & 63);
  o[7] = __funnelshift_rc(u, v, w & 63);
  o[8] = (u & v) | (~u & w);
  o[9] = u ^ v ^ w;
  o[10] = (u << (w & 31)) ^ (v >> (u & 31));
  o[11] = x >> (u & 31);
  o[12] = (u >> 5) & 0x3ff;
  o[13] = (x << 7) >> 20;
  o[14] = (u & 0xffff00ff) | ((v & 0xff) << 8);
  o[15] = !u + !x + (u && v) + (v || w);
}

extern "C" __global__ void int32_dot(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __dp4a((int)a[0], (int)a[1], (int)a[2]);
  o[1] = __dp4a(a[0], a[1], a[2]);
  o[2] = __dp2a_lo((int)a[3], (int)a[4], (int)a[5]);
  o[3] = __dp2a_hi((int)a[3], (int)a[4], (int)a[5]);
  o[4] = __dp2a_lo(a[3], a[4], a[5]);
  o[5] = __dp2a_hi(a[3], a[4], a[5]);
  o[6] = __vadd2(a[6], a[7]);
  o[7] = __vsub4(a[6], a[7]);
  o[8] = __vabsdiffu4(a[8], a[9]);
  o[9] = __vmaxs2(a[8], a[9]) ^ __vminu2(a[8], a[9]);
  o[10] = __vcmpgtu4(a[10], a[11]);
  o[11] = __vsetltu2(a[10], a[11]);
  o[12] = __vavgu4(a[12], a[13]);
  o[13] = __vabs2(a[12]) + __vneg4(a[13]);
  o[14] = __viaddmax_s32((int)a[0], (int)a[1], (int)a[2]) + __vimax3_s32((int)a[3], (int)a[4], (int)a[5]);
  o[15] = __viaddmin_u32(a[6], a[7], a[8]) + __vimin_s32_relu((int)a[9], (int)a[10]);
}

extern "C" __global__ void int32_asm(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r, lo, hi;
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1] & 63), "r"(a[2] & 63)); o[0] = r;
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1] & 63), "r"(a[2] & 63)); o[1] = r;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2] & 63), "r"(a[3] & 63)); o[2] = r;
  asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(a[4] >> (a[5] & 31))); o[3] = r;
  asm("bfind.s32 %0, %1;" : "=r"(r) : "r"((unsigned)((int)a[4] >> (a[5] & 31)))); o[4] = r;
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(a[4] >> (a[5] & 31))); o[5] = r;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[6] = r;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[7] = r;
  asm("{ add.cc.u32 %0, %2, %3; addc.u32 %1, %4, %5; }" : "=&r"(lo), "=r"(hi) : "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12])); o[8] = lo ^ hi;
  asm("{ sub.cc.u32 %0, %2, %3; subc.u32 %1, %4, %5; }" : "=&r"(lo), "=r"(hi) : "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12])); o[9] = lo ^ hi;
  asm("{ mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5; }" : "=&r"(lo), "=r"(hi) : "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(a[12])); o[10] = lo ^ hi;
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a[13]), "r"(a[14]), "r"(a[15])); o[11] = r;
  asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(r) : "r"(a[13]), "r"(a[14]), "r"(a[15])); o[12] = r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[13]), "r"(a[14]), "r"(a[15] & 0xffff)); o[13] = r;
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(a[0]), "r"(a[1])); o[14] = r;
  asm("{ .reg .s32 t; mul24.hi.s32 t, %1, %2; mad24.lo.u32 %0, %1, %2, t; }" : "=r"(r) : "r"(a[2]), "r"(a[3])); o[15] = r;
}
