"""Finds the batch sizes at which a training step suddenly gets slower.

`sweep` measures a step of your own, `jumps` looks for jumps in arrays, `load` reads a run of the program `batchstep`, which comes in the same package and
does all of the work.
"""

from ._findings import Advice, Jump, Kink, Period, Series
from ._program import BatchstepError, program
from ._run import Run, load
from ._search import jumps
from ._sweep import sweep

__all__ = ["Advice", "BatchstepError", "Jump", "Kink", "Period", "Run", "Series", "jumps", "load", "program", "sweep"]
