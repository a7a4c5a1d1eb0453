// Max-pooling, with the bias and the rectifier that stand before it: both keep the order of numbers, so the maximum comes
// first. `index` is where in its window an output came from, row * kernel_width + column.

template <int V> struct alignas(V * sizeof(T)) Bundle { T v[V]; };
template <int V> struct alignas(V) Bytes { u8 v[V]; };
template <int V> DEVICE Bundle<V> load(const T *p) { return *reinterpret_cast<const Bundle<V> *>(p); }
template <int V> DEVICE void store(T *p, const Bundle<V> &x) { *reinterpret_cast<Bundle<V> *>(p) = x; }
template <int V> DEVICE Bytes<V> load_bytes(const u8 *p) { return *reinterpret_cast<const Bytes<V> *>(p); }
template <int V> DEVICE void store_bytes(u8 *p, const Bytes<V> &x) { *reinterpret_cast<Bytes<V> *>(p) = x; }

struct Sizes {
    int channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc;
};

// Element `number` of maps of `rows` x `columns`, counted in bundles of `v` channels, in the order of memory.
struct Place {
    u32 image, channel, row, column;
    __device__ __forceinline__ Place(const Sizes &s, u32 number, u32 rows, u32 columns, u32 v) {
        u32 groups = s.channels / v;
        if (s.nhwc) {
            channel = number % groups * v;
            number /= groups;
        }
        column = number % columns;
        number /= columns;
        row = number % rows;
        image = number / rows;
        if (!s.nhwc) {
            channel = image % groups;
            image /= groups;
        }
    }
};

// Where the maps of one image and channel begin, and elements between rows and columns.
struct View {
    i64 start, row;
    int column;
    __device__ __forceinline__ View(const Sizes &s, const Place &place, int rows, int columns) {
        i64 positions = (i64)rows * columns;
        start = place.image * s.channels * positions + (s.nhwc ? place.channel : place.channel * positions);
        row = (i64)columns * (s.nhwc ? s.channels : 1);
        column = s.nhwc ? s.channels : 1;
    }
    __device__ __forceinline__ i64 at(int y, int x) const { return start + y * row + (i64)x * column; }
};

// A larger number takes the maximum's place, so that the first of equals stays, and so does NaN, which alone is not itself.
DEVICE bool beats(float value, float maximum) { return value > maximum || value != value; }

DEVICE T finished(float maximum, const float *bias, int channel, int rectifier) {
    return from_float(rectify(bias ? maximum + bias[channel] : maximum, rectifier));
}

// K: the window's rows and columns, if they are known when this is compiled, else 0.
template <int V, int K> DEVICE void forward_window(const T *x, const float *bias, T *y, u8 *index, int rectifier, u32 count,
                                                   const Sizes &s) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    Place place(s, number, s.out_height, s.out_width, V);
    View from(s, place, s.height, s.width);
    int top = (int)place.row * s.stride_y - s.top, left = (int)place.column * s.stride_x - s.left;
    const int rows = K ? K : s.kernel_height, columns = K ? K : s.kernel_width;
    float best[V];
    Bytes<V> chosen;
    // Where nothing beats minus infinity, the first place inside of the maps.
    int first = max(0, -top) * columns + max(0, -left);
#pragma unroll
    for (int i = 0; i < V; i++) {
        best[i] = __uint_as_float(0xFF800000u);
        chosen.v[i] = (u8)first;
    }
#pragma unroll
    for (int r = 0; r < rows; r++) {
#pragma unroll
        for (int c = 0; c < columns; c++) {
            int row = top + r, column = left + c;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            Bundle<V> values = load<V>(x + from.at(row, column));
#pragma unroll
            for (int i = 0; i < V; i++) {
                float value = to_float(values.v[i]);
                bool wins = beats(value, best[i]);
                best[i] = wins ? value : best[i];
                chosen.v[i] = wins ? (u8)(r * columns + c) : chosen.v[i];
            }
        }
    }
    Bundle<V> result;
#pragma unroll
    for (int i = 0; i < V; i++) result.v[i] = finished(best[i], bias, place.channel + i, rectifier);
    store(y + (i64)number * V, result);
    store_bytes(index + (i64)number * V, chosen);
}

template <int V> DEVICE void forward_windows(const T *x, const float *bias, T *y, u8 *index, int rectifier, u32 count,
                                             const Sizes &s) {
    bool square = s.kernel_height == s.kernel_width;
    if (square && s.kernel_width == 2) forward_window<V, 2>(x, bias, y, index, rectifier, count, s);
    else if (square && s.kernel_width == 3) forward_window<V, 3>(x, bias, y, index, rectifier, count, s);
    else forward_window<V, 0>(x, bias, y, index, rectifier, count, s);
}

// A thread for each output, or, NHWC, for `per_thread` channels of it; `count` threads.
KERNEL forward(const T *x, const float *bias, T *y, u8 *index, int rectifier, int per_thread, i64 count, int channels, int height,
               int width, int out_height, int out_width, int kernel_height, int kernel_width, int stride_y, int stride_x,
               int top, int left, int nhwc) {
    Sizes s = {channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc};
    if (per_thread == PACK) forward_windows<PACK>(x, bias, y, index, rectifier, (u32)count, s);
    else forward_windows<1>(x, bias, y, index, rectifier, (u32)count, s);
}

