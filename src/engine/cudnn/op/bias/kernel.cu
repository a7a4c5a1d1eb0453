// A bias for each channel with a rectifier behind it, and its gradient: sums over all that share a channel. They are made
// in two launches, parts by many blocks, then the sum of the parts, always in the same order.

// rectifier(x + bias) in place, for sixteen bytes; Index is wide enough for `count`.
template <class Index>
DEVICE void add_bias(T *xy, const float *bias, Index first, int n, Index channels, Index positions, int channels_last,
                     int rectifier) {
    Index inner = channels_last ? 1 : positions;
    Index channel = first / inner % channels, position = first % inner;
    Pack x;
    if (n == PACK) x = load_pack(xy + first);
    else x.v[0] = xy[first];
    for (int j = 0; j < PACK; j++) {
        if (j < n) x.v[j] = from_float(rectify(to_float(x.v[j]) + bias[channel], rectifier));
        if (++position == inner) {
            position = 0;
            if (++channel == channels) channel = 0;
        }
    }
    if (n == PACK) store_pack(xy + first, x);
    else xy[first] = x.v[0];
}

KERNEL bias_rectify(T *xy, const float *bias, i64 count, int channels, int positions, int channels_last, int rectifier) {
    i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x, packs = count / PACK;
    i64 first = thread < packs ? thread * PACK : packs * PACK + (thread - packs);
    if (first >= count) return;
    int n = thread < packs ? PACK : 1;
    if (count < (1ll << 31)) add_bias<u32>(xy, bias, first, n, channels, positions, channels_last, rectifier);
    else add_bias<u64>(xy, bias, first, n, channels, positions, channels_last, rectifier);
}

// Both gradient kernels: where `masked` is not null, dy becomes 0 where the output y says so, and what is left is written
// to `masked`, which is dy's memory. partials[channel * parts + part] is the sum of one part.

// N x C x positions: block x is a channel, block y a part of its batch * positions values. `step` is PACK where a plane
// is a whole number of packs, else 1.
KERNEL planes_gradient(const T *dy, const T *y, T *masked, float *partials, int batch, int channels, int positions,
                       int step, int rectifier) {
    __shared__ float scratch[32];
    i64 units = (i64)batch * positions / step;
    i64 share = (units + gridDim.y - 1) / gridDim.y, begin = share * blockIdx.y;
    i64 end = begin + share < units ? begin + share : units;
    u32 in_plane = positions / step;
    float sum = 0.0f;
    for (i64 unit = begin + threadIdx.x; unit < end; unit += blockDim.x) {
        i64 example = units < (1ll << 31) ? (u32)unit / in_plane : unit / in_plane;
        i64 at = (example * channels + blockIdx.x) * positions + (unit - example * in_plane) * step;
        if (step == PACK) {
            Pack g = load_pack(dy + at);
            if (masked) {
                Pack out = load_pack(y + at);
                for (int j = 0; j < PACK; j++) {
                    if (!passes(to_float(out.v[j]), rectifier)) g.v[j] = from_float(0.0f);
                }
                store_pack(masked + at, g);
            }
            for (int j = 0; j < PACK; j++) sum += to_float(g.v[j]);
        } else {
            T g = dy[at];
            if (masked) {
                if (!passes(to_float(y[at]), rectifier)) g = from_float(0.0f);
                masked[at] = g;
            }
            sum += to_float(g);
        }
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) partials[(i64)blockIdx.x * gridDim.y + blockIdx.y] = sum;
}

// Rows of C values, for N x positions x C and for flat features: a thread sums `width` neighbouring columns (PACK where C
// is a whole number of packs, else 1) over every blockDim.y-th row of its part.
template <int WIDTH>
DEVICE void columns(const T *dy, const T *y, T *masked, float *partials, i64 rows, int channels, int rectifier,
                    float *scratch) {
    int column = (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    i64 share = (rows + gridDim.y - 1) / gridDim.y, begin = share * blockIdx.y;
    i64 end = begin + share < rows ? begin + share : rows;
    float sums[WIDTH];
    for (int j = 0; j < WIDTH; j++) sums[j] = 0.0f;
    if (column < channels) {
        for (i64 row = begin + threadIdx.y; row < end; row += blockDim.y) {
            i64 at = row * channels + column;
            Pack g, out;
            if (WIDTH == PACK) g = load_pack(dy + at);
            else g.v[0] = dy[at];
            if (masked) {
                if (WIDTH == PACK) out = load_pack(y + at);
                else out.v[0] = y[at];
                for (int j = 0; j < WIDTH; j++) {
                    if (!passes(to_float(out.v[j]), rectifier)) g.v[j] = from_float(0.0f);
                }
                if (WIDTH == PACK) store_pack(masked + at, g);
                else masked[at] = g.v[0];
            }
            for (int j = 0; j < WIDTH; j++) sums[j] += to_float(g.v[j]);
        }
    }
    int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
    for (int j = 0; j < WIDTH; j++) scratch[j * threads + thread] = sums[j];
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) {
            for (int j = 0; j < WIDTH; j++) {
                scratch[j * threads + thread] += scratch[j * threads + thread + half * blockDim.x];
            }
        }
    }
    // The first row of threads reads what it wrote itself.
    if (threadIdx.y == 0 && column < channels) {
        for (int j = 0; j < WIDTH; j++) {
            partials[(i64)(column + j) * gridDim.y + blockIdx.y] = scratch[j * threads + threadIdx.x];
        }
    }
}

KERNEL columns_gradient(const T *dy, const T *y, T *masked, float *partials, i64 rows, int channels, int width,
                        int rectifier) {
    extern __shared__ float scratch[];
    if (width == PACK) columns<PACK>(dy, y, masked, partials, rows, channels, rectifier, scratch);
    else columns<1>(dy, y, masked, partials, rows, channels, rectifier, scratch);
}

// dbias[channel] is the sum of the channel's parts; one warp for each channel.
KERNEL sum_of_parts(const float *partials, float *dbias, int channels, int parts) {
    int channel = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (channel >= channels) return;
    float sum = 0.0f;
    for (int part = threadIdx.x % 32; part < parts; part += 32) sum += partials[(i64)channel * parts + part];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) dbias[channel] = sum;
}
