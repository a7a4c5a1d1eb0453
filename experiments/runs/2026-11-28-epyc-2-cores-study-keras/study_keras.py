# The study of 2022 in its own framework: Keras' VGG16, VGG19, MobileNet and ResNet50 from scratch, RMSprop, cross-entropy, the batch in host memory.
#   batchstep run experiments/study_keras.toml
# On a GPU that is the study; on two CPU cores, with images of 32x32:
#   batchstep run experiments/study_keras_cpu.toml
# BATCHSTEP_PYTHON names a Python with keras and tensorflow (or KERAS_BACKEND=torch or jax, and that).
import keras
import numpy as np

CLASSES = 1000
models = {}


def model_of(name, side):
    """Each is made once for each process, as its weights take up to 0.6 GB."""
    if (name, side) not in models:
        model = getattr(keras.applications, name)(weights=None, classes=CLASSES, input_shape=(side, side, 3))
        model.compile(optimizer=keras.optimizers.RMSprop(1e-4), loss="categorical_crossentropy")
        models[name, side] = model
    return models[name, side]


def step(batch_size, model="VGG16", side=224):
    network = model_of(model, side)
    x = np.random.rand(batch_size, side, side, 3).astype("float32")
    y = keras.utils.to_categorical(np.random.randint(CLASSES, size=batch_size), CLASSES)
    return lambda: network.train_on_batch(x, y)
