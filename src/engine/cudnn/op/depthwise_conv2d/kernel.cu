// Depthwise convolution: each channel has its own filter. mod.rs has the purpose of each kernel.
//
// One body serves both layouts. A thread computes a tile of TH x TW outputs of V channels: along NHWC the threads of a warp
// lie side by side along the channels (V = 2), along NCHW along the columns (V = 1, TW = 1; or TW = 2 or 4, which are loaded
// and stored at once: "wide"). Every loop over a tile or a filter is unrolled, so that tiles live in registers, and each input
// is loaded about once for each row of the filter at most, mostly from the first-level cache.

// The sizes of a convolution; `nhwc` is the layout of feature maps and weights.
struct Sizes {
    int batch, channels, height, width, out_height, out_width, top, left, nhwc;

    // Elements between neighbours along batch, channels, rows and columns, for feature maps of that size.
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

// The same value, with its origin hidden from the compiler, which would otherwise recompute every address from the start of the
// feature maps, in 64 bits, and split words where they are loaded.
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

// The type as which a bundle is loaded: whole registers.
template <int BYTES> struct alignas(BYTES) Words { u32 v[BYTES / 4]; };
template <> struct Words<2> { u16 v[1]; };

// The words are set to zero first, and only the load is conditional: any other conditional operation would occupy a predicate
// register for each load in flight, and there are only seven. All-zero bits are zero in every element type.
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

// A place in an image: `top` and `left` may be outside its `height` rows and `width` columns.
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
    // Row top + r, with zeros outside the image.
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

// The same for one channel along NCHW, where the length of a row is a multiple of W: W elements side by side that begin
// at such a multiple are moved at once, with EDGE (0 or 1) more on either side.
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

// The strip from which a tile of TW columns is computed or to which it is written, COLUMNS wide.
template <class E, int COLUMNS, int TW, int V> struct StripOf { typedef Strip<E, COLUMNS, V> Type; };
template <class E, int COLUMNS> struct StripOf<E, COLUMNS, 2, 1> { typedef WideStrip<E, 2, (COLUMNS - 2) / 2> Type; };
template <class E, int COLUMNS> struct StripOf<E, COLUMNS, 4, 1> { typedef WideStrip<E, 4, (COLUMNS - 4) / 2> Type; };

template <int TAPS, int V> DEVICE void load_weights(const T *w, const Sizes &s, int channel, float (&weights)[TAPS][V]) {
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) to_floats<V>(w + s.weight(channel, tap, TAPS), true, weights[tap]);
}

// The tile of each layout; mod.rs has the same numbers.
#define BY_LAYOUT(function, r, s, stride, ...)                                  \
    if (sizes.nhwc) function<r, s, stride, NHWC_TILE, NHWC_TILE, 2>(__VA_ARGS__); \
    else function<r, s, stride, NCHW_TILE, 1, 1>(__VA_ARGS__)
const int NHWC_TILE = 4, NCHW_TILE = 7, NCHW_STRIDE_2_TILE = 4;
// Only for NCHW, where the length of a row is a multiple of two and rows are padded by one on either side.
#define BY_ROW_LENGTH(function, ...)                                                \
    if (sizes.width % 4 == 0) function<3, 3, 1, NCHW_TILE, 4, 1>(__VA_ARGS__); \
    else function<3, 3, 1, NCHW_TILE, 2, 1>(__VA_ARGS__)
