"""`dynident payload`: what the tool carries, from loaded runs of an identified robot."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynident.estimate.payload import PayloadEstimate


def run_payload(options: Namespace) -> int:
    """`dynident payload`.

    Args:
        options: fit; logs (loaded); unloaded (a list, may be empty); session; band; columns and window, which hold for
            all logs; json.
    """
    from dynident.estimate.payload import identify_payload
    from dynident.estimate.storage import load_fit
    from dynident.run.shared import check_positive, logs_of

    check_positive(options.band, "--band")
    fit = load_fit(options.fit)
    loaded = logs_of(options.logs, fit.robot, options, "validation")
    unloaded = logs_of(options.unloaded, fit.robot, options, "validation")
    found = identify_payload(fit, loaded, unloaded=unloaded, session=options.session, band=options.band)
    if options.json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        _print(found, fit.robot.name)
    return 0


def _print(found: PayloadEstimate, robot: str) -> None:
    """The page an engineer reads."""
    from dynident.report.prose import print_prose

    how = {
        "loaded": f"from loaded runs of {robot} as identified",
        "joint": f"from loaded and unloaded runs of {robot} together",
    }
    print(f"Payload {how[found.method]}\n")
    print(found.table())
    print_prose("\nIn the tool frame; inertia about the centre of mass, entries of the matrix with their sign.")
    for note in found.notes:
        print_prose(f"Note: {note}")
    for warning in found.warnings:
        print(f"dynident: {warning}", file=sys.stderr)
