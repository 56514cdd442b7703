// Several small integers in a word: SIMD instructions, dot products, permutations, packing.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

extern "C" __global__ void packed_simd(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned x = a[0], y = a[1], z = a[2], w = a[3];
  o[0] = __vadd4(x, y) ^ __vsub2(z, w);
  o[1] = __vaddss2(x, y) ^ __vsubus4(z, w);
  o[2] = __vaddus4(x, y) + __vsubss4(z, w);
  o[3] = __vavgs2(x, y) ^ __vavgu4(z, w);
  o[4] = __vhaddu4(x, y) ^ __vhaddu2(z, w);
  o[5] = __vabsdiffs4(x, y) ^ __vabsdiffu2(z, w);
  o[6] = __vmaxs4(x, y) ^ __vminu2(z, w);
  o[7] = __vmins2(x, y) ^ __vmaxu4(z, w);
  o[8] = __vcmpgts4(x, y) ^ __vcmpleu2(z, w);
  o[9] = __vsetles2(x, y) + 8 * __vsetgtu4(z, w);
  o[10] = __vsads4(x, y) + __vsadu2(z, w);
  o[11] = __vabs4(x) ^ __vabsss2(y) ^ __vneg2(z) ^ __vnegss4(w);
  o[12] = __viaddmax_s16x2(x, y, z) ^ __viaddmin_u16x2(y, z, w);
  o[13] = __vimax3_s16x2(x, y, z) ^ __vimin3_u16x2(y, z, w);
  o[14] = __viaddmax_s32_relu(x, y, z) + __vimin_s16x2_relu(z, w);
  bool high, low;
  unsigned best = __vibmax_s16x2(a[4], a[5], &high, &low);
  o[15] = best + high + 2 * low;
}

extern "C" __global__ void packed_video(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r;
  asm("vadd2.s32.u32.s32.sat %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[0] = r;
  asm("vsub4.u32.s32.u32.sat %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[1] = r;
  asm("vavrg4.s32.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[2] = r;
  asm("vavrg2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[3] = r;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(a[3]), "r"(a[4]), "r"(a[5])); o[4] = r;
  asm("vabsdiff2.u32.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[3]), "r"(a[4]), "r"(a[5])); o[5] = r;
  asm("vmin4.s32.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[3]), "r"(a[4]), "r"(a[5])); o[6] = r;
  asm("vmax2.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r) : "r"(a[3]), "r"(a[4]), "r"(a[5])); o[7] = r;
  asm("vset4.u32.u32.lt %0, %1, %2, %3;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[8] = r;
  asm("vset2.s32.s32.ge %0, %1, %2, %3;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[9] = r;
  asm("vset4.s32.u32.ne.add %0, %1, %2, %3;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[10] = r;
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(r) : "r"((int)a[9] >> (a[10] & 31)), "r"((int)a[11] >> (a[10] >> 8 & 31))); o[11] = r;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(r) : "r"((int)a[9] >> (a[10] & 31)), "r"((int)a[11] >> (a[10] >> 8 & 31))); o[12] = r;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"((int)a[9] >> (a[10] & 31)), "r"((int)a[11] >> 20), "r"(a[12])); o[13] = r;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"((int)a[9] >> 22), "r"((int)a[11] >> (a[10] & 31)), "r"(a[12])); o[14] = r;
  asm("{ .reg .b32 t; add.u16x2 t, %1, %2; min.s16x2 t, t, %3; max.u16x2 %0, t, %1; }" : "=r"(r) : "r"(a[13]), "r"(a[14]), "r"(a[15])); o[15] = r;
}

extern "C" __global__ void packed_products(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r;
  o[0] = __dp4a((int)a[0], (int)a[1], (int)a[2]);
  o[1] = __dp4a(a[0], a[1], a[2]);
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[2] = r;
  o[3] = __dp2a_lo((int)a[3], (int)a[4], (int)a[5]);
  o[4] = __dp2a_hi(a[3], a[4], a[5]);
  asm("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[3]), "r"(a[4]), "r"(a[5])); o[5] = r;
  asm("mul24.lo.s32 %0, %1, %2;" : "=r"(r) : "r"(a[6]), "r"(a[7])); o[6] = r;
  asm("mul24.hi.u32 %0, %1, %2;" : "=r"(r) : "r"(a[6]), "r"(a[7])); o[7] = r;
  asm("mad24.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[8] = r;
  asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a[6]), "r"(a[7]), "r"(a[8])); o[9] = r;
  o[10] = __sad((int)a[9], (int)a[10], a[11]) ^ __usad(a[9], a[10], a[11]);
  o[11] = __fns(a[12], a[13] & 31, (int)(a[14] & 15) - 7);
  asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(r) : "r"(a[13]), "r"(a[14])); o[12] = r;
  asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(a[13] & 63), "r"(a[14] & 63)); o[13] = r;
  asm("{ .reg .b32 t; szext.wrap.s32 t, %1, %2; szext.clamp.u32 %0, %1, %3; xor.b32 %0, %0, t; }" : "=&r"(r) : "r"(a[15]), "r"(a[14]), "r"(a[14] & 63)); o[14] = r;
  asm("{ .reg .b32 s, t; prmt.b32.b4e s, %1, %2, %3; prmt.b32.rc8 t, %1, %2, %3; xor.b32 s, s, t; prmt.b32.ecl t, %1, %2, %3;"
      " add.u32 s, s, t; prmt.b32.ecr t, %1, %2, %3; xor.b32 %0, s, t; }" : "=r"(r) : "r"(a[0]), "r"(a[1]), "r"(a[2])); o[15] = r;
}
