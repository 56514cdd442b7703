// f64, raw bit patterns.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const double *a = (const double *)(in + 16 * i); \
  double *o = (double *)(out + 16 * i);

extern "C" __global__ void float64_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  double x = a[0], y = a[1], z = a[2], w = a[3];
  o[0] = x + y - z;
  o[1] = x * y;
  o[2] = fma(x, z, w);
  o[3] = x / y;
  o[4] = sqrt(fabs(w));
  o[5] = fmin(x, y) + fmax(z, w);
  o[6] = copysign(x, y);
  ((unsigned *)o)[14] = (x < y) + 2 * (x <= z) + 4 * (x == x) + 8 * (z >= w) + 16 * (int)isnan(y) + 32 * (int)isinf(z);
  ((unsigned *)o)[15] = x > y ? 1 : 0;
}

extern "C" __global__ void float64_rounding(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  double x = a[0], y = a[1], z = a[2];
  o[0] = __dadd_rz(x, y);
  o[1] = __dmul_ru(x, z);
  o[2] = __fma_rd(x, y, z);
  o[3] = __ddiv_ru(x, y);
  o[4] = __dsqrt_rd(fabs(z));
  o[5] = __drcp_ru(y);
  o[6] = __dsub_rd(x, z);
  o[7] = __fma_rz(z, y, x);
}

extern "C" __global__ void float64_near(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned long long *b = (const unsigned long long *)(in + 16 * i);
  double *o = (double *)(out + 16 * i);
  unsigned long long m = 0x3fffffffffffffull;
  double x = __longlong_as_double(0x3fe0000000000000ull + (b[0] & m)), y = __longlong_as_double(0xbfd0000000000000ull + (b[1] & m));
  double z = __longlong_as_double(b[2] & m), w = __longlong_as_double(0x8000000000000000ull + (b[3] & m));
  o[0] = __dadd_ru(x, y);
  o[1] = __fma_ru(x, y, x);
  o[2] = __fma_rd(z, x, w);
  o[3] = __dmul_rz(z, x);
  o[4] = __dadd_rd(z, w);
  o[5] = z / y;
  o[6] = __ddiv_rz(w, x);
  o[7] = fma(x, y, x);
}
