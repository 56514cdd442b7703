// 64-bit and small integers.
typedef unsigned long long u64;
typedef long long s64;
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const u64 *a = (const u64 *)(in + 16 * i); \
  u64 *o = (u64 *)(out + 16 * i);

extern "C" __global__ void int64_arith(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  s64 x = a[0], y = a[1], z = a[2];
  u64 u = a[3], v = a[4], w = a[5];
  o[0] = x * y + z;
  o[1] = (y ? x / y : 0) + (z ? x % z : 1);
  o[2] = (v ? u / v : 0) + (w ? u % w : 1);
  o[3] = __mul64hi(x, y) ^ __umul64hi(u, v);
  o[4] = llabs(x) + min(x, y) + max(u, v);
  o[5] = x / 3 + u / 10 + (u >> 40) % 7;
  o[6] = (x < y) + 2 * (u < v) + 4 * (x >= z) + 8 * (u > w) + 16 * (x == z);
  o[7] = u * (unsigned)v + (s64)(int)w * (int)u;
}

extern "C" __global__ void int64_bits(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  u64 u = a[0], v = a[1], w = a[2], r;
  s64 x = a[3];
  o[0] = __popcll(u) + 100 * __clzll(v) + 10000 * __ffsll(w);
  o[1] = __brevll(u);
  o[2] = (u & v) | (~u & w) ^ (v << (w & 63));
  o[3] = (x >> (w & 63)) ^ (u >> (v & 63));
  asm("bfe.u64 %0, %1, %2, %3;" : "=l"(r) : "l"(u), "r"((int)v & 127), "r"((int)w & 127)); o[4] = r;
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r) : "l"(u), "l"(v), "r"((int)w & 127), "r"((int)x & 127)); o[5] = r;
  asm("bfe.s64 %0, %1, %2, %3;" : "=l"(r) : "l"(u), "r"((int)v & 127), "r"((int)w & 127)); o[6] = r;
  asm("{ .reg .u64 t; add.cc.u64 t, %1, %2; addc.cc.u64 t, t, %3; subc.u64 %0, t, %1; }" : "=l"(r) : "l"(u), "l"(v), "l"(w)); o[7] = r;
}

extern "C" __global__ void int16_int8(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const short *s = (const short *)(in + 16 * i);
  const unsigned short *us = (const unsigned short *)(in + 16 * i);
  const signed char *c = (const signed char *)(in + 16 * i);
  const unsigned char *uc = (const unsigned char *)(in + 16 * i);
  unsigned *o = out + 16 * i;
  short t = s[0] + s[1];
  unsigned short ut = us[2] * us[3];
  o[0] = t;
  o[1] = ut;
  o[2] = s[4] / (s[5] | 1);
  o[3] = us[4] % (us[5] | 1);
  o[4] = (short)(s[6] >> (us[7] & 15)) + (unsigned short)(us[6] << 3);
  o[5] = c[16] * c[17] + uc[18] - uc[19];
  o[6] = (signed char)(c[20] + c[21]);
  o[7] = (unsigned char)(uc[22] * uc[23]);
  o[8] = s[12] < s[13] ? us[14] : us[15];
  o[9] = max(s[12], s[13]) + min(us[14], us[15]);
  char4 q = ((const char4 *)(in + 16 * i))[10];
  o[10] = q.x + 3 * q.y + 5 * q.z + 7 * q.w;
  uchar4 p = make_uchar4(uc[1], uc[2], uc[3], uc[4]);
  ((uchar4 *)o)[11] = p;
  ((short2 *)o)[12] = make_short2(s[20], s[21]);
  ((unsigned char *)o)[52] = uc[50];
  ((unsigned char *)o)[53] = uc[51] + 1;
  ((unsigned short *)o)[27] = us[26];
  o[14] = (int)c[3] >> 2;
  o[15] = (unsigned)uc[3] << 20;
}
