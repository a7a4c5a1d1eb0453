// Batch normalisation in training mode. mod.rs has the formulas, and says which kernel is for what.
//
// Planes: a channel is one run of `positions` numbers in each image (NCHW). Rows: a channel is one column of a matrix of
// `channels` columns (NHWC, and flat features). Numbers move in bundles of `width` neighbours: PACK, 4 or 1.
//
// Sums of squares are taken about a pivot, a value of the same channel, since mean(x^2) - mean(x)^2 loses all digits
// where the mean is far from 0. Blocks' means and squares are combined as in Chan, Golub, LeVeque, "Updating formulae and
// a pairwise algorithm for computing sample variances", 1979.

#define METHOD __device__ __forceinline__

template <int V> struct alignas(V * sizeof(T)) Bundle { T v[V]; };
template <int V> DEVICE Bundle<V> load(const T *p) { return *reinterpret_cast<const Bundle<V> *>(p); }
template <int V> DEVICE void store(T *p, const Bundle<V> &x) { *reinterpret_cast<Bundle<V> *>(p) = x; }

#define BY_WIDTH(function, ...)                     \
    if (width == PACK) function<PACK>(__VA_ARGS__); \
    else if (width == 4) function<4>(__VA_ARGS__);  \
    else function<1>(__VA_ARGS__)
#define BY_ROW_WIDTH(function, ...)                 \
    if (width == PACK) function<PACK>(__VA_ARGS__); \
    else function<1>(__VA_ARGS__)

// The bundles that a thread of a `held` kernel keeps in registers (mod.rs has the same numbers), and those that it loads
// at once.
template <int V> struct Held { static const int COUNT = V == 8 ? 4 : 8; };
const int AT_ONCE = 2;

struct Forward {
    const T *x, *residual;
    const float *gamma, *beta;
    float *running_mean, *running_variance, *mean, *inverse_deviation;
    T *y;
    int rectifier;
    float epsilon, momentum;

    template <int V, int U> METHOD void load_residuals(const i64 (&at)[U], Bundle<V> (&residuals)[U]) const {
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (residual && at[k] >= 0) residuals[k] = load<V>(residual + at[k]);
        }
    }

    METHOD float inverse_of(float squares, float count) const { return 1.0f / sqrtf(squares / count + epsilon); }

    // What one thread does for each channel.
    METHOD void publish(int channel, float channel_mean, float squares, float count) const {
        mean[channel] = channel_mean;
        inverse_deviation[channel] = inverse_of(squares, count);
        running_mean[channel] = momentum * running_mean[channel] + (1.0f - momentum) * channel_mean;
        float unbiased = squares / (count > 1.0f ? count - 1.0f : 1.0f);
        running_variance[channel] = momentum * running_variance[channel] + (1.0f - momentum) * unbiased;
    }
};

// y = rectify((x - mean) * slope + shift + residual).
template <int V> DEVICE Bundle<V> normalised(const Forward &f, const Bundle<V> &x, const Bundle<V> &residual,
                                             const float *mean, const float *slope, const float *shift, int step) {
    Bundle<V> y;
#pragma unroll
    for (int i = 0; i < V; i++) {
        float value = (to_float(x.v[i]) - mean[i * step]) * slope[i * step] + shift[i * step];
        if (f.residual) value += to_float(residual.v[i]);
        y.v[i] = from_float(rectify(value, f.rectifier));
    }
    return y;
}

struct Backward {
    const T *x, *y, *dy, *other;
    const float *gamma, *mean, *inverse_deviation;
    // The gradient that passed the rectifier goes to `passed`.
    T *dx, *passed;
    float *dgamma, *dbeta;
    int rectifier;

    // The gradients at `at` that pass the rectifier, and x there; places below 0 are left out. All loads come first.
    template <int V, int U> METHOD void load_all(const i64 (&at)[U], Bundle<V> *g, Bundle<V> *values) const {
        Bundle<V> second[U], output[U];
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
            g[k] = load<V>(dy + at[k]);
            values[k] = load<V>(x + at[k]);
            if (other) second[k] = load<V>(other + at[k]);
            if (y) output[k] = load<V>(y + at[k]);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                // Rounded, so that it makes no difference whether the sum has been in memory.
                if (other) g[k].v[i] = from_float(to_float(g[k].v[i]) + to_float(second[k].v[i]));
                if (y && !passes(to_float(output[k].v[i]), rectifier)) g[k].v[i] = from_float(0.0f);
            }
        }
    }
};

