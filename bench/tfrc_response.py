#!/usr/bin/env python3
"""A web server of tfrc_http.py: a live stream of constant bit rate, a chunk for each frame, sent when the frame is due.

    bench/tfrc_response.py ADDRESS PORT

`GET /cubic`, `/bbr` or `/reno` is answered under this congestion control. `/cubic-tfrc` is also limited by TFRC's throughput equation
(RFC 5348, 3.1). `/cubic-short?unsent=10000` is not, but leaves fewer bytes unsent in the kernel: it asks before each write. Without asking,
the kernel takes more than its bound, as it appends to the last unsent packet. `?wait=0.5` drops frames that waited for more seconds before
they began to be sent. `&seconds=27` ends the response. When a response ends, a line of JSON says what it did. TFRC has round trip, losses
and segments from the kernel (TCP_INFO).
"""

import collections
import json
import math
import select
import socket
import struct
import sys
import time
import urllib.parse

FPS, FRAME = 25, 5000
# Number and due time on the monotonic clock, at the start of each frame.
HEAD = struct.Struct(">Id")
# Seconds between two looks at all responses, and bytes that may wait unsent in the kernel, as in millpond-http.
TICK, UNSENT = 0.005, 32 << 10
# Weights of the last loss intervals (RFC 5348, 5.4).
WEIGHTS = (1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2)


class Info:
    """What TFRC needs of the kernel's struct tcp_info."""

    def __init__(self, connection: socket.socket):
        data = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
        self.segment, = struct.unpack_from("I", data, 16)
        self.round_trip = struct.unpack_from("I", data, 68)[0] / 1e6
        self.repeated, = struct.unpack_from("I", data, 100)
        self.acknowledged, = struct.unpack_from("Q", data, 120)
        self.unsent, = struct.unpack_from("I", data, 144)
        self.sent, = struct.unpack_from("I", data, 156)
        # Repeats that were not needed were not lost.
        self.lost = self.repeated - struct.unpack_from("I", data, 216)[0]


def equation(segment: int, round_trip: float, p: float) -> float:
    """Bytes a second (RFC 5348, 3.1), with b = 1 and a timeout of four round trips."""
    return segment / (round_trip * (math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p * p)))


class Tfrc:
    """The rate that the equation allows a connection. There is no limit before the first loss."""

    def __init__(self):
        self.rate, self.p, self.events, self.lost = math.inf, 0.0, 0, 0
        # Segments between loss events, the newest first, and where and when the newest event began.
        self.intervals, self.began_sent, self.began = collections.deque(maxlen=len(WEIGHTS)), 0, -math.inf
        self.received = collections.deque()

    def update(self, now: float, info: Info):
        self.received.append((now, info.acknowledged))
        while self.received[0][0] < now - max(info.round_trip, 0.1):
            self.received.popleft()
        if info.lost > self.lost:
            self.lost = info.lost
            # Losses within a round trip are one event (5.2).
            if now - self.began > info.round_trip:
                self.intervals.appendleft(info.sent - self.began_sent if self.intervals else self.first(now, info))
                self.began, self.began_sent, self.events = now, info.sent, self.events + 1
        if self.intervals:
            self.p = 1 / max(1, self.mean(info.sent - self.began_sent))
            self.rate = equation(info.segment, info.round_trip, self.p)

    def first(self, now: float, info: Info) -> float:
        """The interval at which the equation gives the rate that arrived until the first loss (6.3.1)."""
        since, acknowledged = self.received[0]
        rate = max((info.acknowledged - acknowledged) / max(now - since, TICK), 4 * info.segment / info.round_trip)
        low, high = 1e-8, 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if equation(info.segment, info.round_trip, middle) > rate else (low, middle)
        return 1 / low

    def mean(self, opened: int) -> float:
        """Mean of the intervals; the open one counts where it makes the mean longer (5.4)."""
        weights = WEIGHTS[:len(self.intervals)]
        weigh = lambda values: sum(weight * value for weight, value in zip(weights, values))
        return max(weigh([opened, *self.intervals]), weigh(self.intervals)) / sum(weights)


def chunk(number: int, due: float) -> bytes:
    """A frame as a chunk of HTTP/1.1; it has FRAME bytes with the chunk's own."""
    size = FRAME - len(f"{FRAME:x}\r\n\r\n")
    return f"{size:x}\r\n".encode() + HEAD.pack(number, due) + bytes(size - HEAD.size) + b"\r\n"


