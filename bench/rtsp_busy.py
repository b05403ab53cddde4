#!/usr/bin/env python3
"""How late RTSP streams are beside programs that use every core, and whether newcomers are refused there.

Each binary serves the same streams, first alone and then beside busy loops that begin when all streams play; binaries take
turns, so that what else the machine does meets all of them. The generator is always that of the first binary. Late is a packet
more than 100 ms behind its schedule; p50, p90 and p99 are of how far packets were behind it, over the whole run. Lagging frames
are those that the server had loaded in time and sent late.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import servers
from compare import TARGET, conclude
from rtsp_capacity import CLIPS, make, process_memory, process_seconds

LOOP = "while :; do :; done"


def load(options, server, *arguments) -> subprocess.Popen:
    url = f"rtsp://127.0.0.1:{server.rtsp}/{options.clip}.mp4"
    command = [str(options.bins[0]), "load", url, "--transport", options.transport, "--json", "-", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def trial(binary: Path, loops: int, options) -> dict:
    steady = options.streams / options.arrivals + options.settle
    total = steady + options.seconds
    work = TARGET / "bench/rtsp_busy"
    with servers.Edge(binary, str(options.media.resolve()), work) as server:
        began = time.monotonic()
        running = [load(options, server, "--clients", str(options.streams), "--ramp-up", f"{options.streams / options.arrivals:.0f}s",
                        "--duration", f"{total:.0f}s")]
        try:
            time.sleep(max(0.0, began + steady - time.monotonic()))
            memory = process_memory(server.process.pid)
            before = server.metrics(), process_seconds(server.process.pid), time.monotonic()
            running += [subprocess.Popen(["sh", "-c", LOOP]) for _ in range(loops)]
            time.sleep(options.seconds * 2 / 3)
            newcomers = load(options, server, "--clients", str(options.newcomers), "--watch", "1s")
            running.append(newcomers)
            came = json.loads(newcomers.communicate(timeout=60)[0])
            time.sleep(max(0.0, began + total - 0.5 - time.monotonic()))
            after = server.metrics(), process_seconds(server.process.pid), time.monotonic()
            for process in running[1:]:
                process.kill()
            report = json.loads(running[0].communicate(timeout=60)[0])
        finally:
            for process in running:
                process.kill()
                process.wait()
        warnings = [line for line in (work / "output.log").read_text().splitlines() if " WARN " in line and "late" in line]
    counted = {name: after[0].get(name, 0) - before[0].get(name, 0) for name in after[0]}
    frames = max(1, counted["millpond_rtp_frames_total"])
    window = [step for step in report["timeline"] if steady + 1 < step["elapsed"] <= total - 0.5]
    packets = sum(step["packets-per-second"] for step in window) or 1
    behind = report["media"]["behind"]
    return {
        "late": sum(step["packets-per-second"] * step["late-percent"] for step in window) / packets,
        "lost": report["media"]["lost-percent"],
        "behind": [behind[name] for name in ("p50", "p90", "p99")],
        "lagging": 100 * counted["millpond_rtp_lagging_frames_total"] / frames,
        "missed": counted["millpond_rtp_missed_deadlines_total"],
        "failed": report["sessions"]["failed"],
        "why": "; ".join(f"{failure['count']} x {failure['kind']}" for failure in (report["failures"] + came["failures"])[:3]),
        "refused": came["sessions"]["failed"],
        "memory": memory,
        "cpu": 100 * (after[1] - before[1]) / (after[2] - before[2]),
        "warnings": warnings[:2],
    }


def run(options) -> dict:
    make(options.clip, options.media)
    results = []
    for number in range(options.rounds):
        for loops in options.loops:
            for place, binary in enumerate(options.bins):
                one = trial(binary, loops, options)
                results.append({"round": number, "loops": loops, "binary": place, **one})
                p50, p90, p99 = one["behind"]
                print(
                    f"binary {place}  {options.streams} streams  {loops} loops: {one['late']:6.2f} % late {one['lost']:5.2f} % lost  "
                    f"p50 {p50:6.1f} p90 {p90:6.1f} p99 {p99:7.1f} ms  lagging frames {one['lagging']:5.2f} %  missed {one['missed']:6.0f}  "
                    f"CPU {one['cpu']:5.1f} %  {one['memory'] / 1e6:.1f} MB  {one['failed']} failed, {one['refused']} of {options.newcomers} newcomers refused  {one['why']}",
                    flush=True,
                )
                for line in one["warnings"]:
                    print(f"    {line[:200]}", flush=True)
    for loops in options.loops:
        for place, binary in enumerate(options.bins):
            own = [one for one in results if (one["loops"], one["binary"]) == (loops, place)]
            late, p99 = (statistics.median(values) for values in zip(*((one["late"], one["behind"][2]) for one in own)))
            cpu, memory = (statistics.median(one[name] for one in own) for name in ("cpu", "memory"))
            refused = sum(one["refused"] for one in own)
            print(f"{loops} loops, {binary}: median {late:.2f} % late, p99 {p99:.0f} ms, CPU {cpu:.1f} %, {memory / 1e6:.1f} MB, "
                  f"{refused} newcomers refused")
    return {"results": results}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("bins", type=Path, nargs="+", help="binaries, such as those before and after a change")
    parser.add_argument("--streams", type=int, default=2000, help="(%(default)s)")
    parser.add_argument("--loops", default="0,2,4", help="numbers of busy loops (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="beside the loops (%(default)s)")
    parser.add_argument("--settle", type=float, default=3, help="seconds between arrivals and loops (%(default)s)")
    parser.add_argument("--arrivals", type=float, default=300, help="clients a second (%(default)s)")
    parser.add_argument("--newcomers", type=int, default=10, help="clients that arrive beside the loops (%(default)s)")
    parser.add_argument("--transport", choices=["udp", "tcp"], default="udp", help="(%(default)s)")
    parser.add_argument("--clip", choices=list(CLIPS), default="V1024", help="(%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/rtsp_busy.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    options = parser.parse_args(arguments)
    options.loops = [int(number) for number in options.loops.split(",")]
    return options


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
