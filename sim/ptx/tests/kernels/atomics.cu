// Atomic operations whose outcome does not depend on the order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void atomics_global(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned *a = in + 16 * i;
  unsigned *o = out;
  atomicAdd(&o[0], a[0]);
  atomicSub(&o[1], a[1]);
  atomicMin(&o[2], a[2]);
  atomicMax(&o[3], a[3]);
  atomicMin((int *)&o[4], (int)a[4]);
  atomicMax((int *)&o[5], (int)a[5]);
  atomicAnd(&o[6], a[6] | 0xfffffff0 << (i & 31));
  atomicOr(&o[7], 1u << (a[7] & 31));
  atomicXor(&o[8], a[8]);
  atomicInc(&o[9], 99);
  atomicDec(&o[10], 77);
  atomicAdd((unsigned long long *)&o[12], ((const unsigned long long *)a)[0]);
  atomicMax((long long *)&o[14], ((const long long *)a)[1]);
  atomicMin((unsigned long long *)&o[16], ((const unsigned long long *)a)[2]);
  atomicXor((unsigned long long *)&o[18], ((const unsigned long long *)a)[3]);
  atomicAdd((float *)&o[20], (float)(a[9] & 0xff));
  atomicAdd((double *)&o[22], (double)(int)a[10]);
  atomicAdd((__half2 *)&o[24], __floats2half2_rn(a[11] & 1, a[12] & 3));
  atomicAdd((__nv_bfloat162 *)&o[25], __floats2bfloat162_rn(i < 60, i > 200));
  atomicAdd((__half *)&o[26], __float2half(a[13] & 1));
  unsigned old = o[27], seen;
  do {
    seen = old;
    old = atomicCAS(&o[27], seen, seen * 1 + (a[14] & 0xff));
  } while (old != seen);
  unsigned long long *cell = (unsigned long long *)&o[28];
  unsigned long long was = *cell, assumed;
  do {
    assumed = was;
    was = atomicCAS(cell, assumed, assumed + (a[15] & 0xff));
  } while (was != assumed);
  unsigned short *half_cell = (unsigned short *)&o[30];
  unsigned short got = *half_cell, expected;
  do {
    expected = got;
    got = atomicCAS(half_cell, expected, (unsigned short)(expected + 3));
  } while (got != expected);
}

extern "C" __global__ void atomics_shared(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned bins[64];
  __shared__ unsigned long long wide;
  __shared__ float sum;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) bins[t] = 0;
  if (t == 0) wide = 0, sum = 0;
  __syncthreads();
  for (int k = 0; k < 16; k++) atomicAdd(&bins[in[16 * i + k] & 63], 1);
  atomicAdd(&wide, (unsigned long long)in[16 * i] << 3);
  atomicAdd(&sum, (float)(in[16 * i + 1] & 15));
  __syncthreads();
  unsigned *o = out + 16 * i;
  o[0] = bins[t & 63];
  o[1] = (unsigned)wide;
  o[2] = (unsigned)(wide >> 32);
  o[3] = (unsigned)sum;
  __syncthreads();
  if (t < 64) bins[t] = 0;
  __syncthreads();
  unsigned ticket = atomicInc(&bins[0], 1000);
  atomicMax(&bins[1], in[16 * i + 2]);
  atomicOr(&bins[2], 1u << (in[16 * i + 3] & 31));
  atomicExch(&bins[4 + (t & 31)], t & 31);
  __syncthreads();
  o[4] = ticket < 128;
  o[5] = bins[0];
  o[6] = bins[1];
  o[7] = bins[2];
  o[8] = bins[4 + (t & 31)];
  for (int k = 9; k < 16; k++) o[k] = 0;
}

// Every thread takes a lock, among them threads of the same warp.
extern "C" __global__ void atomics_lock(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned lock, total;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t == 0) lock = total = 0;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      total += in[16 * i];
      __threadfence();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  for (int k = 0; k < 16; k++) out[16 * i + k] = k == 0 ? total : 0;
}

// The block that comes last adds up what the others left.
__device__ unsigned arrived;
extern "C" __global__ void atomics_last_block(const unsigned *in, unsigned *out, int n) {
  __shared__ bool last;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  for (int k = 0; k < 16; k++) out[16 * i + k] = k == 1 ? in[16 * i] & 0xffff : 0;
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(&arrived, 1) == gridDim.x - 1;
  __syncthreads();
  if (last && t == 0) {
    unsigned sum = 0;
    for (int k = 0; k < n; k++) sum += ((volatile unsigned *)out)[16 * k + 1];
    out[0] = sum;
    arrived = 0;
  }
}

// Subnormal numbers: each thread has cells of its own.
extern "C" __global__ void atomics_subnormal(const unsigned *in, unsigned *out, int n) {
  __shared__ float cells[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  const unsigned *a = in + 16 * i;
  float *o = (float *)(out + 16 * i);
  float tiny = __uint_as_float(a[0] & 0x807fffff), other = __uint_as_float(a[1] & 0x80ffffff);
  cells[t] = tiny;
  o[0] = tiny;
  o[1] = atomicAdd(&o[0], other);
  o[2] = atomicAdd(&cells[t], other);
  o[3] = cells[t];
  o[4] = __uint_as_float(a[2]);
  atomicAdd(&o[4], __uint_as_float(a[3]));
  double *d = (double *)(o + 6);
  *d = __longlong_as_double(((const long long *)a)[2]);
  atomicAdd(d, __longlong_as_double(((const long long *)a)[3]));
  for (int k = 8; k < 16; k++) o[k] = 0;
  o[5] = 0;
}
