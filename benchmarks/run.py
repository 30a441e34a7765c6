"""All benchmarks: `make bench`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# One thread: a ratio per core does not depend on how many cores the machine has.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import equations
import start_up

if __name__ == "__main__":
    equations.main()
    print()
    start_up.main()