// What the gradient of x is made of: slope * (g - mean_g - (x - mean) * towards_mean).
struct Slope {
    float mean, slope, mean_g, towards_mean;
    METHOD Slope() {}
    METHOD Slope(const Backward &b, int channel, float sum_g, float sum_gx, float count) {
        float inverse = b.inverse_deviation[channel];
        mean = b.mean[channel];
        slope = b.gamma[channel] * inverse;
        mean_g = sum_g / count;
        towards_mean = inverse * inverse * sum_gx / count;
    }
    METHOD T of(T g, T x) const {
        return from_float(slope * (to_float(g) - mean_g - (to_float(x) - mean) * towards_mean));
    }
};

// ---- Planes ----

// `units` bundles of a channel, cut into `splits` parts of `per`; a block has one part.
struct Planes {
    int channels, positions, units, per, splits;
    METHOD int channel() const { return blockIdx.x / splits; }
    METHOD int first() const { return blockIdx.x % splits * per; }
    METHOD int last() const { return min(first() + per, units); }
};

// Where bundle after bundle of a channel lies, `stride` bundles apart.
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

KERNEL plane_moments(const T *x, float *partials, int channels, int positions, int units, int per, int splits, int width) {
    __shared__ float scratch[32];
    Planes p = {channels, positions, units, per, splits};
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

KERNEL plane_normalise(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
                       float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
                       float momentum, const float *partials, int channels, int positions, int units, int per, int splits,
                       int width) {
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Planes p = {channels, positions, units, per, splits};
    BY_WIDTH(normalise_plane, f, partials, p);
}

// The whole channel in one block.
template <int V> DEVICE void normalise_held_plane(const Forward &f, const Planes &p, float *scratch) {
    const int HELD = Held<V>::COUNT;
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
    // The rounding of the first mean is taken out again.
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

KERNEL __launch_bounds__(512) plane_normalise_held(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
                     float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
                     float momentum, int channels, int positions, int units, int width) {
    __shared__ float scratch[32];
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Planes p = {channels, positions, units, units, 1};
    BY_WIDTH(normalise_held_plane, f, p, scratch);
}

template <int V> DEVICE void sums_of_plane(const Backward &b, float *partials, const Planes &p, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    int first = p.first(), last = p.last();
    float mean = b.mean[p.channel()], sum_g = 0.0f, sum_gx = 0.0f;
    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places(walk, unit, last, at);
        b.load_all(at, g, values);
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

KERNEL plane_gradient_sums(const T *x, const T *y, const T *dy, const T *other, const float *mean, T *passed, int rectifier,
                           float *partials, int channels, int positions, int units, int per, int splits, int width) {
    __shared__ float scratch[32];
    Backward b = {x, y, dy, other, 0, mean, 0, 0, passed, 0, 0, rectifier};
    Planes p = {channels, positions, units, per, splits};
    BY_WIDTH(sums_of_plane, b, partials, p, scratch);
}

template <int V> DEVICE void gradient_of_plane(const Backward &b, const float *partials, const Planes &p) {
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
    Walk<V> walk(p, first + threadIdx.x, blockDim.x);
    for (int unit = first + threadIdx.x; unit < last; unit += U * blockDim.x) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places(walk, unit, last, at);
        b.load_all(at, g, values);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) g[k].v[i] = slope.of(g[k].v[i], values[k].v[i]);
            store(b.dx + at[k], g[k]);
        }
    }
}

KERNEL plane_gradient(const T *x, const T *y, const T *dy, const T *other, const float *gamma, const float *mean,
                      const float *inverse_deviation, T *dx, float *dgamma, float *dbeta, int rectifier,
                      const float *partials, int channels, int positions, int units, int per, int splits, int width) {
    Backward b = {x, y, dy, other, gamma, mean, inverse_deviation, dx, 0, dgamma, dbeta, rectifier};
    Planes p = {channels, positions, units, per, splits};
    BY_WIDTH(gradient_of_plane, b, partials, p);
}

