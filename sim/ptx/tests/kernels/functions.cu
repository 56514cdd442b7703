// More mathematical functions: compared within ulp bounds.
#include <cuda_fp16.h>
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i;

static __device__ float ranged(unsigned w, float range) { return ((int)w * 0x1p-31f) * range; }

extern "C" __global__ void functions_f32(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  float *o = (float *)(out + 16 * i);
  float x = ranged(a[0], 4), y = ranged(a[1], 1), z = fabsf(ranged(a[2], 50)) + 0.01f;
  o[0] = erfcf(x);
  o[1] = erfinvf(y);
  o[2] = lgammaf(z);
  o[3] = acosf(y);
  o[4] = acoshf(z + 1);
  o[5] = atanhf(y * 0.99f);
  o[6] = sinpif(x);
  o[7] = coshf(x);
  o[8] = exp10f(x);
  o[9] = rcbrtf(z);
  o[10] = j0f(z);
  o[11] = normcdff(x);
  o[12] = asinhf(x);
  o[13] = rhypotf(x, z);
  o[14] = erfcxf(fabsf(x));
  o[15] = cospif(x);
}

extern "C" __global__ void functions_f64(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  double *o = (double *)(out + 16 * i);
  double x = (int)a[0] * 0x1p-29, y = (int)a[1] * 0x1p-31, z = a[2] * 0x1p-27 + 0.01;
  o[0] = erfc(x);
  o[1] = log1p(z);
  o[2] = asin(y);
  o[3] = expm1(x);
  o[4] = fmod(x * 1e6, z);
  o[5] = hypot(x, z);
  o[6] = sinpi(x);
  o[7] = exp2(x);
}

// Half precision functions answer within an ulp or two; they are stored as f32.
extern "C" __global__ void functions_half(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  float *o = (float *)(out + 16 * i);
  __half x = __float2half(ranged(a[0], 4)), z = __float2half(fabsf(ranged(a[1], 50)) + 0.05f);
  o[0] = __half2float(hexp(x));
  o[1] = __half2float(hexp2(x));
  o[2] = __half2float(hlog(z));
  o[3] = __half2float(hlog2(z));
  o[4] = __half2float(hsin(x));
  o[5] = __half2float(hcos(x));
  o[6] = __half2float(hrsqrt(z));
  o[7] = __half2float(hsqrt(z));
  o[8] = __half2float(hrcp(z));
  o[9] = __half2float(htanh_approx(x));
  o[10] = __half2float(hexp10(x));
  o[11] = __half2float(hlog10(z));
  __half2 p = h2exp2(__halves2half2(x, x));
  o[12] = __low2float(p);
  o[13] = __high2float(h2tanh_approx(__halves2half2(z, x)));
  o[14] = 0;
  o[15] = 0;
}
