#!/usr/bin/env python3
"""Viewers of tfrc_response.py: when each frame, and each packet, of each response arrived.

    bench/tfrc_viewers.py ADDRESS PORT SECONDS FILE PATH ...

A viewer for each path, all at once. Packets are those of the device `link`, with the kernel's times. All times are of the monotonic clock.
"""

import json
import socket
import struct
import sys
import threading
import time

from tfrc_response import FRAME, HEAD

# Of the option and of its message (socket(7)); Python has no name for it.
SO_TIMESTAMPNS = 35
IPV4 = 0x0800
# Shorter packets are acknowledgements.
SHORTEST = 150


class Packets:
    """Packets that come by the device, by the port that they are for."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(IPV4))
        self.socket.bind(("link", IPV4))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.found = {}
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        to_monotonic = time.monotonic() - time.time()
        while True:
            data, messages, _, address = self.socket.recvmsg(64, 64)
            length, = struct.unpack_from(">H", data, 2)
            if address[2] == socket.PACKET_OUTGOING or length < SHORTEST:
                continue
            port, = struct.unpack_from(">H", data, 4 * (data[0] & 15) + 2)
            seconds, parts = struct.unpack("qq", messages[0][2])
            self.found.setdefault(port, []).append((seconds + parts * 1e-9 + to_monotonic, length))


def watch(address: tuple, seconds: float, path: str, told: dict):
    """Reads a response for some seconds behind its first frame: number, due time and arrival of its frames."""
    found = told[path] = {"frames": [], "problem": ""}
    try:
        with socket.create_connection(address, 15) as connection:
            found["port"] = connection.getsockname()[1]
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {address[0]}\r\n\r\n".encode())
            data, end = b"", time.monotonic() + 15
            while b"\r\n\r\n" not in data:
                data += connection.recv(4096)
            data = data.split(b"\r\n\r\n", 1)[1]
            while (now := time.monotonic()) < end:
                while len(data) >= FRAME:
                    number, due = HEAD.unpack_from(data, data.index(b"\n") + 1)
                    if not found["frames"]:
                        end = due + seconds
                    found["frames"].append((number, due, now))
                    data = data[FRAME:]
                connection.settimeout(max(end - time.monotonic(), 0.001))
                try:
                    more = connection.recv(1 << 16)
                except TimeoutError:
                    break
                if not more:
                    break
                data += more
    except OSError as error:
        found["problem"] = f"{type(error).__name__}: {error}"


def main():
    address, seconds, file, paths = (sys.argv[1], int(sys.argv[2])), float(sys.argv[3]), sys.argv[4], sys.argv[5:]
    packets, told = Packets(), {}
    viewers = [threading.Thread(target=watch, args=(address, seconds, path, told)) for path in paths]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    for found in told.values():
        found["packets"] = packets.found.get(found.get("port"), [])
    with open(file, "w") as out:
        json.dump(told, out)


if __name__ == "__main__":
    main()
