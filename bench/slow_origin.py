#!/usr/bin/env python3
"""An origin far away: a folder over HTTP/1.1 with ranges, each reply's first byte late by a fixed time.

Every request is a line in the log: METHOD PATH FIRST-LAST. Bodies go out by sendfile, so it is not the bottleneck.
"""

import os
import re
import socket
import sys
import threading
import time
from pathlib import Path


def serve(connection: socket.socket, folder: Path, delay: float, log):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = connection.makefile("rb")
    try:
        while line := reader.readline():
            method, path, _ = line.decode().split(" ", 2)
            headers = {}
            while (field := reader.readline().strip()):
                name, value = field.decode().split(":", 1)
                headers[name.lower()] = value.strip()
            file = folder / path.lstrip("/")
            time.sleep(delay)
            if not file.is_file():
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            size = file.stat().st_size
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", ""))
            first, last = (int(found[1]), min(int(found[2] or size - 1), size - 1)) if found else (0, size - 1)
            log.write(f"{method} {path} {first}-{last}\n")
            log.flush()
            status = f"206 Partial Content\r\nContent-Range: bytes {first}-{last}/{size}" if found else "200 OK"
            head = f'HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\nETag: "1"\r\nAccept-Ranges: bytes\r\n\r\n'
            connection.sendall(head.encode())
            if method == "HEAD":
                continue
            with file.open("rb") as content:
                while first <= last:
                    first += os.sendfile(connection.fileno(), content.fileno(), first, last - first + 1)
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


def main():
    folder, port, delay, log = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), open(sys.argv[4], "w")
    address = sys.argv[5] if len(sys.argv) > 5 else "127.0.0.1"
    listener = socket.create_server((address, port), backlog=1024)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, folder, delay, log), daemon=True).start()


if __name__ == "__main__":
    main()
