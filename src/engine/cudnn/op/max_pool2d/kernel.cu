// Max-pooling, with the bias and the rectifier before it: both preserve the order of numbers, so the maximum is taken first.
// `index` is the position in its window that an output came from, row * kernel_width + column.
//
// Where the window's size is known, a thread issues all its loads before it uses any of them; the compiler keeps about half of
// them in flight at once. mod.rs has the purpose of each kernel.

template <int V> struct alignas(V) Bytes { u8 v[V]; };
template <int V> DEVICE Bytes<V> load_bytes(const u8 *p) { return *reinterpret_cast<const Bytes<V> *>(p); }
template <int V> DEVICE void store_bytes(u8 *p, const Bytes<V> &x) { *reinterpret_cast<Bytes<V> *>(p) = x; }

struct Sizes {
    int channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc;
};

// Element `number` of feature maps of `rows` x `columns`, counted in bundles of `v` channels, in the order of memory.
struct Place {
    u32 image, channel, row, column;
    METHOD Place(const Sizes &s, u32 number, u32 rows, u32 columns, u32 v) {
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

// The start of the feature map of one image and channel, and the elements between rows and columns. The feature maps of one
// image have fewer than 2^31 elements.
struct View {
    i64 start;
    int row, column;
    METHOD View(const Sizes &s, const Place &place, int rows, int columns) {
        u32 positions = (u32)rows * columns;
        start = (i64)place.image * (s.channels * positions) + (s.nhwc ? place.channel : place.channel * positions);
        column = s.nhwc ? s.channels : 1;
        row = columns * column;
    }
};

DEVICE int clamped(int place, int length) { return min(max(place, 0), length - 1); }

// A larger number replaces the maximum, so the first of equal numbers stays. A NaN, the only value that differs from
// itself, replaces any number and stays.
DEVICE bool beats(float value, float maximum) { return value > maximum || value != value; }

DEVICE float minus_infinity() { return __uint_as_float(0xFF800000u); }
DEVICE T finished(float maximum, const float *bias, int channel, int rectifier) {
    return from_float(rectify(bias ? maximum + bias[channel] : maximum, rectifier));
}

// The maxima of V windows. Where nothing is above minus infinity, the position is the `first` one inside the feature
// map.
template <int V> struct Maxima {
    float best[V];
    Bytes<V> chosen;
    METHOD Maxima(int first) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            best[i] = minus_infinity();
            chosen.v[i] = (u8)first;
        }
    }
    METHOD void meet(int i, T candidate, int tap) {
        float value = to_float(candidate);
        bool wins = beats(value, best[i]);
        best[i] = wins ? value : best[i];
        chosen.v[i] = wins ? (u8)tap : chosen.v[i];
    }
};

// K: the window's rows and columns, known at compile time, or 0. Where it is 0, and at borders, positions are read one by one.
template <int V, int K> DEVICE void forward_window(const T *x, const float *bias, T *y, u8 *index, int rectifier, u32 count,
                                                   const Sizes &s) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    Place place(s, number, s.out_height, s.out_width, V);
    View from(s, place, s.height, s.width);
    x += from.start;
    int top = (int)place.row * s.stride_y - s.top, left = (int)place.column * s.stride_x - s.left;
    const int rows = K ? K : s.kernel_height, columns = K ? K : s.kernel_width;
    Maxima<V> maxima(max(0, -top) * columns + max(0, -left));
    if (K && top >= 0 && left >= 0 && top + rows <= s.height && left + columns <= s.width) {
        const int TAPS = K ? K * K : 1, ACROSS = K ? K : 1;
        Bundle<V> taps[TAPS];
        const T *corner = x + (top * from.row + left * from.column);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            taps[tap] = load<V>(corner + (tap / ACROSS * from.row + tap % ACROSS * from.column));
        }
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
#pragma unroll
            for (int i = 0; i < V; i++) maxima.meet(i, taps[tap].v[i], tap);
        }
    } else {
        for (int r = max(0, -top); r < min(rows, s.height - top); r++) {
#pragma unroll 1
            for (int c = max(0, -left); c < min(columns, s.width - left); c++) {
                Bundle<V> values = load<V>(x + ((top + r) * from.row + (left + c) * from.column));
#pragma unroll
                for (int i = 0; i < V; i++) maxima.meet(i, values.v[i], r * columns + c);
            }
        }
    }
    Bundle<V> result;
#pragma unroll
    for (int i = 0; i < V; i++) result.v[i] = finished(maxima.best[i], bias, place.channel + i, rectifier);
    store(y + (i64)number * V, result);
    store_bytes(index + (i64)number * V, maxima.chosen);
}

