# The step of the study of 2022: Keras' VGG16 from scratch, RMSprop, cross-entropy, the batch in host memory.
#   batchstep run examples/own/vgg16_2022.py --batch-size 1..=70
import keras
import numpy as np

model = keras.applications.VGG16(weights=None, classes=1000)
model.compile(optimizer=keras.optimizers.RMSprop(1e-4), loss="categorical_crossentropy")


def step(batch_size):
    x = np.random.rand(batch_size, 224, 224, 3).astype("float32")
    y = keras.utils.to_categorical(np.random.randint(1000, size=batch_size), 1000)
    return lambda: model.train_on_batch(x, y)
