"""Edits of XML text that leave every other byte as it is: comments, order, spaces, line ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

_ATTRIBUTE = re.compile(rb"([^\s=/<>\"']+)\s*=\s*(\"[^\"]*\"|'[^']*')")

_ENCODING = re.compile(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)")


@dataclass
class Span:
    """An element and where it stands in the text.

    Attributes:
        tag: Its name.
        attributes: As written, entities resolved.
        start: Of its start tag.
        inner: Where its start tag ends.
        close: Where its end tag starts; equal to `end` for an element that closes itself.
        end: Where it ends.
        children: Elements in it.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    inner: int = 0
    close: int = 0
    end: int = 0
    children: list[Span] = field(default_factory=list)

    def all(self, tag: str) -> list[Span]:
        """Its children of a kind."""
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Span | None:
        """Its first child of a kind."""
        return next(iter(self.all(tag)), None)

    def walk(self) -> Iterator[Span]:
        """The element and all in it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()


def parse_spans(content: bytes) -> Span:
    """The root element of well-formed XML that a reader has already accepted (no DTD)."""
    parser = expat.ParserCreate()
    stack = [Span("", {}, 0)]

    def opened(tag: str, attributes: dict[str, str]) -> None:
        start = parser.CurrentByteIndex
        span = Span(tag, attributes, start, inner=_tag_end(content, start))
        stack[-1].children.append(span)
        stack.append(span)

    def closed(tag: str) -> None:
        span = stack.pop()
        if content[span.inner - 2 : span.inner] == b"/>":
            span.close = span.end = span.inner
        else:
            span.close = parser.CurrentByteIndex
            span.end = content.index(b">", span.close) + 1

    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.Parse(content, True)
    return stack[0].children[0]


def _tag_end(content: bytes, start: int) -> int:
    """Where the start tag ends; an attribute may contain the sign that ends it."""
    quote = b""
    for i in range(start, len(content)):
        sign = content[i : i + 1]
        if quote:
            quote = b"" if sign == quote else quote
        elif sign in (b'"', b"'"):
            quote = sign
        elif sign == b">":
            return i + 1
    raise AssertionError("the parser has seen this tag end")


class Edits:
    """Changes of a text, collected and then made at once."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.newline = b"\r\n" if b"\r\n" in content else b"\n"
        self._changes: list[tuple[int, int, bytes]] = []
        self._opened: dict[int, tuple[Span, list[bytes]]] = {}

    def set(self, span: Span, **attributes: str) -> None:
        """Give attributes of an element new values; those it lacks are added at its end."""
        text = self.content[span.start : span.inner]
        found = {m[1].decode(): m for m in _ATTRIBUTE.finditer(text)}
        more = b""
        for name, value in attributes.items():
            if name in found:
                low, high = (span.start + at for at in found[name].span(2))
                self._changes.append((low, high, quoteattr(value).encode()))
            else:
                more += f" {name}={quoteattr(value)}".encode()
        if more:
            own = text[: -2 if text.endswith(b"/>") else -1]
            at = span.start + len(own.rstrip())
            self._changes.append((at, at, more))

    def unset(self, span: Span, *names: str) -> None:
        """Take attributes away, with the space before them."""
        text = self.content[span.start : span.inner]
        for match in _ATTRIBUTE.finditer(text):
            if match[1].decode() in names:
                low = span.start + len(text[: match.start()].rstrip())
                self._changes.append((low, span.start + match.end(), b""))

    def remove(self, span: Span) -> None:
        """Take an element away, with its line if it has one of its own."""
        before = self.content[: span.start]
        low = len(before.rstrip(b" \t"))
        alone = before[:low].endswith(b"\n") and self.content[span.end : span.end + 2].lstrip(b"\r").startswith(b"\n")
        low = len(before[:low].removesuffix(b"\n").removesuffix(b"\r")) if alone else span.start
        self._changes.append((low, span.end, b""))

    def replace(self, span: Span, text: str | bytes) -> None:
        """Put new elements in the place of one."""
        self._changes.append((span.start, span.end, text.encode() if isinstance(text, str) else text))

    def insert(self, span: Span, text: str, *, last: bool = False) -> None:
        """Put a new element on a line of its own into another one, at its beginning or its end."""
        step = self._indent(span.children[0].start) if span.children else self._indent(span.start) + b"  "
        if span.close == span.end:  # <link name="x"/> becomes <link name="x"> .. </link>
            _, lines = self._opened.setdefault(span.start, (span, []))
            lines.append(self.newline + step + text.encode())
            return
        if not last:
            self._changes.append((span.inner, span.inner, self.newline + step + text.encode()))
            return
        at = len(self.content[: span.close].rstrip())
        self._changes.append((at, at, self.newline + step + text.encode()))

    def head(self, root: Span, text: str) -> None:
        """Put a comment before the root element, in the place of one that an earlier export left there."""
        newline = self.newline.decode()
        found = re.search(rb"<!-- dynident:.*?-->", self.content[: root.start], re.DOTALL)
        low, high = found.span() if found else (root.start, root.start)
        words = text.replace("\n", newline) + ("" if found else newline)
        declared = _ENCODING.match(self.content)
        plain = declared is not None and declared[1].lower() not in (b"utf-8", b"utf8")
        self._changes.append((low, high, words.encode("ascii", "replace") if plain else words.encode()))

    def _indent(self, at: int) -> bytes:
        """The space at the beginning of the line, if there is nothing else before this place."""
        line = self.content[:at].rpartition(b"\n")[2]
        return line if not line.strip() else line[: len(line) - len(line.lstrip())]

    def result(self) -> bytes:
        """The text with the changes made."""
        for span, lines in self._opened.values():
            own = self.content[span.start : span.inner]
            body = b"".join(lines) + self.newline + self._indent(span.start)
            at = span.start + len(own[:-2].rstrip())
            self._changes.append((at, span.inner, b">" + body + f"</{span.tag}>".encode()))
        pieces, at = [], 0
        for low, high, new in sorted(self._changes, key=lambda change: change[:2]):  # stable: in the order given
            pieces += [self.content[at:low], new]
            at = high
        return b"".join([*pieces, self.content[at:]])


def comment(lines: list[str]) -> str:
    """An XML comment of several lines; two hyphens in a row would end it."""
    words = "\n".join(f"  {line}" for line in lines)
    while "--" in words:
        words = words.replace("--", "- -")
    return f"<!-- {words.strip()}\n-->"


__all__ = ["Edits", "Span", "comment", "parse_spans", "quoteattr"]
