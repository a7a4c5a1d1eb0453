// Values that are computed once in a step, between the backward pass and the update: the loss, the step's number, the
// factors of the update, and the loss scale.

// The memory that mod.rs calls Scalars.
struct State {
    // Steps whose update was taken. A skipped one is repeated with the same dropout masks.
    u64 step;
    // Powers of Adam's beta1 and beta2, as many as there were updates.
    double power1, power2;
    float loss;
    // For this step's update: Adam's learning rate over the first moment's bias, the reciprocal root of the second
    // moment's, the reciprocal of the loss scale, and 1 where the update is skipped.
    float rate, scale, inverse, skip;
    // For the next step.
    float loss_scale;
    int clean_steps;
    // 1 where a gradient of this step is not finite.
    int found;
};

const double BETA1 = 0.9, BETA2 = 0.999;
// The defaults of torch.amp.GradScaler.
const float INITIAL_SCALE = 65536.0f, GROWTH = 2.0f, BACKOFF = 0.5f;
const int GROWTH_INTERVAL = 2000;

KERNEL reset(State *state) {
    if (threadIdx.x > 0) return;
    State fresh = {};
    fresh.power1 = fresh.power2 = 1.0;
    fresh.loss_scale = INITIAL_SCALE;
    *state = fresh;
}

// Both gradients, a part of them for each thread. All threads that find one write the same value.
KERNEL check_finite(const T *weights, i64 weights_count, const float *others, i64 others_count, State *state) {
    i64 threads = (i64)gridDim.x * blockDim.x, thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    // The difference of a number from itself is 0, and NaN where it is infinite or NaN.
    float sum = 0.0f;
    i64 packs = weights_count / PACK;
    for (i64 i = thread; i < packs; i += threads) {
        Pack x = load<PACK>(weights + i * PACK);
        for (int j = 0; j < PACK; j++) sum += to_float(x.v[j]) - to_float(x.v[j]);
    }
    for (i64 i = packs * PACK + thread; i < weights_count; i += threads) sum += to_float(weights[i]) - to_float(weights[i]);
    for (i64 i = thread; i < others_count; i += threads) sum += others[i] - others[i];
    if (sum != 0.0f) state->found = 1;
}

// One block of 256 threads. `learning_rate` has the bits of a double. `scaling` is 1 where the loss is scaled.
KERNEL advance(const float *row_losses, int rows, u64 learning_rate, int scaling, State *state) {
    __shared__ double sums[256];
    double sum = 0.0;
    for (int i = threadIdx.x; i < rows; i += 256) sum += row_losses[i];
    sums[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x > 0) return;
    State now = *state;
    now.loss = (float)(sums[0] / rows);
    bool skip = scaling && now.found;
    if (!skip) {
        now.step++;
        now.power1 *= BETA1;
        now.power2 *= BETA2;
    }
    // engine/cpu/optimizer/adam.rs; where the very first update is skipped, they are not read.
    now.rate = (float)(__longlong_as_double((i64)learning_rate) / (1.0 - now.power1));
    now.scale = (float)(1.0 / sqrt(1.0 - now.power2));
    now.inverse = scaling ? (float)(1.0 / now.loss_scale) : 1.0f;
    now.skip = skip ? 1.0f : 0.0f;
    now.found = 0;
    if (scaling) {
        now.clean_steps = skip ? 0 : now.clean_steps + 1;
        if (skip) now.loss_scale *= BACKOFF;
        if (now.clean_steps == GROWTH_INTERVAL) {
            float grown = now.loss_scale * GROWTH;
            if (grown - grown == 0.0f) now.loss_scale = grown;
            now.clean_steps = 0;
        }
    }
    *state = now;
}
