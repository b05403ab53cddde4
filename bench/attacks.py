#!/usr/bin/env python3
"""Attacks a server, and says what its honest viewers notice.

Beside each attack: a viewer that plays segments over HTTP, RTSP sessions over UDP, a probe of /livez; then SIGTERM while the
attack goes on. One row for each attack: p50, p99 and longest time of a segment; late and lost RTP packets; the slowest
/livez; the most resident memory; seconds until SIGTERM has ended the process.

    cargo build --release -p millpond -p millpond-lab
    bench/attacks.py [--binary FILE] [--workers N] [--seconds N] [--json FILE] [NAME...]
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import attackers
from media import ffmpeg
from servers import free_port

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent
TIMEOUTS = ["--idle-timeout", "5s", "--request-timeout", "5s", "--write-timeout", "5s", "--shutdown-grace", "5s"]


class Target:
    """The server under attack: its ports, its process, what it takes. `files` limits its open files."""

    def __init__(self, binary: Path, work: Path, places: list, arguments: list, tls: bool, stderr=None, files=None):
        self.http, self.https, self.admin, self.rtsp, self.rtmp = (free_port() for _ in range(5))
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        command = [
            binary, "serve", *places, "--http", f"127.0.0.1:{self.http}", "--admin", f"127.0.0.1:{self.admin}",
            "--rtsp", f"127.0.0.1:{self.rtsp}", "--rtmp", f"127.0.0.1:{self.rtmp}", "--cache", work / "cache", *TIMEOUTS, *arguments,
        ]
        if tls:
            command += ["--https", f"127.0.0.1:{self.https}", "--rtsps", "127.0.0.1:0", "--tls-self-signed"]
        log = stderr or (work / "log").open("wb")
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            preexec_fn=files and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))),
        )
        self.most_resident = 0

    def wait(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.returncode}: see {self.work}/log")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/livez", timeout=5).close()
                return
            time.sleep(0.05)
        raise SystemExit("the server does not answer")

    def resident_mb(self) -> float:
        with contextlib.suppress(OSError, StopIteration):
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            line = next(line for line in lines if line.startswith("VmRSS"))
            return int(line.split()[1]) / 1000
        return 0

    def cpu_seconds(self) -> float:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return 0

    def ends_in(self, patience: float = 30) -> float | None:
        """Seconds from SIGTERM to the end; None where it had to be killed."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(patience)
            return time.monotonic() - began
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def livez(target: Target, stop: threading.Event, slowest: list):
    while not stop.is_set():
        began = time.monotonic()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{target.admin}/livez", timeout=20).close()
            slowest.append(time.monotonic() - began)
        except OSError:
            slowest.append(float("inf"))
        target.most_resident = max(target.most_resident, target.resident_mb())
        stop.wait(0.1)


def trial(attack, args, site: Path, hostile: Path, work: Path) -> dict:
    name = attack.__name__
    with contextlib.ExitStack() as stack:
        extras = attackers.Extras(stack, hostile)
        arguments = list(getattr(attack, "arguments", ["--memory", "256MiB"]))
        if args.workers:
            arguments += ["--workers", str(args.workers)]
        places = extras.places(attack, {"films": site, "hostile": hostile})
        stderr = subprocess.PIPE if getattr(attack, "blocked_log", False) else None
        target = Target(args.binary, work / name, places, arguments, not getattr(attack, "plain", False), stderr, getattr(attack, "files", None))
        stack.callback(target.process.kill)
        target.wait()
        paths = [f"/films/a.mp4/v1/{n}.m4s" for n in range(1, 12)] + [f"/films/a.mp4/ts/v1/{n}.ts" for n in range(1, 12)]
        for path in ["/films/a.mp4/index.m3u8", *paths]:
            urllib.request.urlopen(f"http://127.0.0.1:{target.http}{path}", timeout=30).read()
        paths += extras.paths(attack)
        stop, over, slowest = threading.Event(), threading.Event(), []
        threading.Thread(target=livez, args=(target, over, slowest), daemon=True).start()
        honest = subprocess.Popen(
            [sys.executable, str(HERE / "honest.py"), f"127.0.0.1:{target.http}", str(args.seconds), *paths],
            stdout=subprocess.PIPE, text=True,
        )
        report = work / name / "rtsp.json"
        report.unlink(missing_ok=True)
        # As long as the attack, without new sessions: those that play already must not suffer.
        streams = subprocess.Popen(
            [str(part) for part in (
                args.generator, "load", f"rtsp://127.0.0.1:{target.rtsp}/films/a.mp4", "--clients", 10, "--once",
                "--watch", f"{args.seconds}s", "--duration", f"{args.seconds + 1}s", "--json", report,
            )],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(1)
        cpu = target.cpu_seconds()
        attacking = threading.Thread(target=attack, args=(target, stop, extras), daemon=True)
        attacking.start()
        seen = json.loads(honest.communicate(timeout=args.seconds + 120)[0])
        with contextlib.suppress(subprocess.TimeoutExpired):
            streams.wait(30)
        streams.kill()
        cpu = target.cpu_seconds() - cpu
        over.set()
        time.sleep(0.3)
        ended = target.ends_in()
        stop.set()
    rtsp = json.loads(report.read_text()) if report.exists() else {}
    return {
        "attack": name, **seen, "measured": extras.measured, "rtsp": rtsp, "livez_ms": round(max(slowest) * 1000, 1) if slowest else None,
        "resident_mb": round(target.most_resident), "cpu_s": round(cpu, 1), "sigterm_s": None if ended is None else round(ended, 2),
    }


def row(result: dict) -> str:
    media = result["rtsp"].get("media", {"late": "no report", "lost": "", "packets": ""})
    ended = "killed" if result["sigterm_s"] is None else result["sigterm_s"]
    return (
        f"| {result['attack']} | {result['p50_ms']} / {result['p99_ms']} / {result['max_ms']} | {result['failed']} of {result['requests']} "
        f"| {media['late']} / {media['lost']} of {media['packets']} | {result['livez_ms']} | {result['resident_mb']} | {result['cpu_s']} | {ended} |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="attacks; all where none is named")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/millpond")
    parser.add_argument("--generator", type=Path, default=None, help="program that plays RTSP (default: the binary)")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--work", type=Path, default=Path("/tmp/millpond-attacks"))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.generator = args.generator or args.binary
    site, hostile = args.work / "site", args.work / "hostile"
    site.mkdir(parents=True, exist_ok=True)
    if not (site / "a.mp4").exists():
        ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=640x360:r=25", "-f", "lavfi", "-i", "sine=440:r=48000", "-t", 60,
            "-c:v", "libx264", "-preset", "veryfast", "-bf", 0, "-pix_fmt", "yuv420p", "-b:v", "800k", "-g", 100, "-keyint_min", 100,
            "-sc_threshold", 0, "-c:a", "aac", "-movflags", "+faststart", site / "a.mp4",
        )
    hostile.mkdir(exist_ok=True)
    chosen = [attack for attack in attackers.ALL if not args.names or attack.__name__ in args.names]
    if any(not getattr(attack, "own_files", False) for attack in chosen):
        attackers.write_hostile(ROOT, hostile)
    print("| attack | segment p50 / p99 / max ms | failed | RTP late / lost | livez ms | RSS MB | CPU s | SIGTERM s |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    results = []
    for attack in chosen:
        results.append(trial(attack, args, site, hostile, args.work))
        print(row(results[-1]), flush=True)
        for what, value in results[-1]["measured"].items():
            print(f"  {what}: {value}", flush=True)
        for error in results[-1]["errors"]:
            print(f"  {error}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


main()
