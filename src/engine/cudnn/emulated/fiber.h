// Threads of a block as fibers: each has a stack of its own, runs until it must wait for others, and continues where it
// stopped. Blocks run one after another, so shared memory is static memory.
//
// Stricter than CUDA, it is an error here if a thread ends while others of its block wait, or if threads wait at different
// barriers.

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

// Switches to what can run: a thread that no longer waits, the threads that have not begun, or, at the end or in a deadlock,
// the block's caller. It does not return.
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

// Every lane of the warp gives a value, and gets the values of all.
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
