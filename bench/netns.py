"""Two network namespaces joined by a bad network (millpond-link).

    with netns.Pair(both="delay=50ms", ab="loss=1%", seed=7) as pair:
        server = pair.a.start("python3", "-m", "http.server", "8000")
        pair.b.wait_for(pair.a.address, 8000)
        print(pair.b.run("curl", "-s", f"http://{pair.a.address}:8000/").stdout)
        pair.change(ab="loss=5%")
    print(pair.report["ab"]["lost"])

Needs root. Impairments are those of `millpond-link --help`. Processes that were started end with the pair, in any order of failures,
and the namespaces are gone with it.
"""

import itertools
import json
import os
import subprocess
import time
from pathlib import Path

from compare import TARGET

# The server's side and the proxy's or viewer's side.
ADDRESSES = ("10.78.0.1", "10.78.0.2")
NUMBERS = itertools.count()


def binary() -> Path:
    """The newest build of millpond-link."""
    found = [path for path in (TARGET / "release/millpond-link", TARGET / "debug/millpond-link") if path.exists()]
    if not found:
        raise RuntimeError("millpond-link is not built: cargo build --release -p millpond-link")
    return max(found, key=lambda path: path.stat().st_mtime)


def allow(congestion: str):
    """Lets namespaces use a congestion control that the machine has and keeps to its first namespace."""
    file = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    if congestion not in file.read_text().split():
        file.write_text(f"{file.read_text().strip()} {congestion}")


def hasten(process: subprocess.Popen):
    """Has a process that leads a session run before others. Between sessions nice values do not count (sched(7), autogroup)."""
    try:
        Path(f"/proc/{process.pid}/autogroup").write_text("-15")
    except OSError:
        # It has ended, or the kernel has no such groups.
        pass


class Namespace:
    """One end. All its processes see only its own loopback and the link."""

    def __init__(self, name: str, address: str):
        self.name, self.address, self.started = name, address, []

    def command(self, *words) -> list:
        """The command that runs another one inside."""
        return [str(word) for word in ("ip", "netns", "exec", self.name, *words)]

    def run(self, *words, check: bool = True, timeout: float | None = None) -> subprocess.CompletedProcess:
        """Runs a command to its end, which is preferred on a busy machine."""
        with subprocess.Popen(self.command(*words), stdout=-1, stderr=-1, text=True, start_new_session=True) as process:
            hasten(process)
            try:
                out, errors = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        ran = subprocess.CompletedProcess(process.args, process.returncode, out, errors)
        if check:
            ran.check_returncode()
        return ran

    def start(self, *words, log: Path | None = None, **options) -> subprocess.Popen:
        """Starts a command, which ends with the namespace and is preferred on a busy machine. Its output goes to `log`, where given."""
        if log:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("wb")
            options = {"stdout": output, "stderr": output, **options}
        process = subprocess.Popen(self.command(*words), start_new_session=True, **{"stdin": subprocess.DEVNULL, **options})
        hasten(process)
        self.started.append(process)
        return process

    def set(self, name: str, value):
        """Sets a sysctl of the namespace, such as net.ipv4.tcp_congestion_control."""
        self.run("sysctl", "-q", "-w", f"{name}={value}")

    def wait_for(self, address: str, port: int, seconds: float = 20):
        """Until something here can connect to a port."""
        deadline = time.monotonic() + seconds
        probe = f"import socket; socket.create_connection(({address!r}, {port}), 5)"
        while self.run("/usr/bin/python3", "-c", probe, check=False).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing listens at {address}:{port} of {self.name}")
            time.sleep(0.1)

    def stop(self):
        for process in self.started:
            process.terminate()
        for process in self.started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.started.clear()


class Pair:
    """Both ends and the link. `report` holds the link's counters after the end."""

    def __init__(self, both: str = "", ab: str = "", ba: str = "", seed: int = 1, congestion: str = "cubic"):
        name = f"mp{os.getpid()}n{next(NUMBERS)}"
        self.a, self.b = (Namespace(name + end, address) for end, address in zip("ab", ADDRESSES))
        self.both, self.report = both, {}
        ends = [f"{end.name}={end.address}/24" for end in (self.a, self.b)]
        command = [binary(), *ends, f"--both={both}", f"--ab={ab}", f"--ba={ba}", f"--seed={seed}", "--stdin"]
        command = [str(word) for word in command]
        self.link = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        hasten(self.link)
        if self.link.stdout.readline().strip() != "ready":
            raise RuntimeError(f"millpond-link ended with {self.link.wait()}")
        try:
            allow(congestion)
            for end in (self.a, self.b):
                end.set("net.ipv4.tcp_congestion_control", congestion)
                # A connection must not start with what an earlier one has learned of the way.
                end.set("net.ipv4.tcp_no_metrics_save", 1)
        except BaseException:
            self.__exit__()
            raise

    def change(self, **directions):
        """Replaces the impairments of `ab`, `ba`, by default beside those of `both`."""
        for name, impairments in directions.items():
            self.link.stdin.write(f"{name} {self.both},{impairments}\n")
        self.link.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in (self.a, self.b):
            end.stop()
        told, _ = self.link.communicate()
        self.report = json.loads(told) if self.link.returncode == 0 else {}
