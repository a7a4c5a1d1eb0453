// The gradient of a depthwise convolution's input, with the helpers of kernel.cu.

// A tile is TH x TW squares of STRIDE x STRIDE inputs, placed so that the first input of a square lies under tap 0 of
// an output. The compiler then knows which taps reach which input of a square. (`top` and `left` move the squares, so
// the first of them may begin outside the feature map.)
template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void backward_tile(const T *dy, const T *w, T *dx, const Sizes &s) {
    const int BEFORE_Y = (R - 1) / STRIDE, BEFORE_X = (S - 1) / STRIDE, COLUMNS = TW + BEFORE_X;
    int first_y = s.top / STRIDE, first_x = s.left / STRIDE;
    int rows = divide_up(divide_up(s.height + s.top, STRIDE) - first_y, TH);
    int columns = divide_up(divide_up(s.width + s.left, STRIDE) - first_x, TW);
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)s.batch * (s.channels / V) * rows * columns) return;
    Place place(s, (u32)tile, rows, columns, V);
    float weights[R * S][V], sums[TH * STRIDE][TW * STRIDE][V];
    load_weights(w, s, place.channel, weights);
#pragma unroll
    for (int i = 0; i < TH * STRIDE; i++) {
#pragma unroll
        for (int j = 0; j < TW * STRIDE * V; j++) sums[i][j / V][j % V] = 0.0f;
    }

    int top = first_y + place.row * TH, left = first_x + place.column * TW;
    Corner before = {top - BEFORE_Y, left - BEFORE_X, s.out_height, s.out_width};
    typename StripOf<const T, COLUMNS, TW, V>::Type from(dy, s, place.image, place.channel, before);
#pragma unroll
    for (int row = 0; row < TH + BEFORE_Y; row++) {
        float values[COLUMNS][V];
        from.load(row, values);
        // Tap r of this row of outputs reaches row i of the tile.
#pragma unroll
        for (int r = 0; r < R; r++) {
            int i = (row - BEFORE_Y) * STRIDE + r;
            if (i < 0 || i >= TH * STRIDE) continue;
#pragma unroll
            for (int column = 0; column < COLUMNS; column++) {
#pragma unroll
                for (int tap = 0; tap < S; tap++) {
                    int j = (column - BEFORE_X) * STRIDE + tap;
                    if (j < 0 || j >= TW * STRIDE) continue;
#pragma unroll
                    for (int v = 0; v < V; v++) sums[i][j][v] += weights[r * S + tap][v] * values[column][v];
                }
            }
        }
    }

    Corner corner = {top * STRIDE - s.top, left * STRIDE - s.left, s.height, s.width};
    typename StripOf<T, TW * STRIDE, TW, V>::Type to(dx, s, place.image, place.channel, corner);
#pragma unroll
    for (int i = 0; i < TH * STRIDE; i++) to.store(i, sums[i]);
}

KERNEL __launch_bounds__(128) backward_3x3(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                           int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(backward_tile, 3, 3, 1, dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_3x3_wide(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                                int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_ROW_LENGTH(backward_tile, dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_3x3_stride_2(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                                    int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    // Squares of four inputs: half as many of them.
    if (nhwc) backward_tile<3, 3, 2, NHWC_TILE / 2, NHWC_TILE / 2, 2>(dy, w, dx, sizes);
    else backward_tile<3, 3, 2, NCHW_STRIDE_2_TILE, 1, 1>(dy, w, dx, sizes);
}

KERNEL __launch_bounds__(128) backward_5x5(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width,
                                           int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(backward_tile, 5, 5, 1, dy, w, dx, sizes);
}

// Any kernel and stride: a thread for each input.
KERNEL backward_any(const T *dy, const T *w, T *dx, int batch, int channels, int height, int width, int out_height, int out_width,
                    int top, int left, int nhwc, int kernel_height, int kernel_width, int stride_y, int stride_x) {
    Sizes s = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)batch * channels * height * width) return;
    Place place(s, (u32)tile, height, width, 1);
    const T *from = dy + place.image * s.image(out_height, out_width) + place.channel * s.plane(out_height, out_width);
    float sum = 0.0f;
    // The tap that reaches the nearest earlier output; then every stride-th tap, whose outputs lie further back.
    for (int r = (place.row + top) % stride_y; r < kernel_height; r += stride_y) {
        int row = (place.row + top - r) / stride_y;
        if (place.row + top < r || row >= out_height) continue;
        for (int c = (place.column + left) % stride_x; c < kernel_width; c += stride_x) {
            int column = (place.column + left - c) / stride_x;
            if (place.column + left < c || column >= out_width) continue;
            float weight = to_float(w[s.weight(place.channel, r * kernel_width + c, kernel_height * kernel_width)]);
            sum += weight * to_float(from[row * s.row(out_width) + (i64)column * s.column()]);
        }
    }
    dx[place.image * s.image(height, width) + place.channel * s.plane(height, width) + place.row * s.row(width) +
       (i64)place.column * s.column()] = from_float(sum);
}
