"""Packets at a network device, as the paper measured: recorded by dumpcap, read from its file."""

import statistics
import struct
import subprocess
import time
from pathlib import Path

from arrivals import BEGINNING, windows

# Bytes kept of each packet: its headers are not needed, its length is in the record.
KEPT = 64


class Capture:
    """Packets with data that reach a namespace, until it is closed. Use it in a `with`."""

    def __init__(self, namespace, file: Path):
        self.file = file
        # Acknowledgements of TCP have no more than 100 bytes, reports of RTCP neither.
        chosen = f"dst host {namespace.address} and greater 150"
        command = namespace.command("dumpcap", "-q", "-P", "-i", "link", "-s", KEPT, "-f", chosen, "-w", file)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.startswith("File:"):
                return
        raise RuntimeError(f"dumpcap ended with {self.process.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # It writes out what it has every half second.
        time.sleep(1)
        self.process.terminate()
        self.process.communicate()


def read(file: Path) -> list:
    """Seconds since the first packet, and the length, of each packet."""
    data = file.read_bytes()
    if len(data) < 24:
        return []
    order = "<" if struct.unpack_from("<I", data)[0] in (0xA1B2C3D4, 0xA1B23C4D) else ">"
    part = 1e-9 if struct.unpack_from(order + "I", data)[0] == 0xA1B23C4D else 1e-6
    found, at = [], 24
    while at + 16 <= len(data):
        seconds, parts, kept, length = struct.unpack_from(order + "IIII", data, at)
        at += 16 + kept
        found.append((seconds + parts * part, length))
    return [(when - found[0][0], length) for when, length in found]


def figures(file: Path, seconds: float) -> dict:
    """Bandwidth and times between packets."""
    found = read(file)
    if not found:
        return {"mean": 0.0, "bits": [], "variation": None, "gap-mean": None, "gap-deviation": None, "gap-greatest": None}
    bits = windows(found, seconds)
    times = [at for at, _ in found if BEGINNING <= at < seconds]
    gaps = [b - a for a, b in zip(times, times[1:])]
    mean = statistics.mean(bits)
    return {
        "bits": bits, "mean": mean, "variation": statistics.pstdev(bits) / mean if mean else None,
        "gap-mean": statistics.mean(gaps) if gaps else None, "gap-deviation": statistics.pstdev(gaps) if gaps else None,
        "gap-greatest": max(gaps, default=None),
    }
