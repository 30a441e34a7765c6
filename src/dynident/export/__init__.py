"""Files that other tools accept, each proved by reading it back: URDF, MJCF, YAML and C."""

from dynident.export.c_export import CAgreement, CExport, CExportError, check_c, export_c
from dynident.export.c_functions import Counts

__all__ = ["CAgreement", "CExport", "CExportError", "Counts", "check_c", "export_c"]
