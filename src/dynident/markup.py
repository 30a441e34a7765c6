"""XML of others: no DTD, no entities, and no more elements and levels than a robot needs."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

from defusedxml import ElementTree as SafeTree

from dynident import limits


class _BoundedBuilder(TreeBuilder):
    """Builds a tree, and stops at the limits."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: Any, attrs: Any, /) -> Element:
        """An element begins."""
        self._depth += 1
        self._count += 1
        own = limits.LIMITS
        if self._depth > own.xml_levels:
            raise limits.LimitError(f"is nested more than {own.xml_levels} levels deep")
        if self._count > own.xml_elements:
            raise limits.LimitError(f"has more than {own.xml_elements} elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """An element ends."""
        self._depth -= 1
        return super().end(tag)


def parse_xml(content: bytes) -> Element:
    """The root element.

    Raises:
        DefusedXmlException: If it declares a DTD or entities.
        ParseError, ValueError, LookupError: If it is not well-formed.
        LimitError: If it is beyond a limit.
    """
    parser = SafeTree.XMLParser(target=_BoundedBuilder(), forbid_dtd=True)
    parser.feed(content)
    root: Element = parser.close()
    return root
