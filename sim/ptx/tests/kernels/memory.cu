// State spaces: shared, constant, local, parameters, vectors.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

__constant__ unsigned table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ float2 pairs[3] = {{1.5f, 2.5f}, {-3.f, 4.f}, {0.f, 1e10f}};
__device__ unsigned counter_start = 1000;
__device__ unsigned lookup[2][3] = {{10, 20, 30}, {40, 50, 60}};
__device__ unsigned *indirect = &lookup[1][1];
__device__ const char text[] = "shared memory";

extern "C" __global__ void memory_shared(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned tile[128][3];
  extern __shared__ unsigned dynamic[];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  for (int k = 0; k < 3; k++) tile[t][k] = in[16 * i + k];
  dynamic[t] = in[16 * i + 3];
  __syncthreads();
  unsigned *o = out + 16 * i;
  for (int k = 0; k < 3; k++) o[k] = tile[(t * 5 + k) % 128][k];
  o[3] = dynamic[127 - t];
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (t < s) dynamic[t] += dynamic[t + s];
    __syncthreads();
  }
  o[4] = dynamic[0];
  unsigned *generic = (in[16 * i + 4] & 1) ? &tile[t][0] : o + 3;
  o[5] = *generic;
  ((unsigned char *)tile)[t] = in[16 * i + 5];
  __syncthreads();
  o[6] = ((unsigned char *)tile)[(t + 1) % 128];
  for (int k = 7; k < 16; k++) o[k] = 0;
}

extern "C" __global__ void memory_spaces(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = table[a[0] & 7];
  o[1] = __float_as_uint(pairs[a[1] % 3].y);
  o[2] = counter_start + lookup[a[2] & 1][a[3] % 3];
  o[3] = *indirect;
  o[4] = text[a[4] % 13];
  unsigned local[24];
  for (int k = 0; k < 24; k++) local[k] = a[k & 15] * k;
  for (int k = 0; k < 24; k++) local[(a[k & 15] >> 7) % 24] += local[k];
  unsigned sum = 0;
  for (int k = 0; k < 24; k++) sum = sum * 31 + local[k];
  o[5] = sum;
  unsigned *p = (a[6] & 1) ? local : lookup[0];
  o[6] = p[a[7] % 3];
  o[7] = __isGlobal(p) + 2 * __isLocal(p) + 4 * __isShared(o) + 8 * __isConstant(table);
  o[8] = __ldg(in + i);
  o[9] = __ldcg(in + 2 * i) + __ldcs(in + 3 * i) + __ldcv(in + i);
  __stcg(o + 10, a[10]);
  __stcs(o + 11, a[11]);
  *(volatile unsigned *)(o + 12) = a[12];
  o[13] = *(volatile const unsigned *)(in + i);
  o[14] = o[15] = 0;
}

extern "C" __global__ void memory_vectors(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  uint4 v = ((const uint4 *)a)[0];
  uint2 w = ((const uint2 *)a)[2];
  double2 d = ((const double2 *)a)[2];
  ushort4 s = ((const ushort4 *)a)[6];
  ((uint4 *)o)[0] = make_uint4(v.w, v.z, v.y, v.x);
  ((uint2 *)o)[2] = make_uint2(w.x + w.y, w.x ^ w.y);
  o[6] = a[6];
  o[7] = a[7];
  ((double2 *)o)[2] = make_double2(d.y, d.x);
  ((ushort4 *)o)[6] = make_ushort4(s.w, s.x, s.z, s.y);
  o[14] = a[14];
  o[15] = __ldg((const uint4 *)a + 3).z;
}

struct Params {
  int scale;
  short steps[5];
  double weight;
  unsigned char bytes[16];
};
static __device__ __noinline__ int pick(const Params &p, int k) { return p.steps[k] + p.bytes[k]; }

extern "C" __global__ void memory_params(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  Params p;
  p.scale = a[0];
  for (int k = 0; k < 5; k++) p.steps[k] = a[k];
  p.weight = (int)a[1] * 0.25;
  for (int k = 0; k < 16; k++) p.bytes[k] = a[k];
  o[0] = pick(p, a[2] % 5);
  Params q = p;
  q.steps[a[3] % 5] = 7;
  o[1] = pick(q, a[4] % 5) * q.scale;
  o[2] = (int)(q.weight * 2);
  for (int k = 3; k < 16; k++) o[k] = 0;
}

extern "C" __global__ void memory_async(const unsigned *in, unsigned *out, int n) {
  __shared__ uint4 tile[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  unsigned to = (unsigned)__cvta_generic_to_shared(&tile[t]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 16 * i));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  uint4 v = tile[127 - t];
  ((uint4 *)(out + 16 * i))[0] = v;
  __syncthreads();
  int want = in[16 * i + 4] & 4;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(in + 16 * i + 5), "r"(want));
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[16 * i + 4] = tile[t].x;
  for (int k = 5; k < 16; k++) out[16 * i + k] = 0;
}
