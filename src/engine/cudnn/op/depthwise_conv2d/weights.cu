// The gradient of a depthwise convolution's weights, with the helpers of kernel.cu.

// Threads of a block where weight gradients are summed, and how many of them lie along the channels; mod.rs has the same
// numbers. In NCHW, the lines are the threads of a warp, which lie along the columns.
const int WEIGHT_THREADS = 128, NHWC_LANES = 16, NCHW_LANES = 1;
// Floats of shared memory for each tap, for all warps.
const int WEIGHT_SCRATCH = WEIGHT_THREADS / 32 * NHWC_LANES * 2;

// The sums over a block's lines of V values of each lane, for every tap. `partials` is the place for tap 0, channel 0
// of the block; sums are `step` apart, and those of the next tap are `tap_step` further on. Channels from `channels` on
// are left out.
template <int TAPS, int V, int LANES>
DEVICE void line_sums(float (&sums)[TAPS][V], float *scratch, float *partials, int step, i64 tap_step, int channels) {
    const int WARPS = WEIGHT_THREADS / 32, ACROSS = LANES * V;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
#pragma unroll
        for (int i = 0; i < V; i++) {
#pragma unroll
            for (int other = 16; other >= LANES; other /= 2) sums[tap][i] += __shfl_xor_sync(0xFFFFFFFFu, sums[tap][i], other);
            if (lane < LANES) scratch[(tap * WARPS + warp) * ACROSS + lane * V + i] = sums[tap][i];
        }
    }
    __syncthreads();
    for (int at = threadIdx.x; at < TAPS * ACROSS; at += WEIGHT_THREADS) {
        int tap = at / ACROSS, channel = at % ACROSS;
        if (channel >= channels) continue;
        float sum = 0.0f;
#pragma unroll
        for (int other = 0; other < WARPS; other++) sum += scratch[(tap * WARPS + other) * ACROSS + channel];
        partials[tap * tap_step + (i64)channel * step] = sum;
    }
}

// Partial sums are `splits` numbers for each tap of each channel, tap after tap. A block has a bundle of channels for each
// lane, and every `splits`-th group of tiles.
template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void weight_tiles(const T *x, const T *dy, float *partials, const Sizes &s, int splits, float *scratch) {
    const int COLUMNS = (TW - 1) * STRIDE + S, LANES = V > 1 ? NHWC_LANES : NCHW_LANES, LINES = WEIGHT_THREADS / LANES;
    int rows = divide_up(s.out_height, TH), columns = divide_up(s.out_width, TW);
    int group = blockIdx.x / splits, split = blockIdx.x % splits;
    int first = group * LANES * V, channel = first + threadIdx.x % LANES * V;
    i64 tiles = channel < s.channels ? (i64)s.batch * rows * columns : 0;
    float sums[R * S][V];
#pragma unroll
    for (int i = 0; i < R * S * V; i++) sums[i / V][i % V] = 0.0f;

    for (i64 tile = (i64)split * LINES + threadIdx.x / LANES; tile < tiles; tile += (i64)splits * LINES) {
        u32 line = (u32)tile / (u32)columns, image = line / (u32)rows;
        int out_column = ((u32)tile - line * columns) * TW, out_row = (line - image * rows) * TH;
        float slopes[TH][TW][V];
        typename StripOf<const T, TW, TW, V>::Type out(dy, s, image, channel, {out_row, out_column, s.out_height, s.out_width});
#pragma unroll
        for (int i = 0; i < TH; i++) out.load(i, slopes[i]);
        int top = out_row * STRIDE - s.top, left = out_column * STRIDE - s.left;
        typename StripOf<const T, COLUMNS, TW, V>::Type from(x, s, image, channel, {top, left, s.height, s.width});
#pragma unroll
        for (int row = 0; row < (TH - 1) * STRIDE + R; row++) {
            float values[COLUMNS][V];
            from.load(row, values);
#pragma unroll
            for (int i = 0; i < TH; i++) {
                int r = row - i * STRIDE;
                if (r < 0 || r >= R) continue;
#pragma unroll
                for (int j = 0; j < TW; j++) {
#pragma unroll
                    for (int tap = 0; tap < S; tap++) {
#pragma unroll
                        for (int v = 0; v < V; v++) sums[r * S + tap][v] += slopes[i][j][v] * values[j * STRIDE + tap][v];
                    }
                }
            }
        }
    }

    line_sums<R * S, V, LANES>(sums, scratch, partials + (i64)first * splits + split, splits, (i64)s.channels * splits,
                               s.channels - first);
}

KERNEL __launch_bounds__(128) weights_3x3(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc, int splits) {
    __shared__ float scratch[9 * WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 3, 3, 1, x, dy, partials, sizes, splits, scratch);
}

KERNEL __launch_bounds__(128) weights_3x3_wide(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width,
                                               int out_height, int out_width, int top, int left, int nhwc, int splits) {
    __shared__ float scratch[9 * WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_ROW_LENGTH(weight_tiles, x, dy, partials, sizes, splits, scratch);
}

KERNEL __launch_bounds__(128) weights_3x3_stride_2(const T *x, const T *dy, float *partials, int batch, int channels, int height,
                                                   int width, int out_height, int out_width, int top, int left, int nhwc,
                                                   int splits) {
    __shared__ float scratch[9 * WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 3, 3, 2, x, dy, partials, sizes, splits, scratch);
}

KERNEL __launch_bounds__(128) weights_5x5(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc, int splits) {
    __shared__ float scratch[25 * WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 5, 5, 1, x, dy, partials, sizes, splits, scratch);
}

// Any kernel and stride: a block for each split of each channel, one tap after another.
KERNEL weights_any(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width, int out_height,
                   int out_width, int top, int left, int nhwc, int splits, int kernel_height, int kernel_width,
                   int stride_y, int stride_x) {
    __shared__ float scratch[32];
    Sizes s = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    int channel = blockIdx.x / splits, split = blockIdx.x % splits;
    i64 outputs = (i64)batch * out_height * out_width, stride = (i64)splits * blockDim.x;
    for (int tap = 0; tap < kernel_height * kernel_width; tap++) {
        float sum = 0.0f;
        for (i64 out = (i64)split * blockDim.x + threadIdx.x; out < outputs; out += stride) {
            int out_column = (int)(out % out_width), out_row = (int)(out / out_width % out_height);
            int row = out_row * stride_y - top + tap / kernel_width, column = out_column * stride_x - left + tap % kernel_width;
            if (row < 0 || row >= height || column < 0 || column >= width) continue;
            i64 image = out / out_width / out_height;
            float slope = to_float(dy[image * s.image(out_height, out_width) + channel * s.plane(out_height, out_width) +
                                      out_row * s.row(out_width) + (i64)out_column * s.column()]);
            sum += slope * to_float(x[image * s.image(height, width) + channel * s.plane(height, width) + row * s.row(width) +
                                      (i64)column * s.column()]);
        }
        sum = block_sum(sum, scratch);
        if (threadIdx.x == 0) partials[((i64)tap * channels + channel) * splits + split] = sum;
    }
}

// A warp for each weight.
KERNEL weights_total(const float *partials, T *dw, int channels, int taps, int splits, int nhwc) {
    int weight = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (weight >= channels * taps) return;
    float sum = 0.0f;
    for (int split = threadIdx.x % 32; split < splits; split += 32) sum += partials[(i64)weight * splits + split];
    sum = warp_sum(sum);
    int tap = weight / channels, channel = weight % channels;
    if (threadIdx.x % 32 == 0) dw[nhwc ? weight : channel * taps + tap] = from_float(sum);
}
