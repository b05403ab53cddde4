#!/usr/bin/env python3
"""Striped files: one stream from four stores, each throttled to a quarter of a rate (`tc tbf`, a network namespace for each store).

Needs root. A film of a constant rate is striped into folders, which web servers behind the links serve. Each trial has a server and stores of its
own, with nothing cached; some run at the same time:

- `batch` and `one at a time` (`stripe-batch = 1`): the film's first bytes as one download, and the ratio of their rates;
- `stream`: one RTSP stream whose rate is 0.9 or 0.95 of the sum of the stores: frames that are late because they were not there. `at once` is
  the same without a delayed start (`stripe-start = 0`);
- `HLS`, `file`: one player of each. A player of HLS plays when it has a segment, one of a file when it has two seconds;
- `killed`, `silent`: with two copies and stores that carry the stream at 0.9 of the sum of three; one store's server is killed, or its cable
  pulled, in the middle of the stream;
- `killed, one copy`: what the server's log says then;
- `verification`: processor time of the server for each GB of the film from folders without links, with checksums of units and without.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
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
# Seconds of media that a player of a file has before it plays.
AHEAD = 2.0
# Downloads of the film, and rounds, for the cost of verification.
DOWNLOADS = 5
ROUNDS = 3


@dataclass
class Trial:
    """A server, its stores and what is done."""

    name: str
    batch: int = 0
    copies: int = 1
    stores: int = 4
    """Stores that together have the stream's rate over `full`."""
    fault: str = ""
    plays: str = "rtsp"
    """rtsp, hls, download, or the path of a file that is played as it arrives."""
    full: float = FULL
    start: str = "5s"