// What reaches the window of an output: the sum of both gradients, rounded, if the output lets it pass.
template <int V> struct Gradient {
    Bundle<V> g;
    Bytes<V> chosen;
    __device__ __forceinline__ Gradient(const T *dy, const T *other, const u8 *index, const T *y, int rectifier, i64 at) {
        Bundle<V> second, output;
        g = load<V>(dy + at);
        chosen = load_bytes<V>(index + at);
        if (other) second = load<V>(other + at);
        if (y) output = load<V>(y + at);
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (other) g.v[i] = from_float(to_float(g.v[i]) + to_float(second.v[i]));
            if (y && !passes(to_float(output.v[i]), rectifier)) g.v[i] = from_float(0.0f);
        }
    }
};

template <int V> DEVICE void backward_windows(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier,
                                              u32 count, const Sizes &s) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    Place place(s, number, s.height, s.width, V);
    View from(s, place, s.out_height, s.out_width);
    int row = place.row + s.top, column = place.column + s.left;
    // The windows over this place: from the first that reaches so far to the last that begins here or before.
    int first_row = row < s.kernel_height ? 0 : (row - s.kernel_height) / s.stride_y + 1;
    int first_column = column < s.kernel_width ? 0 : (column - s.kernel_width) / s.stride_x + 1;
    int last_row = min(row / s.stride_y, s.out_height - 1), last_column = min(column / s.stride_x, s.out_width - 1);
    float sums[V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = 0.0f;
    for (int r = first_row; r <= last_row; r++) {
        for (int c = first_column; c <= last_column; c++) {
            int here = (row - r * s.stride_y) * s.kernel_width + column - c * s.stride_x;
            Gradient<V> gradient(dy, other, index, y, rectifier, from.at(r, c));
#pragma unroll
            for (int i = 0; i < V; i++) sums[i] += gradient.chosen.v[i] == here ? to_float(gradient.g.v[i]) : 0.0f;
        }
    }
    Bundle<V> result;
#pragma unroll
    for (int i = 0; i < V; i++) result.v[i] = from_float(sums[i]);
    store(dx + (i64)number * V, result);
}

// A thread for each input, or, NHWC, for `per_thread` channels of it; `count` threads.
KERNEL backward(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, int per_thread, i64 count,
                int channels, int height, int width, int out_height, int out_width, int kernel_height, int kernel_width,
                int stride_y, int stride_x, int top, int left, int nhwc) {
    Sizes s = {channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc};
    if (per_thread == PACK) backward_windows<PACK>(dy, other, index, y, dx, rectifier, (u32)count, s);
    else backward_windows<1>(dy, other, index, y, dx, rectifier, (u32)count, s);
}

// ---- Windows of 2 x 2 side by side, NCHW, inputs twice as wide as outputs: V outputs of a row in each thread. ----

template <int V> DEVICE void forward_pairs(const T *x, const float *bias, T *y, u8 *index, int rectifier, u32 count, int channels,
                                           int height, int out_height, int out_width) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    u32 across = out_width / V, line = number / across, plane = line / out_height, row = line - plane * out_height;
    const T *from = x + (((i64)plane * height + 2 * row) * out_width + (number - line * across) * V) * 2;
    Bundle<2 * V> rows[2] = {load<2 * V>(from), load<2 * V>(from + 2 * out_width)};
    Bundle<V> result;
    Bytes<V> chosen;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float best = __uint_as_float(0xFF800000u);
        chosen.v[i] = 0;
#pragma unroll
        for (int tap = 0; tap < 4; tap++) {
            float value = to_float(rows[tap / 2].v[2 * i + tap % 2]);
            bool wins = beats(value, best);
            best = wins ? value : best;
            chosen.v[i] = wins ? (u8)tap : chosen.v[i];
        }
        result.v[i] = finished(best, bias, plane % channels, rectifier);
    }
    store(y + (i64)number * V, result);
    store_bytes(index + (i64)number * V, chosen);
}

KERNEL forward_2x2(const T *x, const float *bias, T *y, u8 *index, int rectifier, int per_thread, i64 count, int channels,
                   int height, int out_height, int out_width) {
    if (per_thread == 4) forward_pairs<4>(x, bias, y, index, rectifier, (u32)count, channels, height, out_height, out_width);
    else if (per_thread == 2) forward_pairs<2>(x, bias, y, index, rectifier, (u32)count, channels, height, out_height, out_width);
    else forward_pairs<1>(x, bias, y, index, rectifier, (u32)count, channels, height, out_height, out_width);
}

template <int V> DEVICE void backward_pairs(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier,
                                            u32 count, int out_width) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    u32 across = out_width / V, line = number / across;
    Gradient<V> gradient(dy, other, index, y, rectifier, (i64)number * V);
    T *to = dx + ((i64)2 * line * out_width + (number - line * across) * V) * 2;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        Bundle<2 * V> result;
#pragma unroll
        for (int i = 0; i < 2 * V; i++) {
            result.v[i] = gradient.chosen.v[i / 2] == 2 * r + i % 2 ? gradient.g.v[i / 2] : from_float(0.0f);
        }
        store(to + r * 2 * out_width, result);
    }
}

// The inputs are twice as high as the outputs, too.
KERNEL backward_2x2(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, int per_thread, i64 count,
                    int out_width) {
    if (per_thread == 4) backward_pairs<4>(dy, other, index, y, dx, rectifier, (u32)count, out_width);
    else if (per_thread == 2) backward_pairs<2>(dy, other, index, y, dx, rectifier, (u32)count, out_width);
    else backward_pairs<1>(dy, other, index, y, dx, rectifier, (u32)count, out_width);
}
