#!/usr/bin/env python3
"""The paper of Srinilta and Choudhary again: real nodes, the simulator, and the paper's statements in one plot.

A manager and four dispensers are real servers on an etcd of three members. 100 objects lie on storages behind a throttle
(paper_storage.py). Viewers are those of `millpond load`: they ask the manager by RTSP, which sends them to dispensers. The paper had
11 disks; here are four, and so 4/11 of the streams and of the cache. The streams begin as fast as 11 disks' streams did in the simulator within 60 s:
within 22 s. The same set-up is simulated. Late by more than 100 ms because of the storages is missed. Frames that the machine itself
sends late are told apart (lagging).
"""

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import cluster_nodes
import media
import paper_plot
import servers
from cluster_nodes import Etcd, Node, load, reported, wait_for
from compare import TARGET

WORK = TARGET / "bench/cluster-paper"
OBJECTS, DISPENSERS, DISKS, RAMP = 100, 4, 4, 22
# What a disk sends in a second, its seeks of 15 ms between units of 512 KiB at 10 MB/s included.
RATE = (512 << 10) / (0.015 + (512 << 10) / 10e6)
# Frames of a block of 200 ms at 25 frames a second.
BLOCK = 5
CACHE = 7 << 20
LOW, HIGH = 0.729, 1.2
TECHNIQUES = {
    "none": ("rr", False, "none"),
    "RR, cache": ("rr", True, "none"),
    "SOSD, cache": ("sosd", True, "none"),
    "all: SOSD, cache, delay 1": ("sosd", True, "one"),
}
# Numbers of streams that are tried for real, by rate in kbit/s and skew, for each technique.
STREAMS = {
    (1500, LOW): {"none": (150, 160, 170), "RR, cache": (190,), "SOSD, cache": (210, 230), "all: SOSD, cache, delay 1": (210, 230, 250, 270)},
    (4000, HIGH): {"none": (56, 64, 72), "RR, cache": (76,), "SOSD, cache": (88,), "all: SOSD, cache, delay 1": (88, 100)},
    (4000, LOW): {"none": (40, 48, 56, 64, 72), "RR, cache": (64,), "SOSD, cache": (72,), "all: SOSD, cache, delay 1": (64, 72, 80, 88, 96)},
    (1500, HIGH): {"none": (260, 290, 320, 350, 380), "RR, cache": (220,), "SOSD, cache": (270,), "all: SOSD, cache, delay 1": (380, 420, 460, 500)},
}


