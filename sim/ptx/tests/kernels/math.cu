// The mathematical functions: compared within ulp bounds.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return;

// A float from -range to range.
static __device__ float ranged(unsigned w, float range) { return ((int)w * 0x1p-31f) * range; }
static __device__ double ranged64(unsigned w, unsigned v, double range) { return ((int)w * 0x1p-31 + v * 0x1p-63) * range; }

extern "C" __global__ void math_f32(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const unsigned *a = in + 16 * i;
  float *o = (float *)(out + 16 * i);
  float x = ranged(a[0], 10), y = ranged(a[1], 1), z = fabsf(ranged(a[2], 100)) + 1e-3f;
  o[0] = sinf(x);
  o[1] = cosf(x);
  o[2] = expf(x);
  o[3] = logf(z);
  o[4] = powf(z, y);
  o[5] = tanhf(y);
  o[6] = atan2f(x, z);
  o[7] = rsqrtf(z);
  o[8] = exp2f(x);
  o[9] = log2f(z);
  o[10] = cbrtf(x);
  o[11] = erff(y);
  o[12] = asinf(y);
  o[13] = hypotf(x, z);
  o[14] = tgammaf(fabsf(y) + 1);
  o[15] = fmodf(x, z);
}

extern "C" __global__ void math_f32_large(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const unsigned *a = in + 16 * i;
  float *o = (float *)(out + 16 * i);
  float x = ranged(a[0], 1e9f), y = ranged(a[1], 1e6f), z = ranged(a[2], 80);
  o[0] = sinf(x);
  o[1] = cosf(y);
  o[2] = tanf(y);
  o[3] = expf(z);
  o[4] = sinhf(z * 0.3f);
  o[5] = expm1f(y * 1e-7f);
  o[6] = log1pf(fabsf(y));
  o[7] = log10f(fabsf(x) + 1);
  o[8] = ldexpf(z, (int)a[3] >> 26);
  o[9] = logbf(x + 0.5f);
  int e;
  o[10] = frexpf(x, &e);
  o[11] = e;
  o[12] = remainderf(x, z);
  o[13] = fdimf(x, y);
  o[14] = nextafterf(x, y);
  o[15] = modff(y, &o[15]);
}

extern "C" __global__ void math_f64(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const unsigned *a = in + 16 * i;
  double *o = (double *)(out + 16 * i);
  double x = ranged64(a[0], a[1], 10), y = ranged64(a[2], a[3], 1), z = fabs(ranged64(a[4], a[5], 100)) + 1e-3;
  o[0] = sin(x);
  o[1] = exp(x);
  o[2] = log(z);
  o[3] = pow(z, y);
  o[4] = atan(x);
  o[5] = rsqrt(z);
  o[6] = cbrt(x);
  o[7] = tanh(y);
}

extern "C" __global__ void math_intrinsics(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  const unsigned *a = in + 16 * i;
  float *o = (float *)(out + 16 * i);
  float x = ranged(a[0], 3), y = ranged(a[1], 20), z = fabsf(ranged(a[2], 100)) + 1e-3f;
  o[0] = __sinf(x);
  o[1] = __cosf(x);
  o[2] = __expf(y);
  o[3] = __logf(z);
  o[4] = __fdividef(x, z);
  o[5] = __powf(z, x);
  o[6] = __log2f(z);
  o[7] = __frsqrt_rn(z);
  asm("rcp.approx.f32 %0, %1;" : "=f"(o[8]) : "f"(z));
  asm("sqrt.approx.f32 %0, %1;" : "=f"(o[9]) : "f"(z));
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(o[10]) : "f"(y));
  asm("lg2.approx.f32 %0, %1;" : "=f"(o[11]) : "f"(z));
  asm("tanh.approx.f32 %0, %1;" : "=f"(o[12]) : "f"(x));
  asm("div.full.f32 %0, %1, %2;" : "=f"(o[13]) : "f"(x), "f"(z));
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(o[14]) : "f"(z));
  o[15] = __tanf(x * 0.3f);
}