template <int V> DEVICE void gradient_of_held_plane(const Backward &b, const Planes &p, float *scratch) {
    const int HELD = Held<V>::COUNT;
    int channel = p.channel();
    Bundle<V> g[HELD], values[HELD];
    float mean = b.mean[channel], sum_g = 0.0f, sum_gx = 0.0f;
    Walk<V> walk(p, threadIdx.x, blockDim.x);
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 at[AT_ONCE];
        places(walk, threadIdx.x + k * blockDim.x, p.units, at);
        b.load_all(at, g + k, values + k);
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
        if ((int)(threadIdx.x + k * blockDim.x) < p.units) {
            if (b.passed) store(b.passed + walk.at, g[k]);
#pragma unroll
            for (int i = 0; i < V; i++) g[k].v[i] = slope.of(g[k].v[i], values[k].v[i]);
            store(b.dx + walk.at, g[k]);
        }
        walk.next();
    }
}

KERNEL __launch_bounds__(512) plane_gradient_held(const T *x, const T *y, const T *dy, const T *other, const float *gamma, const float *mean,
                    const float *inverse_deviation, T *dx, T *passed, float *dgamma, float *dbeta, int rectifier,
                    int channels, int positions, int units, int width) {
    __shared__ float scratch[32];
    Backward b = {x, y, dy, other, gamma, mean, inverse_deviation, dx, passed, dgamma, dbeta, rectifier};
    Planes p = {channels, positions, units, units, 1};
    BY_WIDTH(gradient_of_held_plane, b, p, scratch);
}

// ---- Rows ----

// A block has `lanes` bundles of columns, and `per` rows of the `rows`. Its threads lie side by side along the columns.
struct Rows {
    int channels, rows, per, lanes;
    METHOD int lane() const { return threadIdx.x % lanes; }
    METHOD int line() const { return threadIdx.x / lanes; }
    METHOD int lines() const { return blockDim.x / lanes; }
    METHOD int first() const { return blockIdx.y * per; }
    METHOD int last() const { return min(first() + per, rows); }
    // The first column of a thread; at or past `channels` there is nothing to do.
    template <int V> METHOD int channel() const { return (blockIdx.x * lanes + lane()) * V; }
};

// The places of a thread's next U bundles; -1 past the end.
template <int V, int U> DEVICE void places(const Rows &r, int row, i64 (&at)[U]) {
    int channel = r.channel<V>(), last = r.last();
#pragma unroll
    for (int k = 0; k < U; k++) {
        int mine = row + k * r.lines();
        at[k] = mine < last && channel < r.channels ? (i64)mine * r.channels + channel : -1;
    }
}

const int COLUMN_SCRATCH = 2048;

// The sums over a block's lines, in every thread of the column. `lanes` is a power of 2 of at most 32; the scratch holds
// V floats for every lane of every warp.
template <int V> DEVICE void column_sums(float (&sums)[V], const Rows &r, float *scratch) {
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, columns = r.lanes * V;
    for (int step = 16; step >= r.lanes; step /= 2) {
#pragma unroll
        for (int i = 0; i < V; i++) sums[i] += __shfl_xor_sync(0xFFFFFFFFu, sums[i], step);
    }
    if ((int)threadIdx.x % 32 < r.lanes) {
#pragma unroll
        for (int i = 0; i < V; i++) scratch[warp * columns + r.lane() * V + i] = sums[i];
    }
    __syncthreads();
    for (int column = threadIdx.x; column < columns; column += blockDim.x) {
        float sum = 0.0f;
        for (int other = 0; other < warps; other++) sum += scratch[other * columns + column];
        scratch[column] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < V; i++) sums[i] = scratch[r.lane() * V + i];
    __syncthreads();
}

// Parameters of a thread's columns; 0 where there are none.
template <int V> DEVICE void load_floats(const float *p, const Rows &r, float (&values)[V]) {
    int channel = r.channel<V>();
#pragma unroll
    for (int i = 0; i < V; i++) values[i] = channel < r.channels ? p[channel + i] : 0.0f;
}