TRIALS = [
    Trial("batch, download", plays="download"),
    Trial("one at a time, download", batch=1, plays="download"),
    Trial("batch, stream"),
    Trial("batch, stream at 0.95", full=0.95),
    Trial("batch, stream at once", start="0s"),
    Trial("one at a time, stream", batch=1),
    Trial("HLS", plays="hls"),
    Trial("HLS at 0.95", plays="hls", full=0.95),
    Trial("file", plays="film.mp4"),
    Trial("killed, two copies", copies=2, stores=3, fault="killed"),
    Trial("silent, two copies", copies=2, stores=3, fault="silent"),
    Trial("HLS, silent, two copies", copies=2, stores=3, fault="silent", plays="hls"),
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
        each = rate / trial.full / trial.stores
        self.first = options.base + 4 * number
        self.links = []
        for index, name in enumerate(NAMES):
            (work / name).mkdir()
            self.links.append(Link(self.first + index, each * HEADS, folder / name, work / name))
        over = ", ".join(f'"{name}={link.url}"' for name, link in zip(NAMES, self.links))
        config = work / "config.toml"
        config.write_text(f'[places.films]\nurl = "{folder}/place"\nstripe-over = [{over}]\nstripe-batch = {trial.batch}\n'
                          f'stripe-start = "{trial.start}"\n')
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


def play(scene: Scene, trial: Trial, rate: float) -> dict:
    """A player of a file that plays once it has `AHEAD`: its stalls."""
    scene.server.get("/films/film.mp4/index.m3u8")
    began, arrived, pieces = time.monotonic(), 0, []
    with urllib.request.urlopen(f"{scene.server.url}/films/{trial.plays}", timeout=300) as reply:
        while piece := reply.read1(1 << 16):
            arrived += len(piece)
            pieces.append((time.monotonic() - began, arrived))
    total = pieces[-1][1]
    bytes_a_second = total / SECONDS
    start = next(at for at, count in pieces if count >= min(AHEAD * bytes_a_second, total))
    plays, stalls, stalled, before = start, 0, 0.0, 0
    for at, count in pieces:
        # All before this piece was played at `plays` and the time that it takes.
        if at > plays + before / bytes_a_second:
            wait = at - plays - before / bytes_a_second
            stalls, stalled, plays = stalls + 1, stalled + wait, plays + wait
        before = count
    return {"startup_ms": start * 1e3, "stalls": stalls, "stalled_ms": stalled * 1e3, "mbps": total * 8e-6 / pieces[-1][0]}


def segments(scene: Scene, trial: Trial, work: Path, options) -> dict:
    """A player of HLS: its stalls."""
    scene.server.get("/films/film.mp4/index.m3u8")
    report = work / "report.json"
    command = [options.bin, "load", f"{scene.server.url}/films/film.mp4/index.m3u8", "--clients", 1, "--buffer", "30s", "--json", report]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if trial.fault:
        time.sleep(KILLED_AFTER)
        scene.breaks(trial.fault)
    process.wait()
    found = json.loads(report.read_text())
    return {"startup_ms": found["startup"]["max"], "stalls": found["stalls"]["count"], "stalled_ms": found["stalls"]["seconds"] * 1e3,
            "all": found["stalls"], "errors": found["errors"]}


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


def verification(options, folder: Path, work: Path) -> dict:
    """Milliseconds of processor time for each GB, the least of some rounds: with checksums, and by a map of the first format."""
    found: dict = {}
    for kind in ["verified", "unchecked"] * ROUNDS:
        place = work / kind
        place.mkdir(parents=True, exist_ok=True)
        stripe_map = json.loads((folder / "place/film.mp4.stripe").read_text())
        if kind == "unchecked":
            stripe_map["millpond-stripe"] = 1
            del stripe_map["sums"]
        (place / "film.mp4.stripe").write_text(json.dumps(stripe_map))
        over = ", ".join(f'"{name}={folder / name}"' for name in NAMES)
        config = work / f"{kind}.toml"
        config.write_text(f'[places.films]\nurl = "{place}"\nstripe-over = [{over}]\n')
        # Far less memory than the film: each download reads the stores.
        edge = Edge(options.bin, work, "--config", config, "--workers", 2, "--cache-size", 0, "--memory", "8MiB")
        try:
            length = len(edge.get("/films/film.mp4"))
            before = edge.cpu_seconds()
            for _ in range(DOWNLOADS):
                edge.get("/films/film.mp4")
            cost = (edge.cpu_seconds() - before) * 1e3 / (length * DOWNLOADS / 1e9)
        finally:
            edge.stop()
        found[kind] = min(found.get(kind, cost), cost)
    return found


def measure(number: int, trial: Trial, rate: float, folder: Path, options, results: dict):
    work = TARGET / f"bench/striped/{number}"
    scene = Scene(number, trial, rate, folder, work, options)
    try:
        match trial.plays:
            case "download":
                results[trial.name] = download(scene)
            case "rtsp":
                results[trial.name] = stream(scene, trial, work, options)
            case "hls":
                results[trial.name] = segments(scene, trial, work, options)
            case _:
                results[trial.name] = play(scene, trial, rate)
    finally:
        scene.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--mbps", type=float, default=14, help="rate of the film (%(default)s)")
    parser.add_argument("--unit", default="1MiB", help="length of a unit (%(default)s)")
    parser.add_argument("--together", type=int, default=4, help="trials at the same time (%(default)s)")
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
    with ThreadPoolExecutor(options.together) as pool:
        for number, trial in enumerate(trials):
            running = pool.submit(measure, number, trial, rate, folders[trial.copies], options, results)
            running.add_done_callback(lambda done, name=trial.name: done.exception() and print(f"{name}: {done.exception()!r}"))
    # Alone: the trials before have ended.
    if options.only in "verification":
        results["verification"] = verification(options, folders[1], work / "verification")
    options.json.write_text(json.dumps(results, indent=1))
    print(f"film of {rate / 1e6:.1f} Mbit/s; four stores of {rate / FULL / 4e6:.2f} Mbit/s each ({rate / FULL / 3e6:.2f} where one dies)")
    for trial in trials:
        row = results.get(trial.name)
        if row is None:
            print(f"{trial.name:26} failed")
        elif trial.plays == "download":
            print(f"{trial.name:26} {row['mbps']:6.2f} Mbit/s")
        elif trial.plays != "rtsp":
            print(f"{trial.name:26} {row['stalls']} stalls of {row['stalled_ms']:.0f} ms together, start {row['startup_ms']:.0f} ms")
        else:
            late = row["late_frames"] - row["lagging_frames"]
            print(f"{trial.name:26} {row['frames']:5.0f} frames, {late:.0f} missed, {row['missed_deadlines']:.0f} missed deadlines, "
                  f"start {row.get('startup_ms', 0):.0f} ms, buffer needed {row.get('buffer_ms', 0):.0f} ms")
            if "log" in row:
                print(f"{'':26} {row['log']}")
    if cost := results.get("verification"):
        more = (cost["verified"] / cost["unchecked"] - 1) * 100
        print(f"verification: {cost['verified']:.0f} ms of processor time for each GB, {cost['unchecked']:.0f} without checksums ({more:+.1f} %)")
    both = [results.get(name, {}).get("mbps") for name in ("batch, download", "one at a time, download")]
    if all(both):
        print(f"batch retrieval is {both[0] / both[1]:.2f} times as fast as one request at a time")


if __name__ == "__main__":
    main()
