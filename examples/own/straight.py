# A step in pure Python that takes time in proportion to its batch, to see what other programs make of it.
#   scripts/under-load target/release/batchstep examples/own/straight_python.toml 100 --seconds 10


def step(batch_size):
    def run():
        total = 0
        for number in range(200 * batch_size):
            total += number
        return total

    return run