// Partials are a row of `channels` first sums and one of second sums for each split.
template <int V> DEVICE void store_partials(float *partials, const Rows &r, const float (&a)[V], const float (&b)[V]) {
    int channel = r.channel<V>();
    if (r.line() != 0 || channel >= r.channels) return;
    float *mine = partials + 2 * (i64)blockIdx.y * r.channels + channel;
#pragma unroll
    for (int i = 0; i < V; i++) {
        mine[i] = a[i];
        mine[r.channels + i] = b[i];
    }
}

template <int V> DEVICE void moments_of_rows(const T *x, float *partials, const Rows &r, float *scratch) {
    const int U = V == 1 ? 8 : 4;
    int channel = r.channel<V>(), first = r.first(), last = r.last();
    float pivot[V], sum[V], squares[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        pivot[i] = channel < r.channels ? to_float(x[(i64)first * r.channels + channel + i]) : 0.0f;
        sum[i] = squares[i] = 0.0f;
    }
    for (int row = first + r.line(); row < last; row += U * r.lines()) {
        i64 at[U];
        Bundle<V> values[U];
        places<V>(r, row, at);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) values[k] = load<V>(x + at[k]);
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                float d = to_float(values[k].v[i]) - pivot[i];
                sum[i] += d;
                squares[i] += d * d;
            }
        }
    }
    column_sums(sum, r, scratch);
    column_sums(squares, r, scratch);
    float count = (float)(last - first);
#pragma unroll
    for (int i = 0; i < V; i++) {
        squares[i] = max(squares[i] - sum[i] * sum[i] / count, 0.0f);
        pivot[i] += sum[i] / count;
    }
    store_partials(partials, r, pivot, squares);
}

KERNEL __launch_bounds__(512) row_moments(const T *x, float *partials, int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Rows r = {channels, rows, per, lanes};
    BY_ROW_WIDTH(moments_of_rows, x, partials, r, scratch);
}

template <int V> DEVICE void publish_columns(const Forward &f, const Rows &r, const float (&mean)[V], const float (&squares)[V]) {
    int channel = r.channel<V>();
    if (blockIdx.y != 0 || r.line() != 0 || channel >= r.channels) return;
#pragma unroll
    for (int i = 0; i < V; i++) f.publish(channel + i, mean[i], squares[i], (float)r.rows);
}

template <int V> DEVICE void normalise_rows(const Forward &f, const float *partials, const Rows &r, float *scratch) {
    const int U = V == 1 ? 8 : 4;
    int splits = (r.rows + r.per - 1) / r.per;
    float mean[V], slope[V], shift[V], sum[V], squares[V];
    load_floats(partials, r, mean);
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = squares[i] = 0.0f;
    for (int split = r.line(); split < splits; split += r.lines()) {
        float values = (float)min(r.per, r.rows - split * r.per), theirs[V], their_squares[V];
        load_floats(partials + 2 * (i64)split * r.channels, r, theirs);
        load_floats(partials + (2 * (i64)split + 1) * r.channels, r, their_squares);
#pragma unroll
        for (int i = 0; i < V; i++) {
            float d = theirs[i] - mean[i];
            sum[i] += values * d;
            squares[i] += their_squares[i] + values * d * d;
        }
    }
    column_sums(sum, r, scratch);
    column_sums(squares, r, scratch);
    float count = (float)r.rows;
    load_floats(f.gamma, r, slope);
    load_floats(f.beta, r, shift);
#pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] += sum[i] / count;
        squares[i] = max(squares[i] - sum[i] * sum[i] / count, 0.0f);
        slope[i] *= f.inverse_of(squares[i], count);
    }
    publish_columns(f, r, mean, squares);
    for (int row = r.first() + r.line(); row < r.last(); row += U * r.lines()) {
        i64 at[U];
        Bundle<V> values[U], residuals[U];
        places<V>(r, row, at);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) values[k] = load<V>(f.x + at[k]);
        }
        f.load_residuals(at, residuals);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] >= 0) store(f.y + at[k], normalised(f, values[k], residuals[k], mean, slope, shift, 1));
        }
    }
}

