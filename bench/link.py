#!/usr/bin/env python3
"""How far the bad network (millpond-link) is from what it was told: delay, jitter, loss, bursts, reordering, duplicates and rate.

Numbered UDP packets cross the link; the kernel's times of reception are compared with the times of sending. Exits 1 where a figure is
out of its bounds, except lateness, which a busy machine causes. Needs root.

    cargo build --release -p millpond-link
    bench/link.py
"""

import argparse
import json
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

import netns

PORT, END = 5000, 0xFFFFFFFF
HEADERS = 28
TIMESTAMPS = getattr(socket, "SO_TIMESTAMPNS", 35)

# Name, impairments, packets, interval in seconds, length of an IP packet.
CASES = [
    ("nothing", "", 2000, 0.002, 200),
    ("delay 20 ms", "delay=20ms", 2000, 0.002, 200),
    ("delay 100 ms", "delay=100ms", 2000, 0.002, 200),
    ("delay 200 ms", "delay=200ms", 2000, 0.002, 200),
    ("delay 50 ms, jitter 10 ms", "delay=50ms,jitter=10ms", 400, 0.021, 200),
    ("loss 0.1 %", "loss=0.1%", 20000, 0.0004, 200),
    ("loss 1 %", "loss=1%", 20000, 0.0004, 200),
    ("loss 5 %", "loss=5%", 20000, 0.0004, 200),
    ("bursts 1 %/25 %", "burst=1%/25%", 20000, 0.0004, 200),
    ("reordering 1 % by 5 ms", "delay=10ms,reorder=1%,reorder-by=5ms", 10000, 0.001, 200),
    ("duplicates 1 %", "duplicate=1%", 20000, 0.0004, 200),
    ("rate 1 Mbit/s, queue 100 ms", "rate=1Mbit,queue=100ms", 700, 0.008, 1500),
    ("rate 10 Mbit/s, queue 100 ms", "rate=10Mbit,queue=100ms", 6000, 0.0008, 1500),
    ("rate 20 Mbit/s, queue 200 ms", "rate=20Mbit,queue=200ms", 10000, 0.0004, 1500),
]


def send(count: int, interval: float, length: int):
    """Sends numbered packets at even times, and the last number until it is killed."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    target = (netns.ADDRESSES[1], PORT)
    fill = bytes(length - HEADERS - 12)
    start = time.monotonic()
    for number in range(count):
        wait = start + number * interval - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        out.sendto(struct.pack("!Iq", number, time.time_ns()) + fill, target)
    while True:
        time.sleep(1)
        out.sendto(struct.pack("!Iq", END, 0), target)


def receive(file: Path):
    """Writes number, time of sending and time of reception of each packet."""
    into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUFFORCE if hasattr(socket, "SO_RCVBUFFORCE") else 33, 16 << 20)
    into.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
    into.bind(("0.0.0.0", PORT))
    found = []
    print("bound", flush=True)
    while True:
        data, extra, _, _ = into.recvmsg(2048, 64)
        number, sent = struct.unpack("!Iq", data[:12])
        if number == END:
            break
        seconds, nanoseconds = struct.unpack("qq", extra[0][2])
        found.append((number, sent, seconds * 10**9 + nanoseconds))
    file.write_text(json.dumps(found))


def measure(impairments: str, count: int, interval: float, length: int, seed: int) -> tuple:
    """What arrived, and the link's counters."""
    own = ["/usr/bin/python3", Path(__file__).resolve()]
    with tempfile.TemporaryDirectory() as work, netns.Pair(ab=impairments, seed=seed) as pair:
        file = Path(work) / "found.json"
        receiver = pair.b.start(*own, "--receive", file, stdout=-1, text=True)
        receiver.stdout.readline()
        pair.a.start(*own, "--send", f"{count},{interval},{length}")
        if receiver.wait(count * interval + 60):
            raise RuntimeError("the receiver failed")
        found = json.loads(file.read_text())
    return found, pair.report["ab"]


