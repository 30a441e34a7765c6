"""Bodies at the tool: payload identification, known payloads, drive gains."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.payload.body import Payload as Payload
    from dynident.payload.drive_gains import DriveGains as DriveGains, identify_drive_gains as identify_drive_gains
    from dynident.payload.gains_from_logs import (
        LoggedGains as LoggedGains,
        drive_gains_from_logs as drive_gains_from_logs,
    )
    from dynident.payload.identification import PayloadEstimate as PayloadEstimate, identify_payload as identify_payload
    from dynident.payload.known_payload import (
        PayloadComparison as PayloadComparison,
        PayloadRow as PayloadRow,
        compare_payload as compare_payload,
        payload_change as payload_change,
    )
    from dynident.payload.quantities import PayloadNumber as PayloadNumber
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Load": "Payload",
            "LoadComparison": "PayloadComparison",
            "LoadRow": "PayloadRow",
            "compare_load": "compare_payload",
            "load_change": "payload_change",
        },
    )
