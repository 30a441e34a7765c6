"""The square-root information factor: accumulate, merge, save, solve."""

from dynident.information.accumulate import accumulate, accumulate_blocks
from dynident.information.information import Information, MergeError, Segment
from dynident.information.parameter_estimate import ParameterEstimate, SolveRecord
from dynident.information.parquet import accumulate_parquet
from dynident.information.rows import accumulate_rows
from dynident.information.storage import InformationFileError, load_information

__all__ = [
    "Information",
    "InformationFileError",
    "MergeError",
    "ParameterEstimate",
    "Segment",
    "SolveRecord",
    "accumulate",
    "accumulate_blocks",
    "accumulate_parquet",
    "accumulate_rows",
    "load_information",
]
