#!/usr/bin/env python3
"""How quickly an intercepted stream stops and fails: a client leaves, and TEARDOWN arrives at the RTSP server; the server refuses SETUP,
and the client has a status.

Client, edge and server have a network namespace each. Clients and the RTSP server are one program with one clock: it sends a picture each
40 ms on the connection. Needs root, ffmpeg (for the picture), nftables.

    cargo build --release -p millpond
    bench/live_stop.py --json result.json
"""

import argparse
import base64
import ctypes
import json
import os
import queue
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from compare import TARGET
from routed import SERVER, Routed

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
FRAME = 0.04


def enter(name: str):
    """Moves the calling thread into a network namespace."""
    with open(f"/run/netns/{name}", "rb") as namespace:
        if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {name}")


def picture() -> list:
    """NAL units of one grey H.264 picture: parameter sets and the slice."""
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=gray:s=64x64:r=25", "-frames:v", "1", "-c:v", "libx264",
               "-bsf:v", "filter_units=remove_types=6", "-f", "h264", "-"]
    stream = subprocess.run(command, check=True, capture_output=True).stdout
    return [unit for unit in re.split(rb"\x00\x00\x00?\x01", stream) if unit]


class Camera(threading.Thread):
    """An RTSP server. Names that begin with `refused` have no SETUP. `events` gets the time and path of each refusal and TEARDOWN."""

    def __init__(self, namespace: str):
        super().__init__(daemon=True)
        self.namespace = namespace
        self.sps, self.pps, self.slice = picture()
        self.events = queue.Queue()
        self.ready = threading.Event()

    def run(self):
        enter(self.namespace)
        listener = socket.create_server(("", 554), backlog=256)
        self.ready.set()
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket):
        plays, sequence, began, read = False, 0, time.monotonic(), b""
        with connection:
            while True:
                wait = max(0.0, began + sequence * FRAME - time.monotonic()) if plays else 30
                if select.select([connection], [], [], wait)[0]:
                    try:
                        got = connection.recv(65536)
                    except ConnectionError:
                        return
                    if not got:
                        return
                    read += got
                    while b"\r\n\r\n" in read:
                        # Reports of the client come on the connection too.
                        if read[:1] == b"$":
                            length = 4 + struct.unpack(">H", read[2:4])[0]
                            read = read[length:]
                            continue
                        head, read = read.split(b"\r\n\r\n", 1)
                        method = self.answer(connection, head.decode())
                        if method == "PLAY":
                            plays, began = True, time.monotonic()
                elif plays:
                    header = struct.pack(">BBHII", 0x80, 0xE0, sequence & 0xFFFF, round(sequence * FRAME * 90000) & 0xFFFFFFFF, 7)
                    packet = header + self.slice
                    try:
                        connection.sendall(struct.pack(">BBH", 0x24, 0, len(packet)) + packet)
                    except ConnectionError:
                        return
                    sequence += 1
                else:
                    return

    def answer(self, connection: socket.socket, head: str) -> str:
        now = time.monotonic()
        method, url, _ = head.split("\r\n", 1)[0].split(" ")
        sequence = re.search(r"(?im)^cseq: *(\d+)", head)[1]
        path = "/" + url.split("/", 3)[3]
        status, fields, body = "200 OK", "Session: 1;timeout=60\r\n", ""
        if method == "DESCRIBE":
            sets = ",".join(base64.b64encode(unit).decode() for unit in (self.sps, self.pps))
            body = (f"v=0\r\no=- 1 1 IN IP4 {SERVER}\r\ns=-\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
                    f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\na=control:v\r\n")
            fields = f"Content-Type: application/sdp\r\nContent-Base: {url}/\r\nContent-Length: {len(body)}\r\n"
        elif method == "SETUP" and path.startswith("/refused"):
            status, fields = "453 Not Enough Bandwidth", ""
            path = path.rsplit("/", 1)[0]
        elif method == "SETUP":
            fields += "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"
        if method == "TEARDOWN" or status.startswith("453"):
            self.events.put((time.monotonic() if status.startswith("453") else now, path.rstrip("/")))
        connection.sendall(f"RTSP/1.0 {status}\r\nCSeq: {sequence}\r\n{fields}\r\n{body}".encode())
        return method


def ask(path: str) -> socket.socket:
    client = socket.create_connection((SERVER, 80), timeout=20)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: {SERVER}\r\n\r\n".encode())
    return client


def stop(camera: Camera, number: int) -> float:
    """Milliseconds from the end of a client to TEARDOWN."""
    path = f"/door/{number}"
    client = ask(path)
    read = b""
    # Until pictures arrive, and a while more: the moment of leaving is any one between two pictures.
    while len(read) < 3000 or b"moof" not in read:
        got = client.recv(65536)
        if not got:
            raise RuntimeError(f"{path} ended: {read[:300]}")
        read += got
    time.sleep(number % 40 / 1000)
    left = time.monotonic()
    client.close()
    at, of = camera.events.get(timeout=20)
    if of != path:
        raise RuntimeError(f"TEARDOWN of {of}, not of {path}")
    return (at - left) * 1000


def refuse(camera: Camera, number: int) -> float:
    """Milliseconds from the refusal of SETUP to the client's status."""
    with ask(f"/refused/{number}") as client:
        reply = client.recv(65536)
        got = time.monotonic()
    if not reply.startswith(b"HTTP/1.1 502 "):
        raise RuntimeError(f"status: {reply[:200]}")
    at, _ = camera.events.get(timeout=20)
    return (got - at) * 1000


def summary(values: list) -> dict:
    values = sorted(values)
    return {"count": len(values), "median-ms": values[len(values) // 2], "p99-ms": values[len(values) * 99 // 100], "most-ms": values[-1]}


def measure(options) -> dict:
    with Routed(TARGET / "bench/live-stop") as way:
        camera = Camera(way.names["server"])
        camera.start()
        camera.ready.wait(10)
        way.intercept(options.bin, "--source-transport", "tcp")
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        enter(way.names["client"])
        stops = [stop(camera, number) for number in range(options.count)]
        refusals = [refuse(camera, number) for number in range(options.count)]
        LIBC.setns(home, CLONE_NEWNET)
        os.close(home)
    return {"teardown": summary(stops), "refusal": summary(refusals)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="(%(default)s)")
    parser.add_argument("--count", type=int, default=1000, help="clients that leave, and that are refused (%(default)s)")
    parser.add_argument("--json", type=Path, help="file of the result")
    options = parser.parse_args()
    result = measure(options)
    for name, aim in (("teardown", "p99 under 100 ms"), ("refusal", "within a round trip")):
        of = result[name]
        print(f"{name}: {of['count']} times, median {of['median-ms']:.2f} ms, p99 {of['p99-ms']:.2f} ms, most {of['most-ms']:.2f} ms ({aim})")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if result["teardown"]["p99-ms"] < 100 else 1


if __name__ == "__main__":
    sys.exit(main())
