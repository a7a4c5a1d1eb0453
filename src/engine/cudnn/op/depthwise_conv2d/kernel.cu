// Depthwise convolution: each channel has a filter of its own. mod.rs says which kernel is for what.
//
// One body serves both layouts. A thread computes a tile of TH x TW outputs of V channels: along NHWC the threads of a warp
// lie side by side along the channels (V = 2), along NCHW along the columns (V = 1, TW = 1; or TW = 2 or 4, which are loaded
// and stored at once: "wide"). Every loop over a tile or a filter is unrolled, so that tiles live in registers, and each input
// is loaded about once for each row of the filter at most, mostly from the first-level cache.

#define METHOD __device__ __forceinline__

template <int V> struct alignas(V * sizeof(T)) Bundle { T v[V]; };

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

// The same value; what it was made of is hidden from the compiler. It would else compute every address anew from the start
// of the maps, in 64 bits, and take words apart where they are loaded.
#ifdef EMULATED
template <class X> DEVICE X settled(X x) { return x; }
#else
DEVICE u32 settled(u32 x) {
    asm("" : "+r"(x));
    return x;
}
template <class E> DEVICE E *settled(E *p) {
    asm("" : "+l"(p));
    __builtin_assume(__isGlobal(p));
    return p;
}
#endif

// What a bundle is loaded as: whole registers.
template <int BYTES> struct alignas(BYTES) Words { u32 v[BYTES / 4]; };
template <> struct Words<2> { u16 v[1]; };

// The words are zero first, and the load alone is conditional: whatever else were done under the condition would keep a
// predicate for each load on its way, and there are seven. All-zero bits are zero in every element type.
template <int V> DEVICE void to_floats(const T *p, bool inside, float (&values)[V]) {
    const int BYTES = V * sizeof(T);
    Words<BYTES> words = {};
    if (inside) words = *reinterpret_cast<const Words<BYTES> *>(p);
#pragma unroll
    for (int i = 0; i < BYTES / 4; i++) words.v[i] = settled(words.v[i]);
    Bundle<V> bundle;
    memcpy(&bundle, &words, BYTES);
#pragma unroll
    for (int i = 0; i < V; i++) values[i] = to_float(bundle.v[i]);
}

template <int V> DEVICE void store_floats(T *p, bool inside, const float (&values)[V]) {
    const int BYTES = V * sizeof(T);
    Bundle<V> bundle;
#pragma unroll
    for (int i = 0; i < V; i++) bundle.v[i] = from_float(values[i]);
    Words<BYTES> words;
    memcpy(&words, &bundle, BYTES);
#pragma unroll
    for (int i = 0; i < BYTES / 4; i++) words.v[i] = settled(words.v[i]);
    if (inside) *reinterpret_cast<Words<BYTES> *>(p) = words;
}

template <class E> DEVICE E *bytes_on(E *p, i64 bytes) { return (E *)((char *)p + bytes); }

// A place in an image: `top` and `left` may be outside of its `height` rows and `width` columns.
struct Corner { int top, left, height, width; };

// COLUMNS bundles of V channels side by side, in any of the rows from `top` on; E is T or const T. Along NHWC V > 1. Offsets
// within a row are 32 bits wide: mod.rs refuses longer ones.
template <class E, int COLUMNS, int V> struct Strip {
    E *first;
    int top;
    i64 row;
    u32 offsets[COLUMNS];
    // Rows of the image in which an element lies: all or none.
    u32 rows[COLUMNS];

    METHOD Strip(E *maps, const Sizes &s, u32 image, int channel, const Corner &at) : top(at.top) {
        int column = (V > 1 ? s.channels : 1) * (int)sizeof(T);
        row = at.width * column;
        E *start = maps + image * s.image(at.height, at.width) + channel * s.plane(at.height, at.width);
        first = settled(bytes_on(start, at.top * row + (i64)at.left * column));
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            offsets[i] = V > 1 && i > 0 ? settled((u32)(i * column)) : i * column;
            rows[i] = (u32)(at.left + i) < (u32)at.width ? at.height : 0;
        }
    }
    // Row top + r, zeros outside of the image.
    METHOD void load(int r, float (&values)[COLUMNS][V]) const {
        E *from = settled(bytes_on(first, r * row));
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) to_floats<V>(bytes_on(from, offsets[i]), (u32)(top + r) < rows[i], values[i]);
    }
    METHOD void store(int r, const float (&values)[COLUMNS][V]) const {
        E *to = settled(bytes_on(first, r * row));
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) store_floats<V>(bytes_on(to, offsets[i]), (u32)(top + r) < rows[i], values[i]);
    }
};

