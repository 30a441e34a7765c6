"""The square-root information factor: accumulate, merge, save, solve."""

from dynident.information.accumulation import accumulate, accumulate_blocks, accumulate_parquet
from dynident.information.information import Information, MergeError, Segment
from dynident.information.parameter_estimate import Parameter, ParameterEstimate, SolveRecord
from dynident.information.row_source import GivenRows, MappedRows, accumulate_rows, accumulate_source
from dynident.information.storage import InformationFileError, load_information

__all__ = [
    "GivenRows",
    "Information",
    "InformationFileError",
    "MappedRows",
    "MergeError",
    "Parameter",
    "ParameterEstimate",
    "Segment",
    "SolveRecord",
    "accumulate",
    "accumulate_blocks",
    "accumulate_parquet",
    "accumulate_rows",
    "accumulate_source",
    "load_information",
]
