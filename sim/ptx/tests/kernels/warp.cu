// What the threads of a warp do together.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i; \
  unsigned lane = threadIdx.x & 31; \
  (void)lane;
#define ALL 0xffffffffu

extern "C" __global__ void warp_shuffle(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __shfl_sync(ALL, a[0], a[1] & 31);
  o[1] = __shfl_up_sync(ALL, a[0], 3);
  o[2] = __shfl_down_sync(ALL, a[0], 5);
  o[3] = __shfl_xor_sync(ALL, a[0], 6);
  o[4] = __shfl_sync(ALL, a[2], a[3] & 31, 8);
  o[5] = __shfl_up_sync(ALL, a[2], 2, 4);
  o[6] = __shfl_down_sync(ALL, a[2], 7, 16);
  o[7] = __shfl_xor_sync(ALL, a[2], 9, 8);
  double d = __shfl_down_sync(ALL, (double)(int)a[4], 1);
  o[8] = (int)d;
  unsigned long long l = __shfl_xor_sync(ALL, ((const unsigned long long *)a)[3], 1);
  o[9] = l ^ l >> 32;
  unsigned scan = a[5] & 0xff;
  for (int s = 1; s < 32; s *= 2) {
    unsigned up = __shfl_up_sync(ALL, scan, s);
    if (lane >= s) scan += up;
  }
  o[10] = scan;
  for (int k = 11; k < 16; k++) o[k] = 0;
}

extern "C" __global__ void warp_vote(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __ballot_sync(ALL, a[0] & 1);
  o[1] = __any_sync(ALL, (a[1] & 31) == 0) + 2 * __all_sync(ALL, a[2] & 0xffff) + 4 * __all_sync(ALL, (a[3] & 7) != 9);
  o[2] = __match_any_sync(ALL, a[4] & 3);
  int agreed;
  o[3] = __match_all_sync(ALL, a[5] & 0, &agreed) + agreed;
  o[4] = __match_all_sync(ALL, a[5], &agreed) + agreed;
  o[5] = __match_any_sync(ALL, (unsigned long long)(a[6] & 1) << 40);
  o[6] = __popc(__ballot_sync(ALL, a[7] & 1) & ((1u << lane) - 1));
  unsigned mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  o[7] = mask;
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(mask));
  o[8] = mask;
  o[9] = 0;
  o[10] = o[11] = 0;
  unsigned odd = __ballot_sync(ALL, a[8] & 1);
  if (a[8] & 1) {
    o[9] = __ballot_sync(odd, a[9] & 1);
    o[10] = __shfl_sync(odd, a[10], __ffs(odd) - 1);
    __syncwarp(odd);
  } else {
    o[9] = __ballot_sync(~odd, a[9] & 2);
    o[11] = __any_sync(~odd, a[10] & 1);
  }
  __syncwarp();
  for (int k = 12; k < 16; k++) o[k] = 0;
}

extern "C" __global__ void warp_reduce(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  o[0] = __reduce_add_sync(ALL, a[0]);
  o[1] = __reduce_min_sync(ALL, a[1]);
  o[2] = __reduce_max_sync(ALL, a[2]);
  o[3] = __reduce_min_sync(ALL, (int)a[3]);
  o[4] = __reduce_max_sync(ALL, (int)a[4]);
  o[5] = __reduce_and_sync(ALL, a[5] | 0xffff0000);
  o[6] = __reduce_or_sync(ALL, a[6] & 0xff);
  o[7] = __reduce_xor_sync(ALL, a[7]);
  unsigned tile = 0xffu << (lane & 24);
  o[8] = __reduce_add_sync(tile, a[8]);
  o[9] = __shfl_sync(tile, a[9], lane & 24);
  unsigned leader;
  asm("{ .reg .pred p; elect.sync %0|p, %1; @p add.u32 %0, %0, 100; }" : "=r"(leader) : "r"(ALL));
  o[10] = leader;
  for (int k = 11; k < 16; k++) o[k] = 0;
}

// Threads of a warp hand a value on through shared memory, each one waiting for the one before it.
extern "C" __global__ void warp_relay(const unsigned *in, unsigned *out, int n) {
  __shared__ volatile unsigned turn, value;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t == 0) turn = 0, value = 1;
  __syncthreads();
  while (turn != t) {
  }
  value = value * 3 + (in[16 * i] & 0xff);
  unsigned mine = value;
  __threadfence_block();
  turn = t + 1;
  for (int k = 0; k < 16; k++) out[16 * i + k] = k == 0 ? mine : 0;
}