def trial(options, etcd: Etcd, site: Path, number: int, rate: int, skew: float, technique: str, streams: int) -> dict:
    assignment, has_cache, deadlines = TECHNIQUES[technique]
    work = WORK / f"trial-{number}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    window = 10 * (512 << 10) * 8 / rate / 1e3 if has_cache else 0
    # What the streams themselves hold, which is the paper's double buffer, and the cache.
    memory = int(options.buffers * rate * 125 * streams / DISPENSERS) + (CACHE if has_cache else 0)
    # The least that a server takes.
    memory = max(8 << 20, memory)
    arguments = ["--workers", 1, "--cache-size", 0, "--memory", memory, "--slice", options.slice, "--prefetch", "on-demand",
                 "--rtsp-window", f"{int(window * 1000)}ms", "--rtsp-deadlines", deadlines, "--cluster-assignment", assignment,
                 "--cluster-mbps", max(1, rate * streams // 1000)]
    with contextlib.ExitStack() as stack:
        port = servers.free_port()
        storage = stack.enter_context(subprocess.Popen(
            [sys.executable, Path(__file__).with_name("paper_storage.py"), site, str(port), str(DISKS), str(RATE)]))
        stack.callback(storage.kill)
        place = f"films=http://127.0.0.1:{port}"
        start = lambda name, role: stack.enter_context(
            Node(options.server, place, work / name, etcd.addresses, name, "--cluster-roles", role, *map(str, arguments)))
        manager, dispensers = start("m", "manager"), [start(f"d{n}", "dispenser") for n in range(DISPENSERS)]
        wait_for("all nodes", lambda: len(manager.taking()) == DISPENSERS + 1)
        for title in range(1, OBJECTS + 1):
            for node in dispensers:
                # It indexes the file, and books nothing.
                node.get(f"/films/{title}.mp4/v1/init.mp4")
        report = work / "report.json"
        client = load(options.load or options.server, report, f"rtsp://127.0.0.1:{manager.rtsp}/films/{{1..{OBJECTS}}}.mp4", "--zipf", skew,
                      "--clients", streams, "--arrivals", "poisson", "--ramp-up", f"{RAMP}s", "--duration", f"{RAMP + options.seconds}s")
        time.sleep(RAMP + 1)
        before = [node.metrics() for node in dispensers]
        time.sleep(options.seconds - 3)
        after = [node.metrics() for node in dispensers]
        told = reported(client, report)
    gained = lambda name: sum(late[f"millpond_{name}_total"] - early[f"millpond_{name}_total"] for early, late in zip(before, after))
    playing = [late["millpond_rtsp_playing"] for late in after]
    frames, late, lagging = max(1, gained("rtp_frames")), gained("rtp_late_frames"), gained("rtp_lagging_frames")
    blocks, delays = frames / BLOCK, gained("rtp_missed_deadlines")
    due = sum(playing) * (options.seconds - 3) * 25
    return {
        "rate": rate, "skew": skew, "technique": technique, "streams": streams, "playing": sum(playing), "balance": max(playing) * DISPENSERS / max(1, sum(playing)),
        "cached": gained("rtsp_interval_hits") / blocks, "missed": max(0, late - lagging) / frames, "lagging": lagging / frames,
        "delayed": delays / blocks if deadlines != "none" else 0.0, "sent": frames / max(1, due), "failed": told["sessions"]["failed"],
    }


def real(options, results: list):
    """All trials that are not among the results."""
    with Etcd(WORK / "etcd") as etcd:
        queue = [(rate, skew, technique, streams) for (rate, skew), of in STREAMS.items() for technique, numbers in of.items() for streams in numbers
                 if not options.only or f"{rate}/{skew}" in options.only.split(",")]
        known = {(row["rate"], row["skew"], row["technique"], row["streams"]) for row in results}
        queue = [each for each in queue if each not in known]
        for rate in {rate for rate, *_ in queue}:
            clip = cluster_nodes.title(WORK / f"{rate}.mp4", 2, rate)
            media.titles(clip, WORK / f"site-{rate}", OBJECTS)

        def run(number: int):
            while queue:
                rate, skew, technique, streams = queue.pop(0)
                try:
                    row = trial(options, etcd, WORK / f"site-{rate}", number, rate, skew, technique, streams)
                except (RuntimeError, OSError, KeyError) as error:
                    print(f"{technique}, {streams}: {error}", flush=True)
                    continue
                results.append(row)
                options.json.write_text(json.dumps(results, indent=1))
                print(f"{rate:5} {skew:6} {technique:26} {streams:4} playing {row['playing']:4.0f} balance {row['balance']:.2f} cached {100 * row['cached']:5.1f} % "
                      f"missed {100 * row['missed']:6.2f} % delayed {100 * row['delayed']:5.1f} % lagging {100 * row['lagging']:.2f} % "
                      f"sent {100 * row['sent']:.0f} % failed {row['failed']}", flush=True)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(options.parallel)]
        for thread in threads:
            thread.start()
            time.sleep(3)
        for thread in threads:
            thread.join()


def simulated(options) -> list:
    """The same set-up in the simulator, and the paper's own with 11 storages."""
    rows = []
    for storages, ramp, cache in ((DISKS, f"{RAMP}s", "7MiB"), (11, "60s", "20MiB")):
        file = WORK / f"simulated-{storages}.json"
        counts = ",".join(str(storages * count // 4) for count in range(120, 340, 6))
        subprocess.run([str(options.server), "simulate", "dispensers", "--storages", str(storages), "--ramp", ramp, "--cache", f"0,{cache}", "--unit", "512KiB",
                        "--delay", "0,1", "--rate", "1500,4000", "--streams", counts, "--json", str(file)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for row in json.loads(file.read_text()):
            for technique, (assignment, has_cache, deadlines) in TECHNIQUES.items():
                if (row["assignment"], row["cache"] > 0, row["delay"]) == (assignment, has_cache, 0 if deadlines == "none" else 1):
                    rows.append({"storages": storages, "rate": row["rate"] // 1000, "skew": row["skew"], "technique": technique, "streams": row["streams"],
                                 "cached": row["cached-share"], "missed": row["missed-share"], "delayed": row["delayed-share"]})
    return rows


def carried(rows: list, limit: float) -> int:
    """Most streams that all play with less than a share of missed packets, before the first number that does not. Servers refuse streams while their
    storage is late."""
    most = 0
    for row in sorted(rows, key=lambda row: row["streams"]):
        if row["missed"] >= limit or row.get("playing", row["streams"]) < 0.95 * row["streams"]:
            break
        most = row["streams"]
    return most


def table(name: str, rows: list):
    print(f"{name}: streams with less than 1 % and less than 30 % of the packets missed, and how many more than with none")
    for rate, skew in STREAMS:
        base = None
        for technique in TECHNIQUES:
            of = [row for row in rows if (row["rate"], row["skew"], row["technique"]) == (rate, skew, technique)]
            if not of:
                continue
            most = [carried(of, limit) for limit in (0.01, 0.3)]
            base = base or most
            gains = " ".join(f"{number:4} ({100 * number / max(none, 1) - 100:+.0f} %)" for number, none in zip(most, base))
            print(f"  {rate:5} kbit/s, skew {skew:5}, {technique:26} {gains}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary")
    parser.add_argument("--load", type=Path, help="binary of the viewers, where it is another one")
    parser.add_argument("--only", default="", help="rates and skews, such as 1500/0.729,4000/1.2; all without it")
    parser.add_argument("--seconds", type=int, default=28, help="of each trial after the streams have begun (%(default)s)")
    parser.add_argument("--parallel", type=int, default=2, help="trials at the same time (%(default)s)")
    parser.add_argument("--slice", default="128KiB", help="(%(default)s)")
    parser.add_argument("--buffers", type=float, default=2.8, help="memory for each stream beside the cache, in seconds (%(default)s)")
    parser.add_argument("--plot-only", action="store_true", help="plot the figures of the last run")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/cluster-paper.json", help="figures of the trials; those that are there are kept (%(default)s)")
    parser.add_argument("--plots", type=Path, default=TARGET / "bench/cluster-paper-plots", help="folder of the plots (%(default)s)")
    options = parser.parse_args()
    cluster_nodes.alone()
    WORK.mkdir(parents=True, exist_ok=True)
    results = json.loads(options.json.read_text()) if options.json.exists() else []
    if not options.plot_only:
        real(options, results)
    rows = simulated(options)
    for storages, name in ((DISKS, "simulated, 4 storages"), (11, "simulated, the paper's 11 storages")):
        table(name, [row for row in rows if row["storages"] == storages])
    table("real, 4 storages", results)
    paper_plot.draw(options.plots, rows, results, DISKS, TECHNIQUES)


if __name__ == "__main__":
    main()
