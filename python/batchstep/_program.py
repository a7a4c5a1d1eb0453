"""The program, and how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence


class BatchstepError(RuntimeError):
    """What the program refused, in its words: what, where, and what to do."""


def program() -> str:
    """The path of the program: that of this environment, else the first on the search path.

    Raises BatchstepError where there is none.
    """
    own = os.path.join(sysconfig.get_path("scripts"), "batchstep")
    found = own if os.path.isfile(own) else shutil.which("batchstep")
    if found is None:
        raise BatchstepError(f"the program batchstep is neither at {own} nor on the search path; reinstall the package")
    return found


def environment() -> dict[str, str]:
    """That of the program: it runs a file with the Python that runs this, unless the caller names another."""
    return {**({"BATCHSTEP_PYTHON": sys.executable} if sys.executable else {}), **os.environ}


def output_of(arguments: Sequence[str]) -> str:
    """What the program prints. Its exit code 1 (done, with warnings) is no error."""
    done = subprocess.run([program(), *arguments], capture_output=True, text=True, check=False, env=environment())
    if done.returncode not in (0, 1):
        raise BatchstepError(done.stderr.strip() or f"batchstep ended with code {done.returncode}")
    return done.stdout
