// The part of CUDA that batchstep's kernels use, for a CPU: what stands here is put in front of prelude.cuh, and the
// whole is compiled as C++. Threads of a block are fibers: each has a stack of its own, runs until it must wait for
// others, and goes on where it stopped. Blocks run one after another, so shared memory is static memory.
//
// Beyond CUDA, it is an error here that a thread ends while others of its block wait, and that threads wait at
// different barriers.

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

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

struct Dim3 { unsigned x, y, z; };
static Dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

// ---- Fibers ----

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
static ucontext_t main_context;

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
    fibers[fiber].stack = static_cast<char *>(malloc(STACK));
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fibers[fiber].stack;
    // Stacks that all begin at the same offset in a page would share a few lines of the cache.
    context.uc_stack.ss_size = STACK - fiber % 256 * 256;
    context.uc_link = &main_context;
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

// ---- Arguments ----

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

// ---- What kernels call ----

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
