// One training step of a network with one hidden layer, as kernels of one thread per result. Every sum is
// made by one thread in a fixed order, so that the same input gives the same bits each time.
//
// Matrices are stored by rows. n is the number of images, `in` of pixels, `hid` of hidden units, `out` of classes.

extern "C" {

// x, y <- the images of batch number *step, in the order of `permutation`.
__global__ void gather(const float* images, const int* labels, const int* permutation, const int* step,
                       float* x, int* y, int n, int in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * in) return;
  int row = i / in, image = permutation[*step * n + row];
  x[i] = images[image * in + i % in];
  if (i % in == 0) y[row] = labels[image];
}

// h <- max(0, x w + b)
__global__ void hidden(const float* x, const float* w, const float* b, float* h, int n, int in, int hid) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * hid) return;
  int row = i / hid, unit = i % hid;
  float sum = b[unit];
  for (int k = 0; k < in; k++) sum += x[row * in + k] * w[k * hid + unit];
  h[i] = sum > 0.0f ? sum : 0.0f;
}

// z <- h w + b
__global__ void logits(const float* h, const float* w, const float* b, float* z, int n, int hid, int out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * out) return;
  int row = i / out, unit = i % out;
  float sum = b[unit];
  for (int k = 0; k < hid; k++) sum += h[row * hid + k] * w[k * out + unit];
  z[i] = sum;
}

// p <- softmax of each row of z; loss <- minus the logarithm of the right class's probability.
__global__ void softmax(const float* z, const int* y, float* p, float* loss, int n, int out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float largest = z[row * out], sum = 0.0f;
  for (int k = 1; k < out; k++) largest = fmaxf(largest, z[row * out + k]);
  for (int k = 0; k < out; k++) {
    float e = expf(z[row * out + k] - largest);
    p[row * out + k] = e;
    sum += e;
  }
  for (int k = 0; k < out; k++) p[row * out + k] /= sum;
  loss[row] = -logf(fmaxf(p[row * out + y[row]], 1e-20f));
}

// losses[*step] <- the mean of the batch's losses.
__global__ void mean_loss(const float* loss, const int* step, float* losses, int n) {
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += loss[k];
  losses[*step] = sum / n;
}

// dz <- the gradient of the mean loss by the logits.
__global__ void grad_logits(const float* p, const int* y, float* dz, int n, int out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * out) return;
  dz[i] = (p[i] - (i % out == y[i / out] ? 1.0f : 0.0f)) / n;
}

// dw <- transposed a times d: the gradient by a layer's weights. a is n x rows, d is n x columns.
__global__ void grad_weights(const float* a, const float* d, float* dw, int n, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  int row = i / columns, column = i % columns;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += a[k * rows + row] * d[k * columns + column];
  dw[i] = sum;
}

// db <- the sum of d's rows: the gradient by a layer's biases.
__global__ void grad_bias(const float* d, float* db, int n, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += d[k * columns + column];
  db[column] = sum;
}

// dh <- dz times transposed w, where the hidden unit was on.
__global__ void grad_hidden(const float* dz, const float* w, const float* h, float* dh, int n, int hid, int out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * hid) return;
  int row = i / hid, unit = i % hid;
  float sum = 0.0f;
  for (int k = 0; k < out; k++) sum += dz[row * out + k] * w[unit * out + k];
  dh[i] = h[i] > 0.0f ? sum : 0.0f;
}

// Gradient descent with momentum: v <- momentum v - rate dw; w <- w + v.
__global__ void update(float* w, float* v, const float* dw, int n, float rate, float momentum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  v[i] = momentum * v[i] - rate * dw[i];
  w[i] += v[i];
}

__global__ void next_step(int* step) { *step += 1; }

// right[row] <- 1 if the largest of the row's logits is that of the image's class.
__global__ void is_right(const float* z, const int* y, int* right, int n, int out) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  int best = 0;
  for (int k = 1; k < out; k++)
    if (z[row * out + k] > z[row * out + best]) best = k;
  right[row] = best == y[row];
}
}
