// Depthwise convolution: each channel has a filter of its own. mod.rs says which kernel is for what.
//
// One body serves both layouts. A thread computes a tile of TH x TW outputs of V channels: along NHWC the threads of a warp
// lie side by side along the channels (V = 2), along NCHW along the columns (V = 1, TW = 1). Every loop over a tile or a
// filter is unrolled, so that tiles live in registers, and each input is loaded about once for each row of the filter at
// most, mostly from the first-level cache.

#define METHOD __device__ __forceinline__

template <int V> struct alignas(V * sizeof(T)) Bundle { T v[V]; };
template <int V> DEVICE Bundle<V> load(const T *p) { return *reinterpret_cast<const Bundle<V> *>(p); }
template <int V> DEVICE void store(T *p, const Bundle<V> &x) { *reinterpret_cast<Bundle<V> *>(p) = x; }

// The sizes of a convolution; `nhwc` is the layout of maps and weights.
struct Sizes {
    int batch, channels, height, width, out_height, out_width, top, left, nhwc;

    // Elements between neighbours along batch, channels, rows, columns, for maps of that size.
    METHOD i64 image(int rows, int columns) const { return (i64)channels * rows * columns; }
    METHOD i64 plane(int rows, int columns) const { return nhwc ? 1 : (i64)rows * columns; }
    METHOD i64 row(int columns) const { return nhwc ? (i64)columns * channels : columns; }
    METHOD int column() const { return nhwc ? channels : 1; }
    // Where a weight lies: C, R, S for NCHW and R, S, C for NHWC.
    METHOD int weight(int channel, int tap, int taps) const { return nhwc ? tap * channels + channel : channel * taps + tap; }
};

// The number of a tile as image, channel, row and column of tiles.
struct Place {
    int image, channel, row, column;
    // `rows` x `columns` tiles in an image, V channels each; the layout's fastest axis is the fastest here.
    METHOD Place(const Sizes &s, u32 tile, int rows, int columns, int v) {
        if (s.nhwc) {
            u32 groups = s.channels / v;
            channel = tile % groups * v;
            tile /= groups;
        }
        column = tile % columns;
        tile /= columns;
        row = tile % rows;
        tile /= rows;
        if (s.nhwc) {
            image = tile;
        } else {
            channel = tile % s.channels;
            image = tile / s.channels;
        }
    }
};

DEVICE int divide_up(int a, int b) { return (a + b - 1) / b; }

template <int V> DEVICE void to_floats(const T *p, bool inside, float (&values)[V]) {
    Bundle<V> bundle;
    if (inside) bundle = load<V>(p);
#pragma unroll
    for (int i = 0; i < V; i++) values[i] = inside ? to_float(bundle.v[i]) : 0.0f;
}

template <int TAPS, int V> DEVICE void load_weights(const T *w, const Sizes &s, int channel, float (&weights)[TAPS][V]) {
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) to_floats<V>(w + s.weight(channel, tap, TAPS), true, weights[tap]);
}

// ---- Forward ----

template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void forward_tile(const T *x, const T *w, T *y, const Sizes &s) {
    const int COLUMNS = (TW - 1) * STRIDE + S;
    int rows = divide_up(s.out_height, TH), columns = divide_up(s.out_width, TW);
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)s.batch * (s.channels / V) * rows * columns) return;
    Place place(s, (u32)tile, rows, columns, V);
    float weights[R * S][V], sums[TH][TW][V];
    load_weights(w, s, place.channel, weights);
#pragma unroll
    for (int i = 0; i < TH * TW * V; i++) sums[i / (TW * V)][i / V % TW][i % V] = 0.0f;

    int top = place.row * TH * STRIDE - s.top, left = place.column * TW * STRIDE - s.left;
    const T *from = x + place.image * s.image(s.height, s.width) + place.channel * s.plane(s.height, s.width) +
                    top * s.row(s.width) + (i64)left * s.column();
