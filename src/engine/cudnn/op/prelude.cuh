// What every kernel of batchstep may use. It precedes each operator's kernels, which are compiled three times, with
// ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 defined: by NVRTC for a GPU, and, in tests, by a C++ compiler for the CPU (EMULATED
// is then defined as well, and emulated/cuda.h provides the names of CUDA).
//
// No header of the CUDA toolkit is needed, since the wheels of NVRTC do not contain them.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef EMULATED
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ __forceinline__
#endif
// For members of a struct: the emulator's DEVICE is static, which they must not be.
#define METHOD __device__ __forceinline__

// T is the element type of activations and working weights; arithmetic is in float.
#if defined(ELEMENT_F32)
typedef float T;
DEVICE float to_float(T x) { return x; }
DEVICE T from_float(float x) { return x; }
#elif defined(ELEMENT_F16)
struct T { u16 bits; };
#ifdef EMULATED
DEVICE float to_float(T x) { return emulated_half_to_float(x.bits); }
DEVICE T from_float(float x) { return T{emulated_float_to_half(x)}; }
#else
DEVICE float to_float(T x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
DEVICE T from_float(float x) { T y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }
#endif
#elif defined(ELEMENT_BF16)
struct T { u16 bits; };
DEVICE float to_float(T x) { return __uint_as_float((u32)x.bits << 16); }
// To the nearest, ties to even; a NaN stays one. The instruction for it exists from compute capability 8.0 on.
#if !defined(EMULATED) && __CUDA_ARCH__ >= 800
DEVICE T from_float(float x) { T y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); return y; }
#else
DEVICE T from_float(float x) {
    u32 bits = __float_as_uint(x);
    u32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    T y;
    y.bits = (u16)(x != x ? 0x7FC0u : rounded);
    return y;
}
#endif
#endif

// V neighbours, moved by one instruction; their address must be a multiple of their size.
template <int V> struct alignas(V * sizeof(T)) Bundle { T v[V]; };
template <int V> DEVICE Bundle<V> load(const T *p) { return *reinterpret_cast<const Bundle<V> *>(p); }
template <int V> DEVICE void store(T *p, const Bundle<V> &x) { *reinterpret_cast<Bundle<V> *>(p) = x; }

// Sixteen bytes of T, the most that one instruction moves.
const int PACK = 16 / (int)sizeof(T);
typedef Bundle<PACK> Pack;

// A function's instance for bundles of `width` neighbours: PACK, 4 or 1.
#define BY_WIDTH(function, ...)                     \
    if (width == PACK) function<PACK>(__VA_ARGS__); \
    else if (width == 4) function<4>(__VA_ARGS__);  \
    else function<1>(__VA_ARGS__)

// The numbers are those of op/rectifier.rs.
const int IDENTITY = 0, RELU = 1, RELU6 = 2;
DEVICE float rectify(float x, int rectifier) {
    if (rectifier == IDENTITY) return x;
    // The comparison preserves a NaN, as PyTorch's does.
    x = x < 0.0f ? 0.0f : x;
    return rectifier == RELU6 && x > 6.0f ? 6.0f : x;
}
// Whether a gradient passes, judged by the output.
DEVICE bool passes(float y, int rectifier) {
    return rectifier == IDENTITY || (y > 0.0f && (rectifier == RELU || y < 6.0f));
}

// The output function of SplitMix64; random.rs defines the sequences built from it.
DEVICE u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
const u64 GOLDEN = 0x9E3779B97F4A7C15ull;

DEVICE float warp_sum(float x) {
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, lane);
    return x;
}

// The sum over a one-dimensional block of whole warps, in every thread of it; `scratch` is 32 floats of shared memory.
// Its order is fixed. It may be called again at once with the same scratch.
DEVICE float block_sum(float x, float *scratch) {
    x = warp_sum(x);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) scratch[warp] = x;
    __syncthreads();
    x = lane < (int)(blockDim.x / 32) ? scratch[lane] : 0.0f;
    x = warp_sum(x);
    __syncthreads();
    return x;
}
