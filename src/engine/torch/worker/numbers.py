# The counter-based numbers of crates/batchstep-detect/src/random.rs.

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
PARAMETERS, INPUTS, TARGETS = 1, 2, 3


def mix(word):
    """SplitMix64's output function."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def stream(seed, purpose, *parts):
    """The key of a stream of numbers."""
    key = mix(seed + GOLDEN & WORD)
    for part in (purpose, *parts):
        key = mix(key + part & WORD)
    return key


def signed(word):
    return word - (1 << 64) if word >> 63 else word


def tensor_mix(word):
    """The same on a tensor of int64: its products wrap, and its right shifts must drop the sign."""
    word = (word ^ (word >> 30 & (1 << 34) - 1)).mul_(signed(0xBF58476D1CE4E5B9))
    word = (word ^ (word >> 27 & (1 << 37) - 1)).mul_(signed(0x94D049BB133111EB))
    return word ^ (word >> 31 & (1 << 33) - 1)


def fill_uniform(flat, key, limit=None, first=0):
    """The numbers of a stream from `first` on, uniform on [0, 1) or on [-limit, limit). They are computed in pieces that stay in
    a cache or, on a GPU, keep it busy."""
    piece = 1 << 16 if flat.device.type == "cpu" else 1 << 22
    for start in range(0, flat.numel(), piece):
        part = flat[start : start + piece]
        number = first + start + 1
        index = torch.arange(number, number + part.numel(), device=flat.device)
        word = tensor_mix(index.mul_(signed(GOLDEN)).add_(signed(key)))
        part.copy_(word >> 40 & (1 << 24) - 1).mul_(2.0**-24)
        if limit is not None:
            part.mul_(2.0).sub_(1.0).mul_(limit)
