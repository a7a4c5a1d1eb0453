// Threads of a block as fibers: each has a stack of its own, runs until it must wait for others, and goes on where it
// stopped. Blocks run one after another, so shared memory is static memory.
//
// Beyond CUDA, it is an error here that a thread ends while others of its block wait, and that threads wait at
// different barriers.

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

struct Dim3 { unsigned x, y, z; };
static Dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace emulated {

const int MOST_THREADS = 1024, LANES = 32;
const size_t STACK = 128 * 1024;

enum State : char { UNSTARTED, READY, AT_BARRIER, AT_WARP, RUNNING, ENDED };

struct Warp {
    // Two sets of values: a lane may be at the next exchange already while another has yet to read the last one's.
    unsigned long long values[2][LANES];
    unsigned char parity[LANES];
    int arrived;
};

// A stack that runs one thread after another, as long as none has to wait.
struct Fiber {
    jmp_buf at;
    bool made;
    char *stack;
};

static Fiber fibers[MOST_THREADS];
static int idle[MOST_THREADS], idle_count;
static State states[MOST_THREADS];
static int fiber_of[MOST_THREADS];
static Warp warps[MOST_THREADS / LANES];
static jmp_buf main_at;

static int threads, started, ended, at_barrier, current, current_fiber;
static bool reversed;
static const char *error;
static void (*kernel)(void **);
static void **arguments;
alignas(256) static char dynamic_shared[256 * 1024];

static void place(int thread) {
    current = thread;
    if (threads == (int)blockDim.x) {
        threadIdx = {(unsigned)thread, 0, 0};
        return;
    }
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / (blockDim.x * blockDim.y);
}

static int in_order(int number) { return reversed ? threads - 1 - number : number; }

static void next();

static void body() {
    for (;;) {
        while (!error && started < threads) {
            int thread = in_order(started++);
            place(thread);
            fiber_of[thread] = current_fiber;
            kernel(arguments);
            states[current] = ENDED;
            ended++;
            if (at_barrier) error = "a thread ended while others wait at a barrier";
        }
        idle[idle_count++] = current_fiber;
        if (!_setjmp(fibers[current_fiber].at)) next();
    }
}

static void resume(int fiber) {
    current_fiber = fiber;
    if (fibers[fiber].made) _longjmp(fibers[fiber].at, 1);
    fibers[fiber].made = true;
    // Of one that was left in the middle of a kernel.
    free(fibers[fiber].stack);
    fibers[fiber].stack = static_cast<char *>(malloc(STACK));
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fibers[fiber].stack;
    // Stacks that all begin at the same offset in a page would share a few lines of the cache.
    context.uc_stack.ss_size = STACK - fiber % 256 * 256;
    context.uc_link = 0;
    makecontext(&context, body, 0);
    setcontext(&context);
}

// Goes on with whoever can: a thread that waits no more, the threads that have not begun, or, at the end or in a
// deadlock, the block's caller. It does not return.
static void next() {
    if (error) _longjmp(main_at, 1);
    int thread = current, step = reversed ? -1 : 1;
    for (int i = 0; i < threads; i++) {
        thread += step;
        if (thread == threads) thread = 0;
        if (thread < 0) thread = threads - 1;
        if (states[thread] != READY) continue;
        states[thread] = RUNNING;
        place(thread);
        resume(fiber_of[thread]);
    }
    if (started < threads) resume(idle[--idle_count]);
    _longjmp(main_at, 1);
}

static void wait() {
    if (!_setjmp(fibers[current_fiber].at)) next();
}

static void barrier() {
    if (++at_barrier < threads) {
        if (ended && !error) error = "a thread waits at a barrier that others have passed by";
        states[current] = AT_BARRIER;
        wait();
        return;
    }
    at_barrier = 0;
    for (int i = 0; i < threads; i++) {
        if (i != current) states[i] = READY;
    }
}

// Every lane of the warp gives a value; what comes back are the values of all.
static const unsigned long long *exchange(unsigned long long value) {
    Warp &warp = warps[current / LANES];
    int lane = current % LANES, base = current - lane;
    int lanes = threads - base < LANES ? threads - base : LANES;
    int parity = warp.parity[lane];
    warp.parity[lane] ^= 1;
    warp.values[parity][lane] = value;
    if (++warp.arrived < lanes) {
        states[current] = AT_WARP;
        wait();
    } else {
        warp.arrived = 0;
        for (int i = base; i < base + lanes; i++) {
            if (i != current) states[i] = READY;
        }
    }
    return warp.values[parity];
}

static void run_block() {
    started = ended = at_barrier = 0;
    memset(states, 0, sizeof states);
    memset(warps, 0, sizeof warps);
    for (int i = 0; i < MOST_THREADS; i++) idle[i] = MOST_THREADS - 1 - i;
    idle_count = MOST_THREADS;
    if (!_setjmp(main_at)) resume(idle[--idle_count]);
    if (!error && ended < threads) error = "threads wait for each other at different barriers";
    // A fiber that was left in the middle of a kernel cannot be used again.
    if (error) {
        for (Fiber &fiber : fibers) fiber.made = false;
    }
}

template <class V> unsigned long long to_bits(V value) {
    static_assert(sizeof(V) <= 8, "a shuffle moves 8 bytes at most");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class V> V from_lane(const unsigned long long *values, int lane) {
    V value;
    memcpy(&value, &values[lane], sizeof value);
    return value;
}

} // namespace emulated
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
#define ELEMENT_F32
// What every kernel of batchstep may use. It is put in front of each operator's kernel.cu, which is compiled three times,
// with ELEMENT_F32, ELEMENT_F16 or ELEMENT_BF16 defined: by NVRTC for a GPU, and, in tests, by a C++ compiler for the CPU
// (then EMULATED is defined as well, and the names of CUDA come from emulated/cuda.h).
//
// No header of the CUDA toolkit is needed: the wheels that bring NVRTC do not bring them.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef EMULATED
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ __forceinline__
#endif

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
// To the nearest, ties to even; a NaN stays one. The instruction for it begins with compute capability 8.0.
DEVICE T from_float(float x) {
    u32 bits = __float_as_uint(x);
    u32 rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    T y;
    y.bits = (u16)(x != x ? 0x7FC0u : rounded);
    return y;
}
#endif

// Sixteen bytes of T, moved by one instruction; its address must be a multiple of 16.
const int PACK = 16 / (int)sizeof(T);
struct alignas(16) Pack { T v[16 / sizeof(T)]; };
DEVICE Pack load_pack(const T *p) { return *reinterpret_cast<const Pack *>(p); }
DEVICE void store_pack(T *p, const Pack &x) { *reinterpret_cast<Pack *>(p) = x; }

// op/rectifier.rs has the numbers.
const int IDENTITY = 0, RELU = 1, RELU6 = 2;
DEVICE float rectify(float x, int rectifier) {
    if (rectifier == IDENTITY) return x;
    // The comparison lets a NaN through, as PyTorch's does.
    x = x < 0.0f ? 0.0f : x;
    return rectifier == RELU6 && x > 6.0f ? 6.0f : x;
}
// Whether a gradient passes, from the output.
DEVICE bool passes(float y, int rectifier) {
    return rectifier == IDENTITY || (y > 0.0f && (rectifier == RELU || y < 6.0f));
}

// The output function of SplitMix64; engine/counter.rs has the sequences built from it.
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
// The end of each module: EMULATED_ENTRIES lists its kernels, and these functions are what Rust calls.

namespace emulated {

// The letter of a parameter's type: R const pointer, W pointer, i int, l long long, U unsigned long long, f float.
template <class A> struct Letter { static const char value = '?'; };
template <class A> struct Letter<const A *> { static const char value = 'R'; };
template <class A> struct Letter<A *> { static const char value = 'W'; };
template <class A> struct Letter<const A *__restrict__> { static const char value = 'R'; };
template <class A> struct Letter<A *__restrict__> { static const char value = 'W'; };
template <> struct Letter<int> { static const char value = 'i'; };
template <> struct Letter<long long> { static const char value = 'l'; };
template <> struct Letter<unsigned long long> { static const char value = 'U'; };
template <> struct Letter<float> { static const char value = 'f'; };

template <int... I> struct Indices {};
template <int N, int... I> struct Upto : Upto<N - 1, N - 1, I...> {};
template <int... I> struct Upto<0, I...> { typedef Indices<I...> type; };

template <class F> struct Signature;
template <class... A> struct Signature<void (*)(A...)> {
    static const char *letters() {
        static const char text[] = {Letter<A>::value..., 0};
        return text;
    }
    template <int... I> static void call(void (*function)(A...), void **args, Indices<I...>) {
        function(*static_cast<A *>(args[I])...);
    }
    static void call(void (*function)(A...), void **args) { call(function, args, typename Upto<sizeof...(A)>::type()); }
};

struct Entry {
    const char *name;
    const char *letters;
    void (*call)(void **);
};

} // namespace emulated

// A kernel in the table that ends each module.
#define EMULATED_KERNEL(name) \
    {#name, emulated::Signature<decltype(&name)>::letters(), \
     [](void **args) { emulated::Signature<decltype(&name)>::call(&name, args); }}

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace emulated {
static const Entry entries[] = {EMULATED_ENTRIES{0, 0, 0}};
}

// The letters of a kernel's parameters; null where there is no such kernel.
EXPORTED const char *emulated_letters(const char *name) {
    for (const emulated::Entry *entry = emulated::entries; entry->name; entry++) {
        if (!strcmp(entry->name, name)) return entry->letters;
    }
    return 0;
}

// Runs a grid; null, or what went wrong. `size` is the grid, the block and the bytes of dynamic shared memory. Not for
// two callers at once.
EXPORTED const char *emulated_launch(const char *name, const unsigned *size, void **args, int reversed) {
    using namespace emulated;
    const Entry *entry = entries;
    while (entry->name && strcmp(entry->name, name)) entry++;
    if (!entry->name) return "there is no such kernel";
    gridDim = {size[0], size[1], size[2]};
    blockDim = {size[3], size[4], size[5]};
    unsigned long long blocks = (unsigned long long)size[0] * size[1] * size[2];
    unsigned long long wanted = (unsigned long long)size[3] * size[4] * size[5];
    if (!blocks || size[0] > 0x7FFFFFFFu || size[1] > 65535 || size[2] > 65535) return "no such grid";
    if (!wanted || wanted > MOST_THREADS || size[5] > 64) return "no such block";
    if (size[6] > 48 * 1024) return "more than 48 KiB of dynamic shared memory";
    threads = (int)wanted;
    emulated::reversed = reversed;
    error = 0;
    kernel = entry->call;
    arguments = args;
    for (unsigned long long i = 0; i < blocks && !error; i++) {
        unsigned long long block = reversed ? blocks - 1 - i : i;
        blockIdx = {(unsigned)(block % size[0]), (unsigned)(block / size[0] % size[1]), (unsigned)(block / size[0] / size[1])};
        memset(dynamic_shared, 0xFF, size[6]);
        run_block();
    }
    return error;
}
#include <stdio.h>
int main(){ int n=1000003; float*x=(float*)malloc(n*4); for(int i=0;i<n;i++)x[i]=1; float y[4000]; const float*px=x; float*py=y; void*a[]={&px,&py,&n}; unsigned size[7]={3000,1,1,256,1,1,0};
 for(int r=0;r<2;r++){const char*e=emulated_launch("total",size,a,r); printf("%s %s %g %g\n",emulated_letters("total"),e?e:"ok",y[0],y[999]);}
 void*b[]={&py,&n}; puts(emulated_launch("bad",size,b,0)?:"ok"); puts(emulated_launch("bad2",size,b,0)?:"ok");
 const char*e=emulated_launch("total",size,a,0); printf("%s %g\n",e?e:"ok",y[5]); }
