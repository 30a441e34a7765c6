"""Files that other tools accept, each proved by reading it back: URDF, MJCF, YAML and C."""

from dynident.export.c_export import CAgreement, CExport, CExportError, check_c, export_c
from dynident.export.c_functions import Counts
from dynident.export.mjcf import export_mjcf
from dynident.export.overlay import export_yaml
from dynident.export.urdf import export_urdf
from dynident.export.verification import Exported, ExportError

__all__ = [
    "CAgreement",
    "CExport",
    "CExportError",
    "Counts",
    "ExportError",
    "Exported",
    "check_c",
    "export_c",
    "export_mjcf",
    "export_urdf",
    "export_yaml",
]
