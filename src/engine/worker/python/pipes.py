"""A process that runs steps for batchstep; the other end of src/engine/worker/process.rs.

One line of JSON comes in on stdin for each request, one line goes out on stdout for each answer, and nothing else does:
whatever is printed goes to stderr. It ends with its stdin. src/device/interpreter.rs keeps its imports out of the working
folder.

Two programs are made of this folder and one more, by joining files of one noun in the order that the Rust side names:
src/engine/torch/worker executes batchstep's own networks with PyTorch, src/engine/own/worker the step of a person's file.
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


def leave_to_parent():
    """In a child that is forked: it neither answers in its parent's place, nor holds the pipes open once the parent is gone.
    A child that starts another program does not hand them on at all."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for pipe in (REQUESTS, ANSWERS):
        os.dup2(nowhere, pipe.fileno(), inheritable=False)
    os.close(nowhere)


# In a process that is somebody's own, as a notebook is, there are pipes beside its own, and its end is its own affair.
REQUESTS = ANSWERS = None
if __name__ == "__main__":
    REQUESTS, ANSWERS = private_pipes()
    end_with_parent()


class Refusal(Exception):
    """An error for batchstep to report: the kind, one clause, and what to do where that is known here."""

    def __init__(self, kind, what, help=None):
        super().__init__(what)
        self.kind, self.help = kind, help
