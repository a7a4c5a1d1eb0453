// The forward pass of a depthwise convolution, with the helpers of kernel.cu.

template <int R, int S, int STRIDE, int TH, int TW, int V>
DEVICE void forward_tile(const T *x, const T *w, T *y, const Sizes &s) {
    const int COLUMNS = (TW - 1) * STRIDE + S;
    int rows = divide_up(s.out_height, TH), columns = divide_up(s.out_width, TW);
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)s.batch * (s.channels / V) * rows * columns) return;
    Place place(s, (u32)tile, rows, columns, V);
    float weights[R * S][V], sums[TH][TW][V];
    load_weights(w, s, place.channel, weights);
#pragma unroll
    for (int i = 0; i < TH * TW * V; i++) sums[i / (TW * V)][i / V % TW][i % V] = 0.0f;

    int top = place.row * TH * STRIDE - s.top, left = place.column * TW * STRIDE - s.left;
    typename StripOf<const T, COLUMNS, TW, V>::Type from(x, s, place.image, place.channel, {top, left, s.height, s.width});
#pragma unroll
    for (int row = 0; row < (TH - 1) * STRIDE + R; row++) {
        float values[COLUMNS][V];
        from.load(row, values);
#pragma unroll
        for (int i = 0; i < TH; i++) {
            int r = row - i * STRIDE;
            if (r < 0 || r >= R) continue;
#pragma unroll
            for (int j = 0; j < TW; j++) {
#pragma unroll
                for (int tap = 0; tap < S; tap++) {
#pragma unroll
                    for (int v = 0; v < V; v++) sums[i][j][v] += weights[r * S + tap][v] * values[j * STRIDE + tap][v];
                }
            }
        }
    }

    Corner corner = {place.row * TH, place.column * TW, s.out_height, s.out_width};
    typename StripOf<T, TW, TW, V>::Type to(y, s, place.image, place.channel, corner);
#pragma unroll
    for (int i = 0; i < TH; i++) to.store(i, sums[i]);
}

KERNEL __launch_bounds__(128) forward_3x3(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 3, 3, 1, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_3x3_wide(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                               int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_ROW_LENGTH(forward_tile, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_3x3_stride_2(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                                   int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 3, 3, 2, x, w, y, sizes);
}

KERNEL __launch_bounds__(128) forward_5x5(const T *x, const T *w, T *y, int batch, int channels, int height, int width,
                                          int out_height, int out_width, int top, int left, int nhwc) {
    Sizes sizes = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    BY_LAYOUT(forward_tile, 5, 5, 1, x, w, y, sizes);
}

// Any kernel and stride: a thread for each output.
KERNEL forward_any(const T *x, const T *w, T *y, int batch, int channels, int height, int width, int out_height, int out_width,
                   int top, int left, int nhwc, int kernel_height, int kernel_width, int stride_y, int stride_x) {
    Sizes s = {batch, channels, height, width, out_height, out_width, top, left, nhwc};
    i64 tile = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (tile >= (i64)batch * channels * out_height * out_width) return;
    Place place(s, (u32)tile, out_height, out_width, 1);
    const T *from = x + place.image * s.image(height, width) + place.channel * s.plane(height, width);
    int first_row = place.row * stride_y - top, first_column = place.column * stride_x - left;
    float sum = 0.0f;
    for (int r = max(0, -first_row); r < min(kernel_height, height - first_row); r++) {
        for (int c = max(0, -first_column); c < min(kernel_width, width - first_column); c++) {
            float weight = to_float(w[s.weight(place.channel, r * kernel_width + c, kernel_height * kernel_width)]);
            sum += weight * to_float(from[(first_row + r) * s.row(width) + (i64)(first_column + c) * s.column()]);
        }
    }
    y[place.image * s.image(out_height, out_width) + place.channel * s.plane(out_height, out_width) +
      place.row * s.row(out_width) + (i64)place.column * s.column()] = from_float(sum);
}
