#!/usr/bin/env python3
"""The tables of the thesis on on-the-fly conversion with cloud storage, measured on Millpond.

Usage: thesis.py [--server MILLPOND] [--out FOLDER] [--quick] [--parts requests,single,connections,efficiency,startup]

A storage holds titles of five renditions and one sound file with a server manifest (SMIL), as MP4 and as fragmented MP4.
Millpond stands before it; a client asks for segments and manifests. Four states of the caches are compared:

  off       each request is for a title that nobody asked for before
  manifest  the server manifest (SMIL) of each title was fetched before
  dref      so was a client manifest: server manifest and index are cached, media is not
  all       so was the very reply: what the defaults keep

Many connections and conversion efficiency are measured with single files, which have no server manifest.

The storage is near (loopback) or a round trip of milliseconds away, over HTTP (nginx) or S3 (versitygw), or a folder (folder-near). Printed are the
Markdown tables of docs/measured/thesis.md. FOLDER gets them as `thesis.md`, all figures as `thesis.json`, and plots (SVG).
Needs root (network namespaces), nginx, versitygw, ffmpeg, cc; Chromium and node for the startup delay.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import compare
import media
import servers
import storages
import thesis_tables as tables
from compare import TARGET

TOP = compare.TOP
BENCH = Path(__file__).resolve().parent
# The ladder of the thesis for 480p, in kbit/s; its titles were 9 to 15 minutes long.
LADDER = [200, 400, 750, 850, 1000]
MINUTES = 5
SEGMENT = 40
# Segments of one title so far from each other that neither pictures nor sound share a slice of 512 KiB.
APART = range(6, 72, 11)
SEGMENTS = MINUTES * 60 // media.SEGMENT_SECONDS
FORMATS = ["mp4", "fmp4"]
KINDS = {
    "dash-low": "film.smil/v1/{}.m4s",
    "dash-high": f"film.smil/v{len(LADDER)}/{{}}.m4s",
    "hls-low": "film.smil/ts/v1/{}.ts",
    "hls-high": f"film.smil/ts/v{len(LADDER)}/{{}}.ts",
    "mpd": "film.smil/index.mpd",
    "m3u8": "film.smil/index.m3u8",
}
# One file by itself, without a server manifest: for many connections.
ALONE = f"{LADDER[0]}.mp4/v1/{{}}.m4s"
MANIFESTS = ("mpd", "m3u8")
MODES = ["off", "manifest", "dref", "all"]
COLD = ("off", "manifest")
STORAGES = "http-near,http-20,http-50,s3-near,s3-20,s3-50"
# Values of flags that are not given, and of those with --quick.
USUAL = {
    "storages": (STORAGES, "http-near,s3-20"), "sweep_storages": ("s3-20", "s3-20"), "startup_storages": ("s3-50", "s3-20"),
    "efficiency_storages": ("s3-near", "s3-near"), "requests": (40, 12), "seconds": (0.7, 0.2), "repeats": (3, 1),
}
SWEEP = [1, 10, 20, 35, 90, 150]
PARTS = ["requests", "single", "connections", "efficiency", "startup"]


def encode(folder: Path):
    """Makes the files of one title in both formats, unless they are there."""
    done = folder / f"made-{MINUTES}"
    if done.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    for form in FORMATS:
        (folder / form).mkdir(parents=True)
    work.mkdir()
    gop = media.SEGMENT_SECONDS * media.FPS
    print(f"making a title of {MINUTES} minutes in {folder}", file=sys.stderr)
    for rate in LADDER:
        media.ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=640x480:r=25,noise=alls=12:allf=t", "-t", 60, "-c:v", "libx264", "-preset", "ultrafast",
            "-pix_fmt", "yuv420p", "-b:v", f"{rate}k", "-maxrate", f"{rate}k", "-bufsize", f"{rate}k",
            "-g", gop, "-keyint_min", gop, "-sc_threshold", 0, work / f"{rate}.mp4",
        )
    media.ffmpeg("-f", "lavfi", "-i", "sine=440:r=48000", "-t", 60, "-c:a", "aac", "-b:a", "96k", work / "audio.mp4")
    for name in [*map(str, LADDER), "audio"]:
        (work / "list.txt").write_text(f"file {name}.mp4\n" * MINUTES)
        whole = ("-f", "concat", "-i", work / "list.txt", "-c", "copy")
        media.ffmpeg(*whole, "-movflags", "+faststart", folder / f"mp4/{name}.mp4")
        flags = "+frag_keyframe+empty_moov+default_base_moof"
        cut = ("-frag_duration", media.SEGMENT_SECONDS * 1_000_000) if name == "audio" else ()
        media.ffmpeg(*whole, "-movflags", flags, *cut, folder / f"fmp4/{name}.mp4")
    videos = "".join(f'<video src="{rate}.mp4" systemBitrate="{rate}000"/>' for rate in LADDER)
    smil = f'<smil><body><switch>{videos}<audio src="audio.mp4" systemLanguage="eng"/></switch></body></smil>\n'
    for form in FORMATS:
        (folder / form / "film.smil").write_text(smil)
    shutil.rmtree(work)
    done.touch()


class Titles:
    """Copies of the title by hard links: each is asked for in one state of the caches only."""

    def __init__(self, first: Path, site: Path):
        self.first, self.site = first, site
        # An S3 server does not start without the folder of its buckets.
        site.mkdir(parents=True, exist_ok=True)
        self.used = dict.fromkeys(FORMATS, 0)

    def begin(self):
        """All titles are new again: another server with an empty cache asks for them."""
        self.used = dict.fromkeys(FORMATS, 0)

    def take(self, form: str, count: int) -> list:
        numbers = range(self.used[form], self.used[form] + count)
        self.used[form] += count
        for number in numbers:
            folder = self.site / f"{form}-{number}"
            if not folder.exists():
                folder.mkdir(parents=True)
                for file in (self.first / form).iterdir():
                    (folder / file.name).hardlink_to(file)
        return [f"/{form}-{number}" for number in numbers]


class Bench:
    """One server before one storage, and the client."""

    def __init__(self, options, server: servers.Edge, titles: Titles, work: Path):
        self.options, self.server, self.titles, self.work = options, server, titles, work
        self.known = {}

    def ask(self, paths: list, connections: int, seconds: float = 0) -> dict:
        file = self.work / "paths"
        file.write_text("\n".join(paths) + "\n")
        command = [BENCH.joinpath(TARGET / "bench/thesis/once"), self.server.port, connections, file, *([seconds] if seconds else [])]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        if done.returncode or json.loads(done.stdout)["failed"]:
            raise RuntimeError(f"{paths[0]}: {done.stdout}{done.stderr}\n{self.server.tail()}")
        return json.loads(done.stdout)

    def origin(self) -> dict:
        """Counters of the storage, once they stand still."""
        seen = self.server.place()
        for _ in range(20):
            time.sleep(0.05)
            now = self.server.place()
            if now["received-bytes"] == seen["received-bytes"]:
                return now
            seen = now
        return seen

    def measure(self, paths: list, connections: int, seconds: float = 0) -> dict:
        before, cpu = self.origin(), self.server.cpu_seconds()
        found = self.ask(paths, connections, seconds)
        cpu = self.server.cpu_seconds() - cpu
        after = self.origin()
        count = found["requests"]
        read = after["received-bytes"] - before["received-bytes"]
        return {
            "rate": count / found["seconds"], "ms": found["mean_ms"], "p50_ms": found["p50_ms"], "p95_ms": found["p95_ms"],
            "out": found["bytes"], "in": read, "seconds": found["seconds"], "efficiency": found["bytes"] / read if read else None,
            "origin_requests": (after["requests"] - before["requests"]) / count, "server_us": cpu / count * 1e6,
        }

    def warm(self, paths: list):
        self.ask(list(dict.fromkeys(paths)), 32)

    def cell(self, form: str, mode: str, path: str, connections: int, count: int) -> dict:
        """Requests of one path in one state of the caches. `{}` in the path stands for a segment's number."""
        media_asked = "{}" in path
        asset = path.split("/")[0]
        if mode in COLD:
            titles = self.titles.take(form, count)
            if mode == "manifest":
                self.warm([f"{title}/{asset}" for title in titles])
            return self.measure([f"{title}/{path.format(SEGMENT)}" for title in titles], connections)
        titles = self.indexed(form, asset, -(-count // len(APART)), new=media_asked and mode == "dref")
        paths = [f"{title}/{path.format(segment)}" for segment in APART for title in titles]
        # What is answered from memory may be asked for again; everything else only once.
        again = mode == "all" or not media_asked
        return self.measure(paths, connections, self.options.seconds if again else 0)

    def indexed(self, form: str, asset: str, count: int, new: bool) -> list:
        """Titles whose index is cached. Those that are not new were asked for by the cell before."""
        if new or len(self.known.get(form, [])) < count:
            self.known[form] = self.titles.take(form, count)
            self.warm([f"{title}/{asset}/index.mpd" for title in self.known[form]])
        return self.known[form]

    def played(self, form: str, mode: str, connections: int) -> dict:
        """DASH segments of all renditions: one segment of each title where caches are off, else whole titles."""
        rates = lambda titles: [(title, LADDER[number % len(LADDER)]) for number, title in enumerate(titles)]
        if mode == "off":
            titles = rates(self.titles.take(form, 4 * self.options.requests))
            paths = [f"{title}/{rate}.mp4/v1/{1 + n % SEGMENTS}.m4s" for n, (title, rate) in enumerate(titles)]
            warmed = 0
        else:
            titles = rates(self.titles.take(form, 2 * len(LADDER)))
            # Slices that hold the index hold media too, which is not read again.
            before = self.origin()["received-bytes"]
            self.warm([f"{title}/{rate}.mp4/index.mpd" for title, rate in titles])
            warmed = self.origin()["received-bytes"] - before
            paths = [f"{title}/{rate}.mp4/v1/{s}.m4s" for s in range(1, SEGMENTS + 1) for title, rate in titles]
            if mode == "all":
                self.warm(paths)
        found = self.measure(paths, connections, self.options.seconds if mode == "all" else 0)
        read = found["in"] + warmed
        return {**found, "warmed": warmed, "efficiency_with_index": found["out"] / read if read else None}

    def startup(self, form: str, mode: str, engine: str) -> list:
        titles = self.titles.take(form, self.options.repeats)
        if mode != "off":
            self.warm([f"{title}/film.smil{'' if mode == 'manifest' else '/index.mpd'}" for title in titles])
        names = [f"{title}/film.smil".lstrip("/") for title in titles]
        command = ["node", TOP / "tests/players/startup.mjs", self.server.url, engine, *(names * 2 if mode == "all" else names)]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600, check=True)
        delays = json.loads(done.stdout.splitlines()[-1])[-len(names):]
        if None in delays:
            raise RuntimeError(f"{engine} did not play {form}, {mode}: {done.stderr}")
        return delays


def run_requests(bench: Bench, storage: str, results: dict):
    for form in FORMATS:
        for kind in KINDS:
            for mode in MODES:
                count = bench.options.requests
                # An index of a fragmented file takes a request for each fragment.
                count = max(count // 6, 10) if form == "fmp4" and mode in COLD else count
                found = bench.cell(form, mode, KINDS[kind], 10, count)
                results["requests"].append({"storage": storage, "format": form, "kind": kind, "cache": mode, **found})
                progress(f"{storage} {form} {kind} {mode}: {found['rate']:.0f}/s, {found['ms']:.2f} ms")


def run_single(bench: Bench, storage: str, results: dict):
    """Manifests over one connection."""
    for form in FORMATS:
        for kind in MANIFESTS:
            for mode in COLD + ("dref",):
                found = bench.cell(form, mode, KINDS[kind], 1, max(bench.options.requests // 6, 3))
                results["single"].append({"storage": storage, "format": form, "kind": kind, "cache": mode, **found})
                progress(f"{storage} {form} {kind} one connection {mode}: {found['ms']:.2f} ms")


def run_connections(bench: Bench, storage: str, results: dict):
    for form in FORMATS:
        for connections in bench.options.sweep:
            for mode in ("off", "dref", "all"):
                count = max(bench.options.requests // 3, connections if mode == "off" else 2 * connections)
                found = bench.cell(form, mode, ALONE, connections, count)
                results["connections"].append({"storage": storage, "format": form, "connections": connections, "cache": mode, **found})
                progress(f"{storage} {form} {connections} connections {mode}: {found['rate']:.0f}/s, {found['ms']:.2f} ms")


def run_efficiency(bench: Bench, storage: str, results: dict):
    for form in FORMATS:
        for mode in ("off", "dref", "all"):
            found = bench.played(form, mode, 90)
            results["efficiency"].append({"storage": storage, "format": form, "cache": mode, **found})
            progress(f"{storage} {form} 90 players {mode}: out {found['out'] / 1e6:.1f} MB, in {found['in'] / 1e6:.1f} MB")


def run_startup(bench: Bench, storage: str, results: dict):
    for form in FORMATS:
        for mode in MODES:
            delays = bench.startup(form, mode, "dash")
            results["startup"].append({"storage": storage, "format": form, "cache": mode, "ms": delays})
            progress(f"{storage} {form} startup {mode}: {delays}")


def progress(text: str):
    print(f"[{time.monotonic() - BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


BEGAN = time.monotonic()
RUNS = {"requests": run_requests, "single": run_single, "connections": run_connections, "efficiency": run_efficiency, "startup": run_startup}


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--serve", default="", help="more arguments of millpond")
    parser.add_argument("--out", type=Path, default=TARGET / "bench/thesis/out", help="folder for tables, figures and plots (%(default)s)")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure (%(default)s)")
    parser.add_argument("--storages", help=f"of the part requests ({STORAGES})")
    parser.add_argument("--sweep-storages", help="of the part connections (s3-20)")
    parser.add_argument("--efficiency-storages", help="of the part efficiency (s3-near)")
    parser.add_argument("--startup-storages", help="of the part startup (s3-50)")
    parser.add_argument("--requests", type=int, help="of each cell that is not repeated (40)")
    parser.add_argument("--seconds", type=float, help="of each cell that is answered from memory (0.7)")
    parser.add_argument("--repeats", type=int, help="of each startup (3)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="two storages and few requests: to try the bench")
    options = parser.parse_args(arguments)
    for name, (usual, quick) in USUAL.items():
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else usual)
    options.sweep = [1, 10, 35] if options.quick else SWEEP
    unknown = set(options.parts.split(",")) - set(PARTS)
    if unknown or options.requests < 2 or options.repeats < 1:
        parser.error(f"parts are {', '.join(PARTS)}; requests are 2 or more")
    return options


def wanted(options) -> dict:
    """The parts to run before each storage."""
    chosen = options.parts.split(",")
    of = {"requests": options.storages, "single": options.sweep_storages, "connections": options.sweep_storages, "efficiency": options.efficiency_storages,
          "startup": options.startup_storages}
    plan = {}
    for part in PARTS:
        for name in of[part].split(",") if part in chosen else []:
            plan.setdefault(storages.parse(name), []).append(part)
    return plan


def run(options) -> dict:
    work = TARGET / "bench/thesis"
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", work / "once", BENCH / "once.c"], check=True)
    encode(work / "title")
    titles = Titles(work / "title", work / "root" / storages.BUCKET)
    results = {part: [] for part in PARTS}
    for number, (storage, parts) in enumerate(wanted(options).items()):
        titles.begin()
        place = work / "server"
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(storages.started(storage, number, work / "root", work / "storage"))
            arguments = ["--memory", "1GiB", "--prefetch", "on-demand", "--log", "warn", *options.serve.split()]
            server = stack.enter_context(servers.Edge(options.server, url, place, *arguments))
            bench = Bench(options, server, titles, work)
            for part in parts:
                RUNS[part](bench, storage.name, results)
        shutil.rmtree(place / "cache", ignore_errors=True)
    results["minutes"] = (time.monotonic() - BEGAN) / 60
    text = tables.everything(results, options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "thesis.md").write_text(text)
    print(text)
    return {"results": results}


def main() -> int:
    options = parse(sys.argv[1:])
    if os.geteuid() != 0:
        print("error: network namespaces need root", file=sys.stderr)
        return 1
    options.json = options.out / "thesis.json"
    return compare.conclude(options, run)


if __name__ == "__main__":
    sys.exit(main())
