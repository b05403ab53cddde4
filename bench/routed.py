"""Client, edge and server, each in a network namespace: the edge routes, and intercepts where a millpond runs in it.

The rules of the firewall are those of docs/handbook/interception.md. Needs root, iproute2 and nftables.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/handbook/interception.md"
CLIENT, SERVER = "10.1.0.2", "10.2.0.2"


def run(*command, check=True):
    return subprocess.run([str(part) for part in command], check=check, capture_output=True, text=True)


def documented(language: str) -> str:
    """The blocks of code of docs/handbook/interception.md in a language."""
    return "\n".join(re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", PAGE.read_text(), re.S))


class Routed:
    """The three namespaces. Use it in a `with`: all that was started in them is ended."""

    def __init__(self, work: Path):
        self.work = work
        self.names = {name: f"mp{os.getpid()}{name[0]}" for name in ("client", "edge", "server")}
        self.started = []
        self.edge = None

    def __enter__(self):
        self.work.mkdir(parents=True, exist_ok=True)
        try:
            self.wire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in self.started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
        for name in self.names.values():
            run("ip", "netns", "del", name, check=False)

    def wire(self):
        client, edge, server = self.names.values()
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            # BBR's pacing distorts comparisons on virtual links.
            run(*self.within(name), "sysctl", "-qw", "net.ipv4.tcp_congestion_control=cubic", check=False)
        for end, name, address, gate in (("lan", client, CLIENT, "10.1.0.1"), ("wan", server, SERVER, "10.2.0.1")):
            run("ip", "link", "add", end, "netns", edge, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "-n", edge, "addr", "add", f"{gate}/24", "dev", end)
            run("ip", "-n", edge, "link", "set", end, "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "route", "add", "default", "via", gate)
        run(*self.within(edge), "sysctl", "-qw", "net.ipv4.ip_forward=1")

    @staticmethod
    def within(name: str) -> tuple:
        return ("ip", "netns", "exec", name)

    def command(self, where: str, *command) -> list:
        """A command that runs in a namespace."""
        return [str(part) for part in (*self.within(self.names[where]), *command)]

    def start(self, where: str, *command, log: str = "/dev/null", **options) -> subprocess.Popen:
        """Starts a program in a namespace, until the end."""
        path = self.work / log
        with path.open("wb") as output:
            options.setdefault("stdout", output)
            process = subprocess.Popen(self.command(where, *command), stderr=output, stdin=subprocess.DEVNULL, **options)
        self.started.append(process)
        return process

    def stop(self, process: subprocess.Popen):
        process.terminate()
        process.wait(20)
        self.started.remove(process)

    def intercept(self, binary: Path, *more) -> subprocess.Popen:
        """Starts the edge, and loads the rules."""
        run(*self.command("edge", "sh", "-c", documented("sh")))
        rules = self.work / "rules.nft"
        rules.write_text(documented("nft"))
        run(*self.command("edge", "nft", "-f", rules))
        self.edge = self.start(
            "edge", binary, "serve", "--intercept", "0.0.0.0:8081", "--intercept-networks", "10.2.0.0/16",
            "--cache", self.work / "cache", "--access-log=false", "--http", "127.0.0.1:8080", "--rtsp", "127.0.0.1:8554", *more, log="edge.log",
        )
        self.listens("edge", 8081)
        return self.edge

    def route(self):
        """Takes the rules out: the edge routes alone."""
        run(*self.command("edge", "nft", "flush", "ruleset"))
        for family in ("-4", "-6"):
            run(*self.command("edge", "ip", family, "rule", "del", "fwmark", 1), check=False)
            run(*self.command("edge", "ip", family, "route", "flush", "table", 100), check=False)

    def listens(self, where: str, port: int):
        """Waits until a port is listened on."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if f":{port} " in run(*self.command(where, "ss", "-Hltn")).stdout:
                return
            time.sleep(0.05)
        raise RuntimeError(f"nothing listens on port {port} in {where}")

    def metrics(self) -> dict:
        """Metrics of the edge, by name and labels."""
        text = run(*self.command("edge", "curl", "-sS", "http://127.0.0.1:8380/metrics")).stdout
        rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in rows}


def cpu_seconds(process: subprocess.Popen) -> float:
    """User and system time of a process (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
