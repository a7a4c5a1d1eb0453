// The end of each module: EMULATED_ENTRIES lists its kernels, and these functions are what Rust calls.

namespace emulated {
static const Entry entries[] = {EMULATED_ENTRIES{0, 0, 0}};
}

// The letters of a kernel's parameters; null where there is no such kernel.
extern "C" const char *emulated_letters(const char *name) {
    for (const emulated::Entry *entry = emulated::entries; entry->name; entry++) {
        if (!strcmp(entry->name, name)) return entry->letters;
    }
    return 0;
}

// Runs a grid; null, or what went wrong. `size` is the grid, the block and the bytes of dynamic shared memory. Not for
// two callers at once.
extern "C" const char *emulated_launch(const char *name, const unsigned *size, void **args, int reversed) {
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
