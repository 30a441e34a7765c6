"""Files that other tools accept, each proved by reading it back: URDF, MJCF, YAML, C, USD, and for simulators."""

from typing import TYPE_CHECKING

from dynident.lazy import lazy_names

if TYPE_CHECKING:
    from dynident.export.c_export import (
        CAgreement as CAgreement,
        CExport as CExport,
        check_c as check_c,
        export_c as export_c,
    )
    from dynident.export.c_functions import Counts as Counts
    from dynident.export.drake import export_drake as export_drake
    from dynident.export.fit_export import FitExport as FitExport, export_fit as export_fit
    from dynident.export.identified import (
        IdentifiedModel as IdentifiedModel,
        PositionControl as PositionControl,
        model_of_drives as model_of_drives,
    )
    from dynident.export.mjcf import export_mjcf as export_mjcf
    from dynident.export.overlay import export_drive_gains as export_drive_gains, export_yaml as export_yaml
    from dynident.export.samples import write_samples as write_samples
    from dynident.export.simulator_configs import export_isaaclab as export_isaaclab, export_mjlab as export_mjlab
    from dynident.export.urdf import export_urdf as export_urdf
    from dynident.export.usd import export_usd as export_usd
    from dynident.export.verification import Exported as Exported, ExportError as ExportError
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, {"CExportError": "ExportError"})
