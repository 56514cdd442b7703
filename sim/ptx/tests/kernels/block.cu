// Barriers, and algorithms of a block.
extern "C" __global__ void block_barriers(const unsigned *in, unsigned *out, int n) {
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  const unsigned *a = in + 16 * i;
  unsigned *o = out + 16 * i;
  __shared__ unsigned cells[128];
  o[0] = __syncthreads_count(a[0] & 1);
  o[1] = __syncthreads_and(a[1] & 0xfffff);
  o[2] = __syncthreads_or((a[2] & 0xff) == 3);
  cells[t] = 0;
  __syncthreads();
  // Two warps meet at a barrier of their own while the other two do something else.
  if (t < 64) {
    cells[t] = a[3];
    asm volatile("bar.sync 1, 64;" ::: "memory");
    o[3] = cells[63 - t];
  } else {
    cells[t] = a[4];
    __syncwarp();
    o[3] = cells[t ^ 1];
  }
  __syncthreads();
  // Half of the warps produce, the other half consumes.
  if (t < 64) {
    cells[t + 64] = a[5] ^ t;
    __threadfence_block();
    asm volatile("bar.arrive 2, 128;" ::: "memory");
    o[4] = 0;
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory");
    o[4] = cells[191 - t];
  }
  unsigned r;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; barrier.red.popc.u32 %0, 3, p; }" : "=r"(r) : "r"(a[6] & 4) : "memory");
  o[5] = r;
  for (int k = 6; k < 16; k++) o[k] = 0;
}

extern "C" __global__ void block_sort(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned keys[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  keys[t] = in[16 * i];
  __syncthreads();
  for (int size = 2; size <= 128; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      int other = t ^ stride;
      if (other > t) {
        bool up = (t & size) == 0;
        unsigned x = keys[t], y = keys[other];
        if ((x > y) == up) keys[t] = y, keys[other] = x;
      }
      __syncthreads();
    }
  for (int k = 0; k < 16; k++) out[16 * i + k] = k == 0 ? keys[t] : 0;
}

extern "C" __global__ void block_scan(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned sums[4];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, lane = t & 31;
  unsigned v = in[16 * i] & 0xffff, total = v;
  for (int s = 1; s < 32; s *= 2) {
    unsigned up = __shfl_up_sync(~0u, total, s);
    if (lane >= s) total += up;
  }
  if (lane == 31) sums[t / 32] = total;
  __syncthreads();
  for (int w = 0; w < t / 32; w++) total += sums[w];
  for (int k = 0; k < 16; k++) out[16 * i + k] = k == 0 ? total : 0;
}

extern "C" __global__ void block_matmul(const unsigned *in, unsigned *out, int n) {
  __shared__ float x[8][16], y[16][9];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  x[t / 16][t % 16] = (int)(in[16 * i] & 0xff) - 128;
  y[t % 16][t / 16] = (int)(in[16 * i + 1] & 0xff) - 128;
  __syncthreads();
  float *o = (float *)(out + 16 * i);
  for (int k = 0; k < 16; k++) o[k] = 0;
  if (t < 64) {
    float sum = 0;
    for (int k = 0; k < 16; k++) sum += x[t / 8][k] * y[k][t % 8];
    o[0] = sum;
  }
}

extern "C" __global__ void block_special(const unsigned *in, unsigned *out, int n) {
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  unsigned *o = out + 16 * i;
  unsigned r;
  o[0] = threadIdx.x + 1000 * blockIdx.x + 100000 * blockDim.x;
  o[1] = threadIdx.y + gridDim.x * 10 + gridDim.y * 100 + blockDim.z * 1000;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  o[2] = r;
  long long before = clock64();
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  __nanosleep(100);
  long long after = clock64();
  o[3] = after > before;
  o[4] = time > 1000000;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r));
  o[5] = r;
  o[6] = warpSize;
  o[7] = __activemask();
  for (int k = 8; k < 16; k++) o[k] = 0;
}