class Response:
    """A stream to one viewer, from its request on."""

    def __init__(self, connection: socket.socket, path: str):
        self.connection, self.path = connection, path
        way, _, query = path.strip("/").partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        control, _, rule = way.partition("-")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, int(asked["unsent"]) if rule == "short" else UNSENT)
        connection.setblocking(False)
        self.tfrc, self.ready = Tfrc() if rule == "tfrc" else None, select.poll() if rule == "short" else None
        if self.ready:
            self.ready.register(connection, select.POLLOUT)
        self.wait, self.seconds = float(asked.get("wait", "inf")), float(asked["seconds"])
        # Bytes that wait: those that began to be sent, and frames with their due times.
        self.begun, self.frames = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nTransfer-Encoding: chunked\r\n\r\n", collections.deque()
        self.start = self.last = time.monotonic()
        self.made = self.dropped = self.repeated = self.unsent = 0
        # Bytes that TFRC allows.
        self.credit = math.inf

    def tick(self, now: float) -> bool:
        """Sends what is due and allowed; whether the response goes on."""
        is_new = False
        while (due := self.start + self.made / FPS) <= now:
            self.frames.append((due, chunk(self.made, due)))
            self.made, is_new = self.made + 1, True
        while self.frames and now - self.frames[0][0] > self.wait:
            self.frames.popleft()
            self.dropped += 1
        if is_new or self.tfrc:
            self.look(now, is_new)
        try:
            while self.send():
                pass
        except BlockingIOError:
            pass
        return now < self.start + self.seconds

    def look(self, now: float, is_new: bool):
        """Asks the kernel, and notes what it allows."""
        info = Info(self.connection)
        self.segment = info.segment
        self.unsent += info.unsent if is_new else 0
        if self.tfrc:
            self.earn(now, info)

    def earn(self, now: float, info: Info):
        """Adds the credit of the time since the last look, of a round trip at most (4.6). Repeats of the kernel take credit too."""
        self.tfrc.update(now, info)
        if self.tfrc.rate < math.inf:
            most = max(self.tfrc.rate * info.round_trip, 2 * info.segment)
            self.credit = min(self.credit + self.tfrc.rate * (now - self.last) - info.segment * (info.repeated - self.repeated), most)
        self.last, self.repeated = now, info.repeated

    def send(self) -> bool:
        """Gives the kernel whole segments, or the rest; whether it took anything."""
        if self.ready and not self.ready.poll(0):
            return False
        while self.frames and len(self.begun) < self.segment <= self.credit:
            self.begun += self.frames.popleft()[1]
        size = len(self.begun)
        if self.credit < size:
            size = int(max(self.credit, 0)) // self.segment * self.segment
        if size == 0:
            return False
        sent = self.connection.send(self.begun[:size])
        self.begun = self.begun[sent:]
        self.credit -= sent
        return sent > 0

    def told(self) -> str:
        info = Info(self.connection)
        found = {"path": self.path, "made": self.made, "dropped": self.dropped, "repeated": info.repeated, "sent": info.sent, "unsent": self.unsent / self.made}
        if self.tfrc:
            found |= {"events": self.tfrc.events, "p": self.tfrc.p}
        return json.dumps(found)


def request(connection: socket.socket) -> str:
    """Path of a request."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(4096)):
            return ""
        data += more
    return data.split()[1].decode()


def main():
    listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=64)
    listener.setblocking(False)
    waiting, responses = [], []
    while True:
        try:
            waiting.append(listener.accept()[0])
            waiting[-1].setblocking(False)
        except BlockingIOError:
            pass
        for connection in list(waiting):
            # The request is one segment.
            try:
                path = request(connection)
            except BlockingIOError:
                continue
            except OSError:
                path = ""
            waiting.remove(connection)
            if path:
                responses.append(Response(connection, path))
        for response in list(responses):
            try:
                if response.tick(time.monotonic()):
                    continue
                print(response.told(), flush=True)
            except OSError as error:
                print(json.dumps({"path": response.path, "problem": str(error)}), flush=True)
            responses.remove(response)
            response.connection.close()
        time.sleep(TICK)


if __name__ == "__main__":
    main()
