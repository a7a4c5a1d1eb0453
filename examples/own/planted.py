# A step without any framework whose time is known beforehand, to see what batchstep finds: it jumps after 16 and 32.
#   batchstep run examples/own/planted.py --batch-size 1..=40
import time


def step(batch_size, extra=0):
    """`extra`: milliseconds that every size takes longer."""
    seconds = 0.2e-3 + 0.005e-3 * batch_size + 0.15e-3 * ((batch_size - 1) // 16) + extra * 1e-3

    def run():
        # By this thread's own processor time, so that other programs do not shift it.
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    return run
