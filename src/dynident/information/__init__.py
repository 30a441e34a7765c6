"""The square-root information factor: accumulate, merge, save, solve."""

from dynident.information.accumulation import accumulate, accumulate_blocks, accumulate_parquet
from dynident.information.information import Information, MergeError, Segment
from dynident.information.row_source import GivenRows, MappedRows, accumulate_rows, accumulate_source
from dynident.information.solution import Solution
from dynident.information.storage import InformationFileError, load_information

__all__ = [
    "GivenRows",
    "Information",
    "InformationFileError",
    "MappedRows",
    "MergeError",
    "Segment",
    "Solution",
    "accumulate",
    "accumulate_blocks",
    "accumulate_parquet",
    "accumulate_rows",
    "accumulate_source",
    "load_information",
]
