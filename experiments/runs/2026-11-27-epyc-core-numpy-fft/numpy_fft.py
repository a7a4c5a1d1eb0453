# A real FFT in NumPy of one length after the other, as they are and padded to the next length without prime factors above 5.
#   batchstep run examples/own/numpy_fft.toml
import numpy as np


def fast(length):
    while True:
        rest = length
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 1


def step(length, padded=False):
    x = np.random.rand(64, length)
    n = fast(length) if padded else length
    return lambda: np.fft.rfft(x, n)
