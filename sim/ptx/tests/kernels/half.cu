// f16 and bf16, raw bit patterns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return;

extern "C" __global__ void half_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const __half *a = (const __half *)(in + 16 * i);
  __half *o = (__half *)(out + 16 * i);
  o[0] = __hadd(a[0], a[1]);
  o[1] = __hsub(a[0], a[1]);
  o[2] = __hmul(a[2], a[3]);
  o[3] = __hfma(a[0], a[2], a[3]);
  o[4] = __hdiv(a[4], a[5]);
  o[5] = __hneg(a[4]);
  o[6] = __habs(a[5]);
  o[7] = __hmax(a[6], a[7]);
  o[8] = __hmin(a[6], a[7]);
  o[9] = __hadd_sat(a[8], a[9]);
  o[10] = __hmul_sat(a[8], a[9]);
  o[11] = __hfma_relu(a[8], a[9], a[10]);
  o[12] = __hmax_nan(a[10], a[11]);
  o[13] = __float2half(__half2float(a[12]) * 0.3f);
  o[14] = a[12] > a[13] ? a[14] : a[15];
  o[15] = __hfma_sat(a[14], a[15], a[13]);
  ((unsigned *)o)[8] = __hlt(a[0], a[1]) + 2 * __hle(a[1], a[2]) + 4 * __heq(a[2], a[2]) + 8 * __hne(a[3], a[4]) + 16 * __hltu(a[5], a[6]) + 32 * __hisnan(a[7]) + 64 * __hisinf(a[8]);
  for (int k = 9; k < 16; k++) ((unsigned *)o)[k] = 0;
}

extern "C" __global__ void half2_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const __half2 *a = (const __half2 *)(in + 16 * i);
  __half2 *o = (__half2 *)(out + 16 * i);
  o[0] = __hadd2(a[0], a[1]);
  o[1] = __hsub2(a[0], a[1]);
  o[2] = __hmul2(a[2], a[3]);
  o[3] = __hfma2(a[0], a[2], a[3]);
  o[4] = __hneg2(a[4]);
  o[5] = __habs2(a[5]);
  o[6] = __hmax2(a[6], a[7]);
  o[7] = __hmin2_nan(a[6], a[7]);
  o[8] = __hadd2_sat(a[8], a[9]);
  o[9] = __hfma2_relu(a[8], a[9], a[10]);
  o[10] = __hlt2(a[10], a[11]);
  o[11] = __hequ2(a[10], a[11]);
  o[12] = __lowhigh2highlow(a[12]);
  o[13] = __halves2half2(__low2half(a[13]), __high2half(a[14]));
  o[14] = __floats2half2_rn(__low2float(a[14]), __high2float(a[15]));
  ((unsigned *)o)[15] = __hbgt2(a[0], a[1]) + 2 * __hbltu2(a[2], a[3]) + 4 * __hle2_mask(a[4], a[5]);
}

extern "C" __global__ void bfloat_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const __nv_bfloat16 *a = (const __nv_bfloat16 *)(in + 16 * i);
  __nv_bfloat16 *o = (__nv_bfloat16 *)(out + 16 * i);
  o[0] = __hadd(a[0], a[1]);
  o[1] = __hsub(a[0], a[1]);
  o[2] = __hmul(a[2], a[3]);
  o[3] = __hfma(a[0], a[2], a[3]);
  o[4] = __hneg(a[4]);
  o[5] = __habs(a[5]);
  o[6] = __hmax(a[6], a[7]);
  o[7] = __hmin(a[6], a[7]);
  o[8] = __float2bfloat16(__bfloat162float(a[8]) * 1.7f);
  o[9] = __float2bfloat16_rz(__bfloat162float(a[9]) * 1.7f);
  o[10] = __hfma_relu(a[8], a[9], a[10]);
  o[11] = a[12] < a[13] ? a[14] : a[15];
  o[12] = __hmax_nan(a[10], a[11]);
  o[13] = __hadd_sat(a[12], a[13]);
  o[14] = o[0];
  o[15] = o[1];
  const __nv_bfloat162 *p = (const __nv_bfloat162 *)(in + 16 * i);
  __nv_bfloat162 *q = (__nv_bfloat162 *)(out + 16 * i);
  q[8] = __hfma2(p[8], p[9], p[10]);
  q[9] = __hadd2(p[8], p[9]);
  q[10] = __hmul2(p[10], p[11]);
  q[11] = __hmax2(p[12], p[13]);
  q[12] = __hgt2(p[12], p[13]);
  q[13] = __floats2bfloat162_rn(__low2float(p[14]), __high2float(p[15]));
  q[14] = __habs2(p[14]);
  ((unsigned *)q)[15] = __hbeq2(p[0], p[0]) + 2 * __hisnan(p[1].x);
}

// Numbers of ordinary size.
extern "C" __global__ void half_near(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const unsigned *b = in + 16 * i;
  __half *o = (__half *)(out + 16 * i);
  __half x = __ushort_as_half(0x3800 + (b[0] & 0xfff)), y = __ushort_as_half(0xb400 + (b[1] & 0xfff));
  __half z = __ushort_as_half(b[2] & 0xfff), w = __ushort_as_half(0x8000 + (b[3] & 0xfff));
  __nv_bfloat16 p = __ushort_as_bfloat16(0x3f00 + (b[4] & 0xff)), q = __ushort_as_bfloat16(0xbe80 + (b[5] & 0xff)), r = __ushort_as_bfloat16(0x3600 + (b[6] & 0x7ff));
  o[0] = __hadd(x, y);
  o[1] = __hfma(x, y, x);
  o[2] = __hfma(z, x, w);
  o[3] = __hmul(z, x);
  o[4] = __hadd(z, w);
  o[5] = __hdiv(x, y);
  __nv_bfloat16 *f = (__nv_bfloat16 *)o;
  f[6] = __hadd(p, q);
  f[7] = __hfma(p, q, r);
  f[8] = __hfma(p, p, r);
  f[9] = __hmul(p, r);
  o[10] = hsqrt(x);
  o[11] = hrcp(x);
  o[12] = hfloor(__hmul(x, __float2half(9.f)));
  o[13] = hrint(__hmul(y, __float2half(9.f)));
  o[14] = htrunc(__hmul(y, __float2half(19.f)));
  o[15] = hceil(__hmul(x, __float2half(5.f)));
  for (int k = 8; k < 16; k++) ((unsigned *)o)[k] = 0;
}
