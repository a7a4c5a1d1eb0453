# A training step of scikit-learn's MLPClassifier: two hidden layers of 256, ten classes.
#   batchstep run examples/own/sklearn_mlp.py --batch-size 1..=70
import numpy as np
from sklearn.neural_network import MLPClassifier

classes = np.arange(10)


def step(batch_size):
    x, y = np.random.rand(batch_size, 192).astype("float32"), np.random.randint(10, size=batch_size)
    model = MLPClassifier((256, 256), solver="sgd", batch_size=batch_size)
    model.partial_fit(x, y, classes=classes)
    return lambda: model.partial_fit(x, y)