#pragma unroll
    for (int row = 0; row < (TH - 1) * STRIDE + R; row++) {
        bool row_inside = top + row >= 0 && top + row < s.height;
        float values[COLUMNS][V];
#pragma unroll
        for (int column = 0; column < COLUMNS; column++) {
            bool inside = row_inside && left + column >= 0 && left + column < s.width;
            to_floats<V>(from + row * s.row(s.width) + column * s.column(), inside, values[column]);
        }
#pragma unroll
        for (int i = 0; i < TH; i++) {
            int r = row - i * STRIDE;
            if (r < 0 || r >= R) continue;
#pragma unroll
            for (int j = 0; j < TW; j++) {
#pragma unroll
                for (int tap = 0; tap < S; tap++) {
#pragma unroll
                    for (int v = 0; v < V; v++) sums[i][j][v] += weights[r * S + tap][v] * values[j * STRIDE + tap][v];
                }
            }
        }
    }

    T *to = y + place.image * s.image(s.out_height, s.out_width) + place.channel * s.plane(s.out_height, s.out_width);
#pragma unroll
    for (int i = 0; i < TH; i++) {
#pragma unroll
        for (int j = 0; j < TW; j++) {
            int row = place.row * TH + i, column = place.column * TW + j;
            if (row >= s.out_height || column >= s.out_width) continue;
            Bundle<V> bundle;
#pragma unroll
            for (int v = 0; v < V; v++) bundle.v[v] = from_float(sums[i][j][v]);
            store(to + row * s.row(s.out_width) + (i64)column * s.column(), bundle);
        }
    }
}

// The tiles of each layout; mod.rs has the same numbers.
#define BY_LAYOUT(function, r, s, stride, ...)                                  \
    if (sizes.nhwc) function<r, s, stride, NHWC_TILE, NHWC_TILE, 2>(__VA_ARGS__); \
    else function<r, s, stride, NCHW_TILE, 1, 1>(__VA_ARGS__)
const int NHWC_TILE = 4, NCHW_TILE = 7, NCHW_STRIDE_2_TILE = 4;

KERNEL __launch_bounds__(128) forward_3x3(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 3, 3, 1, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_3x3_stride_2(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                                   int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 3, 3, 2, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_5x5(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 5, 5, 1, x, w, y, sizes);
}

// Any kernel and stride: a thread for each output.
KERNEL forward_any(const T *x, const T *w, T *y, int batch, int channels, int height, int width, int out_height, int out_width,
                   int top, int left, int nhwc, int kernel_height, int kernel_width, int stride_y, int stride_x) {
    Sizes s = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)batch * channels * out_height * out_width) return;
    Place place(s, (u32)tile, out_height, out_width, 1);
    const T *from = x + place.image * s.image(height, width) + place.channel * s.plane(height, width);
    int first_row = place.row * stride_y - top, first_column = place.column * stride_x - left;
    float sum = 0.0f;
    for (int r = max(0, -first_row); r < min(kernel_height, height - first_row); r++) {
        for (int c = max(0, -first_column); c < min(kernel_width, width - first_column); c++) {
            float weight = to_float(w[s.weight(place.channel, r * kernel_width + c, kernel_height * kernel_width)]);
            sum += weight * to_float(from[(first_row + r) * s.row(width) + (i64)(first_column + c) * s.column()]);
        }
    }
    y[place.image * s.image(out_height, out_width) + place.channel * s.plane(out_height, out_width) +
      place.row * s.row(out_width) + (i64)place.column * s.column()] = from_float(sum);
}

// ---- The gradient of the input ----

// A tile is TH x TW squares of STRIDE x STRIDE inputs, laid so that the first of a square lies under tap 0 of an output:
// which taps reach which input of a square is then known when this is compiled. (`top` and `left` move the squares, so the
// first of them may begin outside of the maps.)
template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void backward_tile(const T *dy, const T *w, T *dx, const Sizes &s) {
    const int BEFORE_Y = (R - 1) / STRIDE, BEFORE_X = (S - 1) / STRIDE, COLUMNS = TW + BEFORE_X;
    int first_y = s.top / STRIDE, first_x = s.left / STRIDE;
    int rows = divide_up(divide_up(s.height + s.top, STRIDE) - first_y, TH);
    int columns = divide_up(divide_up(s.width + s.left, STRIDE) - first_x, TW);
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)s.batch * (s.channels / V) * rows * columns) return;
    Place place(s, (u32)tile, rows, columns, V);
    float weights[R * S][V], sums[TH * STRIDE][TW * STRIDE][V];
    load_weights(w, s, place.channel, weights);
#pragma unroll
    for (int i = 0; i < TH * STRIDE; i++) {
#pragma unroll
        for (int j = 0; j < TW * STRIDE * V; j++) sums[i][j / V][j % V] = 0.0f;
    }

    int top = first_y + place.row * TH, left = first_x + place.column * TW;
    const T *from = dy + place.image * s.image(s.out_height, s.out_width) + place.channel * s.plane(s.out_height, s.out_width);
