// The gradients of batch norm on planes; planes.cu says how they are cut.

template <int V, int SOURCE> DEVICE void sums_of_plane(const MaskedBy<SOURCE> &b, float *partials, const Planes &p, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    int first = p.first(), last = p.last();
    int channel = p.channel();
    float mean = b.mean[channel], slope = b.slope_of(channel), shift = b.shift_of(channel), sum_g = 0.0f, sum_gx = 0.0f;
    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    i64 spare = Walk<V>(p, first, 1).at;
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places(walk, unit, last, at);
        b.load_all(at, spare, g, values, &mean, &slope, &shift, 0);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
            if (b.passed) store(b.passed + at[k], g[k]);
#pragma unroll
            for (int i = 0; i < V; i++) {
                sum_g += to_float(g[k].v[i]);
                sum_gx += to_float(g[k].v[i]) * (to_float(values[k].v[i]) - mean);
            }
        }
    }
    sum_g = block_sum(sum_g, scratch);
    sum_gx = block_sum(sum_gx, scratch);
    if (threadIdx.x == 0) {
        partials[2 * blockIdx.x] = sum_g;
        partials[2 * blockIdx.x + 1] = sum_gx;
    }
}

KERNEL __launch_bounds__(256, 4) plane_gradient_sums(const T *x, const T *dy, const T *other, const T *y, const float *beta, const float *gamma,
                           const float *mean, const float *inverse_deviation, T *passed, int rectifier, float *partials,
                           int channels, int positions, int units, int per, int splits, int width) {
    __shared__ float scratch[32];
    Backward b = {x, dy, other, y, beta, gamma, mean, inverse_deviation, 0, passed, 0, 0, rectifier};
    Planes p = {channels, positions, units, per, splits, (int)blockIdx.x};
    if (y) {
        BY_WIDTH(sums_of_plane, MaskedBy<Y>(b), partials, p, scratch);
    } else if (beta) {
        BY_WIDTH(sums_of_plane, MaskedBy<X>(b), partials, p, scratch);
    } else {
        BY_WIDTH(sums_of_plane, MaskedBy<NOTHING>(b), partials, p, scratch);
    }
}

template <int V, int SOURCE> DEVICE void gradient_of_plane(const MaskedBy<SOURCE> &b, const float *partials, const Planes &p) {
    const int U = V == 1 ? 4 : 2;
    int channel = p.channel(), first = p.first(), last = p.last();
    const float *mine = partials + 2 * (i64)channel * p.splits;
    float sum_g = 0.0f, sum_gx = 0.0f;
    for (int split = threadIdx.x % 32; split < p.splits; split += 32) {
        sum_g += mine[2 * split];
        sum_gx += mine[2 * split + 1];
    }
    sum_g = warp_sum(sum_g);
    sum_gx = warp_sum(sum_gx);
    if (first == 0 && threadIdx.x == 0) {
        b.dbeta[channel] = sum_g;
        b.dgamma[channel] = sum_gx * b.inverse_deviation[channel];
    }
    Slope slope(b, channel, sum_g, sum_gx, (float)p.units * V);
    float shift = b.shift_of(channel);
    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    i64 spare = Walk<V>(p, first, 1).at;
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places(walk, unit, last, at);
        b.load_all(at, spare, g, values, &slope.mean, &slope.slope, &shift, 0);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) g[k].v[i] = slope.of(g[k].v[i], values[k].v[i]);
            store(b.dx + at[k], g[k]);
        }
    }
}

KERNEL __launch_bounds__(256, 4) plane_gradient(const T *x, const T *dy, const T *other, const float *beta, const float *gamma,
                      const float *mean, const float *inverse_deviation, T *dx, float *dgamma, float *dbeta, int rectifier,
                      const float *partials, int channels, int positions, int units, int per, int splits, int width) {
    Backward b = {x, dy, other, 0, beta, gamma, mean, inverse_deviation, dx, 0, dgamma, dbeta, rectifier};
    Planes p = {channels, positions, units, per, splits, LAST_FIRST};
    if (beta) {
        BY_WIDTH(gradient_of_plane, MaskedBy<X>(b), partials, p);
    } else {
        BY_WIDTH(gradient_of_plane, MaskedBy<NOTHING>(b), partials, p);
    }
}

template <int V, int SOURCE> DEVICE void gradient_of_held_plane(const MaskedBy<SOURCE> &b, const Planes &p, float *scratch) {
    const int HELD = HeldInPlane<V>::COUNT;
    int channel = p.channel();
    Bundle<V> g[HELD], values[HELD];
    float mean = b.mean[channel], scale = b.slope_of(channel), shift = b.shift_of(channel), sum_g = 0.0f, sum_gx = 0.0f;
    Walk<V> walk(p, threadIdx.x, blockDim.x);
    i64 spare = Walk<V>(p, 0, 1).at;
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 at[AT_ONCE];
        places(walk, threadIdx.x + k * blockDim.x, p.units, at);
        b.load_all(at, spare, g + k, values + k, &mean, &scale, &shift, 0);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (at[j] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                sum_g += to_float(g[k + j].v[i]);
                sum_gx += to_float(g[k + j].v[i]) * (to_float(values[k + j].v[i]) - mean);
            }
        }
    }
    sum_g = block_sum(sum_g, scratch);
    sum_gx = block_sum(sum_gx, scratch);
    if (threadIdx.x == 0) {
        b.dbeta[channel] = sum_g;
        b.dgamma[channel] = sum_gx * b.inverse_deviation[channel];
    }
    Slope slope(b, channel, sum_g, sum_gx, (float)p.units * V);
    walk = Walk<V>(p, threadIdx.x, blockDim.x);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        i64 at[1];
        places(walk, threadIdx.x + k * blockDim.x, p.units, at);
        if (at[0] < 0) continue;
        if (b.passed) store(b.passed + at[0], g[k]);
#pragma unroll
        for (int i = 0; i < V; i++) g[k].v[i] = slope.of(g[k].v[i], values[k].v[i]);
        store(b.dx + at[0], g[k]);
    }
}

KERNEL __launch_bounds__(1024) plane_gradient_held(const T *x, const T *dy, const T *other, const T *y, const float *beta,
                    const float *gamma, const float *mean, const float *inverse_deviation, T *dx, T *passed, float *dgamma, float *dbeta, int rectifier,
                    int channels, int positions, int units, int width) {
    __shared__ float scratch[32];
    Backward b = {x, dy, other, y, beta, gamma, mean, inverse_deviation, dx, passed, dgamma, dbeta, rectifier};
    Planes p = {channels, positions, units, units, 1, (int)blockIdx.x};
    if (y) {
        BY_WIDTH(gradient_of_held_plane, MaskedBy<Y>(b), p, scratch);
    } else if (beta) {
        BY_WIDTH(gradient_of_held_plane, MaskedBy<X>(b), p, scratch);
    } else {
        BY_WIDTH(gradient_of_held_plane, MaskedBy<NOTHING>(b), p, scratch);
    }
}