template <int V> DEVICE void forward_windows(const T *x, const float *bias, T *y, u8 *index, int rectifier, u32 count,
                                             const Sizes &s) {
    bool square = s.kernel_height == s.kernel_width;
    if (square && s.kernel_width == 2) forward_window<V, 2>(x, bias, y, index, rectifier, count, s);
    else if (square && s.kernel_width == 3) forward_window<V, 3>(x, bias, y, index, rectifier, count, s);
    else forward_window<V, 0>(x, bias, y, index, rectifier, count, s);
}

// A thread for each output, or, NHWC, for `per_thread` channels of it; `count` threads.
KERNEL forward(const T *x, const float *bias, T *y, u8 *index, int rectifier, i64 count, int per_thread, int channels, int height,
               int width, int out_height, int out_width, int kernel_height, int kernel_width, int stride_y, int stride_x,
               int top, int left, int nhwc) {
    Sizes s = {channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc};
    if (per_thread == PACK) forward_windows<PACK>(x, bias, y, index, rectifier, (u32)count, s);
    else forward_windows<1>(x, bias, y, index, rectifier, (u32)count, s);
}

// The gradient of the outputs: the sum of both gradients, rounded, where the rectifier passes it.
struct Arriving {
    const T *dy, *other;
    const u8 *index;
    const T *y;
    int rectifier;
};

// The same gradient, for V outputs.
template <int V> struct Gradient {
    Bundle<V> g, second, output;
    Bytes<V> chosen;
    METHOD void read(const Arriving &from, i64 at) {
        g = load<V>(from.dy + at);
        chosen = load_bytes<V>(from.index + at);
        if (from.other) second = load<V>(from.other + at);
        if (from.y) output = load<V>(from.y + at);
    }
    // Outputs that are not `there` have chosen no position.
    METHOD void settle(const Arriving &from, bool there) {
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (!there) chosen.v[i] = 255;
            if (from.other) g.v[i] = from_float(to_float(g.v[i]) + to_float(second.v[i]));
            if (from.y && !passes(to_float(output.v[i]), from.rectifier)) g.v[i] = from_float(0.0f);
        }
    }
    METHOD float at(int i, int tap) const { return chosen.v[i] == tap ? to_float(g.v[i]) : 0.0f; }
};

template <int V> DEVICE void backward_windows(const Arriving &arriving, T *dx, u32 count, const Sizes &s) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    Place place(s, number, s.height, s.width, V);
    View from(s, place, s.out_height, s.out_width);
    int row = place.row + s.top, column = place.column + s.left;
    // The windows over this position: from the first that reaches it to the last that begins at or before it.
    int first_row = row < s.kernel_height ? 0 : (row - s.kernel_height) / s.stride_y + 1;
    int first_column = column < s.kernel_width ? 0 : (column - s.kernel_width) / s.stride_x + 1;
    int last_row = min(row / s.stride_y, s.out_height - 1), last_column = min(column / s.stride_x, s.out_width - 1);
    float sums[V];
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = 0.0f;
    for (int r = first_row; r <= last_row; r++) {
#pragma unroll 1
        for (int c = first_column; c <= last_column; c++) {
            int here = (row - r * s.stride_y) * s.kernel_width + column - c * s.stride_x;
            Gradient<V> gradient;
            gradient.read(arriving, from.start + (r * from.row + c * from.column));
            gradient.settle(arriving, true);
#pragma unroll
            for (int i = 0; i < V; i++) sums[i] += gradient.at(i, here);
        }
    }
    Bundle<V> result;
#pragma unroll
    for (int i = 0; i < V; i++) result.v[i] = from_float(sums[i]);
    store(dx + (i64)number * V, result);
}

// A thread for each input, or, NHWC, for `per_thread` channels of it; `count` threads.
KERNEL backward(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, i64 count, int per_thread,
                int channels, int height, int width, int out_height, int out_width, int kernel_height, int kernel_width,
                int stride_y, int stride_x, int top, int left, int nhwc) {
    Sizes s = {channels, height, width, out_height, out_width, kernel_height, kernel_width, stride_y, stride_x, top, left, nhwc};
    Arriving arriving = {dy, other, index, y, rectifier};
    if (per_thread == PACK) backward_windows<PACK>(arriving, dx, (u32)count, s);
    else backward_windows<1>(arriving, dx, (u32)count, s);
}

// ---- Windows of K x K with stride 2, with PAD rows above the feature maps and as many columns to the left of them; K,
// PAD is 2, 0 or 3, 0 or 3, 1. Inputs are taken in pairs: pair p is 2 p and 2 p + 1, for rows and columns. ----

template <int K, int PAD> struct Pair {
    // The windows that cover a pair; the first window over pair p is p - BEFORE.
    static const int WINDOWS = K - 1, BEFORE = K - 2 - PAD;
    // The place of the pair's element d in its window k; it is not in the window if the result is not 0 to K - 1.
    METHOD static constexpr int tap(int d, int k) { return d + 2 * (K - 2) - PAD - 2 * k; }
    METHOD static constexpr bool covers(int d, int k) { return tap(d, k) >= 0 && tap(d, k) < K; }
};

