// Losses and their gradients in one pass; a block for each example. The gradient is that of the mean over the batch, times
// the loss scale if there is one. Each example's own loss goes to row_losses.

DEVICE float block_max(float x, float *scratch) {
    for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, lane));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) scratch[warp] = x;
    __syncthreads();
    x = lane < (int)(blockDim.x / 32) ? scratch[lane] : -__int_as_float(0x7F800000);
    for (int lane = 16; lane > 0; lane /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, lane));
    __syncthreads();
    return x;
}

// loss = sum(target * (log_sum - (logit - largest))), gradient = (softmax * sum(target) - target) * scale / batch, with log_sum
// = ln(sum(exp(logit - largest))): engine/cpu/op/softmax_cross_entropy.
KERNEL softmax_cross_entropy(const T *logits, const float *targets, T *gradient, float *row_losses, int classes, int batch,
                             const float *loss_scale) {
    __shared__ float scratch[32];
    i64 start = (i64)blockIdx.x * classes;
    logits += start;
    targets += start;
    gradient += start;
    float largest = -__int_as_float(0x7F800000);
    for (int k = threadIdx.x; k < classes; k += blockDim.x) largest = fmaxf(largest, to_float(logits[k]));
    largest = block_max(largest, scratch);
    float sum = 0.0f, mass = 0.0f;
    for (int k = threadIdx.x; k < classes; k += blockDim.x) {
        sum += expf(to_float(logits[k]) - largest);
        mass += targets[k];
    }
    float log_sum = logf(block_sum(sum, scratch));
    mass = block_sum(mass, scratch);
    float scale = (loss_scale ? *loss_scale : 1.0f) / batch;
    float loss = 0.0f;
    for (int k = threadIdx.x; k < classes; k += blockDim.x) {
        float above = to_float(logits[k]) - largest, target = targets[k];
        // A class with target 0 does not count, even where its probability is 0.
        if (target != 0.0f) loss += target * (log_sum - above);
        gradient[k] = from_float((expf(above - log_sum) * mass - target) * scale);
    }
    loss = block_sum(loss, scratch);
    if (threadIdx.x == 0) row_losses[blockIdx.x] = loss;
}

// loss = mean((x - target)^2), gradient = 2 (x - target) / (batch * features) * scale: engine/cpu/op/mean_squared_error.
KERNEL mean_squared_error(const T *x, const float *targets, T *gradient, float *row_losses, int features, int batch,
                          const float *loss_scale) {
    __shared__ float scratch[32];
    i64 start = (i64)blockIdx.x * features;
    float scale = 2.0f * (loss_scale ? *loss_scale : 1.0f) / ((float)batch * features);
    float sum = 0.0f;
    for (int k = threadIdx.x; k < features; k += blockDim.x) {
        float difference = to_float(x[start + k]) - targets[start + k];
        sum += difference * difference;
        gradient[start + k] = from_float(difference * scale);
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) row_losses[blockIdx.x] = sum / features;
}

// loss = mean(max(x, 0) - x * target + ln(1 + exp(-|x|))), gradient = (logistic(x) - target) / (batch * features) * scale:
// engine/cpu/op/binary_cross_entropy.
KERNEL binary_cross_entropy(const T *x, const float *targets, T *gradient, float *row_losses, int features, int batch,
                            const float *loss_scale) {
    __shared__ float scratch[32];
    i64 start = (i64)blockIdx.x * features;
    float scale = (loss_scale ? *loss_scale : 1.0f) / ((float)batch * features);
    float sum = 0.0f;
    for (int k = threadIdx.x; k < features; k += blockDim.x) {
        float logit = to_float(x[start + k]), target = targets[start + k];
        float decay = expf(logit < 0.0f ? logit : -logit);
        sum += fmaxf(logit, 0.0f) - logit * target + logf(1.0f + decay);
        gradient[start + k] = from_float(((logit < 0.0f ? decay : 1.0f) / (1.0f + decay) - target) * scale);
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) row_losses[blockIdx.x] = sum / features;
}