def figures(found: list, count: int, length: int) -> dict:
    delays = sorted((received - sent) / 1e6 for _, sent, received in found)
    numbers = [number for number, _, _ in found]
    first, last = found[0][2], found[-1][2]
    lost = sorted(set(range(count)) - set(numbers))
    bursts = sum(1 for at, number in enumerate(lost) if at == 0 or number != lost[at - 1] + 1)
    newest, late = -1, 0
    for number in numbers:
        late += number < newest
        newest = max(newest, number)
    return {
        "mean-ms": statistics.mean(delays), "deviation-ms": statistics.pstdev(delays), "least-ms": delays[0],
        "p50-ms": delays[len(delays) // 2], "p99-ms": delays[len(delays) * 99 // 100], "greatest-ms": delays[-1],
        "lost": len(lost), "sent": count, "burst": len(lost) / max(bursts, 1), "late": late, "twice": len(numbers) - len(set(numbers)),
        "mbit": (len(found) - 1) * length * 8 / (last - first) * 1e3,
    }


def judge(name: str, impairments: str, got: dict, report: dict) -> list:
    """Asked, measured, and whether that is within bounds: pairs of texts."""
    asked = dict(part.split("=") for part in impairments.split(",") if part)
    share = got["lost"] / got["sent"]
    wrong = []
    if report["overflowed"] or report["unread"] or report["refused"]:
        wrong.append("packets were dropped that nobody asked for")
    decided = report["lost"] + report["lost-in-bursts"] + report["queue-full"]
    # Packets with the last number may be lost, too.
    if not got["lost"] <= decided <= got["lost"] + 30:
        wrong.append(f"{got['lost']} packets are missing, {decided} were dropped")
    if "rate" in asked:
        rate = float(asked["rate"].removesuffix("Mbit"))
        queue = float(asked["queue"].removesuffix("ms"))
        if abs(got["mbit"] / rate - 1) > 0.01:
            wrong.append("the rate is off by more than 1 %")
        return [f"{rate:g} Mbit/s, {queue:g} ms", f"{got['mbit']:.3f} Mbit/s, p50 {got['p50-ms']:.1f} ms, greatest {got['greatest-ms']:.1f} ms", wrong]
    if "loss" in asked or "burst" in asked:
        enter, leave = ([float(one.removesuffix("%")) for one in asked["burst"].split("/")] if "burst" in asked else (0, 1))
        expected = float(asked["loss"].removesuffix("%")) / 100 if "loss" in asked else enter / (enter + leave)
        # Four deviations of a binomial distribution; losses in bursts vary more by the square root of about twice their length.
        bound = 4 * (expected * (1 - expected) / got["sent"] * (2 * 100 / leave if "burst" in asked else 1)) ** 0.5
        if abs(share - expected) > bound:
            wrong.append(f"the share of losses is off by more than {bound:.2%}")
        length = f", {100 / leave:g} in a row" if "burst" in asked else ""
        return [f"{expected:.2%}{length}", f"{share:.2%} ({got['lost']} of {got['sent']})" + (f", {got['burst']:.2f} in a row" if length else ""), wrong]
    if "reorder" in asked or "duplicate" in asked:
        kind = "late" if "reorder" in asked else "twice"
        return ["1 %", f"{got[kind] / got['sent']:.2%} ({got[kind]} of {got['sent']})", wrong]
    delay = float(asked.get("delay", "0ms").removesuffix("ms"))
    jitter = float(asked.get("jitter", "0ms").removesuffix("ms"))
    # A busy machine is late, at times for most packets, but not for all.
    if got["least-ms"] < delay - jitter or got["least-ms"] > delay - jitter + 1 + jitter / 5:
        wrong.append("the delay is off")
    expected = f"{delay:g} ms" + (f", deviation {jitter / 3**0.5:.2f} ms" if jitter else "")
    spread = f", deviation {got['deviation-ms']:.2f} ms" if jitter else f", p99 {got['p99-ms']:.2f} ms"
    return [expected, f"p50 {got['p50-ms']:.2f} ms{spread}, greatest {got['greatest-ms']:.2f} ms", wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="(%(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures too")
    parser.add_argument("--send", help=argparse.SUPPRESS)
    parser.add_argument("--receive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.receive:
        return receive(options.receive)
    if options.send:
        count, interval, length = options.send.split(",")
        return send(int(count), float(interval), int(length))
    print("| | asked | measured | |\n|---|---|---|---|")
    results, fine = [], True
    for name, impairments, count, interval, length in CASES:
        found, report = measure(impairments, count, interval, length, options.seed)
        got = figures(found, count, length)
        asked, measured, wrong = judge(name, impairments, got, report)
        fine &= not wrong
        results.append({"name": name, "impairments": impairments, **got, "report": report})
        print(f"| {name} | {asked} | {measured} | {'; '.join(wrong) or 'ok'} |", flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return not fine


if __name__ == "__main__":
    sys.exit(main())
