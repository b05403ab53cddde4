#!/usr/bin/env python3
"""Striped files: one stream from four stores, each throttled to a quarter of a rate (`tc tbf`, a network namespace for each store).

Needs root. A film of a constant rate is striped into folders, which web servers behind the links serve. Each trial has a server and stores of its
own, with nothing cached; all run at once:

- `batch` and `one at a time` (`stripe-batch = 1`): the film's first bytes as one download, and the ratio of their rates;
- the same, as one RTSP stream whose rate is 0.9 of the sum of the stores: frames that are late because they were not there;
- `killed`, `silent`: with two copies and stores that carry the stream at 0.9 of the sum of three; one store's server is killed, or its cable
  pulled, in the middle of the stream;
- `killed, one copy`: what the server's log says then.
"""

import argparse
import json
import os
import shutil
import subprocess
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import servers
from compare import TARGET
from thin_link import Link, run

NAMES = ["a", "b", "c", "d"]
SECONDS = 40
KILLED_AFTER = 15
DOWNLOADED = 8 << 20
# Of the links' rate what the heads of packets take.
HEADS = 1.05
FULL = 0.9


@dataclass
class Trial:
    """A server, its stores and what is done."""

    name: str
    batch: int = 0
    copies: int = 1
    stores: int = 4
    """Stores that together have the stream's rate over `FULL`."""
    fault: str = ""
    downloads: bool = False


TRIALS = [
    Trial("batch, download", downloads=True),
    Trial("one at a time, download", batch=1, downloads=True),
    Trial("batch, stream"),
    Trial("one at a time, stream", batch=1),
    Trial("killed, two copies", copies=2, stores=3, fault="killed"),
    Trial("silent, two copies", copies=2, stores=3, fault="silent"),
    Trial("killed, one copy", fault="killed"),
]


def film(path: Path, mbps: float) -> float:
    """A film of a constant rate; returns its bits a second."""
    if not path.exists():
        rate = f"{int(mbps * 1000)}k"
        run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate=25:duration={SECONDS}", "-c:v", "libx264", "-preset",
            "ultrafast", "-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", f"{int(mbps * 500)}k", "-g", "50",
            "-x264-params", "nal-hrd=cbr:keyint=50:scenecut=0", "-movflags", "+faststart", "-y", path)
    return path.stat().st_size * 8 / SECONDS


def stripe(options, file: Path, work: Path, copies: int) -> Path:
    """Folders of stores and of the place, for a number of copies."""
    folder = work / f"copies-{copies}"
    for name in [*NAMES, "place"]:
        (folder / name).mkdir(parents=True)
    over = ",".join(f"{name}={folder / name}" for name in NAMES)
    run(options.bin, "stripe", file, "--over", over, "--unit", options.unit, "--copies", copies, "--map", folder / "place/film.mp4.stripe")
    return folder


class Scene:
    """A trial's stores and server."""

    def __init__(self, number: int, trial: Trial, rate: float, folder: Path, work: Path, options):
        work.mkdir(parents=True)
        each = rate / FULL / trial.stores
        self.first = options.base + 4 * number
        self.links = []
        for index, name in enumerate(NAMES):
            (work / name).mkdir()
            self.links.append(Link(self.first + index, each * HEADS, folder / name, work / name))
        over = ", ".join(f'"{name}={link.url}"' for name, link in zip(NAMES, self.links))
        config = work / "config.toml"
        config.write_text(f'[places.films]\nurl = "{folder}/place"\nstripe-over = [{over}]\nstripe-batch = {trial.batch}\n')
        time.sleep(0.5)
        arguments = ["--config", config, "--workers", 2, "--cache-size", 0, "--rtsp-window", "0s", "--rtsp-deadlines", "none"]
        self.server = Edge(options.bin, work, *arguments)

    def close(self):
        self.server.stop()
        for link in self.links:
            link.close()

    def breaks(self, fault: str):
        """Kills the server of one store, or pulls its cable."""
        if fault == "killed":
            self.links[1].origin.kill()
        else:
            run("ip", "link", "set", f"th{self.first + 1}a", "down")


class Edge(servers.Edge):
    """Our server of the places of a configuration."""

    def __init__(self, binary: Path, work: Path, *arguments):
        self.admin, self.rtsp = servers.free_port(), servers.free_port()
        port = servers.free_port()
        command = [binary, "serve", "--http", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{self.admin}",
                   "--rtsp", f"127.0.0.1:{self.rtsp}", "--cache", work / "cache", *arguments]
        servers.Server.__init__(self, "millpond", [str(part) for part in command], port, work / "output.log")
        self.wait()


