# Three dense layers in Keras on TensorFlow.
#   batchstep run examples/own/keras_mlp.py --batch-size 1..=70
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras.layers import Dense

model = keras.Sequential([keras.Input((192,)), Dense(512, activation="relu"), Dense(512, activation="relu"), Dense(512, activation="softmax")])
model.compile(optimizer=keras.optimizers.SGD(1e-3), loss="categorical_crossentropy")


def step(batch_size):
    x = np.random.rand(batch_size, 192).astype("float32")
    y = keras.utils.to_categorical(np.random.randint(512, size=batch_size), 512)
    return lambda: model.train_on_batch(x, y)
