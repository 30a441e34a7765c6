"""Bodies at the tool: payload identification, known payloads, drive gains."""

from dynident.payload.body import Payload
from dynident.payload.drive_gains import DriveGains, identify_drive_gains
from dynident.payload.identification import PayloadEstimate, identify_payload
from dynident.payload.known_payload import Load, LoadComparison, LoadRow, compare_load, load_change
from dynident.payload.quantities import PayloadNumber

__all__ = [
    "DriveGains",
    "Load",
    "LoadComparison",
    "LoadRow",
    "Payload",
    "PayloadEstimate",
    "PayloadNumber",
    "compare_load",
    "identify_drive_gains",
    "identify_payload",
    "load_change",
]
