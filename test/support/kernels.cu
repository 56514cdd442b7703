extern "C" {

__device__ int table[16] = {1, 2, 3, 4};

// p[i] += 1
__global__ void incr(int* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 1;
}

// p[i] <- 10 p[i] + v: the order of such steps can be read from the result.
__global__ void append_digit(int* p, int v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 10 * p[i] + v;
}

__global__ void copy(int* to, const int* from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

// One parameter of each kind.
__global__ void every_param(double* out, int i, size_t s, float f, double d) {
  out[0] = i;
  out[1] = s;
  out[2] = f;
  out[3] = d;
}

// Keeps the GPU busy for a while: `rounds` dependent multiplications.
__global__ void busy(int* out, int rounds) {
  unsigned x = 1;
  for (int i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
  out[0] = x == 0 ? 1 : 0;
}

__global__ void bump_table(int i) { table[i] += 1; }

// Writes where the caller says.
__global__ void wild(size_t address) { *(int*)address = 1; }
}
