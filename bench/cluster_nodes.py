"""A cluster on the loopback for benches: an etcd of three members, and nodes."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import media
import servers

# How long something may take to come about.
PATIENCE = 60


def alone():
    """Runs this program anew in a network namespace of its own, under cubic (PEERS: BBR's pacing distorts loopback). Needs root."""
    if os.environ.get("MILLPOND_BENCH_ALONE") or os.geteuid() != 0:
        return
    import netns

    netns.allow("cubic")
    script = 'ip link set lo up && echo cubic > /proc/sys/net/ipv4/tcp_congestion_control && exec "$@"'
    os.environ["MILLPOND_BENCH_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def wait_for(what: str, is_so, seconds: float = PATIENCE):
    """Waits until a function returns something true, and returns it."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with contextlib.suppress(OSError):
            if found := is_so():
                return found
        time.sleep(0.05)
    raise RuntimeError(f"{what}: not within {seconds} s")


class Etcd:
    """Three members. Use it in a `with`."""

    def __init__(self, folder: Path):
        shutil.rmtree(folder, ignore_errors=True)
        clients, peers = ([f"http://127.0.0.1:{servers.free_port()}" for _ in range(3)] for _ in range(2))
        every = ",".join(f"m{n}={peer}" for n, peer in enumerate(peers))
        self.addresses, self.members = ",".join(clients), []
        for n in range(3):
            self.members.append(subprocess.Popen(
                ["etcd", "--name", f"m{n}", "--data-dir", str(folder / f"m{n}"), "--listen-client-urls", clients[n],
                 "--advertise-client-urls", clients[n], "--listen-peer-urls", peers[n], "--initial-advertise-peer-urls", peers[n],
                 "--initial-cluster", every],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for client in clients:
            wait_for("etcd", lambda: json.load(urllib.request.urlopen(f"{client}/health", timeout=5))["health"] == "true")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.kill()
            member.wait()


class Node(servers.Edge):
    """A node of a cluster; a server alone where `members` is none."""

    def __init__(self, binary: Path, place: str, work: Path, members: str | None, name: str, *arguments):
        shutil.rmtree(work, ignore_errors=True)
        cluster = ["--cluster", members, "--node", name, "--cluster-prefix", f"/{work.parent.name}/"] if members else []
        super().__init__(binary, place, work, *cluster, *arguments, name=name)

    def sum(self, family: str, label: str = "") -> float:
        """The sum of a family's metrics that have a label."""
        lines = self.told("/metrics").decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == family and label in line)

    def taking(self) -> list:
        """Names of the nodes that take work, as it sees them."""
        return [node["name"] for node in json.loads(self.told("/api/v1/cluster"))["nodes"] if not node["draining"]]

    def assigned(self, path: str) -> str:
        """Name of the best node of a path."""
        found = json.loads(self.told(f"/api/v1/cluster/assign?path={path}"))["candidates"]
        return found[0]["name"] if found else ""

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def cluster(binary: Path, place: str, folder: Path, members: str, names: str = "abc", more=lambda name: ()):
    """Nodes that know each other; by name. `more` gives further arguments of each."""
    with contextlib.ExitStack() as stack:
        nodes = {name: stack.enter_context(Node(binary, place, folder / name, members, name, *more(name))) for name in names}
        wait_for("all nodes", lambda: all(sorted(node.taking()) == sorted(names) for node in nodes.values()))
        yield nodes


def load(binary: Path, report: Path, *arguments) -> subprocess.Popen:
    """Starts `millpond load`, which writes a report."""
    command = [str(part) for part in (binary, "load", *arguments, "--json", report)]
    report.unlink(missing_ok=True)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def reported(process: subprocess.Popen, report: Path) -> dict:
    """The report of a load that has ended."""
    words = process.communicate()[1]
    if not report.exists():
        raise RuntimeError(f"load: {words[-500:]}")
    return json.loads(report.read_text())


def title(path: Path, minutes: int, kbits: int) -> Path:
    """A title of some minutes at a rate, key frames two seconds apart: one minute, repeated."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        minute, listed = path.with_suffix(".minute.mp4"), path.with_suffix(".txt")
        media.ffmpeg(
            "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25,noise=alls=20:allf=t", "-t", 60, "-an", "-c:v", "libx264", "-preset",
            "ultrafast", "-pix_fmt", "yuv420p", "-b:v", f"{kbits}k", "-minrate", f"{kbits}k", "-maxrate", f"{kbits}k", "-bufsize",
            f"{kbits}k", "-g", 50, "-x264-params", "nal-hrd=cbr:scenecut=0", minute)
        listed.write_text(f"file {minute.name}\n" * minutes)
        media.ffmpeg("-f", "concat", "-i", listed, "-c", "copy", "-movflags", "+faststart", path)
        minute.unlink()
        listed.unlink()
    return path
