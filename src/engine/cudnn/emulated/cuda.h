// The part of CUDA's language that batchstep's kernels use, for a CPU: fiber.h and what stands here are put in front of
// prelude.cuh, and the whole is compiled as C++.

#define EMULATED 1
#define KERNEL static void
#define DEVICE static inline
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

static inline void __syncthreads() { emulated::barrier(); }
static inline void __syncwarp(unsigned = ~0u) { emulated::exchange(0); }

template <class V> static V __shfl_xor_sync(unsigned, V value, int mask, int width = 32) {
    const unsigned long long *values = emulated::exchange(emulated::to_bits(value));
    int lane = emulated::current % 32, from = lane ^ mask;
    return from / width == lane / width ? emulated::from_lane<V>(values, from) : value;
}
template <class V> static V __shfl_down_sync(unsigned, V value, unsigned delta, int width = 32) {
    const unsigned long long *values = emulated::exchange(emulated::to_bits(value));
    int lane = emulated::current % 32, from = lane + (int)delta;
    return from / width == lane / width ? emulated::from_lane<V>(values, from) : value;
}
template <class V> static V __shfl_up_sync(unsigned, V value, unsigned delta, int width = 32) {
    const unsigned long long *values = emulated::exchange(emulated::to_bits(value));
    int lane = emulated::current % 32, from = lane - (int)delta;
    return from >= lane / width * width ? emulated::from_lane<V>(values, from) : value;
}
template <class V> static V __shfl_sync(unsigned, V value, int source, int width = 32) {
    const unsigned long long *values = emulated::exchange(emulated::to_bits(value));
    int lane = emulated::current % 32;
    return emulated::from_lane<V>(values, lane / width * width + (source & (width - 1)));
}
static inline unsigned __ballot_sync(unsigned, int predicate) {
    const unsigned long long *values = emulated::exchange(predicate != 0);
    int base = emulated::current / 32 * 32;
    unsigned ballot = 0;
    for (int i = 0; i < 32 && base + i < emulated::threads; i++) ballot |= (unsigned)values[i] << i;
    return ballot;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }

template <class A, class B> static A bits_as(B from) {
    static_assert(sizeof(A) == sizeof(B), "");
    A to;
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
static inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
static inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
static inline int __float_as_int(float x) { return bits_as<int>(x); }
static inline float __int_as_float(int x) { return bits_as<float>(x); }

template <class V> static V __ldg(const V *p) { return *p; }
template <class V> static V __ldcs(const V *p) { return *p; }
template <class V> static void __stcs(V *p, V x) { *p = x; }

template <class V> static V min(V a, V b) { return b < a ? b : a; }
template <class V> static V max(V a, V b) { return a < b ? b : a; }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
// The C library has declarations of these names.
#define __expf expf
#define __logf logf
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __frcp_rn(float a) { return 1.0f / a; }

static inline float emulated_half_to_float(unsigned short half) {
    unsigned sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31) return __uint_as_float(sign | 0x7F800000u | fraction << 13);
    if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction / 16777216.0f;
    return sign ? -small : small;
}

// To the nearest, ties to even.
static inline unsigned short emulated_float_to_half(float x) {
    unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return 0x7FFF;
    if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
    // Below the least normal number the sum's last bit is that of the half.
    if (magnitude < 0x38800000u) return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3F000000u);
    unsigned rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);
    return sign | (rounded - 0x38000000u) >> 13;
}

template <class V> static V *emulated_shared() { return reinterpret_cast<V *>(emulated::dynamic_shared); }