// NCHW, inputs twice as wide as outputs: V outputs of a row in each thread. It reads, from each row of inputs, the
// inputs of the same columns and, where windows overlap, one next to them.
template <int V> struct Stretch {
    Bundle<2 * V> own;
    T edge;
    // The input that is `column` places from the first of its own.
    METHOD T at(int column) const { return column < 0 || column >= 2 * V ? edge : own.v[column]; }
};

struct Lines { int channels, height, out_height, out_width; };

template <int V, int K, int PAD> DEVICE void forward_line(const T *x, const float *bias, T *y, u8 *index, int rectifier,
                                                          u32 count, const Lines &s) {
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    u32 across = s.out_width / V, line = number / across, unit = number - line * across, plane = line / s.out_height;
    int top = 2 * (int)(line - plane * s.out_height) - PAD, width = 2 * s.out_width;
    x += (i64)plane * (s.height * width) + (int)unit * 2 * V;
    bool edge = K == 3 && (PAD ? unit > 0 : unit + 1 < across);
    Stretch<V> rows[K];
#pragma unroll
    for (int r = 0; r < K; r++) {
        // Windows of 2 x 2 lie inside the feature map.
        const T *from = x + (K == 2 ? top + r : clamped(top + r, s.height)) * width;
        rows[r].own = load<2 * V>(from);
        rows[r].edge = from_float(minus_infinity());
        if (edge) rows[r].edge = from[PAD ? -1 : 2 * V];
    }
    Maxima<V> maxima(0);
    if (PAD && unit == 0) maxima.chosen.v[0]++;
    Bundle<V> result;
#pragma unroll
    for (int i = 0; i < V; i++) {
#pragma unroll
        for (int tap = 0; tap < K * K; tap++) maxima.meet(i, rows[tap / K].at(2 * i + tap % K - PAD), tap);
    }
#pragma unroll
    for (int i = 0; i < V; i++) {
        // For a row outside the feature map, its neighbour was read.
        if (PAD && top < 0 && maxima.chosen.v[i] < K) maxima.chosen.v[i] += K;
        if (K == 3 && top + K > s.height && maxima.chosen.v[i] >= K * K - K) maxima.chosen.v[i] -= K;
        result.v[i] = finished(maxima.best[i], bias, plane % s.channels, rectifier);
    }
    store(y + (i64)number * V, result);
    store_bytes(index + (i64)number * V, maxima.chosen);
}

template <int V, int K, int PAD> DEVICE void backward_line(const Arriving &arriving, T *dx, u32 count, const Lines &s) {
    typedef Pair<K, PAD> P;
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    u32 across = s.out_width / V, line = number / across, unit = number - line * across;
    u32 pairs = (s.height + 1) / 2, plane = line / pairs;
    int pair = line - plane * pairs, first = pair - P::BEFORE;
    i64 at = (i64)plane * (s.out_height * s.out_width) + (int)unit * V;
    bool edge = K == 3 && (P::BEFORE ? unit > 0 : unit + 1 < across);
    Gradient<V> own[P::WINDOWS];
    Gradient<1> beside[P::WINDOWS];
#pragma unroll
    for (int k = 0; k < P::WINDOWS; k++) {
        i64 row = at + clamped(first + k, s.out_height) * s.out_width;
        own[k].read(arriving, row);
        if (K == 3) beside[k].read(arriving, row + (!edge ? 0 : P::BEFORE ? -1 : V));
    }
#pragma unroll
    for (int k = 0; k < P::WINDOWS; k++) {
        bool there = (u32)(first + k) < (u32)s.out_height;
        own[k].settle(arriving, there);
        if (K == 3) beside[k].settle(arriving, there && edge);
    }
    dx += (i64)plane * (2 * s.height * s.out_width) + ((2 * pair * s.out_width + (int)unit * V) * 2);
#pragma unroll
    for (int d = 0; d < 2; d++) {
        Bundle<2 * V> result;
#pragma unroll
        for (int i = 0; i < 2 * V; i++) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < P::WINDOWS; k++) {
#pragma unroll
                for (int j = 0; j < V + K - 2; j++) {
                    if (!P::covers(d, k) || !P::covers(i, j)) continue;
                    int tap = P::tap(d, k) * K + P::tap(i, j), o = j - P::BEFORE;
                    sum += o < 0 || o >= V ? beside[k].at(0, tap) : own[k].at(o, tap);
                }
            }
            result.v[i] = from_float(sum);
        }
        if (2 * pair + d < s.height) store(dx + d * 2 * s.out_width, result);
    }
}

