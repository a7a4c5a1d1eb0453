// The gradients of batch norm on rows; rows.cu says how they are cut.

template <int V, int SOURCE> DEVICE void load_affine(const MaskedBy<SOURCE> &b, const Rows &r, float (&mean)[V], float (&slope)[V], float (&shift)[V]) {
    float inverse[V];
    load_floats(b.mean, r, mean);
    load_floats(b.gamma, r, slope);
    load_floats(b.inverse_deviation, r, inverse);
#pragma unroll
    for (int i = 0; i < V; i++) {
        slope[i] *= inverse[i];
        shift[i] = 0.0f;
    }
    if (SOURCE == X) load_floats(b.beta, r, shift);
}

template <int V> DEVICE void add_to_sums(const Bundle<V> &g, const Bundle<V> &x, const float (&mean)[V], float (&sum_g)[V],
                                         float (&sum_gx)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) {
        sum_g[i] += to_float(g.v[i]);
        sum_gx[i] += to_float(g.v[i]) * (to_float(x.v[i]) - mean[i]);
    }
}

template <int V, int SOURCE> DEVICE void sums_of_rows(const MaskedBy<SOURCE> &b, float *partials, const Rows &r, float *scratch) {
    const int U = V == 1 ? 4 : 2;
    float mean[V], slope[V], shift[V], sum_g[V], sum_gx[V];
    load_affine(b, r, mean, slope, shift);
#pragma unroll
    for (int i = 0; i < V; i++) sum_g[i] = sum_gx[i] = 0.0f;
    for (int row = r.first() + r.line(); row < r.last(); row += U * r.lines()) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places<V>(r, row, at);
        b.load_all(at, r.spare<V>(), g, values, mean, slope, shift, 1);
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

KERNEL __launch_bounds__(512, 2) row_gradient_sums(const T *x, const T *dy, const T *other, const T *y, const float *beta,
                  const float *gamma, const float *mean, const float *inverse_deviation, T *passed, int rectifier, float *partials,
                  int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, dy, other, y, beta, gamma, mean, inverse_deviation, 0, passed, 0, 0, rectifier};
    Rows r = {channels, rows, per, lanes};
    if (y) {
        BY_ROW_WIDTH(sums_of_rows, MaskedBy<Y>(b), partials, r, scratch);
    } else if (beta) {
        BY_ROW_WIDTH(sums_of_rows, MaskedBy<X>(b), partials, r, scratch);
    } else {
        BY_ROW_WIDTH(sums_of_rows, MaskedBy<NOTHING>(b), partials, r, scratch);
    }
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

template <int V, int SOURCE> DEVICE void gradient_of_rows(const MaskedBy<SOURCE> &b, const float *partials, const Rows &r, float *scratch) {
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
    float mean[V], slope[V], shift[V] = {};
    if (SOURCE == X) load_floats(b.beta, r, shift);
#pragma unroll
    for (int i = 0; i < V; i++) {
        mean[i] = slopes[i].mean;
        slope[i] = slopes[i].slope;
    }
    for (int row = r.first() + r.line(); row < r.last(); row += U * r.lines()) {
        i64 at[U];
        Bundle<V> g[U], values[U];
        places_from_the_end<V>(r, row, at);
        b.load_all(at, r.spare<V>(), g, values, mean, slope, shift, 1);
#pragma unroll
        for (int k = 0; k < U; k++) {
            if (at[k] < 0) continue;
#pragma unroll
            for (int i = 0; i < V; i++) g[k].v[i] = slopes[i].of(g[k].v[i], values[k].v[i]);
            store(b.dx + at[k], g[k]);
        }
    }
}

KERNEL __launch_bounds__(512, 2) row_gradient(const T *x, const T *dy, const T *other, const float *beta, const float *gamma,
             const float *mean, const float *inverse_deviation, T *dx, float *dgamma, float *dbeta, int rectifier, const float *partials,
             int channels, int rows, int per, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, dy, other, 0, beta, gamma, mean, inverse_deviation, dx, 0, dgamma, dbeta, rectifier};
    Rows r = {channels, rows, per, lanes};
    if (beta) {
        BY_ROW_WIDTH(gradient_of_rows, MaskedBy<X>(b), partials, r, scratch);
    } else {
        BY_ROW_WIDTH(gradient_of_rows, MaskedBy<NOTHING>(b), partials, r, scratch);
    }
}

template <int V, int SOURCE> DEVICE void gradient_of_held_rows(const MaskedBy<SOURCE> &b, const Rows &r, float *scratch) {
    const int HELD = HELD_IN_ROWS;
    Bundle<V> g[HELD], values[HELD];
    float mean[V], slope[V], shift[V], sum_g[V], sum_gx[V];
    load_affine(b, r, mean, slope, shift);
#pragma unroll
    for (int i = 0; i < V; i++) sum_g[i] = sum_gx[i] = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; k += AT_ONCE) {
        i64 at[AT_ONCE];
        places<V>(r, r.line() + k * r.lines(), at);
        b.load_all(at, r.spare<V>(), g + k, values + k, mean, slope, shift, 1);
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

KERNEL __launch_bounds__(512) row_gradient_held(const T *x, const T *dy, const T *other, const T *y, const float *beta,
                  const float *gamma, const float *mean, const float *inverse_deviation, T *dx, T *passed, float *dgamma, float *dbeta, int rectifier,
                  int channels, int rows, int lanes, int width) {
    __shared__ float scratch[COLUMN_SCRATCH];
    Backward b = {x, dy, other, y, beta, gamma, mean, inverse_deviation, dx, passed, dgamma, dbeta, rectifier};
    Rows r = {channels, rows, rows, lanes};
    if (y) {
        BY_ROW_WIDTH(gradient_of_held_rows, MaskedBy<Y>(b), r, scratch);
    } else if (beta) {
        BY_ROW_WIDTH(gradient_of_held_rows, MaskedBy<X>(b), r, scratch);
    } else {
        BY_ROW_WIDTH(gradient_of_held_rows, MaskedBy<NOTHING>(b), r, scratch);
    }
}
