// Control flow, functions, pointers to functions, classes.
#define PROLOGUE \
  int i = blockIdx.x * blockDim.x + threadIdx.x; \
  if (i >= n) return; \
  const unsigned *a = in + 16 * i; \
  unsigned *o = out + 16 * i;

extern "C" __global__ void control_loops(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  for (int k = 0; k < 16; k++) o[k] = 0;
  unsigned x = a[0] | 1, steps = 0;
  while (x != 1 && steps < 300) {
    x = (x & 1) ? 3 * x + 1 : x / 2;
    steps++;
  }
  o[0] = steps;
  unsigned sum = 0;
  for (unsigned k = 0; k < (a[1] & 63); k++) {
    if (k % 3 == a[2] % 3) continue;
    if (sum > 5000) break;
    sum += k * k;
  }
  o[1] = sum;
  unsigned p = a[3] & 0xffff, q = a[4] & 0xffff;
  while (q) {
    unsigned t = p % q;
    p = q;
    q = t;
  }
  o[2] = p;
  unsigned m = 0;
  for (int r = 0; r < (int)(a[5] & 7); r++)
    for (int c = 0; c < (int)(a[6] & 7); c++)
      if ((r ^ c) & 1) m += r * 10 + c;
      else if (r > c) m ^= 0x55;
  o[3] = m;
  do {
    m = m * 1664525 + 1013904223;
  } while ((m & 15) != 3);
  o[4] = m;
}

extern "C" __global__ void control_switch(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  for (int k = 0; k < 16; k++) {
    unsigned w = a[k], r;
    switch (w & 15) {
      case 0: r = w + 1; break;
      case 1: r = w * 3; break;
      case 2: r = w ^ 0xff; break;
      case 3: r = w >> 3; break;
      case 4: r = w << 2; // falls through
      case 5: r = w - 77; break;
      case 6: r = __popc(w); break;
      case 7: r = w / 5; break;
      case 9: r = w % 11; break;
      case 11: r = ~w; break;
      default: r = 42;
    }
    o[k] = r;
  }
}

static __device__ __noinline__ unsigned ackermann(unsigned m, unsigned x) {
  if (m == 0) return x + 1;
  if (x == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, x - 1));
}
static __device__ __noinline__ unsigned fib(unsigned k) { return k < 2 ? k : fib(k - 1) + fib(k - 2); }
static __device__ __noinline__ bool odd(unsigned k);
static __device__ __noinline__ bool even(unsigned k) { return k == 0 ? true : odd(k - 1); }
static __device__ __noinline__ bool odd(unsigned k) { return k == 0 ? false : even(k - 1); }

extern "C" __global__ void control_recursion(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  for (int k = 0; k < 16; k++) o[k] = 0;
  o[0] = ackermann(a[0] & 1, a[1] & 3);
  o[1] = fib(a[2] & 7);
  o[2] = even(a[3] & 15);
}

struct Big {
  int values[6];
  double scale;
  short tag;
};
static __device__ __noinline__ Big mix(Big b, int k) {
  for (int j = 0; j < 6; j++) b.values[j] = b.values[(j + k) % 6] * 3 + j;
  b.scale *= 0.5;
  b.tag += k;
  return b;
}
static __device__ __noinline__ void swap_them(unsigned &x, unsigned &y) {
  unsigned t = x;
  x = y;
  y = t;
}

extern "C" __global__ void control_structs(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  Big b;
  for (int j = 0; j < 6; j++) b.values[j] = a[j];
  b.scale = (int)a[6];
  b.tag = a[7];
  b = mix(mix(b, a[8] & 3), a[9] & 5);
  for (int j = 0; j < 6; j++) o[j] = b.values[j];
  o[6] = (int)b.scale;
  o[7] = b.tag;
  unsigned x = a[10], y = a[11];
  if (x > y) swap_them(x, y);
  o[8] = x;
  o[9] = y;
  for (int k = 10; k < 16; k++) o[k] = 0;
}

static __device__ unsigned op_add(unsigned x, unsigned y) { return x + y; }
static __device__ unsigned op_mul(unsigned x, unsigned y) { return x * y; }
static __device__ unsigned op_xor(unsigned x, unsigned y) { return x ^ y; }
typedef unsigned (*Op)(unsigned, unsigned);
__device__ Op ops[3] = {op_add, op_mul, op_xor};

struct Shape {
  unsigned w;
  __device__ virtual unsigned area() const = 0;
};
struct Square : Shape {
  __device__ unsigned area() const override { return w * w; }
};
struct Ring : Shape {
  unsigned inner;
  __device__ unsigned area() const override { return 3 * (w * w - inner * inner); }
};

extern "C" __global__ void control_pointers(const unsigned *in, unsigned *out, int n) {
  PROLOGUE
  unsigned r = a[0];
  for (int k = 1; k < 8; k++) r = ops[a[k] % 3](r, a[k]);
  o[0] = r;
  Square s;
  s.w = a[8];
  Ring t;
  t.w = a[9];
  t.inner = a[10];
  Shape *shape = (a[11] & 1) ? (Shape *)&s : (Shape *)&t;
  o[1] = shape->area();
  auto twice = [&](unsigned v) { return v * 2 + r; };
  o[2] = twice(a[12]);
  for (int k = 3; k < 16; k++) o[k] = 0;
}
