"""Equations of the pages as MathML, which browsers draw by themselves: no script and no network."""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def drawn(node: nodes.Element, *, as_block: bool) -> str:
    """The equation of a node; what cannot be drawn is reported, with its place, and shown as it was written."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as problem:
        logger.warning("equation not understood: %s", problem, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def inline(writer: Any, node: nodes.math) -> None:
    """An equation within a line."""
    writer.body.append(drawn(node, as_block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """An equation on lines of its own, which scrolls where the page is narrower."""
    writer.body.append(f'<div class="equation">{drawn(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(inline, None), block_renderers=(block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
