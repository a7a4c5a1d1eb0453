// A bias for each channel followed by a rectifier, and its gradient: the sum over each channel. It is computed in two launches,
// first partial sums by many blocks, then their sum, always in the same order.

// rectifier(x + bias) in place, for sixteen bytes; Index is wide enough for `count`.
template <class Index>
DEVICE void add_bias(T *xy, const float *bias, Index first, int n, Index channels, Index positions, int channels_last,
                     int rectifier) {
    Index inner = channels_last ? 1 : positions;
    Index line = channels_last ? first : first / inner, channel = line % channels;
    Pack x;
    float added[PACK];
    if (n == PACK) x = load<PACK>(xy + first);
    else x.v[0] = xy[first];
    if (!channels_last && inner % PACK == 0) {
        // Sixteen bytes of one channel,
        float one = bias[channel];
#pragma unroll
        for (int j = 0; j < PACK; j++) added[j] = one;
    } else if (channels_last && channels % PACK == 0) {
        // or of neighbouring channels of one place,
#pragma unroll
        for (int j = 0; j < PACK; j++) added[j] = bias[channel + j];
    } else {
        // or of several, where the next channel may begin anywhere.
        Index position = first - line * inner;
        for (int j = 0; j < PACK; j++) {
            if (j < n) added[j] = bias[channel];
            if (++position == inner) {
                position = 0;
                if (++channel == channels) channel = 0;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < PACK; j++) {
        if (j < n) x.v[j] = from_float(rectify(to_float(x.v[j]) + added[j], rectifier));
    }
    if (n == PACK) store(xy + first, x);
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

// Both gradient kernels: where `masked` is not null, dy is set to 0 where the output y shows that no gradient passes, and
// written to `masked`, which is dy's memory. partials[channel * parts + part] is the sum of one part. Numbers move in bundles
// of V neighbours: PACK, 4 or 1. A channel has fewer than 2^31.

struct Masked {
    const T *dy, *y;
    T *masked;
    int rectifier;

    // Reads and masks the bundles at `at`, and calls `add` with their elements; places below 0 are left out. All loads come
    // before the stores, since the compiler must not move loads across stores.
    template <int V, int U, class F> METHOD void each(const i64 (&at)[U], F add) const {
        Bundle<V> g[U], out[U];
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) g[k] = load<V>(dy + at[k]);
            if (masked && at[k] >= 0) out[k] = load<V>(y + at[k]);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
            if (masked) {
#pragma unroll
                for (int j = 0; j < V; j++) {
                    if (!passes(to_float(out[k].v[j]), rectifier)) g[k].v[j] = from_float(0.0f);
                }
                store(masked + at[k], g[k]);
            }
#pragma unroll
            for (int j = 0; j < V; j++) add(j, to_float(g[k].v[j]));
        }
    }
};

// The places of successive bundles of a channel, `stride` bundles apart.
template <int V> struct Walk {
    i64 at, step, gap;
    u32 place, width, step_place;
    METHOD Walk(int channels, int positions, u32 unit, u32 stride) {
        width = (u32)positions / V;
        u32 images = unit / width, step_images = stride / width;
        place = unit - images * width;
        step_place = stride - step_images * width;
        i64 image = (i64)channels * positions;
        at = images * image + (i64)blockIdx.x * positions + (i64)place * V;
        step = step_images * image + (i64)step_place * V;
        gap = image - positions;
    }
    METHOD void next() {
        at += step;
        place += step_place;
        if (place >= width) {
            place -= width;
            at += gap;
        }
    }
};

template <int V> DEVICE float planes(const Masked &from, int batch, int channels, int positions) {
    const int U = V == 1 ? 4 : 2;
    u32 units = (u32)batch * ((u32)positions / V), share = (units + gridDim.y - 1) / gridDim.y, begin = share * blockIdx.y;
    u32 end = min(begin + share, units);
    float sum = 0.0f;
    Walk<V> walk(channels, positions, begin + threadIdx.x, blockDim.x);
    for (u32 unit = begin + threadIdx.x; unit < end; unit += U * blockDim.x) {
        i64 at[U];
#pragma unroll
        for (int k = 0; k < U; k++) {
            at[k] = unit + k * blockDim.x < end ? walk.at : -1;
            walk.next();
        }
        from.each<V>(at, [&](int, float g) { sum += g; });
    }
    return sum;
}

// Blocks of 256 threads that a multiprocessor holds at once: one of a T4 has room for 1,024 threads, later ones for 1,536 or more.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define RESIDENT 4
#else
#define RESIDENT 5
#endif

// N x C x positions: block x is a channel, block y a part of its batch * positions values. The size of a plane is a multiple of
// `width`.
KERNEL __launch_bounds__(256, RESIDENT) planes_gradient(const T *dy, const T *y, T *masked, float *partials, int batch, int channels, int positions,
                       int width, int rectifier) {
    __shared__ float scratch[32];
    Masked from = {dy, y, masked, rectifier};
    float sum;
    BY_WIDTH(sum = planes, from, batch, channels, positions);
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) partials[(i64)blockIdx.x * gridDim.y + blockIdx.y] = sum;
}

// Rows of C values, for N x positions x C and for flat features: a thread sums V neighbouring columns over every
// blockDim.y-th row of its part.
template <int V>
DEVICE void columns(const Masked &from, float *partials, u32 rows, int channels, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    int column = (blockIdx.x * blockDim.x + threadIdx.x) * V;
    u32 share = (rows + gridDim.y - 1) / gridDim.y, begin = share * blockIdx.y;
    u32 end = min(begin + share, rows);
    float sums[V];
#pragma unroll
    for (int j = 0; j < V; j++) sums[j] = 0.0f;
    if (column < channels) {
        for (u32 row = begin + threadIdx.y; row < end; row += U * blockDim.y) {
            i64 at[U];
#pragma unroll
            for (int k = 0; k < U; k++) {
                u32 next = row + k * blockDim.y;
                at[k] = next < end ? (i64)next * channels + column : -1;
            }
            from.each<V>(at, [&](int j, float g) { sums[j] += g; });
        }
    }
    int threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
    for (int j = 0; j < V; j++) scratch[j * threads + thread] = sums[j];
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) {
            for (int j = 0; j < V; j++) {
                scratch[j * threads + thread] += scratch[j * threads + thread + half * blockDim.x];
            }
        }
    }
    // The first row of threads reads what it wrote itself.
    if (threadIdx.y == 0 && column < channels) {
        for (int j = 0; j < V; j++) {
            partials[(i64)(column + j) * gridDim.y + blockIdx.y] = scratch[j * threads + threadIdx.x];
        }
    }
}

// The length of a row is a multiple of `width`.
KERNEL columns_gradient(const T *dy, const T *y, T *masked, float *partials, int rows, int channels, int width,
                        int rectifier) {
    extern __shared__ float scratch[];
    Masked from = {dy, y, masked, rectifier};
    BY_WIDTH(columns, from, partials, rows, channels, scratch);
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
