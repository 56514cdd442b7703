// f32: raw bit patterns in, so NaN, infinities and subnormals are among them.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const float *a = (const float *)(in + 16 * i); \
  float *o = (float *)(out + 16 * i);

extern "C" __global__ void float32_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  float x = a[0], y = a[1], z = a[2], w = a[3];
  o[0] = x + y;
  o[1] = x - z;
  o[2] = y * z;
  o[3] = x * y + z;
  o[4] = x / y;
  o[5] = sqrtf(fabsf(w));
  o[6] = fminf(x, y);
  o[7] = fmaxf(z, w);
  o[8] = -x;
  o[9] = fabsf(y);
  o[10] = __saturatef(z);
  o[11] = fmaf(x, z, w);
  o[12] = 1.0f / w;
  o[13] = copysignf(x, y);
  o[14] = x > y ? z : w;
  ((unsigned *)o)[15] = (x < y) + 2 * (x <= z) + 4 * (x == x) + 8 * (y != y) + 16 * (z >= w) + 32 * isnan(x) + 64 * isinf(y) + 128 * signbit(z) + 256 * isfinite(w);
}

extern "C" __global__ void float32_rounding(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  float x = a[0], y = a[1], z = a[2];
  o[0] = __fadd_rz(x, y);
  o[1] = __fadd_ru(x, y);
  o[2] = __fadd_rd(x, y);
  o[3] = __fmul_rz(x, z);
  o[4] = __fmul_ru(x, z);
  o[5] = __fmul_rd(x, z);
  o[6] = __fmaf_rz(x, y, z);
  o[7] = __fmaf_ru(x, y, z);
  o[8] = __fmaf_rd(x, y, z);
  o[9] = __fdiv_rz(x, y);
  o[10] = __fdiv_ru(x, y);
  o[11] = __fdiv_rd(x, y);
  o[12] = __fsqrt_ru(fabsf(z));
  o[13] = __fsqrt_rd(fabsf(z));
  o[14] = __frcp_rz(y);
  o[15] = __fsub_ru(z, y);
}

// The same over numbers near each other, where rounding decides.
extern "C" __global__ void float32_near(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned *b = in + 16 * i;
  float *o = (float *)(out + 16 * i);
  float x = __uint_as_float(0x3f000000 + (b[0] & 0x1ffffff)), y = __uint_as_float(0xbe800000 + (b[1] & 0x1ffffff));
  float z = __uint_as_float(0x00000000 + (b[2] & 0x1ffffff)), w = __uint_as_float(0x80000000 + (b[3] & 0x1ffffff));
  o[0] = x + y;
  o[1] = __fadd_rz(x, y);
  o[2] = __fadd_ru(x, y);
  o[3] = __fadd_rd(x, y);
  o[4] = fmaf(x, y, x);
  o[5] = __fmaf_ru(x, y, x);
  o[6] = __fmaf_rd(z, x, w);
  o[7] = z * x;
  o[8] = __fmul_ru(z, x);
  o[9] = __fmul_rd(w, x);
  o[10] = z + w;
  o[11] = __fadd_rd(z, w);
  o[12] = z / y;
  o[13] = __fdiv_ru(w, x);
  o[14] = __fsqrt_rn(z);
  o[15] = __fdiv_rn(x, y);
}

extern "C" __global__ void float32_asm(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  float r;
  asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[0]), "f"(a[1])); o[0] = r;
  asm("mul.ftz.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(a[0]), "f"(a[1])); o[1] = r;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[0]), "f"(a[1]), "f"(a[2])); o[2] = r;
  asm("fma.rp.ftz.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[0]), "f"(a[1]), "f"(a[2])); o[3] = r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a[3]), "f"(a[4])); o[4] = r;
  asm("max.xorsign.abs.f32 %0, %1, %2;" : "=f"(r) : "f"(a[3]), "f"(a[4])); o[5] = r;
  asm("{ .reg .pred p; setp.ltu.f32 p, %1, %2; selp.f32 %0, %1, %2, p; }" : "=f"(r) : "f"(a[5]), "f"(a[6])); o[6] = r;
  asm("{ .reg .pred p, q; setp.gt.ftz.f32 p|q, %1, %2; selp.f32 %0, %1, %2, q; }" : "=f"(r) : "f"(a[5]), "f"(a[6])); o[7] = r;
  asm("set.le.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a[7]), "f"(a[8])); o[8] = r;
  asm("slct.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a[7]), "f"(a[8]), "f"(a[9])); o[9] = r;
  asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.f32 %0, %1, %2, p; }" : "=f"(r) : "f"(a[10]), "f"(a[11])); o[10] = r;
  asm("copysign.f32 %0, %1, %2;" : "=f"(r) : "f"(a[10]), "f"(a[11])); o[11] = r;
  asm("neg.ftz.f32 %0, %1;" : "=f"(r) : "f"(a[12])); o[12] = r;
  asm("sub.rm.f32 %0, %1, %2;" : "=f"(r) : "f"(a[13]), "f"(a[14])); o[13] = r;
  asm("mul.rz.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[13]), "f"(a[14])); o[14] = r;
  asm("div.rn.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(a[14]), "f"(a[15])); o[15] = r;
}
