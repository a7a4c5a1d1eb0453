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
