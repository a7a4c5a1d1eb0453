# A product of matrices in NumPy, by the rows of the first one. OpenBLAS has kernels for many processors; OPENBLAS_CORETYPE chooses those of another.
#   batchstep run examples/own/numpy_product.toml
import numpy as np

inner, columns = 512, 512
b = np.random.rand(inner, columns).astype("float32")


def step(rows):
    a = np.random.rand(rows, inner).astype("float32")
    out = np.empty((rows, columns), dtype="float32")
    return lambda: np.matmul(a, b, out=out)
