// The mean over height and width, and its gradient.

// NCHW: a warp for each of `planes` runs of `positions` numbers.
KERNEL forward_planes(const T *x, T *y, i64 planes, int positions) {
    i64 plane = (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (plane >= planes) return;
    const T *from = x + plane * positions;
    float sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < positions; i += 32) sum += to_float(from[i]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) y[plane] = from_float(sum / positions);
}

const int LANES = 8, LINES = 32;

// NHWC: a block has LANES bundles of channels of one image, and LINES threads for each of them.
template <int V> DEVICE void mean_of_rows(const T *x, T *y, int channels, int positions, float *scratch) {
    int tiles = (channels + LANES * V - 1) / (LANES * V);
    int lane = threadIdx.x % LANES, line = threadIdx.x / LANES, warp = threadIdx.x / 32;
    int channel = (blockIdx.x % tiles * LANES + lane) * V;
    i64 image = blockIdx.x / tiles;
    const T *from = x + image * positions * channels + channel;
    float sums[V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = 0.0f;
#pragma unroll 2
    for (int row = line; row < positions; row += LINES) {
        if (channel >= channels) continue;
        Bundle<V> values = load<V>(from + (i64)row * channels);
#pragma unroll
        for (int i = 0; i < V; i++) sums[i] += to_float(values.v[i]);
    }
    for (int step = 16; step >= LANES; step /= 2) {
#pragma unroll
        for (int i = 0; i < V; i++) sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], step);
    }
    if (threadIdx.x % 32 < LANES) {
#pragma unroll
        for (int i = 0; i < V; i++) scratch[warp * LANES * V + lane * V + i] = sums[i];
    }
    __syncthreads();
    int column = threadIdx.x, first = blockIdx.x % tiles * LANES * V;
    if (column >= LANES * V || first + column >= channels) return;
    float sum = 0.0f;
    for (int other = 0; other < LANES * LINES / 32; other++) sum += scratch[other * LANES * V + column];
    y[image * channels + first + column] = from_float(sum / positions);
}

KERNEL forward_rows(const T *x, T *y, int channels, int positions, int width) {
    __shared__ float scratch[LANES * LINES / 32 * LANES * PACK];
    if (width == PACK) mean_of_rows<PACK>(x, y, channels, positions, scratch);
    else mean_of_rows<1>(x, y, channels, positions, scratch);
}

// NCHW: sixteen bytes for each thread, across the ends of planes.
KERNEL backward_planes(const T *dy, T *dx, i64 count, int positions) {
    i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * PACK;
    if (first >= count) return;
    i64 plane = first / positions;
    int place = (int)(first - plane * positions);
    float scale = 1.0f / positions;
    T value = from_float(to_float(dy[plane]) * scale);
    Pack pack;
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        pack.v[i] = value;
        if (++place == positions && first + i + 1 < count) {
            place = 0;
            value = from_float(to_float(dy[++plane]) * scale);
        }
    }
    if (first + PACK <= count) {
        store(dx + first, pack);
        return;
    }
#pragma unroll
    for (int i = 0; i < PACK; i++) {
        if (first + i < count) dx[first + i] = pack.v[i];
    }
}

// NHWC: a bundle for each thread.
template <int V> DEVICE void spread_over_rows(const T *dy, T *dx, i64 count, int channels, int positions) {
    i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * V;
    if (first >= count) return;
    i64 row = first / channels;
    Bundle<V> values = load<V>(dy + row / positions * channels + (first - row * channels));
    float scale = 1.0f / positions;
#pragma unroll
    for (int i = 0; i < V; i++) values.v[i] = from_float(to_float(values.v[i]) * scale);
    store(dx + first, values);
}

KERNEL backward_rows(const T *dy, T *dx, i64 count, int channels, int positions, int width) {
    if (width == PACK) spread_over_rows<PACK>(dy, dx, count, channels, positions);
    else spread_over_rows<1>(dy, dx, count, channels, positions);
}
