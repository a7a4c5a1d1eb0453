// The initial values of a training: parameters, inputs and targets. A value is a hash of a key and of the value's index
// (random.rs), so it depends neither on where it is stored nor on which thread computes it.

// 64 random bits: Stream::bits.
DEVICE u64 bits(u64 key, u64 index) { return mix(key + (index + 1) * GOLDEN); }

// Uniform on [0, 1): Stream::uniform.
DEVICE float uniform(u64 key, u64 index) { return (float)(int)(bits(key, index) >> 40) * (1.0f / 16777216.0f); }

DEVICE i64 own() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

// The index in examples x C x positions of the element that lies at `at`, where they lie examples x positions x C.
DEVICE i64 logical(i64 at, int channels, int positions, int channels_last) {
    if (!channels_last) return at;
    i64 place = at / channels;
    return (place / positions * channels + at % channels) * positions + place % positions;
}

// engine/cpu/parameters.rs: Fill::Uniform, on [-limit, limit).
KERNEL weights(float *dst, T *working, i64 count, u64 key, float limit, int channels, int positions, int channels_last) {
    i64 at = own();
    if (at >= count) return;
    float value = (2.0f * uniform(key, logical(at, channels, positions, channels_last)) - 1.0f) * limit;
    dst[at] = value;
    if (working) working[at] = from_float(value);
}

KERNEL inputs(T *dst, i64 count, u64 key, int channels, int positions, int channels_last) {
    i64 at = own();
    if (at < count) dst[at] = from_float(uniform(key, logical(at, channels, positions, channels_last)));
}

KERNEL one_hot(float *dst, i64 count, int classes, u64 key) {
    i64 at = own();
    if (at < count) dst[at] = bits(key, at / classes) % classes == at % classes ? 1.0f : 0.0f;
}

KERNEL uniform_targets(float *dst, i64 count, u64 key) {
    i64 at = own();
    if (at < count) dst[at] = uniform(key, at);
}

// Points of a grid of `side` x `side` on [-3, 3]^2, two numbers each: Point::of in engine/data.rs.
DEVICE float along(i64 place, int side) { return (float)(6.0 * (double)place / (double)(side > 1 ? side - 1 : 1) - 3.0); }

KERNEL points(T *dst, i64 count, int side) {
    i64 at = own();
    if (at < count) dst[at] = from_float(along(at % 2 ? at / 2 / side : at / 2 % side, side));
}

// The surface `peaks` there, in double precision: Point::height.
KERNEL heights(float *dst, i64 count, int side) {
    i64 at = own();
    if (at >= count) return;
    double x = along(at % side, side), y = along(at / side, side);
    double first = 3.0 * (1.0 - x) * (1.0 - x) * exp(-x * x - (y + 1.0) * (y + 1.0));
    double second = 10.0 * (x / 5.0 - x * x * x - y * y * y * y * y) * exp(-x * x - y * y);
    dst[at] = (float)(first - second - exp(-(x + 1.0) * (x + 1.0) - y * y) / 3.0);
}

KERNEL fill(float *dst, i64 count, float value) {
    i64 at = own();
    if (at < count) dst[at] = value;
}
