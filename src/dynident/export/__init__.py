"""Files that other tools accept, each proved by reading it back: URDF, MJCF, YAML and C."""

from dynident.export.c_check import CAgreement, CExportError, check_c
from dynident.export.c_export import CExport, export_c
from dynident.export.c_writing import Counts

__all__ = ["CAgreement", "CExport", "CExportError", "Counts", "check_c", "export_c"]