// The same of one channel along NCHW where a row is a multiple of W long: W elements side by side that begin at such a
// multiple, moved at once, with EDGE (0 or 1) more on either side.
template <class E, int W, int EDGE> struct WideStrip {
    E *first;
    int top, width;
    u32 height, left_rows, right_rows;

    METHOD WideStrip(E *maps, const Sizes &s, u32 image, int channel, const Corner &at)
        : top(at.top), width(at.width), height(at.height) {
        first = settled(maps + (image * s.image(at.height, at.width) + channel * s.plane(at.height, at.width) +
                                (i64)at.top * at.width + at.left));
        left_rows = at.left >= 0 ? at.height : 0;
        right_rows = at.left + W + EDGE < at.width ? at.height : 0;
    }
    METHOD void load(int r, float (&values)[W + 2 * EDGE][1]) const {
        E *from = settled(first + (i64)r * width);
        u32 y = top + r;
        float middle[W];
        to_floats<W>(from + EDGE, y < height, middle);
#pragma unroll
        for (int i = 0; i < W; i++) values[EDGE + i][0] = middle[i];
        if (EDGE == 0) return;
        to_floats<1>(from, y < left_rows, values[0]);
        to_floats<1>(from + W + EDGE, y < right_rows, values[W + 2 * EDGE - 1]);
    }
    METHOD void store(int r, const float (&values)[W][1]) const {
        E *to = settled(first + (i64)r * width);
        float middle[W];
#pragma unroll
        for (int i = 0; i < W; i++) middle[i] = values[i][0];
        store_floats<W>(to, (u32)(top + r) < height, middle);
    }
};

// What a tile of TW columns is made from or written as, COLUMNS wide.
template <class E, int COLUMNS, int TW, int V> struct StripOf { typedef Strip<E, COLUMNS, V> Type; };
template <class E, int COLUMNS> struct StripOf<E, COLUMNS, 2, 1> { typedef WideStrip<E, 2, (COLUMNS - 2) / 2> Type; };
template <class E, int COLUMNS> struct StripOf<E, COLUMNS, 4, 1> { typedef WideStrip<E, 4, (COLUMNS - 4) / 2> Type; };

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
    typename StripOf<const T, COLUMNS, TW, V>::Type from(x, s, place.image, place.channel, {top, left, s.height, s.width});
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
                    for (int v = 0; v < V; v++) sums[i][j][v] += weights[r * S + tap][v] * values[j * STRIDE + tap][v];
                }
            }
        }
    }

    Corner corner = {place.row * TH, place.column * TW, s.out_height, s.out_width};
    typename StripOf<T, TW, TW, V>::Type to(y, s, place.image, place.channel, corner);
#pragma unroll
    for (int i = 0; i < TH; i++) to.store(i, sums[i]);
}

// The tiles of each layout; mod.rs has the same numbers.
#define BY_LAYOUT(function, r, s, stride, ...)                                  \
    if (sizes.nhwc) function<r, s, stride, NHWC_TILE, NHWC_TILE, 2>(__VA_ARGS__); \
    else function<r, s, stride, NCHW_TILE, 1, 1>(__VA_ARGS__)
const int NHWC_TILE = 4, NCHW_TILE = 7, NCHW_STRIDE_2_TILE = 4;
// NCHW alone, rows a multiple of two long and padded by one on either side.
#define BY_WIDTH(function, ...)                                                \
    if (sizes.width % 4 == 0) function<3, 3, 1, NCHW_TILE, 4, 1>(__VA_ARGS__); \
    else function<3, 3, 1, NCHW_TILE, 2, 1>(__VA_ARGS__)

KERNEL __launch_bounds__(128) forward_3x3(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 3, 3, 1, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_3x3_wide(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                               int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_WIDTH(forward_tile, x, w, y, sizes);
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
    Corner before = {top - BEFORE_Y, left - BEFORE_X, s.out_height, s.out_width};
    typename StripOf<const T, COLUMNS, TW, V>::Type from(dy, s, place.image, place.channel, before);
#pragma unroll
    for (int row = 0; row < TH + BEFORE_Y; row++) {
        float values[COLUMNS][V];
        from.load(row, values);
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

    Corner corner = {top * STRIDE - s.top, left * STRIDE - s.left, s.height, s.width};
    typename StripOf<T, TW * STRIDE, TW, V>::Type to(dx, s, place.image, place.channel, corner);
#pragma unroll
    for (int i = 0; i < TH * STRIDE; i++) to.store(i, sums[i]);
}

KERNEL __launch_bounds__(128) backward_3x3(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                           int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(backward_tile, 3, 3, 1, dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_3x3_wide(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                                int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_WIDTH(backward_tile, dy, w, dx, sizes);
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

// Threads of a block where weights' gradients are summed, and of those the ones side by side along the channels; mod.rs has
// the same numbers. Along NCHW, lines are the warp, which lies along the columns.
const int WEIGHT_THREADS = 128, NHWC_LANES = 16, NCHW_LANES = 1;
// Floats of shared memory for each tap: those of each warp.
const int WEIGHT_SCRATCH = WEIGHT_THREADS / 32 * NHWC_LANES * 2;

// The sums over a block's lines of V values of each lane, for every tap; partials is where those of tap 0, channel 0 of the
// block go, `step` apart, those of the next tap `tap_step` further on. Channels from `channels` on are left out.
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
    BY_WIDTH(weight_tiles, x, dy, partials, sizes, splits, scratch);
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
