"""Where our servers listen: on the loopback, and nowhere else."""

from __future__ import annotations

import socket

from tunesmith.errors import BadInput

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """On that port, or for 0 on any that is free; whoever is told the address can call at once."""
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((HOST, port))
        own.listen(64)
    except OSError as error:
        own.close()
        fault = f"port {port} of {HOST} cannot be had: {error.strerror}"
        raise BadInput(fault, hint="choose another with --port, or none for any that is free") from error
    return own
