// Batch norm on rows: NHWC and flat features. What it shares with planes.cu is in kernel.cu.

#define BY_ROW_WIDTH(function, ...)             \
    if (width == 4) function<4>(__VA_ARGS__);   \
    else function<1>(__VA_ARGS__)

// The bundles that a thread of a `held` kernel keeps in registers (cut.rs has the same number).
const int HELD_IN_ROWS = 8;

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
    // The block's own place, the same for all threads.
    template <int V> METHOD i64 spare() const { return (i64)first() * channels + min(channel<V>(), channels - V); }
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

// The same from the block's last row to its first.
template <int V, int U> DEVICE void places_from_the_end(const Rows &r, int row, i64 (&at)[U]) {
    int channel = r.channel<V>(), last = r.last(), mirror = r.first() + last - 1;
#pragma unroll
    for (int k = 0; k < U; k++) {
        int mine = row + k * r.lines();
        at[k] = mine < last && channel < r.channels ? (i64)(mirror - mine) * r.channels + channel : -1;
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

KERNEL __launch_bounds__(512, 2) row_moments(const T *x, float *partials, int channels, int rows, int per, int lanes, int width) {
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
        places_from_the_end<V>(r, row, at);
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

KERNEL __launch_bounds__(512, 2) row_normalise(const T *x, const T *residual, const float *gamma, const float *beta, float *running_mean,
              float *running_variance, float *mean, float *inverse_deviation, T *y, int rectifier, float epsilon,
              float momentum, const float *partials, int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Forward f = {x, residual, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y, rectifier, epsilon, momentum};
    Rows r = {channels, rows, per, lanes};
    BY_ROW_WIDTH(normalise_rows, f, partials, r, scratch);
}

// All rows in one block.
template <int V> DEVICE void normalise_held_rows(const Forward &f, const Rows &r, float *scratch) {
    const int HELD = HELD_IN_ROWS;
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
        // Corrects the rounding of the first mean.
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