#pragma unroll
    for (int row = 0; row < TH + BEFORE_Y; row++) {
        int out_row = top - BEFORE_Y + row;
        float values[COLUMNS][V];
#pragma unroll
        for (int column = 0; column < COLUMNS; column++) {
            int out_column = left - BEFORE_X + column;
            bool inside = out_row >= 0 && out_row < s.out_height && out_column >= 0 && out_column < s.out_width;
            to_floats<V>(from + out_row * s.row(s.out_width) + (i64)out_column * s.column(), inside, values[column]);
        }
        // Tap r of this row of outputs reaches row i of the tile.
#pragma unroll
        for (int r = 0; r < R; r++) {
            int i = (row - BEFORE_Y) * STRIDE + r;
            if (i < 0 || i >= TH * STRIDE) continue;
#pragma unroll
            for (int column = 0; column < COLUMNS; column++) {
#pragma unroll
                for (int tap = 0; tap < S; tap++) {
                    int j = (column - BEFORE_X) * STRIDE + tap;
                    if (j < 0 || j >= TW * STRIDE) continue;
#pragma unroll
                    for (int v = 0; v < V; v++) sums[i][j][v] += weights[r * S + tap][v] * values[column][v];
                }
            }
        }
    }

    T *to = dx + place.image * s.image(s.height, s.width) + place.channel * s.plane(s.height, s.width);
#pragma unroll
    for (int i = 0; i < TH * STRIDE; i++) {
#pragma unroll
        for (int j = 0; j < TW * STRIDE; j++) {
            int row = top * STRIDE + i - s.top, column = left * STRIDE + j - s.left;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            Bundle<V> bundle;
#pragma unroll
            for (int v = 0; v < V; v++) bundle.v[v] = from_float(sums[i][j][v]);
            store(to + row * s.row(s.width) + (i64)column * s.column(), bundle);
        }
    }
}

KERNEL __launch_bounds__(128) backward_3x3(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                           int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(backward_tile, 3, 3, 1, dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_3x3_stride_2(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                                    int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    // Squares of four inputs: half as many of them.
    if (nhwc) backward_tile<3, 3, 2, NHWC_TILE / 2, NHWC_TILE / 2, 2>(dy, w, dx, sizes);
    else backward_tile<3, 3, 2, NCHW_STRIDE_2_TILE, 1, 1>(dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_5x5(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                           int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(backward_tile, 5, 5, 1, dy, w, dx, sizes);
}

// Any kernel and stride: a thread for each input.
KERNEL backward_any(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width, int out_height, int out_width,
                    int top, int left, int nhwc, int kernel_height, int kernel_width, int stride_y, int stride_x) {
    Sizes s = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)batch * channels * height * width) return;
    Place place(s, (u32)tile, height, width, 1);
    const T *from = dy + place.image * s.image(out_height, out_width) + place.channel * s.plane(out_height, out_width);
    float sum = 0.0f;
    // The tap that reaches the nearest output before; then every stride-th, whose outputs lie further before.
    for (int r = (place.row + top) % stride_y; r < kernel_height; r += stride_y) {
        int row = (place.row + top - r) / stride_y;
        if (place.row + top < r || row >= out_height) continue;
        for (int c = (place.column + left) % stride_x; c < kernel_width; c += stride_x) {
            int column = (place.column + left - c) / stride_x;
            if (place.column + left < c || column >= out_width) continue;
            float weight = to_float(w[s.weight(place.channel, r * kernel_width + c, kernel_height * kernel_width)]);
            sum += weight * to_float(from[row * s.row(out_width) + (i64)column * s.column()]);
        }
    }
    dx[place.image * s.image(height, width) + place.channel * s.plane(height, width) + place.row * s.row(width) +
       (i64)place.column * s.column()] = from_float(sum);
}

// ---- The gradient of the weights ----

// The sums over a block's lines of V values of each lane; a block is `lanes` wide, and lanes lie side by side in a warp. The
// threads of line 0 get them. The scratch holds V floats for each lane of each warp.
template <int V> DEVICE void line_sums(float (&sums)[V], int lanes, float *scratch) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % lanes;
    for (int step = 16; step >= lanes; step /= 2) {
#pragma unroll
        for (int i = 0; i < V; i++) sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], step);
    }
    if ((int)threadIdx.x % 32 < lanes) {
#pragma unroll
        for (int i = 0; i < V; i++) scratch[(warp * lanes + lane) * V + i] = sums[i];
    }
    __syncthreads();
    if ((int)threadIdx.x < lanes) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            sums[i] = 0.0f;
            for (int other = 0; other < (int)blockDim.x / 32; other++) sums[i] += scratch[(other * lanes + lane) * V + i];
        }
    }
    __syncthreads();
}

