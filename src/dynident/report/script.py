"""The script of a page, and the policy that lets nothing but it run."""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib.resources import files

from dynident.report.markup import Html


@functools.cache
def source() -> str:
    """The script's text."""
    return files("dynident.report").joinpath("page.js").read_text(encoding="utf-8")


def policy() -> str:
    """Content security policy: whatever a name in a file says, nothing is fetched, and only our script runs."""
    digest = base64.b64encode(hashlib.sha256(source().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def script_element() -> Html:
    """The script, for the end of a page's body."""
    return Html(f"<script>{source()}</script>\n")
