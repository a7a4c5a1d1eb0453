// Batch normalisation in training mode. mod.rs has the formulas and the purpose of each kernel.
//
// Planes (planes.cu, planes_gradient.cu): a channel is one run of `positions` numbers in each image (NCHW). Rows (rows.cu,
// rows_gradient.cu): a channel is one column of a matrix of `channels` columns (NHWC, and flat features). Numbers move in
// bundles of `width` neighbours: on planes PACK, 4 or 1; on rows 4 or 1, since a thread has some floats for each of its
// channels.
//
// Where there are two launches, the second one reads the numbers from the end, since those that the first one read last are
// still in the cache.
//
// Sums of squares are taken about a pivot, a value of the same channel, since mean(x^2) - mean(x)^2 loses all digits
// where the mean is far from 0. Blocks' means and squares are combined as in Chan, Golub, LeVeque, "Updating formulae and
// a pairwise algorithm for computing sample variances", 1979.

// Bundles that a thread of a `held` kernel loads at once.
const int AT_ONCE = 2;

// The normalised number before residual and rectifier. The backward pass recomputes it to know what the rectifier let through,
// so both must use the same operations.
DEVICE float affine(float x, float mean, float slope, float shift) { return fmaf(x - mean, slope, shift); }

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

    // Done by one thread for each channel.
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
        float value = affine(to_float(x.v[i]), mean[i * step], slope[i * step], shift[i * step]);
        if (f.residual) value += to_float(residual.v[i]);
        y.v[i] = from_float(rectify(value, f.rectifier));
    }
    return y;
}

struct Backward {
    const T *x, *dy, *other, *y;
    const float *beta, *gamma, *mean, *inverse_deviation;
    // The gradient after the rectifier's mask goes to `passed`.
    T *dx, *passed;
    float *dgamma, *dbeta;
    int rectifier;

    METHOD float slope_of(int channel) const { return gamma[channel] * inverse_deviation[channel]; }
};

// What the rectifier's mask is computed from: nothing, where there is no rectifier; y; or, where no residual was added, x,
// which saves a pass over memory. Known at compile time, since the registers of all three would be too many.
const int NOTHING = 0, X = 1, Y = 2;

template <int SOURCE> struct MaskedBy : Backward {
    METHOD MaskedBy(const Backward &b) : Backward(b) {}

    METHOD float shift_of(int channel) const { return SOURCE == X ? beta[channel] : 0.0f; }

    // The gradients at `at` that pass the rectifier, and x there. Places below 0 are left out: values are loaded for them from
    // `spare`, a place of the block's own, and not used. No load waits for another.
    template <int V, int U>
    METHOD void load_all(const i64 (&at)[U], i64 spare, Bundle<V> *g, Bundle<V> *values, const float *mean, const float *slope,
                         const float *shift, int step) const {
        Bundle<V> second[U], output[U];
#pragma unroll
        for (int k = 0; k < U; k++) {
            i64 here = at[k] < 0 ? spare : at[k];
            g[k] = load<V>(dy + here);
            values[k] = load<V>(x + here);
            if (SOURCE == Y) output[k] = load<V>(y + here);
        }
        if (other) {
#pragma unroll
            for (int k = 0; k < U; k++) second[k] = load<V>(other + (at[k] < 0 ? spare : at[k]));
        }
#pragma unroll
        for (int k = 0; k < U; k++) {
#pragma unroll
            for (int i = 0; i < V; i++) {
                // Rounded, so that the result is the same as if the sum had been stored.
                if (other) g[k].v[i] = from_float(to_float(g[k].v[i]) + to_float(second[k].v[i]));
                if (SOURCE == NOTHING) continue;
                if (SOURCE == X) {
                    float value = affine(to_float(values[k].v[i]), mean[i * step], slope[i * step], shift[i * step]);
                    output[k].v[i] = from_float(rectify(value, rectifier));
                }
                if (!passes(to_float(output[k].v[i]), rectifier)) g[k].v[i] = from_float(0.0f);
            }
        }
    }
};

// The terms of the gradient of x: slope * (g - mean_g - (x - mean) * towards_mean).
struct Slope {
    float mean, slope, mean_g, towards_mean;
    METHOD Slope() {}
    METHOD Slope(const Backward &b, int channel, float sum_g, float sum_gx, float count) {
        float inverse = b.inverse_deviation[channel];
        mean = b.mean[channel];
        slope = b.slope_of(channel);
        mean_g = sum_g / count;
        towards_mean = inverse * inverse * sum_gx / count;
    }
    METHOD T of(T g, T x) const {
        return from_float(slope * (to_float(g) - mean_g - (to_float(x) - mean) * towards_mean));
    }
};
