"""Waits for servers that a figure has started."""

import socket
import time


def answers(address: str, port: int, process, seconds: float = 20):
    """Waits until a process listens at an address."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError as error:
            if process.poll() is not None:
                raise RuntimeError(f"the server at {address}:{port} ended with {process.returncode}") from error
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server at {address}:{port} does not answer: {error}") from error
            time.sleep(0.05)
