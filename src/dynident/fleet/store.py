"""`FleetStore`: a folder of Parquet tables and factors, by robot and month, to which logs are only ever added.

    pilots/robot=R/KEY/      the pilot of a period: pilot.json, and the fit of the first logs (fit.yaml, fit.npz)
    factors/robot=R/month=M/KEY.npz        what a log says of the parameters
    logs/robot=R/month=M/KEY.parquet       one row of statistics for each log, also for one that failed
    answers/TABLE/robot=R.parquet          what follows from them, made again whenever they change
    robots/R/                the fit of all its logs, its page, and its exports

Every file is complete or not there. A factor is written before its row: a log whose row is there is finished. Rows of
a partition are put together in one file once a run is over (`compact`), which repeats none of them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynident.errors import DynidentError, InputError
from dynident.files import write_bytes, write_text
from dynident.fleet.listing import LogRef
from dynident.readers import reader

FORMAT = "dynident fleet 1"
_MARK = "store.json"
_NUMBERS = ("temperatures", "residual_std", "inflation", "rows")  # one for each joint
_ROW = {
    "key": "string",
    "robot": "string",
    "type": "string",
    "pilot": "string",
    "uri": "string",
    "stamp": "string",
    "digest": "string",
    "factor": "string",  # file of its factor
    "date": "string",
    "status": "string",  # ok, or failed
    "error": "string",
    "severity": "string",
    "diagnostics": "string",  # JSON: those that are not ok
    "samples": "int64",
    "duration": "double",  # [s]
    "payload": "double",  # [kg]
    "seconds": "double",  # that the map took
    "written": "string",
} | dict.fromkeys(_NUMBERS, "list")
Row = dict[str, Any]


class StoreError(DynidentError):
    """A store that cannot be read or written to; no fault of a log."""


@dataclass(frozen=True)
class FleetStore:
    """A fleet's store.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @staticmethod
    def create(folder: str | Path) -> FleetStore:
        """The store in a folder, made if it is not there.

        Raises:
            StoreError: When the folder holds something else, or cannot be written to.
        """
        store = FleetStore(Path(folder))
        if not (store.folder / _MARK).exists():
            if store.folder.is_dir() and any(store.folder.iterdir()):
                raise StoreError(f"{folder}: is a folder with other files; give the store a folder of its own")
            store.write_json(_MARK, {"format": FORMAT})
        return FleetStore.open(folder)

    @staticmethod
    @reader("fleet store", StoreError)
    def open(folder: str | Path) -> FleetStore:
        """The store in a folder.

        Raises:
            StoreError: When there is none.
        """
        store = FleetStore(Path(folder).resolve())
        try:
            found = json.loads((store.folder / _MARK).read_text()).get("format")
        except (OSError, ValueError):
            raise StoreError(f"{folder}: is no store of a fleet; `dynident fleet run` makes one") from None
        if found != FORMAT:
            raise StoreError(f"{folder}: format is {found!r}; expected '{FORMAT}'")
        return store

    # Files.

    def write(self, name: str, content: bytes) -> Path:
        """Write a file of the store; its folders are made.

        Raises:
            StoreError: When it cannot be written, such as on a full disk.
        """
        path = self.folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content)
        except (OSError, InputError) as error:
            raise StoreError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None
        return path

    def write_json(self, name: str, content: Mapping[str, Any]) -> Path:
        """The same for plain data."""
        return self.write(name, json.dumps(content, indent=1, allow_nan=False).encode())

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Plain data; None where the file is not there."""
        try:
            found: dict[str, Any] = json.loads((self.folder / name).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{self.folder / name}: cannot be read ({error}); remove it and run again") from None
        return found

    # Rows of logs.

    def factor_name(self, ref: LogRef, key: str) -> str:
        """File of the factor of a log, whose content and pilot the key stands for."""
        return f"factors/robot={ref.robot}/month={ref.month}/{key}.npz"

    def write_row(self, row: Row) -> None:
        """The row of a log, which makes it a finished one."""
        name = f"logs/robot={row['robot']}/month={row['date'][:7]}/{row['key']}.parquet"
        self.write(name, table_bytes([row | {"written": datetime.now(UTC).isoformat()}], _ROW))

    def rows(self, robot: str | None = None) -> list[Row]:
        """Rows of all logs, or of those of a robot, each once, sorted by date."""
        found: dict[str, Row] = {}
        for path in sorted(self.folder.glob(f"logs/robot={robot or '*'}/month=*/*.parquet")):
            found |= {row["key"]: row for row in read_table(path)}
        return sorted(found.values(), key=lambda row: (row["date"], row["uri"], row["written"]))

    def compact(self) -> None:
        """Put the rows of each partition together; a crash between leaves rows twice, which are read once."""
        for folder in sorted(self.folder.glob("logs/robot=*/month=*")):
            parts = sorted(folder.glob("*.parquet"))
            if len(parts) < 2:
                continue
            rows = {row["key"]: row for path in parts for row in read_table(path)}
            ordered = sorted(rows.values(), key=lambda row: (row["date"], row["uri"], row["written"]))
            content = table_bytes(ordered, _ROW)
            name = f"part-{hashlib.sha256(content).hexdigest()[:16]}.parquet"
            whole = self.write(str((folder / name).relative_to(self.folder)), content)
            for path in parts:
                if path != whole:
                    path.unlink(missing_ok=True)

    # Answers.

    def write_answer(self, table: str, name: str, rows: Sequence[Row], kinds: Mapping[str, str]) -> None:
        """A table of answers, or the part of it that is about a robot."""
        self.write(f"answers/{table}/{name}.parquet", table_bytes(rows, kinds))

    def answers(self, table: str) -> list[Row]:
        """All rows of a table of answers."""
        return [row for path in sorted(self.folder.glob(f"answers/{table}/*.parquet")) for row in read_table(path)]


def table_bytes(rows: Iterable[Row], kinds: Mapping[str, str]) -> bytes:
    """Rows as a Parquet file."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    numbers = arrow.list_(arrow.float64())
    schema = arrow.schema(
        [(name, numbers if kind == "list" else getattr(arrow, _ARROW[kind])()) for name, kind in kinds.items()]
    )
    target = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), target)
    return target.getvalue()


_ARROW = {"string": "string", "double": "float64", "int64": "int64", "bool": "bool_"}


def read_table(path: Path) -> list[Row]:
    """Rows of a Parquet file.

    Raises:
        StoreError: When it is damaged.
    """
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        # Names such as month= in the path are no columns of the file.
        rows: list[Row] = parquet.ParquetFile(path).read().to_pylist()
    except (OSError, arrow.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read ({str(error).splitlines()[0]}); remove it and run again") from None
    return rows


def write_page(path: Path, text: str) -> None:
    """A page of the store.

    Raises:
        StoreError: When it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except (OSError, InputError) as error:
        raise StoreError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None