const int WEIGHT_SCRATCH = 256;

// Partial sums are `splits` numbers for each tap of each channel, tap after tap. A block has `lanes` bundles of channels and
// every `splits`-th group of tiles: NHWC 16 lanes; NCHW one, so that lines, which lie along the columns, are the warp.
template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void weight_tiles(const T *x, const T *dy, float *partials, const Sizes &s, int lanes, int splits, float *scratch) {
    const int COLUMNS = (TW - 1) * STRIDE + S;
    int rows = divide_up(s.out_height, TH), columns = divide_up(s.out_width, TW);
    int group = blockIdx.x / splits, split = blockIdx.x % splits;
    int channel = (group * lanes + threadIdx.x % lanes) * V, lines = blockDim.x / lanes;
    i64 tiles = channel < s.channels ? (i64)s.batch * rows * columns : 0;
    float sums[R * S][V];
#pragma unroll
    for (int i = 0; i < R * S * V; i++) sums[i / V][i % V] = 0.0f;

    for (i64 tile = (i64)split * lines + threadIdx.x / lanes; tile < tiles; tile += (i64)splits * lines) {
        int out_column = (int)(tile % columns) * TW, out_row = (int)(tile / columns % rows) * TH;
        i64 image = tile / columns / rows;
        float slopes[TH][TW][V];
        const T *out = dy + image * s.image(s.out_height, s.out_width) + channel * s.plane(s.out_height, s.out_width);
#pragma unroll
        for (int i = 0; i < TH; i++) {
#pragma unroll
            for (int j = 0; j < TW; j++) {
                bool inside = out_row + i < s.out_height && out_column + j < s.out_width;
                to_floats<V>(out + (out_row + i) * s.row(s.out_width) + (i64)(out_column + j) * s.column(), inside, slopes[i][j]);
            }
        }
        int top = out_row * STRIDE - s.top, left = out_column * STRIDE - s.left;
        const T *from = x + image * s.image(s.height, s.width) + channel * s.plane(s.height, s.width);
#pragma unroll
        for (int row = 0; row < (TH - 1) * STRIDE + R; row++) {
            bool row_inside = top + row >= 0 && top + row < s.height;
            float values[COLUMNS][V];
#pragma unroll
            for (int column = 0; column < COLUMNS; column++) {
                bool inside = row_inside && left + column >= 0 && left + column < s.width;
                to_floats<V>(from + (top + row) * s.row(s.width) + (i64)(left + column) * s.column(), inside, values[column]);
            }
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

#pragma unroll
    for (int tap = 0; tap < R * S; tap++) {
        line_sums(sums[tap], lanes, scratch);
        if ((int)threadIdx.x >= lanes || channel >= s.channels) continue;
#pragma unroll
        for (int v = 0; v < V; v++) partials[((i64)tap * s.channels + channel + v) * splits + split] = sums[tap][v];
    }
}

KERNEL __launch_bounds__(128) weights_3x3(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc, int lanes, int splits) {
    __shared__ float scratch[WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 3, 3, 1, x, dy, partials, sizes, lanes, splits, scratch);
}

KERNEL __launch_bounds__(128) weights_3x3_stride_2(const T *x, const T *dy, float *partials, int batch, int channels, int height,
                                                   int width, int out_height, int out_width, int top, int left, int nhwc,
                                                   int lanes, int splits) {
    __shared__ float scratch[WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 3, 3, 2, x, dy, partials, sizes, lanes, splits, scratch);
}

KERNEL __launch_bounds__(128) weights_5x5(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc, int lanes, int splits) {
    __shared__ float scratch[WEIGHT_SCRATCH];
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(weight_tiles, 5, 5, 1, x, dy, partials, sizes, lanes, splits, scratch);
}

// Any kernel and stride: a block for each split of each channel, one tap after another.
KERNEL weights_any(const T *x, const T *dy, float *partials, int batch, int channels, int height, int width, int out_height,
                   int out_width, int top, int left, int nhwc, int lanes, int splits, int kernel_height, int kernel_width,
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
