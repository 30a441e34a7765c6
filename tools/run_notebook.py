"""Run a notebook from its first cell and keep what it shows, without Jupyter.

`python tools/run_notebook.py FILE.ipynb` rewrites the file; `make notebook` runs the one in `examples`.

Cells are plain Python. What a cell prints, and the value of its last line, become its outputs: as text, as HTML where
the value has `_repr_html_`, as a PNG where it is a figure.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

_DPI = 45  # of figures: readable, and some ten kilobytes each


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Outputs of a cell in the format of notebooks; its names join the others."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": show(value)})
    return outputs


def show(value: Any) -> dict[str, Any]:
    """A value by kind of content."""
    if hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, dpi=_DPI, metadata={"Software": None})
        return {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": ["a figure"]}
    data: dict[str, Any] = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = _lines(value._repr_html_())
    return data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of this run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        own = dict(cell)
        if cell["cell_type"] == "code":
            number += 1
            own |= {"execution_count": number, "outputs": run_cell("".join(cell["source"]), names)}
        cells.append(own)
    return {**notebook, "cells": cells}


def main(path: str) -> None:
    """Run a notebook in its folder and write it again."""
    target = Path(path).resolve()
    notebook = json.loads(target.read_text(encoding="utf-8"))
    os.chdir(target.parent)
    target.write_text(json.dumps(run_notebook(notebook), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
