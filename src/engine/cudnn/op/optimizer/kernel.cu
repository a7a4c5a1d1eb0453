// The update of all parameters in one launch. They lie in two regions of one array of floats: weights, whose gradients are
// of type T and which have a working copy of that type where T is not float, and the others, whose gradients are floats. A
// thread takes sixteen bytes of gradients; the elements left over at a region's end have a thread each.
//
// Rules, constants and the order of operations are those of engine/cpu/optimizer.

// `factors` is that of op/advance/mod.rs.
const int RATE = 0, SCALE = 1, INVERSE = 2, SKIP = 3;

template <int N> struct alignas(N % 4 == 0 ? 16 : 4) Floats { float v[N]; };

template <int N> DEVICE Floats<N> load_floats(const float *p) { return *reinterpret_cast<const Floats<N> *>(p); }
template <int N> DEVICE void store_floats(float *p, const Floats<N> &x) { *reinterpret_cast<Floats<N> *>(p) = x; }

// N parameters from `at` on, whose gradients are in `g` already. A state that the rule lacks is null.
template <int N, class Rule>
DEVICE void apply(const Rule &rule, float *master, float *a, float *b, T *working, i64 at, const Floats<N> &g, float inverse) {
    Floats<N> w = load_floats<N>(master + at), first, second;
    if (Rule::STATES > 0) first = load_floats<N>(a + at);
    if (Rule::STATES > 1) second = load_floats<N>(b + at);
    for (int j = 0; j < N; j++) rule.update(w.v[j], g.v[j] * inverse, first.v[j], second.v[j]);
    store_floats<N>(master + at, w);
    if (Rule::STATES > 0) store_floats<N>(a + at, first);
    if (Rule::STATES > 1) store_floats<N>(b + at, second);
    if (!working) return;
    if (N == PACK) {
        Pack copy;
        for (int j = 0; j < N; j++) copy.v[j] = from_float(w.v[j]);
        store(working + at, copy);
    } else {
        working[at] = from_float(w.v[0]);
    }
}

template <class Rule>
DEVICE void update(const Rule &rule, i64 weights, i64 others, float *master, const T *gradients_weights,
                   const float *gradients_others, float *a, float *b, T *working, const float *factors) {
    if (factors[SKIP] != 0.0f) return;
    float inverse = factors[INVERSE];
    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < weights / PACK) {
        Pack pack = load<PACK>(gradients_weights + i * PACK);
        Floats<PACK> g;
        for (int j = 0; j < PACK; j++) g.v[j] = to_float(pack.v[j]);
        apply<PACK>(rule, master, a, b, working, i * PACK, g, inverse);
        return;
    }
    i -= weights / PACK;
    if (i < weights % PACK) {
        i64 at = weights - weights % PACK + i;
        Floats<1> g = {{to_float(gradients_weights[at])}};
        apply<1>(rule, master, a, b, working, at, g, inverse);
        return;
    }
    i -= weights % PACK;
    // The others have no working copy; their alignment depends on the number of weights.
    i64 fours = weights % 4 == 0 ? others / 4 : 0;
    if (i < fours) {
        apply<4>(rule, master, a, b, nullptr, weights + i * 4, load_floats<4>(gradients_others + i * 4), inverse);
        return;
    }
    i += fours * 3;
    if (i < others) {
        Floats<1> g = {{gradients_others[i]}};
        apply<1>(rule, master, a, b, nullptr, weights + i, g, inverse);
    }
}

struct Sgd {
    static const int STATES = 0;
    float rate;
    METHOD void update(float &w, float g, float &, float &) const { w = w - rate * g; }
};

struct Momentum {
    static const int STATES = 1;
    float rate;
    METHOD void update(float &w, float g, float &velocity, float &) const {
        velocity = 0.9f * velocity + g;
        w = w - rate * velocity;
    }
};

struct RmsProp {
    static const int STATES = 1;
    float rate;
    METHOD void update(float &w, float g, float &square, float &) const {
        square = 0.99f * square + (float)(1.0 - 0.99) * g * g;
        w = w - rate * g / (sqrtf(square) + 1e-8f);
    }
};

struct Adam {
    static const int STATES = 2;
    // 1 - learning rate x weight decay.
    float kept;
    float rate, scale;
    METHOD void update(float &w, float g, float &mean, float &square) const {
        mean = mean + (float)(1.0 - 0.9) * (g - mean);
        square = 0.999f * square + (float)(1.0 - 0.999) * g * g;
        w = w * kept - rate * mean / (sqrtf(square) * scale + 1e-8f);
    }
};

KERNEL sgd(i64 weights, i64 others, float *master, const T *gradients_weights, const float *gradients_others, T *working,
           const float *factors, float rate) {
    Sgd rule = {rate};
    update(rule, weights, others, master, gradients_weights, gradients_others, nullptr, nullptr, working, factors);
}

KERNEL momentum(i64 weights, i64 others, float *master, const T *gradients_weights, const float *gradients_others,
                T *working, const float *factors, float rate, float *velocity) {
    Momentum rule = {rate};
    update(rule, weights, others, master, gradients_weights, gradients_others, velocity, nullptr, working, factors);
}

KERNEL rmsprop(i64 weights, i64 others, float *master, const T *gradients_weights, const float *gradients_others,
               T *working, const float *factors, float rate, float *square) {
    RmsProp rule = {rate};
    update(rule, weights, others, master, gradients_weights, gradients_others, square, nullptr, working, factors);
}

KERNEL adam(i64 weights, i64 others, float *master, const T *gradients_weights, const float *gradients_others, T *working,
            const float *factors, float kept, float *mean, float *square) {
    Adam rule = {kept, factors[RATE], factors[SCALE]};
    update(rule, weights, others, master, gradients_weights, gradients_others, mean, square, working, factors);
}