KERNEL __launch_bounds__(512) row_normalise(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
              float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
              float momentum, const float *partials, int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Rows r = {channels, rows, per, lanes};
    BY_ROW_WIDTH(normalise_rows, f, partials, r, scratch);
}

// All rows in one block.
template <int V> DEVICE void normalise_held_rows(const Forward &f, const Rows &r, float *scratch) {
    const int HELD = Held<V>::COUNT;
    Bundle<V> values[HELD];
    i64 at[HELD];
    places<V>(r, r.line(), at);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        if (at[k] >= 0) values[k] = load<V>(f.x + at[k]);
    }
    float mean[V], slope[V], shift[V], sum[V], squares[V], count = (float)r.rows;
#pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] = sum[i] = squares[i] = 0.0f;
#pragma unroll
        for (int k = 0; k < HELD; k++) mean[i] += at[k] >= 0 ? to_float(values[k].v[i]) : 0.0f;
    }
    column_sums(mean, r, scratch);
#pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] /= count;
#pragma unroll
        for (int k = 0; k < HELD; k++) {
            float d = at[k] >= 0 ? to_float(values[k].v[i]) - mean[i] : 0.0f;
            sum[i] += d;
            squares[i] += d * d;
        }
    }
    column_sums(sum, r, scratch);
    column_sums(squares, r, scratch);
    load_floats(f.gamma, r, slope);
    load_floats(f.beta, r, shift);
#pragma unroll
    for (int i = 0; i < V; i++) {
        // The rounding of the first mean is taken out again.
        squares[i] = max(squares[i] - sum[i] * sum[i] / count, 0.0f);
        mean[i] += sum[i] / count;
        slope[i] *= f.inverse_of(squares[i], count);
    }
    publish_columns(f, r, mean, squares);
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 here[AT_ONCE];
        Bundle<V> residuals[AT_ONCE];
        places<V>(r, r.line() + k * r.lines(), here);
        f.load_residuals(here, residuals);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (here[j] >= 0) store(f.y + here[j], normalised(f, values[k + j], residuals[j], mean, slope, shift, 1));
        }
    }
}

KERNEL __launch_bounds__(512) row_normalise_held(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
                   float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
                   float momentum, int channels, int rows, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Rows r = {channels, rows, rows, lanes};
    BY_ROW_WIDTH(normalise_held_rows, f, r, scratch);
}

template <int V> DEVICE void add_to_sums(const Bundle<V> &g, const Bundle<V> &x, const float (&mean)[V], float (&sum_g)[V],
                                         float (&sum_gx)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        sum_g[i] += to_float(g.v[i]);
        sum_gx[i] += to_float(g.v[i]) * (to_float(x.v[i]) - mean[i]);
    }
}

template <int V> DEVICE void sums_of_rows(const Backward &b, float *partials, const Rows &r, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    float mean[V], sum_g[V], sum_gx[V];
    load_floats(b.mean, r, mean);
#pragma unroll
    for (int i = 0; i < V; i++) sum_g[i] = sum_gx[i] = 0.0f;
    for (int row = r.first() + r.line(); row < r.last(); row += U * r.lines()) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places<V>(r, row, at);
        b.load_all(at, g, values);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
            if (b.passed) store(b.passed + at[k], g[k]);
            add_to_sums(g[k], values[k], mean, sum_g, sum_gx);
        }
    }
    column_sums(sum_g, r, scratch);
    column_sums(sum_gx, r, scratch);
    store_partials(partials, r, sum_g, sum_gx);
}

KERNEL __launch_bounds__(512) row_gradient_sums(const T *x, const T *y, const T *dy, const T *other, const float *mean, T *passed, int rectifier,
                  float *partials, int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, y, dy, other, 0, mean, 0, 0, passed, 0, 0, rectifier};
    Rows r = {channels, rows, per, lanes};
    BY_ROW_WIDTH(sums_of_rows, b, partials, r, scratch);
}

