"""Executes batchstep's training steps with PyTorch; the other end of src/engine/torch/process.rs.

One line of JSON comes in on stdin for each request, one line goes out on stdout for each answer, and nothing else does:
whatever PyTorch prints goes to stderr. A network comes as data and becomes an nn.Module whose forward pass is straight code,
so that neither eager PyTorch nor torch.compile pays for an interpreter. PyTorch gets its best everywhere: in-place
rectifiers, class indices in place of one-hot targets, fused or foreach optimizers, no counters in batch norm, its own
dropout.

It ends with its stdin. src/device/interpreter.rs keeps its imports out of the working folder. The program is cut into files of one noun, which src/engine/torch/process.rs joins: pipes, numbers, network, clock,
layers, feed, step, training, parallel, requests.
"""

import datetime
import gc
import inspect
import json
import math
import os
import re
import sys
import time


def private_pipes():
    """Takes the pipes for this file alone: prints of libraries and of child processes must not get between the answers."""
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return os.fdopen(requests, encoding="utf-8"), os.fdopen(answers, "w", encoding="utf-8")


def end_with_parent():
    """On Linux: a parent that is killed takes this process along, also in the middle of a step."""
    try:
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (AttributeError, OSError):
        pass


REQUESTS, ANSWERS = private_pipes()
end_with_parent()


class Refusal(Exception):
    """An error for batchstep to report: the kind, and one clause."""

    def __init__(self, kind, what):
        super().__init__(what)
        self.kind = kind
