"""`python -m batchstep`: the program of this package."""

import subprocess
import sys

from ._program import environment, program

sys.exit(subprocess.call([program(), *sys.argv[1:]], env=environment()))
