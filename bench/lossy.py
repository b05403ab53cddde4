"""A relay before an RTSP server that loses packets of RTP by UDP, and knows which frames arrived whole."""

import hashlib
import random
import re
import socket
import threading
from dataclasses import dataclass, field

# NAL unit types of coded slices, of a single-time aggregation packet and of a fragment (RFC 6184, 5.2).
SLICES = range(1, 6)
STAP_A, FU_A = 24, 28


def ports() -> tuple:
    """Two sockets with consecutive ports, the first one even (RFC 3550, 11)."""
    while True:
        media, control = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        try:
            media.bind(("127.0.0.1", 0))
            number = media.getsockname()[1]
            if number % 2 == 0:
                control.bind(("127.0.0.1", number + 1))
                return media, control
        except OSError:
            pass
        media.close()
        control.close()


@dataclass
class Track:
    """Sockets of a track towards both sides, and its packets."""

    sockets: tuple
    client: tuple
    server: tuple = ()
    # Each with whether it was forwarded.
    packets: list = field(default_factory=list)

    def number(self) -> int:
        return self.sockets[0].getsockname()[1]


class Relay:
    """A port that leads to an RTSP server. Use it in a `with`."""

    def __init__(self, upstream: int, percent: float, seed: int):
        self.upstream, self.share, self.random = upstream, percent / 100, random.Random(seed)
        self.tracks, self.open = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        self.start(self.accept)
        return self

    def __exit__(self, *_):
        for each in [self.listener, *self.open, *(one for track in self.tracks for one in track.sockets)]:
            each.close()

    @staticmethod
    def start(run, *arguments):
        threading.Thread(target=run, args=arguments, daemon=True).start()

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.upstream))
                self.open += [client, server]
                self.start(self.pump, client, server, self.asked)
                self.start(self.pump, server, client, self.answered)
        except OSError:
            pass

    def pump(self, source, target, rewrite):
        try:
            while data := source.recv(65536):
                target.sendall(rewrite(data))
        except OSError:
            pass
        source.close()
        target.close()

    def asked(self, data: bytes) -> bytes:
        """A request of the client. Its ports become those of the relay."""
        found = re.search(rb"client_port=(\d+)-(\d+)", data)
        if not found:
            return data
        track = Track(ports(), (int(found[1]), int(found[2])))
        self.tracks.append(track)
        for place in range(2):
            self.start(self.forward, track, place)
        return data.replace(found[0], b"client_port=%d-%d" % (track.number(), track.number() + 1))

    def answered(self, data: bytes) -> bytes:
        """A reply of the server to the newest request."""
        found = re.search(rb"server_port=(\d+)-(\d+)", data)
        if not found:
            return data
        track = self.tracks[-1]
        track.server = (int(found[1]), int(found[2]))
        own = b"%d-%d" % (track.number(), track.number() + 1)
        data = data.replace(b"client_port=" + own, b"client_port=%d-%d" % track.client)
        return data.replace(found[0], b"server_port=" + own)

    def forward(self, track: Track, place: int):
        own = track.sockets[place]
        try:
            while True:
                data, (_, port) = own.recvfrom(65536)
                if port == track.client[place]:
                    if track.server:
                        own.sendto(data, ("127.0.0.1", track.server[place]))
                    continue
                is_kept = place == 1 or self.random.random() >= self.share
                if place == 0:
                    track.packets.append((data, is_kept))
                if is_kept:
                    own.sendto(data, ("127.0.0.1", track.client[place]))
        except OSError:
            pass

    def lost(self) -> tuple:
        """Packets that were lost, and all packets."""
        kept = [is_kept for track in self.tracks for _, is_kept in track.packets]
        return kept.count(False), len(kept)

    def frames(self) -> dict:
        """Hashes of the frames that were sent, by track, in decoding order. Each has whether all of its packets were forwarded."""
        found = {"video": [], "audio": []}
        for track in self.tracks:
            # H.264 has more packets with a marker clear than AAC, whose packets hold whole frames.
            is_sound = all(data[1] & 0x80 for data, _ in track.packets)
            found["audio" if is_sound else "video"] += (sounds if is_sound else pictures)(track.packets)
        return found


def payload(packet: bytes) -> bytes:
    """Payload of an RTP packet (RFC 3550, 5.1)."""
    start = 12 + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10:
        start += 4 + 4 * int.from_bytes(packet[start + 2:start + 4])
    return packet[start:len(packet) - (packet[-1] if packet[0] & 0x20 else 0)]


def pictures(packets: list) -> list:
    """Pictures of H.264 (RFC 6184): hashes of their slices as byte streams."""
    units = {}
    for packet, is_kept in packets:
        found = units.setdefault(packet[4:8], [[], True])
        found[1] &= is_kept
        data = payload(packet)
        kind = data[0] & 0x1F
        if kind == FU_A:
            if data[1] & 0x80:
                found[0].append(bytes([data[0] & 0xE0 | data[1] & 0x1F]))
            found[0][-1] += data[2:]
        elif kind == STAP_A:
            data = data[1:]
            while len(data) > 2:
                size = int.from_bytes(data[:2])
                found[0].append(data[2:2 + size])
                data = data[2 + size:]
        else:
            found[0].append(data)
    slices = [([unit for unit in found if unit[0] & 0x1F in SLICES], is_whole) for found, is_whole in units.values()]
    return [(digest(b"\0\0\0\1" + b"\0\0\1".join(found)), is_whole) for found, is_whole in slices if found]


def sounds(packets: list) -> list:
    """Frames of AAC (RFC 3640, 3.3.6: sizes of 13 bits, indexes of 3 bits)."""
    frames = []
    for packet, is_kept in packets:
        data = payload(packet)
        count = int.from_bytes(data[:2]) // 16
        at = 2 + 2 * count
        for n in range(count):
            size = int.from_bytes(data[2 + 2 * n:4 + 2 * n]) >> 3
            frames.append((digest(data[at:at + size]), is_kept))
            at += size
    return frames


def digest(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def judge(received: list, sent: list) -> tuple:
    """Compares hashes of received frames with those that were sent. Returns the number of whole frames, and what is wrong.

    Frames before the first and behind the last received one are not judged."""
    places = {name: place for place, (name, _) in enumerate(sent)}
    found = [places.get(name) for name in received]
    if not found:
        return 0, "no frames"
    if None in found:
        return 0, f"frame {found.index(None)} of {len(found)} is not of the source ({found.count(None)} in all)"
    if found != sorted(set(found)):
        return 0, "frames are not in their order"
    whole = [place for place in range(found[0], found[-1] + 1) if sent[place][1]]
    missing = sorted(set(whole) - set(found))
    return len(whole), f"{len(missing)} whole frames are missing, the first one is {missing[0]}" if missing else ""
