// Loads and stores of every width and with every cache operator; order between threads.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

extern "C" __global__ void caches_loads(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __ldg((const unsigned char *)a + 1) + 3 * __ldg((const signed char *)a + 2) + 5 * __ldcg((const short *)a + 2) + 7 * __ldca((const unsigned short *)a + 3);
  char4 c = __ldg((const char4 *)a + 2);
  uchar4 u = __ldcs((const uchar4 *)a + 3);
  o[1] = c.x + 3 * c.y + 5 * c.z + 7 * c.w + 11 * u.x + 13 * u.y + 17 * u.z + 19 * u.w;
  short4 s = __ldlu((const short4 *)a + 2);
  ushort2 t = __ldcv((const ushort2 *)a + 6);
  o[2] = s.x + 3 * s.y + 5 * s.z + 7 * s.w + 11 * t.x + 13 * t.y;
  longlong2 l = __ldg((const longlong2 *)a + 2);
  ((long long *)o)[2] = l.x ^ l.y * 3;
  double2 d = __ldcg((const double2 *)a + 3);
  o[3] = __double2loint(d.x) ^ __double2hiint(d.y);
  float4 f = __ldcs((const float4 *)a + 1);
  o[6] = __float_as_uint(f.x) ^ __float_as_uint(f.w);
  __stwb((unsigned char *)(o + 7), (unsigned char)a[7]);
  __stcg((unsigned char *)(o + 7) + 1, (unsigned char)a[8]);
  __stcs((unsigned short *)(o + 7) + 1, (unsigned short)a[9]);
  __stwt((uint2 *)(o + 8), make_uint2(a[10], a[11]));
  unsigned r, q;
  asm("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(r), "=r"(q) : "l"(a + 12)); o[10] = r ^ q;
  asm("ld.global.L1::evict_last.u32 %0, [%1];" : "=r"(r) : "l"(a + 13)); o[11] = r;
  asm volatile("st.global.L1::evict_first.u32 [%0], %1;" ::"l"(o + 12), "r"(a[14]));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(a));
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(o + 12)); o[13] = r;
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(o + 14), "r"(a[15]));
  asm volatile("fence.acq_rel.gpu; fence.sc.sys; membar.cta;");
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(o + 14)); o[15] = r;
}

// The first warp of a block publishes, the others wait for the flag.
extern "C" __global__ void caches_publish(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned data[32];
  __shared__ unsigned flag;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  const unsigned *a = in + 16 * i;
  unsigned *o = out + 16 * i, to = (unsigned)__cvta_generic_to_shared(&flag), r;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t < 32) {
    data[t] = a[0];
    __syncwarp();
    if (t == 0) asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(to) : "memory");
  } else {
    do {
      asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(r) : "r"(to) : "memory");
      __nanosleep(20);
    } while (r == 0);
  }
  __syncwarp();
  o[0] = data[t & 31];
  for (int k = 1; k < 16; k++) o[k] = 0;
}

// Parts of local and constant memory by pointers that differ between threads.
__constant__ __align__(16) unsigned short steps[40] = {5, 3, 8, 1, 9, 2, 7, 7, 4, 6, 0, 11, 15, 3, 12, 1};
extern "C" __global__ void caches_generic(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  __shared__ unsigned near[128];
  unsigned mine[8];
  for (int k = 0; k < 8; k++) mine[k] = a[k] * 3;
  near[threadIdx.x] = a[9];
  const unsigned *where[4] = {mine + (a[0] & 7), a + (a[1] & 15), near + threadIdx.x, (const unsigned *)steps + (a[2] & 15)};
  o[0] = *where[a[3] & 3];
  o[1] = *where[a[4] & 3] + steps[a[5] % 40];
  const unsigned char *bytes = (const unsigned char *)where[a[6] & 3];
  o[2] = bytes[0] + 256 * bytes[3];
  uint4 v = *(const uint4 *)((a[7] & 1) ? a + 4 : a + 8);
  o[3] = v.x ^ v.y ^ v.z ^ v.w;
  unsigned long long *wide = (unsigned long long *)(mine + (a[8] & 6));
  *wide += 0x100000001ull;
  o[4] = mine[a[8] & 6] + mine[(a[8] & 6) + 1];
  o[5] = __isLocal(where[a[3] & 1]) + 2 * __isShared(where[2]) + 4 * __isConstant(where[3]) + 8 * __isGlobal(where[1]);
  unsigned r;
  asm("{ .reg .pred p; isspacep.shared p, %1; selp.u32 %0, 1, 0, p; isspacep.global p, %1; @p add.u32 %0, %0, 2; isspacep.local p, %1; @p add.u32 %0, %0, 4; }" : "=&r"(r) : "l"(where[a[6] & 3]));
  o[6] = (a[6] & 3) == 3 ? 0 : r;
  for (int k = 7; k < 16; k++) o[k] = 0;
}