#define BY_OUTPUTS(function, K, PAD, ...)                                                         \
    if (PACK == 8 && per_thread == 4) function<PACK == 8 ? 4 : 1, K, PAD>(__VA_ARGS__, (u32)count, s); \
    else if (per_thread == 2) function<2, K, PAD>(__VA_ARGS__, (u32)count, s);                    \
    else function<1, K, PAD>(__VA_ARGS__, (u32)count, s)

// `per_thread` is 1, 2 or, where T has two bytes, 4. The last argument is PAD, which is 0 for windows of 2 x 2.
KERNEL forward_2x2(const T *x, const float *bias, T *y, u8 *index, int rectifier, i64 count, int per_thread, int channels,
                   int height, int out_height, int out_width, int) {
    Lines s = {channels, height, out_height, out_width};
    BY_OUTPUTS(forward_line, 2, 0, x, bias, y, index, rectifier);
}

KERNEL forward_3x3(const T *x, const float *bias, T *y, u8 *index, int rectifier, i64 count, int per_thread, int channels,
                   int height, int out_height, int out_width, int pad) {
    Lines s = {channels, height, out_height, out_width};
    if (pad) { BY_OUTPUTS(forward_line, 3, 1, x, bias, y, index, rectifier); }
    else { BY_OUTPUTS(forward_line, 3, 0, x, bias, y, index, rectifier); }
}

KERNEL backward_2x2(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, i64 count, int per_thread,
                    int channels, int height, int out_height, int out_width, int) {
    Arriving arriving = {dy, other, index, y, rectifier};
    Lines s = {channels, height, out_height, out_width};
    BY_OUTPUTS(backward_line, 2, 0, arriving, dx);
}

KERNEL backward_3x3(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, i64 count, int per_thread,
                    int channels, int height, int out_height, int out_width, int pad) {
    Arriving arriving = {dy, other, index, y, rectifier};
    Lines s = {channels, height, out_height, out_width};
    if (pad) { BY_OUTPUTS(backward_line, 3, 1, arriving, dx); }
    else { BY_OUTPUTS(backward_line, 3, 0, arriving, dx); }
}

// NHWC: two by two inputs of PACK channels in each thread.
template <int K, int PAD> DEVICE void backward_cell(const Arriving &arriving, T *dx, u32 count, const Sizes &s) {
    typedef Pair<K, PAD> P;
    const int V = PACK, W = P::WINDOWS;
    u32 number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= count) return;
    Place pair(s, number, (s.height + 1) / 2, (s.width + 1) / 2, V);
    View from(s, pair, s.out_height, s.out_width), to(s, pair, s.height, s.width);
    int row = (int)pair.row - P::BEFORE, column = (int)pair.column - P::BEFORE;
    Gradient<V> over[W * W];
#pragma unroll
    for (int k = 0; k < W * W; k++) {
        int r = clamped(row + k / W, s.out_height), c = clamped(column + k % W, s.out_width);
        over[k].read(arriving, from.start + (r * from.row + c * from.column));
    }
#pragma unroll
    for (int k = 0; k < W * W; k++) {
        int r = row + k / W, c = column + k % W;
        over[k].settle(arriving, (u32)r < (u32)s.out_height && (u32)c < (u32)s.out_width);
    }
    row = 2 * (int)pair.row, column = 2 * (int)pair.column;
    dx += to.start + (row * to.row + column * to.column);
#pragma unroll
    for (int cell = 0; cell < 4; cell++) {
        int d = cell / 2, e = cell % 2;
        Bundle<V> result;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < W * W; k++) {
                if (P::covers(d, k / W) && P::covers(e, k % W)) {
                    sum += over[k].at(i, P::tap(d, k / W) * K + P::tap(e, k % W));
                }
            }
            result.v[i] = from_float(sum);
        }
        if (row + d < s.height && column + e < s.width) store(dx + (d * to.row + e * to.column), result);
    }
}

KERNEL backward_2x2_cells(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, i64 count,
                          int channels, int height, int width, int out_height, int out_width, int) {
    Arriving arriving = {dy, other, index, y, rectifier};
    Sizes s = {channels, height, width, out_height, out_width, 2, 2, 2, 2, 0, 0, 1};
    backward_cell<2, 0>(arriving, dx, (u32)count, s);
}

KERNEL backward_3x3_cells(const T *dy, const T *other, const u8 *index, const T *y, T *dx, int rectifier, i64 count,
                          int channels, int height, int width, int out_height, int out_width, int pad) {
    Arriving arriving = {dy, other, index, y, rectifier};
    Sizes s = {channels, height, width, out_height, out_width, 3, 3, 2, 2, pad, pad, 1};
    if (pad) backward_cell<3, 1>(arriving, dx, (u32)count, s);
    else backward_cell<3, 0>(arriving, dx, (u32)count, s);
}
