"""Addresses of sources: `udp://127.0.0.1:9870`, and where it is safe to listen."""

from __future__ import annotations

import errno
import ipaddress
import socket
from urllib.parse import urlsplit

from dynident.online.sources.source import SourceError

LOOPBACK = "127.0.0.1"


def parse_address(text: str, *, listen_all: bool = False) -> tuple[str, str, int]:
    """Scheme, host and port of an address; without a host it is the loopback.

    Args:
        text: Such as `udp://127.0.0.1:9870` or `tcp://:9870`.
        listen_all: Listen on every interface.

    Raises:
        SourceError: If it is not an address, or asks for every interface without `listen_all`.
    """
    form = "expected such as udp://127.0.0.1:9870"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or LOOPBACK, parts.port
    except ValueError as error:
        raise SourceError(text, f"is not an address ({error}); {form}") from None
    if port is None or parts.path not in ("", "/") or parts.query or parts.username:
        raise SourceError(text, f"is not an address; {form}")
    if host == "localhost":
        host = LOOPBACK
    if listen_all:
        if parts.hostname is not None and not _is_everywhere(host):
            raise SourceError(text, f"--listen-all contradicts the address {host}; leave one of them out")
        host = "0.0.0.0"
    elif _is_everywhere(host):
        raise SourceError(text, "would let anybody on the network send; say --listen-all if that is meant")
    return parts.scheme, host, port


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def bound_socket(kind: socket.SocketKind, host: str, port: int, label: str) -> socket.socket:
    """A socket that listens at an address.

    Raises:
        SourceError: If the address is in use, not this machine's, or not allowed.
    """
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=kind)[0]
    except OSError:
        raise SourceError(label, f"there is no host '{host}'; give an address of this machine") from None
    made = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restart need not wait for the last run's end
        made.bind(where)
    except OSError as error:
        made.close()
        raise SourceError(label, _reason(error, host, port)) from None
    return made


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use by another program; stop that one or choose another port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine; listen on {LOOPBACK} or on one of its own"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be opened by you; choose one above 1023"
    return f"cannot listen there ({error.strerror or error})"
