// Sums, rectifiers, dropout, and copies into another order or another window. An operand and the result may be the same
// memory where mod.rs says so: then no pointer is __restrict__.
//
// A thread takes sixteen bytes; the elements that are left over at the end have a thread each.

// The first element of this thread, and how many it takes: PACK, 1 or 0.
DEVICE int share(i64 count, i64 &first) {
    i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, packs = count / PACK;
    first = thread < packs ? thread * PACK : packs * PACK + (thread - packs);
    return thread < packs ? PACK : first < count ? 1 : 0;
}

// y[i] = f(a[i], b[i], j) for the elements of this thread; j counts them. b may be null.
template <class F> DEVICE void map(const T *a, const T *b, T *y, i64 first, int n, F f) {
    if (n == PACK) {
        Pack x = load<PACK>(a + first), z = b ? load<PACK>(b + first) : x;
        for (int j = 0; j < PACK; j++) x.v[j] = from_float(f(to_float(x.v[j]), to_float(z.v[j]), j));
        store(y + first, x);
    } else if (n == 1) {
        float x = to_float(a[first]), z = b ? to_float(b[first]) : x;
        y[first] = from_float(f(x, z, 0));
    }
}

KERNEL add(const T *a, const T *b, T *y, i64 count) {
    i64 first;
    int n = share(count, first);
    map(a, b, y, first, n, [](float a, float b, int) { return a + b; });
}

KERNEL rectify_forward(const T *x, T *y, int rectifier, i64 count) {
    i64 first;
    int n = share(count, first);
    map(x, nullptr, y, first, n, [=](float x, float, int) { return rectify(x, rectifier); });
}

KERNEL rectify_backward(const T *dy, const T *y, T *dx, int rectifier, i64 count) {
    i64 first;
    int n = share(count, first);
    map(dy, y, dx, first, n, [=](float dy, float y, int) { return passes(y, rectifier) ? dy : 0.0f; });
}

// random.rs: Stream::new(seed, Purpose::Dropout, (layer, step)).
DEVICE u64 dropout_key(u64 seed, u64 layer, u64 step) {
    const u64 DROPOUT = 4;
    return mix(mix(mix(mix(seed + GOLDEN) + DROPOUT) + layer) + step);
}

// Whether an element is kept depends on its index in N x C x positions, not on the order in memory; `channels_last` is 1 where
// they lie N x positions x C.
KERNEL dropout(const T *x, T *y, i64 count, int channels, int positions, int channels_last, u64 seed, u64 layer,
               const u64 *step, u64 threshold, float scale) {
    i64 first;
    int n = share(count, first);
    if (n == 0) return;
    u64 key = mix(dropout_key(seed, layer, *step));
    u64 index[PACK];
    if (channels_last) {
        u64 c = (u64)first % channels, place = (u64)first / channels;
        u64 p = place % positions, example = place / positions;
        for (int j = 0; j < PACK; j++) {
            index[j] = (example * channels + c) * positions + p;
            if (++c == channels) {
                c = 0;
                if (++p == positions) p = 0, example++;
            }
        }
    } else {
        for (int j = 0; j < PACK; j++) index[j] = first + j;
    }
    map(x, nullptr, y, first, n, [&](float x, float, int j) {
        return mix(key + index[j] * GOLDEN) >> 11 >= threshold ? x * scale : 0.0f;
    });
}

// For each of `batch` matrices of rows x columns, its transpose, by tiles of 32 x 32; blocks of 32 x 8 threads.
KERNEL transpose(const T *x, T *y, int rows, int columns, int tiles_down, int tiles_across) {
    // One column more than needed: threads that read a column then meet 32 different banks.
    __shared__ T tile[32][33];
    i64 block = blockIdx.x;
    int across = block % tiles_across, down = block / tiles_across % tiles_down;
    i64 start = block / tiles_across / tiles_down * rows * columns;
    int column = across * 32 + threadIdx.x;
    for (int i = threadIdx.y; i < 32; i += 8) {
        int row = down * 32 + i;
        if (row < rows && column < columns) tile[i][threadIdx.x] = x[start + (i64)row * columns + column];
    }
    __syncthreads();
    int row = down * 32 + threadIdx.x;
    for (int i = threadIdx.y; i < 32; i += 8) {
        int column = across * 32 + i;
        if (row < rows && column < columns) y[start + (i64)column * rows + row] = tile[threadIdx.x][i];
    }
}

// A row of `to` from a row of `from`, shifted by `shift` elements; zeros where `from` has none. Each thread takes four elements
// of one row, and starts all loads before its first store.
template <class E> DEVICE void window_row(const E *from, E *to, int from_length, int to_length, int shift) {
    int first = blockIdx.y * 128 + threadIdx.x;
    E values[4] = {};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int source = first + j * 32 + shift;
        if (from && (u32)source < (u32)from_length) values[j] = from[source];
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int i = first + j * 32;
        if (i < to_length) to[i] = values[j];
    }
}

// `heights` and `lengths` are those of the rows of x and of y; a row's elements are T, or Packs where `packed`. Blocks of
// 32 x 8 threads, a row for each 32.
KERNEL window(const T *x, T *y, i64 rows, int x_height, int y_height, int x_length, int y_length, int down, int right,
              int packed) {
    i64 row = (i64)blockIdx.x * 8 + threadIdx.y;
    if (row >= rows) return;
    i64 plane = rows < (1ll << 31) ? (u32)row / (u32)y_height : row / y_height;
    int h = (int)(row - plane * y_height) + down;
    i64 from = (plane * x_height + h) * x_length, to = row * y_length;
    bool there = h >= 0 && h < x_height;
    if (packed) {
        const Pack *packs = reinterpret_cast<const Pack *>(x);
        window_row(there ? packs + from : nullptr, reinterpret_cast<Pack *>(y) + to, x_length, y_length, right);
    } else {
        window_row(there ? x + from : nullptr, y + to, x_length, y_length, right);
    }
}
