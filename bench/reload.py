#!/usr/bin/env python3
"""Reloads, and an upgrade, of a server under load: what breaks, and whether memory grows.

    bench/reload.py [--reloads 200] [--http 300] [--rtsp 100] [--live 50] [--binary FILE] [--other FILE]

Players of HLS, viewers by RTSP and viewers of a channel, half of them by RTSP and half by Low-Latency HLS, play (`millpond load`). Meanwhile
the configuration is reloaded with random changes, every third of them wrong. A wrong one must be refused with its line, a right one be applied. Then the file of the program
is replaced by another build (`--other`, else the same one with a longer file) and `millpond upgrade` lets it take over under the
same load. No request and no session may fail. Needs ffmpeg.
"""

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "bench/reload"
TITLE = "films/title.mp4"
CHANNEL = "news"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def make_title(folder: Path, seconds: int):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "title.mp4"
    if file.exists():
        return
    source = f"testsrc2=size=640x360:rate=25:duration={seconds}"
    tone = f"sine=frequency=440:sample_rate=48000:duration={seconds}"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-f", "lavfi", "-i", tone, "-c:v", "libx264", "-preset", "ultrafast",
         "-b:v", "500k", "-maxrate", "500k", "-bufsize", "500k", "-g", "50", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "64k", "-movflags", "+faststart", file],
        check=True,
    )


