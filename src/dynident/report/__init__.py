"""Pages and terminal tables of results, and plots.

The room can be called: `di.report(fit, "report.html")` writes the HTML report of a fit, see `writing.report`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Report(ModuleType):
    """The room as a function, since its name is the one that everybody looks for."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Write the HTML report of a fit, see `writing.report`."""
        from dynident.report.writing import report

        return report(*args, **options)


sys.modules[__name__].__class__ = _Report
