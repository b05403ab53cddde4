#!/usr/bin/env python3
"""How a stream of fragmented MP4 arrives at a viewer: when bytes and frames came, which frames are whole, which are in time.

As a program it fetches a URL for so many seconds, and writes the body to FILE and the times of arrival to FILE.json. RTSP and playlists
are read by ffmpeg, which writes each frame as a fragment:

    bench/arrivals.py URL SECONDS FILE
"""

import bisect
import json
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from live_exact import hashes
from paced import boxes

# Seconds left out at the beginning: those in which connections start and the first group of pictures arrives at once.
BEGINNING = 3


# ffmpeg hands over each frame as soon as it can.
AT_ONCE = ["-fflags", "nobuffer", "-probesize", "5000", "-analyzeduration", "100000"]
FRAGMENTS = ["-c", "copy", "-f", "mp4", "-movflags", "empty_moov+default_base_moof+frag_every_frame", "-flush_packets", "1", "pipe:1"]


def get(url: str) -> socket.socket:
    """Asks for a stream. The body follows, without chunks: HTTP/1.0 ends it with the connection."""
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), 20)
    connection.sendall(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
    head = b""
    # A byte at a time, so that nothing of the body is read with it.
    while b"\r\n\r\n" not in head:
        data = connection.recv(1)
        if not data:
            break
        head += data
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"{url}: {head[:200]!r}")
    return connection


def play(url: str) -> subprocess.Popen:
    """A player of RTSP by UDP or of a playlist, whose output are the frames."""
    transport = ["-rtsp_transport", "udp"] if url.startswith("rtsp") else []
    command = ["ffmpeg", "-v", "error", "-nostdin", *AT_ONCE, *transport, "-i", url, *FRAGMENTS]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def fetch(url: str, seconds: float, file: Path):
    """Reads for so many seconds from the first byte of the body on. Gives up after 20 s without one."""
    is_played = url.startswith("rtsp") or url.endswith(".m3u8")
    source = play(url) if is_played else get(url)
    number = source.stdout.fileno() if is_played else source.fileno()
    start, end, reads = None, time.monotonic() + 20, []
    with file.open("wb") as out:
        while (left := end - time.monotonic()) > 0:
            if not select.select([number], [], [], left)[0]:
                break
            data = os.read(number, 65536)
            if not data:
                break
            now = time.monotonic()
            if start is None:
                start, end = now, now + seconds
            reads.append((now - start, len(data)))
            out.write(data)
    Path(f"{file}.json").write_text(json.dumps(reads))
    if is_played:
        source.kill()
        source.wait()
    if not reads:
        raise RuntimeError(f"{url}: nothing arrived")


def windows(reads: list, seconds: float, begin: float = BEGINNING) -> list:
    """Bits per second that arrived in each whole second from `begin` on."""
    found = [0] * int(seconds - begin)
    for at, length in reads:
        place = int(at - begin)
        if at >= begin and place < len(found):
            found[place] += length * 8
    return found


def samples(moof: bytes) -> int:
    """Samples that a fragment of one track states (ISO/IEC 14496-12 8.8.8)."""
    place = moof.find(b"trun")
    return struct.unpack_from(">I", moof, place + 8)[0] if place >= 0 else 0


def fragments(file: Path, reads: list) -> list:
    """The time at which each fragment of a body had arrived, and its number of frames."""
    ends, times, total = [], [], 0
    for at, length in reads:
        total += length
        ends.append(total)
        times.append(at)
    data, found, start, held = file.read_bytes(), [], 0, 0
    for kind, end in boxes(data):
        if kind == "moof":
            held = samples(data[start:end])
        elif kind == "mdat":
            found.append((times[bisect.bisect_left(ends, end)], held))
        start = end
    return found


class Source:
    """The frames of a clip by their hashes, as coded and as decoded."""

    def __init__(self, clip: Path, rate: float):
        self.rate = rate
        self.coded = {digest: place for place, (_, digest) in enumerate(hashes("-i", clip, is_coded=True).video)}
        self.decoded = {digest: place for place, (_, digest) in enumerate(hashes("-i", clip).video)}


def judge(source: Source, file: Path, seconds: float, buffer: float) -> dict:
    """Figures of a fetched stream. A frame is in time if a player that buffers for `buffer` seconds has it when it is due."""
    reads = json.loads(Path(f"{file}.json").read_text())
    bits = windows(reads, seconds)
    made = fragments(file, reads)
    arrived = [at for at, held in made for _ in range(held)]
    coded = hashes("-i", file, is_coded=True).video
    # In the order of presentation.
    came = sorted((pts, at) for (pts, _), at in zip(coded, arrived))

    def when(pts: float) -> float:
        """The arrival of the frame with the nearest time: times are rounded differently where frames are decoded."""
        place = bisect.bisect_left(came, (pts - 0.005,))
        return came[place][1] if place < len(came) and came[place][0] < pts + 0.005 else seconds

    whole = {source.coded[digest]: when(pts) for pts, digest in coded if digest in source.coded}
    shown = {source.decoded[digest]: when(pts) for pts, digest in hashes("-i", file).video if digest in source.decoded}
    gaps = [b - a for (a, _), (b, _) in zip(made, made[1:]) if a >= BEGINNING]
    first = min(whole, default=0)
    # Frames that are due before the end, with the buffer and a second for what is on its way.
    due = int((seconds - buffer - 1) * source.rate)
    begin = whole.get(first, 0)

    def share(found: dict, is_late_fine: bool) -> float:
        expected = range(first, first + due)
        fine = [place for place in expected if place in found and (is_late_fine or found[place] - begin <= (place - first) / source.rate + buffer)]
        return len(fine) / max(due, 1)

    mean = statistics.mean(bits)
    return {
        "bits": bits, "mean": mean, "variation": statistics.pstdev(bits) / mean if mean else None,
        "gap-mean": statistics.mean(gaps) if gaps else None, "gap-deviation": statistics.pstdev(gaps) if gaps else None,
        "gap-greatest": max(gaps, default=None), "frames": len(arrived), "due": due,
        "whole": share(whole, True), "whole-in-time": share(whole, False), "shown-in-time": share(shown, False),
    }


if __name__ == "__main__":
    fetch(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
