# Three dense layers in Flax. JAX compiles for each batch size, once.
#   batchstep run examples/own/jax_mlp.py --batch-size 1..=70
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = nn.relu(nn.Dense(512)(x))
        return nn.Dense(512)(x)


net, optimizer = Net(), optax.sgd(1e-3)
parameters = net.init(jax.random.key(0), jnp.zeros((1, 192)))
state = optimizer.init(parameters)


@jax.jit
def update(parameters, state, x, y):
    loss = lambda p: optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), y).mean()
    value, gradients = jax.value_and_grad(loss)(parameters)
    updates, state = optimizer.update(gradients, state)
    return value, optax.apply_updates(parameters, updates), state


def step(batch_size):
    x = jax.random.uniform(jax.random.key(1), (batch_size, 192))
    y = jnp.arange(batch_size) % 512
    return lambda: update(parameters, state, x, y)  # what is given back is waited for