template <int V> DEVICE void slopes_of(const Backward &b, const Rows &r, const float (&sum_g)[V], const float (&sum_gx)[V],
                                       Slope (&slopes)[V]) {
    int channel = r.channel<V>();
    if (channel >= r.channels) return;
    bool mine = blockIdx.y == 0 && r.line() == 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
        slopes[i] = Slope(b, channel + i, sum_g[i], sum_gx[i], (float)r.rows);
        if (mine) b.dbeta[channel + i] = sum_g[i];
        if (mine) b.dgamma[channel + i] = sum_gx[i] * b.inverse_deviation[channel + i];
    }
}

template <int V> DEVICE void gradient_of_rows(const Backward &b, const float *partials, const Rows &r, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    int splits = (r.rows + r.per - 1) / r.per;
    float sum_g[V], sum_gx[V];
#pragma unroll
    for (int i = 0; i < V; i++) sum_g[i] = sum_gx[i] = 0.0f;
    for (int split = r.line(); split < splits; split += r.lines()) {
        float theirs[V], theirs_x[V];
        load_floats(partials + 2 * (i64)split * r.channels, r, theirs);
        load_floats(partials + (2 * (i64)split + 1) * r.channels, r, theirs_x);
#pragma unroll
        for (int i = 0; i < V; i++) {
            sum_g[i] += theirs[i];
            sum_gx[i] += theirs_x[i];
        }
    }
    column_sums(sum_g, r, scratch);
    column_sums(sum_gx, r, scratch);
    Slope slopes[V];
    slopes_of(b, r, sum_g, sum_gx, slopes);
    for (int row = r.first() + r.line(); row < r.last(); row += U * r.lines()) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places<V>(r, row, at);
        b.load_all(at, g, values);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) g[k].v[i] = slopes[i].of(g[k].v[i], values[k].v[i]);
            store(b.dx + at[k], g[k]);
        }
    }
}

KERNEL __launch_bounds__(512) row_gradient(const T *x, const T *y, const T *dy, const T *other, const float *gamma, const float *mean,
             const float *inverse_deviation, T *dx, float *dgamma, float *dbeta, int rectifier, const float *partials,
             int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, y, dy, other, gamma, mean, inverse_deviation, dx, 0, dgamma, dbeta, rectifier};
    Rows r = {channels, rows, per, lanes};
    BY_ROW_WIDTH(gradient_of_rows, b, partials, r, scratch);
}

template <int V> DEVICE void gradient_of_held_rows(const Backward &b, const Rows &r, float *scratch) {
    const int HELD = Held<V>::COUNT;
    Bundle<V> g[HELD], values[HELD];
    float mean[V], sum_g[V], sum_gx[V];
    load_floats(b.mean, r, mean);
#pragma unroll
    for (int i = 0; i < V; i++) sum_g[i] = sum_gx[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 at[AT_ONCE];
        places<V>(r, r.line() + k * r.lines(), at);
        b.load_all(at, g + k, values + k);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            if (at[j] >= 0) add_to_sums(g[k + j], values[k + j], mean, sum_g, sum_gx);
        }
    }
    column_sums(sum_g, r, scratch);
    column_sums(sum_gx, r, scratch);
    Slope slopes[V];
    slopes_of(b, r, sum_g, sum_gx, slopes);
#pragma unroll
    for (int k = 0; k < HELD; k++) {
        i64 at[1];
        places<V>(r, r.line() + k * r.lines(), at);
        if (at[0] < 0) continue;
        if (b.passed) store(b.passed + at[0], g[k]);
#pragma unroll
        for (int i = 0; i < V; i++) g[k].v[i] = slopes[i].of(g[k].v[i], values[k].v[i]);
        store(b.dx + at[0], g[k]);
    }
}

KERNEL __launch_bounds__(512) row_gradient_held(const T *x, const T *y, const T *dy, const T *other, const float *gamma, const float *mean,
                  const float *inverse_deviation, T *dx, T *passed, float *dgamma, float *dbeta, int rectifier,
                  int channels, int rows, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, y, dy, other, gamma, mean, inverse_deviation, dx, passed, dgamma, dbeta, rectifier};
    Rows r = {channels, rows, rows, lanes};
    BY_ROW_WIDTH(gradient_of_held_rows, b, r, scratch);
}
