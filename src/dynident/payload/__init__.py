"""Bodies at the tool: payload identification, known payloads, drive gains."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.payload.body import Payload as Payload
    from dynident.payload.drive_gains import DriveGains as DriveGains, identify_drive_gains as identify_drive_gains
    from dynident.payload.identification import PayloadEstimate as PayloadEstimate, identify_payload as identify_payload
    from dynident.payload.known_payload import (
        Load as Load,
        LoadComparison as LoadComparison,
        LoadRow as LoadRow,
        compare_load as compare_load,
        load_change as load_change,
    )
    from dynident.payload.quantities import PayloadNumber as PayloadNumber
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "dynident.payload.body": "Payload",
            "dynident.payload.drive_gains": "DriveGains identify_drive_gains",
            "dynident.payload.identification": "PayloadEstimate identify_payload",
            "dynident.payload.known_payload": "Load LoadComparison LoadRow compare_load load_change",
            "dynident.payload.quantities": "PayloadNumber",
        },
    )
