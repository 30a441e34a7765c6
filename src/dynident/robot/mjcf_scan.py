"""A look at an MJCF file and what it includes, before MuJoCo makes anything of it: counts, sizes, files that are none.

MuJoCo multiplies elements (`<replicate>`, `<composite>`, `<flexcomp>`, attached models) and allocates what attributes
ask for without a limit of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from dynident import limits
from dynident.limits import LimitError, RefusedError
from dynident.markup import parse_xml
from dynident.readers import refuse_special

_MULTIPLIED = ("replicate", "composite", "flexcomp")  # by their `count`, one number or three
_MOST_FILES = 100  # that include or attach one another
_LARGEST = {  # what attributes allocate, by element and attribute; their product counts where there are several
    "texture": (("width", "height"), 1 << 26),
    "hfield": (("nrow", "ncol"), 1 << 24),
    "numeric": (("size",), 1 << 20),
    "user": (("dim",), 1 << 20),
    "mesh": (("params",), 1 << 20),
}
_SIZES = 1 << 20  # of any attribute of <size> but memory
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}


def scan_mjcf(source: str) -> None:
    """Refuse a file that MuJoCo would unfold beyond what a robot needs.

    Raises:
        RefusedError: If it is, or names a pipe or device.
        ParseError, DefusedXmlException, OSError, ..: If a file that it includes cannot be read.
    """
    _Scan(Path(source)).run()


class _Scan:
    def __init__(self, path: Path) -> None:
        self.path, self.folder = path, path.parent
        self._sizes: dict[Path, int] = {}  # elements that a file stands for
        self._open: list[Path] = []
        self._models: dict[str, list[Path]] = {}

    def run(self) -> None:
        """Look at the file and all that it takes in."""
        self._file(self.path)

    def _file(self, path: Path) -> int:
        """How many elements a file stands for."""
        here = path.absolute()
        if here in self._open:
            raise RefusedError(f"includes itself: {path.name}")
        if here not in self._sizes:
            if len(self._sizes) >= _MOST_FILES or len(self._open) >= limits.LIMITS.yaml_levels:
                raise LimitError(f"includes more than {_MOST_FILES} files")
            self._open.append(here)
            self._sizes[here] = self._count(_root(path))
            self._open.pop()
        return self._sizes[here]

    def _count(self, root: Element) -> int:
        total = 0
        waiting = [(root, 1)]
        folders = self._folders(root)
        while waiting:
            node, times = waiting.pop()
            total += times
            _check_sizes(node)
            file = node.get("file")
            if node.tag == "include" and file:
                total += times * sum(map(self._file, self._places(file)))
            elif node.tag == "model" and file:
                self._models[node.get("name") or Path(file).stem] = self._places(file)
            elif file:
                for folder in folders:
                    refuse_special(folder / file)
            elif node.tag == "attach" and (others := self._models.get(node.get("model", ""))):
                total += times * sum(map(self._file, others))
            if total > limits.LIMITS.xml_elements:
                raise LimitError(f"stands for more than {limits.LIMITS.xml_elements} elements")
            inner = times * _copies(node)
            # What comes last on the list is looked at first: models are known where they are attached.
            waiting += [(child, inner) for child in sorted(node, key=lambda child: child.tag == "asset")]
        return total

    def _places(self, file: str) -> list[Path]:
        """Where a file may be that another one names: beside the main file, or beside the other one."""
        places = dict.fromkeys((self.folder.absolute() / file, self._open[-1].parent / file))
        for place in places:
            refuse_special(place)
        return [place for place in places if place.exists()] or [self.folder / file]

    def _folders(self, root: Element) -> list[Path]:
        names = {node.get(key, "") for node in root.iter("compiler") for key in ("assetdir", "meshdir", "texturedir")}
        return [self.folder, *(self.folder / name for name in sorted(names) if name)]


def _root(path: Path) -> Element:
    with path.open("rb") as file:
        content = file.read(limits.LIMITS.robot_bytes + 1)
    if len(content) > limits.LIMITS.robot_bytes:
        raise LimitError(f"includes {path.name}, which has more bytes than a robot description may")
    return parse_xml(content)


def _copies(node: Element) -> int:
    """How often an element stands for what is in it, and as what it makes itself."""
    if node.tag not in _MULTIPLIED:
        return 1
    copies = 1
    for number in _numbers(node.get("count", "1")):
        copies *= max(1, min(number, limits.LIMITS.xml_elements + 1))
    if copies > limits.LIMITS.xml_elements:
        raise LimitError(f"has a <{node.tag}> of {copies} copies or more, beyond {limits.LIMITS.xml_elements} elements")
    return copies


def _check_sizes(node: Element) -> None:
    """Refuse attributes that ask for more memory than any robot."""
    if node.tag == "size":
        for name, value in node.items():
            if name != "memory" and any(number > _SIZES for number in _numbers(value)):
                raise LimitError(f"asks for {name}={value[:20]} in <size>; leave it out")
        if _in_bytes(node.get("memory", "")) > limits.LIMITS.memory_bytes:
            raise LimitError(f"asks for {node.get('memory', '')[:20]} of memory in <size>; leave it out")
    elif node.tag in _LARGEST:
        names, most = _LARGEST[node.tag]
        product = 1
        for name in names:
            for number in _numbers(node.get(name, "1")):
                product *= max(1, number)
        if product > most:
            raise LimitError(f"has a <{node.tag}> of {product:.3g} elements, more than {most}")


def _numbers(text: str) -> Iterator[int]:
    """Whole parts of the numbers in a text; none of what is no number, which MuJoCo refuses."""
    for word in text.split()[:100]:
        try:
            yield int(min(float(word), 1e18))
        except ValueError:  # also of NaN
            continue


def _in_bytes(text: str) -> float:
    found = re.fullmatch(r"\s*(\d{1,30})\s*([kmgtpeKMGTPE]?)\s*", text)
    return float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
