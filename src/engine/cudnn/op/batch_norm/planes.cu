// Batch norm on planes: NCHW. What it shares with rows.cu is in kernel.cu.

// The bundles that a thread of a `held` kernel keeps in registers (cut.rs has the same numbers).
template <int V> struct HeldInPlane { static const int COUNT = V == 8 ? 2 : 4; };

// `units` bundles of a channel, cut into `splits` parts of `per`; a block has one part, that of number `block`.
struct Planes {
    int channels, positions, units, per, splits, block;
    METHOD int channel() const { return block / splits; }
    METHOD int first() const { return block % splits * per; }
    METHOD int last() const { return min(first() + per, units); }
};
#define LAST_FIRST ((int)(gridDim.x - 1 - blockIdx.x))

// The places of successive bundles of a channel, `stride` bundles apart.
template <int V> struct Walk {
    i64 at, step, gap;
    int place, width, step_place;
    METHOD Walk(const Planes &p, int unit, int stride) {
        width = p.positions / V;
        place = unit % width;
        step_place = stride % width;
        i64 image = (i64)p.channels * p.positions;
        at = (unit / width) * image + (i64)p.channel() * p.positions + (i64)place * V;
        step = (stride / width) * image + (i64)step_place * V;
        gap = image - p.positions;
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

// The places of the next U bundles; -1 past the end.
template <int V, int U> DEVICE void places(Walk<V> &walk, int unit, int last, i64 (&at)[U]) {
#pragma unroll
    for (int k = 0; k < U; k++) {
        at[k] = unit + k * (int)blockDim.x < last ? walk.at : -1;
        walk.next();
    }
}

template <int V> DEVICE void moments_of_plane(const T *x, float *partials, const Planes &p, float *scratch) {
    const int U = V == 1 ? 8 : 4;
    int first = p.first(), last = p.last();
    float pivot = to_float(x[Walk<V>(p, first, 1).at]);
    float sum = 0.0f, squares = 0.0f;
    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> values[U];
        places(walk, unit, last, at);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) values[k] = load<V>(x + at[k]);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                float d = to_float(values[k].v[i]) - pivot;
                sum += d;
                squares += d * d;
            }
        }
    }
    sum = block_sum(sum, scratch);
    squares = block_sum(squares, scratch);
    if (threadIdx.x == 0) {
        float count = (float)((last - first) * V);
        partials[2 * blockIdx.x] = pivot + sum / count;
        partials[2 * blockIdx.x + 1] = max(squares - sum * sum / count, 0.0f);
    }
}

KERNEL __launch_bounds__(256, 4) plane_moments(const T *x, float *partials, int channels, int positions, int units, int per, int splits, int width) {
    __shared__ float scratch[32];
    Planes p = {channels, positions, units, per, splits, (int)blockIdx.x};
    BY_WIDTH(moments_of_plane, x, partials, p, scratch);
}

template <int V> DEVICE void normalise_plane(const Forward &f, const float *partials, const Planes &p) {
    const int U = V == 1 ? 8 : 4;
    int channel = p.channel();
    const float *mine = partials + 2 * (i64)channel * p.splits;
    float pivot = mine[0], sum = 0.0f, squares = 0.0f;
    for (int split = threadIdx.x % 32; split < p.splits; split += 32) {
        float values = (float)(min(p.per, p.units - split * p.per) * V), d = mine[2 * split] - pivot;
        sum += values * d;
        squares += mine[2 * split + 1] + values * d * d;
    }
    sum = warp_sum(sum);
    squares = warp_sum(squares);
    float count = (float)p.units * V, mean = pivot + sum / count;
    squares = max(squares - sum * sum / count, 0.0f);
    float slope = f.gamma[channel] * f.inverse_of(squares, count), shift = f.beta[channel];
    int first = p.first(), last = p.last();
    if (first == 0 && threadIdx.x == 0) f.publish(channel, mean, squares, count);

    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> values[U], residuals[U];
        places(walk, unit, last, at);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) values[k] = load<V>(f.x + at[k]);
        }
        f.load_residuals(at, residuals);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) store(f.y + at[k], normalised(f, values[k], residuals[k], &mean, &slope, &shift, 0));
        }
    }
}

KERNEL __launch_bounds__(256, 4) plane_normalise(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
                       float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
                       float momentum, const float *partials, int channels, int positions, int units, int per, int splits,
                       int width) {
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Planes p = {channels, positions, units, per, splits, LAST_FIRST};
    BY_WIDTH(normalise_plane, f, partials, p);
}

// The whole channel in one block.
template <int V> DEVICE void normalise_held_plane(const Forward &f, const Planes &p, float *scratch) {
    const int HELD = HeldInPlane<V>::COUNT;
    int channel = p.channel();
    Bundle<V> values[HELD];
    Walk<V> walk(p, threadIdx.x, blockDim.x);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        if ((int)(threadIdx.x + k * blockDim.x) < p.units) values[k] = load<V>(f.x + walk.at);
        walk.next();
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        bool inside = (int)(threadIdx.x + k * blockDim.x) < p.units;
#pragma unroll
        for (int i = 0; i < V; i++) sum += inside ? to_float(values[k].v[i]) : 0.0f;
    }
    float count = (float)p.units * V, mean = block_sum(sum, scratch) / count, squares = 0.0f;
    sum = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        bool inside = (int)(threadIdx.x + k * blockDim.x) < p.units;
#pragma unroll
        for (int i = 0; i < V; i++) {
            float d = inside ? to_float(values[k].v[i]) - mean : 0.0f;
            sum += d;
            squares += d * d;
        }
    }
    // Corrects the rounding of the first mean.
    sum = block_sum(sum, scratch);
    squares = max(block_sum(squares, scratch) - sum * sum / count, 0.0f);
    mean += sum / count;
    if (threadIdx.x == 0) f.publish(channel, mean, squares, count);
    float slope = f.gamma[channel] * f.inverse_of(squares, count), shift = f.beta[channel];
    walk = Walk<V>(p, threadIdx.x, blockDim.x);
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 at[AT_ONCE];
        Bundle<V> residuals[AT_ONCE];
        places(walk, threadIdx.x + k * blockDim.x, p.units, at);
        f.load_residuals(at, residuals);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (at[j] >= 0) store(f.y + at[j], normalised(f, values[k + j], residuals[j], &mean, &slope, &shift, 0));
        }
    }
}

KERNEL __launch_bounds__(1024) plane_normalise_held(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
                     float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
                     float momentum, int channels, int positions, int units, int width) {
    __shared__ float scratch[32];
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Planes p = {channels, positions, units, units, 1, (int)blockIdx.x};
    BY_WIDTH(normalise_held_plane, f, p, scratch);
}
