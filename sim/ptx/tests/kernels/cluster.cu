// Clusters of one block, which is what a launch gets that asks for none.
extern "C" __global__ void cluster_alone(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned cells[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  const unsigned *a = in + 16 * i;
  unsigned *o = out + 16 * i, r, from = (unsigned)__cvta_generic_to_shared(&cells[127 - t]);
  cells[t] = a[0];
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  unsigned sum = 0;
  for (int k = 0; k < 4; k++) sum += a[k];
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  o[0] = cells[127 - t] + sum;
  asm volatile("{ .reg .u32 t; mapa.shared::cluster.u32 t, %1, 0; ld.shared::cluster.u32 %0, [t]; }" : "=r"(r) : "r"(from) : "memory");
  o[1] = r;
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(r) : "r"(from));
  o[2] = r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  o[3] = r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  o[4] = r;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(r));
  o[5] = r;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(r));
  o[6] = r;
  __syncthreads();
  // Half of the threads leave before the others meet again.
  for (int k = 7; k < 16; k++) o[k] = 0;
  if (t & 64) return;
  cells[t] = a[1];
  asm volatile("barrier.cluster.arrive;" ::: "memory");
  asm volatile("barrier.cluster.wait;" ::: "memory");
  o[7] = cells[63 - t];
}