class Server:
    """A server whose configuration file and program change."""

    def __init__(self, binary: Path):
        self.folder = WORK / "server"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.program = self.folder / "millpond"
        shutil.copy(binary, self.program)
        self.http, self.rtsp, self.admin = free_port(), free_port(), free_port()
        self.file = self.folder / "millpond.toml"
        self.write("")
        log = (self.folder / "log").open("wb")
        arguments = ["serve", "--config", self.file, "--cache", self.folder / "cache", "--access-log=false"]
        self.process = subprocess.Popen([self.program, *map(str, arguments)], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait()

    def write(self, text: str):
        here = "127.0.0.1"
        base = f'http = "{here}:{self.http}"\nrtsp = "{here}:{self.rtsp}"\nadmin = "{here}:{self.admin}"\n'
        channel = f'rtsp-channels = ["{CHANNEL}={TITLE}"]\n'
        new = self.folder / "new.toml"
        # A text with tables of its own stands behind the settings.
        new.write_text(f'{base}{channel}{text}\n[places.films]\nurl = "{WORK / "films"}"\n')
        os.replace(new, self.file)

    def wait(self):
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server does not start: " + (self.folder / "log").read_text()[-2000:])

    def order(self, what: str) -> subprocess.CompletedProcess:
        return subprocess.run([self.program, what, "--admin", f"127.0.0.1:{self.admin}"], capture_output=True, text=True)

    def reload(self, text: str) -> subprocess.CompletedProcess:
        self.write(text)
        return self.order("reload")


def memory(process: int) -> float:
    """Resident memory in MiB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0


def right(number: int) -> str:
    """A right change of some settings and places."""
    lines = [
        random.choice(["", f'memory = "{random.choice([64, 96, 128])}MiB"']),
        random.choice(["", f'playlist-lifetime = "{random.randint(1, 60)}s"']),
        random.choice(["", f"max-connections = {random.randint(5000, 9000)}"]),
        random.choice(["", f'idle-timeout = "{random.randint(60, 90)}s"']),
        random.choice(["", 'prefetch = "half"']),
        random.choice(["", f"rtsp-sessions = {random.randint(2000, 9000)}"]),
        random.choice(["", f'rtmp = "127.0.0.1:{free_port()}"']),
        random.choice(["", 'log = "warn"']),
        random.choice(["", f'tls-self-signed = true\nhttps = "127.0.0.1:{free_port()}"\nrtsps = "127.0.0.1:{free_port()}"']),
        random.choice(["", f'slice = "{random.choice([256, 1024])}KiB"']),
    ]
    places = [f'[places.more{number % 7}]\nurl = "{WORK / "films"}"\n' for _ in range(random.randint(0, 1))]
    if random.random() < 0.5:
        places.append(f'[places.closed]\nurl = "{WORK / "films"}"\naccess-networks = ["10.0.0.0/8"]\n')
    if random.random() < 0.5:
        places.append('[places.camera]\nurl = "rtsp://127.0.0.1:9/"\n')
    return "\n".join(line for line in lines if line) + "\n" + "\n".join(places)


def wrong() -> str:
    return random.choice([
        'memory = "lots"', "max-conections = 9", "playlist-lifetime = [", 'tls-cert = "/nowhere.pem"', 'access-users = "/nowhere"',
        '[places.gone]\nurl = "/nowhere"', '[places.bad]\nurl = "gopher://x"', 'rtmp = "192.0.2.1:1935"',
        'tls-cert = "/nowhere.pem"\ntls-key = "/nowhere.key"',
    ])


class Load:
    """Clients that play."""

    def __init__(self, name: str, binary: Path, url: str, clients: int, seconds: int, *more: str):
        self.name, self.report = name, WORK / f"{name}.json"
        self.report.unlink(missing_ok=True)
        arguments = ["load", url, "--clients", clients, "--duration", f"{seconds}s", "--ramp-up", "10s", "--json", self.report, *more]
        self.process = subprocess.Popen([str(part) for part in (binary, *arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self) -> bool:
        _, said = self.process.communicate()
        report = json.loads(self.report.read_text()) if self.report.exists() else {}
        shown = {key: report[key] for key in ("requests", "errors", "sessions", "stalls") if key in report}
        print(f"{self.name:5} exit {self.process.returncode}  {json.dumps(shown)[:600]}  {said.strip()[-300:]}", flush=True)
        return self.process.returncode == 0


def loads(server: Server, binary: Path, options, seconds: int) -> list:
    http, rtsp = f"http://127.0.0.1:{server.http}", f"rtsp://127.0.0.1:{server.rtsp}"
    return [
        Load("http", binary, f"{http}/{TITLE}/index.m3u8", options.http, seconds, "--start-within", "0.9"),
        Load("rtsp", binary, f"{rtsp}/{TITLE}", options.rtsp, seconds, "--start-within", "0.5"),
        Load("live", binary, f"{rtsp}/{CHANNEL}", options.live // 2, seconds, "--transport", "tcp"),
        Load("llhls", binary, f"{http}/{CHANNEL}/index.m3u8", options.live - options.live // 2, seconds, "--live"),
    ]


def reloads(server: Server, binary: Path, options) -> bool:
    seconds = max(40, int(options.reloads * options.pause) + 30)
    clients = loads(server, binary, options, seconds)
    time.sleep(15)
    began, first, is_right = time.monotonic(), None, True
    took = []
    for number in range(options.reloads):
        is_wrong = number % 3 == 2
        at = time.monotonic()
        done = server.reload(wrong() if is_wrong else right(number))
        took.append(time.monotonic() - at)
        if (done.returncode != 0) != is_wrong:
            is_right = False
            print(f"reload {number}: exit {done.returncode}: {done.stdout[-300:]} {done.stderr[-500:]}\n{server.file.read_text()}")
        if number % max(1, options.reloads // 10) == 0 or number + 1 == options.reloads:
            used = memory(server.process.pid)
            first = first or used
            print(f"reload {number:4}: {used:.0f} MiB", flush=True)
        time.sleep(max(0, began + (number + 1) * options.pause - time.monotonic()))
    took.sort()
    print(f"reloads took {took[len(took) // 2]:.3f} s in the middle, {took[-1]:.3f} s at most; memory grew by {used - first:.0f} MiB")
    return all([client.end() for client in clients]) and is_right


def upgrade(server: Server, binary: Path, other: Path | None, options) -> bool:
    server.reload("")
    clients = loads(server, binary, options, 60)
    time.sleep(20)
    new = server.folder / "new"
    shutil.copy(other or binary, new)
    if not other:
        with new.open("ab") as file:
            file.write(b"another build")
    os.replace(new, server.program)
    at = time.monotonic()
    done = server.order("upgrade")
    print(f"upgrade: exit {done.returncode} after {time.monotonic() - at:.2f} s: {done.stdout.strip()} {done.stderr.strip()}", flush=True)
    return all([client.end() for client in clients]) and done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("reloads", 200), ("http", 300), ("rtsp", 100), ("live", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds from one reload to the next")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/debug/millpond")
    parser.add_argument("--other", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    make_title(WORK / "films", 120)
    server = Server(options.binary)
    processes = []
    try:
        results = {"reloads": reloads(server, options.binary, options)}
        results["upgrade"] = upgrade(server, options.binary, options.other, options)
    finally:
        # The processes of this folder's program, and no others.
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if str(server.program) in os.readlink(entry / "exe"):
                        processes.append(int(entry.name))
                except OSError:
                    pass
        for process in processes:
            if process != os.getpid():
                os.kill(process, 9)
    print(results)
    raise SystemExit(0 if all(results.values()) else 1)


if __name__ == "__main__":
    main()
