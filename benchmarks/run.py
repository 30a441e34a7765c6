"""All benchmarks: `make bench`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import engine
import equations
import excitation
import main_job
import start_up
import symbolic

if __name__ == "__main__":
    equations.main()
    print()
    engine.main()
    print()
    main_job.main()
    print()
    start_up.main()
    print()
    symbolic.main()
    print()
    excitation.main()
