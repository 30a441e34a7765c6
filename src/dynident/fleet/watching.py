"""`watch_fleet`: drift becomes alarms, each of them once: lines of JSON, a webhook, an exit code."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynident.errors import InputError
from dynident.fleet.analysis import FleetAnalysis, analyze_fleet
from dynident.fleet.options import FleetAnalysisOptions, FleetWatchOptions
from dynident.fleet.store import FleetStore
from dynident.options import keywords, plain_options

_RAISED = "alarms.json"
_WEBHOOK_S = 10.0  # [s] until a webhook is given up


@keywords(FleetWatchOptions)
def watch_fleet(
    store: str | Path | FleetStore, options: FleetWatchOptions
) -> tuple[list[dict[str, Any]], FleetAnalysis]:
    """Alarms that have not been raised before, and the analysis that they come from; the store remembers them.

    An alarm that a webhook does not take stays new.

    Raises:
        InputError: When the webhook does not answer.
    """
    own = store if isinstance(store, FleetStore) else FleetStore.open(store)
    check_webhook(options.webhook)
    found = analyze_fleet(own, **plain_options(options, FleetAnalysisOptions))
    before = own.read_json(_RAISED) or {}
    alarms = [one for one in found.alarms() if options.every or one["id"] not in before]
    try:
        for alarm in alarms:
            if options.webhook is not None:
                post_alarm(options.webhook, alarm)
            before[alarm["id"]] = datetime.now(UTC).isoformat()
    finally:
        own.write_json(_RAISED, before)
    return alarms, found


def check_webhook(address: str | None) -> None:
    """Refuse an address that is none of the web, before anything is computed."""
    if address is not None and urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise InputError(f"--webhook {address}: expected an address that begins with http:// or https://")


def post_alarm(address: str, alarm: Mapping[str, Any]) -> None:
    """Post an alarm as JSON.

    Raises:
        InputError: When nobody takes it.
    """
    request = urllib.request.Request(
        address, data=json.dumps(alarm).encode(), headers={"Content-Type": "application/json"}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=_WEBHOOK_S):
            pass
    except (urllib.error.URLError, OSError) as error:
        raise InputError(f"--webhook {address}: does not take alarms ({error}); they stay new") from None


def alarm_lines(alarms: Iterable[Mapping[str, Any]]) -> str:
    """A line of JSON for each alarm."""
    return "".join(f"{json.dumps(alarm, allow_nan=False)}\n" for alarm in alarms)