def download(scene: Scene) -> dict:
    """The rate of the film's first bytes."""
    request = urllib.request.Request(f"{scene.server.url}/films/film.mp4", headers={"Range": f"bytes=0-{DOWNLOADED - 1}"})
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=300) as reply:
        length = len(reply.read())
    return {"bytes": length, "mbps": length * 8e-6 / (time.monotonic() - began)}


def stream(scene: Scene, trial: Trial, work: Path, options) -> dict:
    """One stream to its end, and what was late."""
    # Indexed before, as a film is that was played before.
    scene.server.get("/films/film.mp4/index.m3u8")
    report = work / "report.json"
    command = [options.bin, "load", f"rtsp://127.0.0.1:{scene.server.rtsp}/films/film.mp4", "--clients", 1, "--transport", "tcp",
               "--duration", f"{SECONDS - 1}s", "--json", report]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if trial.fault:
        time.sleep(KILLED_AFTER)
        scene.breaks(trial.fault)
    process.wait()
    metrics = scene.server.metrics()
    found = {name: metrics.get(f"millpond_rtp_{name}_total", 0) for name in ("frames", "late_frames", "missed_deadlines", "lagging_frames")}
    if report.exists():
        media = json.loads(report.read_text())["media"]
        found |= {"startup_ms": json.loads(report.read_text())["startup"]["max"], "buffer_ms": media["buffer"]["max"]}
    lines = [line for line in scene.server.log.read_text(errors="replace").splitlines() if "unit " in line]
    if lines:
        found["log"] = lines[0][:400]
    return found


def measure(number: int, trial: Trial, rate: float, folder: Path, options, results: dict):
    work = TARGET / f"bench/striped/{number}"
    scene = Scene(number, trial, rate, folder, work, options)
    try:
        results[trial.name] = download(scene) if trial.downloads else stream(scene, trial, work, options)
    finally:
        scene.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--mbps", type=float, default=14, help="rate of the film (%(default)s)")
    parser.add_argument("--unit", default="1MiB", help="length of a unit (%(default)s)")
    parser.add_argument("--only", default="", help="trials whose names contain this")
    parser.add_argument("--base", type=int, default=200, help="number of the first namespace (%(default)s)")
    parser.add_argument("--json", type=Path, default=TARGET / "bench/striped.json", help="all figures (%(default)s)")
    options = parser.parse_args()
    if os.geteuid():
        raise SystemExit("bench/striped.py needs root, for namespaces and tc")
    work = TARGET / "bench/striped"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    file = TARGET / f"bench/striped-{options.mbps:g}.mp4"
    rate = film(file, options.mbps)
    folders = {copies: stripe(options, file, work, copies) for copies in (1, 2)}
    trials = [trial for trial in TRIALS if options.only in trial.name]
    results: dict = {}
    threads = [
        threading.Thread(target=measure, args=(number, trial, rate, folders[trial.copies], options, results)) for number, trial in enumerate(trials)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    options.json.write_text(json.dumps(results, indent=1))
    print(f"film of {rate / 1e6:.1f} Mbit/s; four stores of {rate / FULL / 4e6:.2f} Mbit/s each ({rate / FULL / 3e6:.2f} where one dies)")
    for trial in trials:
        row = results.get(trial.name)
        if row is None:
            print(f"{trial.name:26} failed")
        elif trial.downloads:
            print(f"{trial.name:26} {row['mbps']:6.2f} Mbit/s")
        else:
            late = row["late_frames"] - row["lagging_frames"]
            print(f"{trial.name:26} {row['frames']:5.0f} frames, {late:.0f} missed, {row['missed_deadlines']:.0f} missed deadlines, "
                  f"start {row.get('startup_ms', 0):.0f} ms, buffer needed {row.get('buffer_ms', 0):.0f} ms")
            if "log" in row:
                print(f"{'':26} {row['log']}")
    both = [results.get(name, {}).get("mbps") for name in ("batch, download", "one at a time, download")]
    if all(both):
        print(f"batch retrieval is {both[0] / both[1]:.2f} times as fast as one request at a time")


if __name__ == "__main__":
    main()
