"""One measured burst of requests, and what it cost."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
LUA = Path(__file__).with_name("cycle.lua")


@dataclass
class Burst:
    """What wrk saw in one burst, and CPU time spent meanwhile."""

    requests: int
    """Responses."""
    rate: float
    """Responses a second."""
    megabytes: float
    """Million bytes a second, heads included."""
    size: float
    """Mean bytes of a response, head included."""
    p50_ms: float
    p99_ms: float
    server_us: float
    """Microseconds of CPU the server's processes used for a response."""
    machine_us: float
    """Microseconds all cores were busy for a response, the client included."""
    foreign: float
    """Share of all cores' time that was busy with neither the server nor wrk: other programs, and interrupts."""


def machine_seconds() -> float:
    """Time all cores were busy since the start (proc(5)): all but idle, waiting for disks, and guests, which
    are counted as user time already."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """CPU time of children that have ended, which wrk has when it is looked at."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def drained(server, paths: Path, seconds: float, connections: int) -> Burst:
    """A burst by a client that throws replies away in the kernel, so that it is not the limit."""
    program = paths.parent / "drain"
    if not program.exists():
        subprocess.run(["cc", "-O2", "-o", program, LUA.parent / "drain.c"], check=True)
    port = server.url.rsplit(":", 1)[1]
    return measured(server, [str(part) for part in (program, port, connections, seconds, paths)], "")


def burst(server, paths: Path, seconds: float, connections: int, fresh: bool = False) -> Burst:
    command = [
        "wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "10s", "-s", str(LUA), server.url,
        "--", str(paths), *(["fresh"] if fresh else []),
    ]
    return measured(server, command, "RESULT ")


def measured(server, command: list, mark: str) -> Burst:
    """Runs a client that prints its result as JSON behind a mark."""
    cpu, machine, client, began = server.cpu_seconds(), machine_seconds(), children_seconds(), time.monotonic()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cpu, machine = server.cpu_seconds() - cpu, machine_seconds() - machine
    client, elapsed = children_seconds() - client, time.monotonic() - began
    line = next((line for line in output.splitlines() if line.startswith(mark)), None)
    if line is None:
        raise RuntimeError(f"{command[0]} gave no result for {server.name}:\n{output}")
    result = json.loads(line.removeprefix(mark))
    count = result["requests"]
    if result.get("errors") or not count:
        raise RuntimeError(f"{server.name}: {count} responses and {result.get('errors')} errors:\n{output}")
    return Burst(
        requests=count,
        rate=count / result["seconds"],
        megabytes=result["bytes"] / 1e6 / result["seconds"],
        size=result["bytes"] / count,
        p50_ms=result.get("p50_ms", 0),
        p99_ms=result.get("p99_ms", 0),
        server_us=cpu / count * 1e6,
        machine_us=machine / count * 1e6,
        foreign=max(0.0, machine - cpu - client) / elapsed / (os.cpu_count() or 1),
    )


@contextlib.contextmanager
def congestion_control(name: str):
    """Sets TCP's congestion control for new connections, and sets it back at the end; gives the one in force."""
    before = Path(CONGESTION).read_text().strip()
    if before == name:
        yield name
        return
    try:
        Path(CONGESTION).write_text(name)
    except OSError as error:
        print(f"congestion control stays {before}: {error}", file=sys.stderr)
        yield before
        return
    try:
        yield name
    finally:
        Path(CONGESTION).write_text(before)
