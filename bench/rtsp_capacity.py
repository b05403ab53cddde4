#!/usr/bin/env python3
"""How many RTSP streams millpond and GStreamer's gst-rtsp-server carry, and what one costs.

For each server and transport: CPU and memory a stream at a moderate number, then the most streams that are carried, by
doubling and halving. Carried means that every session plays, none fails, and fewer than 1 % of the packets come more than
100 ms late or not at all. `millpond load` is the client of both. Every trial has a server of its own, so that one that fell over
takes nothing along. Sizes are those of one machine that server and clients share: compare ratios of one run.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import measure
import media
import servers
from compare import TARGET, conclude, ratio, version

GST = Path(__file__).with_name("gst_server.py")
SERVE = "serve {media} --http 127.0.0.1:0 --admin 127.0.0.1:0 --rtsp 127.0.0.1:{port} --access-log=false --cache {work}"
# Late or lost, of 100 packets.
MOST_LATE = 1.0
# Clips by their rate in kbit/s: H.264 without B-frames, key frames 2 s apart. The noise keeps the encoder at its rate.
CLIPS = {
    "V10": (10, "testsrc2=s=96x64:r=10,noise=alls=6:allf=t", 10),
    "V100": (100, "testsrc2=s=192x144:r=30,noise=alls=8:allf=t", 30),
    "V300": (300, "testsrc2=s=320x240:r=30,noise=alls=12:allf=t", 30),
    # With the frame rates that AMPS had: amps.py.
    "V100f10": (102, "testsrc2=s=192x144:r=10,noise=alls=8:allf=t", 10),
    "V300f15": (307, "testsrc2=s=320x240:r=15,noise=alls=12:allf=t", 15),
    "V1024": (1054, "testsrc2=s=640x480:r=30,noise=alls=20:allf=t", 30),
}
SECONDS = 120


def make(name: str, folder: Path):
    path = folder / f"{name}.mp4"
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rate, picture, fps = CLIPS[name]
    print(f"making {path}", flush=True)
    part = folder / f"{name}.part"
    media.ffmpeg(
        "-f", "lavfi", "-i", picture, "-t", SECONDS, "-an", "-c:v", "libx264", "-profile:v", "baseline", "-preset", "medium",
        "-pix_fmt", "yuv420p", "-bf", 0, "-g", 2 * fps, "-keyint_min", 2 * fps, "-sc_threshold", 0,
        "-b:v", f"{rate}k", "-minrate", f"{rate}k", "-maxrate", f"{rate}k", "-bufsize", f"{rate}k",
        "-movflags", "+faststart", "-f", "mp4", part,
    )
    part.rename(path)
    kbits = path.stat().st_size * 8 / SECONDS / 1000
    print(f"  {kbits:.0f} kbit/s", flush=True)


class Rtsp(servers.Server):
    """A server that is up when its RTSP port takes connections."""

    def wait(self):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not listen at port {self.port}:\n{self.tail()}")

    def memory(self) -> int:
        """Bytes of all its processes, shared pages by their share (proc(5), smaps_rollup)."""
        return sum(process_memory(pid) for pid in self.pids())


def start(name: str, options, folder: Path, work: Path) -> Rtsp:
    work.mkdir(parents=True, exist_ok=True)
    port = servers.free_port()
    if name == "millpond":
        words = options.serve.split()
        command = [str(options.bin)] + [word.format(media=folder, port=port, work=work / "cache") for word in words]
    else:
        command = ["/usr/bin/python3", str(GST), str(folder), "--port", str(port), "--threads", str(options.gst_threads)]
    if options.pin:
        command = ["taskset", "-c", options.pin.split("/")[0], *command]
    return Rtsp(name, command, port, work / "output.log")


@dataclass
class Trial:
    """One number of streams, over the steady part: after all have arrived and settled."""

    streams: int
    active: float
    late_percent: float
    lost_percent: float
    failures: int
    kbits: float
    """A stream."""
    cpu: float
    """Of the server, in percent of one core."""
    memory: float
    """Million bytes that the server grew, a stream."""
    startup_p50: float
    startup_p99: float
    generator: float
    """CPU of the generator, in percent of one core."""
    foreign: float
    """Share of the machine that other programs and interrupts had."""
    why: str
    """The first failure."""

    def is_carried(self) -> bool:
        whole = self.active > 0.99 * self.streams
        return whole and self.failures == 0 and self.late_percent + self.lost_percent < MOST_LATE


def trial(name: str, clip: str, transport: str, streams: int, options, folder: Path) -> Trial:
    ramp = max(options.ramp, streams / options.arrivals)
    steady = ramp + options.settle
    total = steady + options.seconds
    work = TARGET / f"bench/rtsp/{name}"
    with start(name, options, folder, work) as server:
        # Once before, so that what is loaded with the first session is no session's.
        load(options, server, clip, transport, ["--clients", "1", "--watch", "1s"])
        idle = server.memory()
        began = time.monotonic()
        with running(options, server, clip, transport, ["--clients", str(streams), "--ramp-up", f"{round(ramp * 1000)}ms",
                     "--duration", f"{round(total * 1000)}ms"]) as process:
            time.sleep(max(0.0, began + steady - time.monotonic()))
            before = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            time.sleep(max(0.0, began + total - 1 - time.monotonic()))
            memory = server.memory()
            after = server.cpu_seconds(), measure.machine_seconds(), process_seconds(process.pid), time.monotonic()
            output = process.communicate(timeout=60)[0]
    report = json.loads(output)
    cpu, machine, generator, wall = (b - a for a, b in zip(before, after))
    window = [step for step in report["timeline"] if steady < step["elapsed"] <= total - 0.5]
    if not window:
        raise RuntimeError(f"{name}: the run of {total:.0f} s has no steady part")
    packets = sum(step["packets-per-second"] for step in window)
    late = sum(step["packets-per-second"] * step["late-percent"] / 100 for step in window)
    lost = max(0, sum(step["lost"] for step in window))
    active = statistics.mean(step["active"] for step in window)
    return Trial(
        streams=streams,
        active=active,
        late_percent=100 * late / packets if packets else 100.0,
        lost_percent=100 * lost / (packets + lost) if packets + lost else 100.0,
        failures=report["sessions"]["failed"],
        kbits=1000 * statistics.mean(step["megabits-per-second"] for step in window) / max(active, 1),
        cpu=100 * cpu / wall,
        memory=(memory - idle) / 1e6 / streams,
        startup_p50=report["startup"]["p50"],
        startup_p99=report["startup"]["p99"],
        generator=100 * generator / wall,
        foreign=max(0.0, machine - cpu - generator) / wall / (os.cpu_count() or 1),
        why="; ".join(f"{failure['count']} x {failure['kind']}" for failure in report["failures"][:2]),
    )


def load_command(options, server: Rtsp, clip: str, transport: str, arguments: list) -> list:
    url = f"rtsp://127.0.0.1:{server.port}/{clip}.mp4"
    command = [str(options.bin), "load", url, "--transport", transport, "--json", "-", *arguments]
    return ["taskset", "-c", options.pin.split("/")[1], *command] if options.pin else command


def load(options, server: Rtsp, clip: str, transport: str, arguments: list):
    command = load_command(options, server, clip, transport, arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{server.name} does not play {clip} over {transport}:\n{done.stdout}{server.tail()}")


@contextlib.contextmanager
def running(options, server: Rtsp, clip: str, transport: str, arguments: list):
    command = load_command(options, server, clip, transport, arguments)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def process_memory(pid: int) -> int:
    """Bytes of a process, shared pages by their share (proc(5), smaps_rollup)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def process_seconds(pid: int) -> float:
    """Nothing where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tried(name: str, clip: str, transport: str, streams: int, options, folder: Path) -> Trial:
    """One number of streams; again where it was not carried, for what else the machine may have done meanwhile."""
    for _ in range(options.tries):
        try:
            result = trial(name, clip, transport, streams, options, folder)
        except (OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
            # A program ended in the middle of it.
            result = Trial(streams, 0, 100.0, 0.0, streams, 0, 0, 0, 0, 0, 0, 0, f"the trial broke off: {error}")
        print(
            f"  {name:9} {clip} {transport} {streams:6} streams  {result.active:7.0f} active {result.late_percent:7.3f} % late "
            f"{result.lost_percent:7.3f} % lost {result.failures:5} failed  CPU {result.cpu:6.1f} %  "
            f"{result.memory:6.3f} MB a stream  generator {result.generator:5.1f} %  {result.why}",
            flush=True,
        )
        if result.is_carried():
            break
    return result


def capacity(name: str, clip: str, transport: str, options, folder: Path) -> dict:
    """The reference, then doubling until it is too much, then halving what is between."""
    reference = tried(name, clip, transport, options.reference, options, folder)
    trials = [reference]
    carried, too_much = (reference if reference.is_carried() else None), None
    streams = options.start
    while carried is None or too_much is None or too_much - carried.streams > max(1, options.resolution * too_much):
        if streams < 1 or (carried and carried.streams >= options.most):
            break
        result = tried(name, clip, transport, streams, options, folder)
        trials.append(result)
        if result.is_carried() and (carried is None or streams > carried.streams):
            carried = result
        elif not result.is_carried():
            too_much = min(streams, too_much or streams)
        at_least = carried.streams if carried else 0
        streams = min(2 * max(streams, at_least), options.most) if too_much is None else (at_least + too_much) // 2
    return {
        "server": name,
        "clip": clip,
        "transport": transport,
        "capacity": carried.streams if carried else 0,
        "is_bounded": too_much is None,
        "at_capacity": asdict(carried) if carried else None,
        "reference": asdict(reference),
        "cpu_per_100": 100 * reference.cpu / reference.streams,
        "trials": [asdict(one) for one in trials],
    }


def table(results: list):
    print(f"\n{'':18}{'':>10}{'streams':>9}{'CPU % of':>10}{'MB a':>8}{'startup ms':>16}{'at capacity:':>14}{'startup ms':>16}")
    print(f"{'':18}{'':>10}{'carried':>9}{'100':>10}{'stream':>8}{'p50':>8}{'p99':>8}{'CPU %':>14}{'p50':>8}{'p99':>8}")
    for result in results:
        reference, most = result["reference"], result["at_capacity"] or {}
        sign = "+" if result["is_bounded"] else ""
        print(
            f"{result['clip'] + ' ' + result['transport']:18}{result['server']:>10}{str(result['capacity']) + sign:>9}"
            f"{result['cpu_per_100']:>10.2f}{reference['memory']:>8.3f}{reference['startup_p50']:>8.1f}"
            f"{reference['startup_p99']:>8.1f}{most.get('cpu', 0):>14.1f}{most.get('startup_p50', 0):>8.1f}"
            f"{most.get('startup_p99', 0):>8.1f}"
        )
    for ours in (one for one in results if one["server"] == "millpond"):
        for other in results:
            if other["server"] != "millpond" and (other["clip"], other["transport"]) == (ours["clip"], ours["transport"]):
                print(
                    f"{ours['clip'] + ' ' + ours['transport']:18}{'ratio':>10}{ratio(ours['capacity'], other['capacity']):>9.1f}"
                    f"{ratio(other['cpu_per_100'], ours['cpu_per_100']):>10.1f}"
                    f"{ratio(other['reference']['memory'], ours['reference']['memory']):>8.1f}  (above 1: millpond is better)"
                )


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary (%(default)s)")
    parser.add_argument("--serve", default=SERVE, help="its arguments, with {media}, {port} and {work} (%(default)s)")
    parser.add_argument("--servers", default="millpond,gst", help="which to measure (%(default)s)")
    parser.add_argument("--transports", default="udp,tcp", help="(%(default)s)")
    parser.add_argument("--clips", default="V1024", help=f"of {', '.join(CLIPS)} (%(default)s)")
    parser.add_argument("--media", type=Path, default=TARGET / "bench/rtsp-media", help="where clips are kept (%(default)s)")
    parser.add_argument("--start", type=int, default=200, help="streams tried first (%(default)s)")
    parser.add_argument("--most", type=int, default=6000, help="streams tried at most (%(default)s)")
    parser.add_argument("--reference", type=int, default=100, help="streams at which costs are compared (%(default)s)")
    parser.add_argument("--resolution", type=float, default=0.05, help="of the capacity, as a share of it (%(default)s)")
    parser.add_argument("--seconds", type=float, default=15, help="steady part of each trial (%(default)s)")
    parser.add_argument("--ramp", type=float, default=5, help="seconds in which clients arrive, at least (%(default)s)")
    parser.add_argument("--arrivals", type=float, default=100, help="clients that arrive in a second, at most (%(default)s)")
    parser.add_argument("--settle", type=float, default=5, help="seconds between arrivals and steady part (%(default)s)")
    parser.add_argument("--tries", type=int, default=2, help="of a number that is not carried (%(default)s)")
    parser.add_argument("--gst-threads", type=int, default=-1, help="of gst's thread pool; -1 is one a client, at which it does best (%(default)s)")
    parser.add_argument("--pin", help="CPUs of server and generator, such as 0/1 (anywhere)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for the run (%(default)s)")
    default = TARGET / "bench/rtsp_capacity.json"
    parser.add_argument("--json", type=Path, nargs="?", const=default, help=f"write all figures too ({default})")
    options = parser.parse_args(arguments)
    for given, known in [("servers", ["millpond", "gst"]), ("transports", ["udp", "tcp"]), ("clips", list(CLIPS))]:
        words = getattr(options, given).split(",")
        if not set(words) <= set(known):
            parser.error(f"--{given}: of {', '.join(known)}")
        setattr(options, given, words)
    if min(options.start, options.reference, options.tries) < 1 or options.seconds < 3 or options.ramp < 0.1:
        parser.error("counts are 1 or more, the steady part 3 s or more, and the ramp above 0.1 s")
    longest = max(options.ramp, options.most / options.arrivals) + options.settle + options.seconds
    if longest > SECONDS:
        print(f"note: with {options.most} streams a trial is longer than a clip: sessions end and are replaced", file=sys.stderr)
    return options


def run(options) -> dict:
    for clip in options.clips:
        make(clip, options.media)
    results = []
    for clip in options.clips:
        for transport in options.transports:
            for name in options.servers:
                results.append(capacity(name, clip, transport, options, options.media.resolve()))
    table(results)
    return {"gstreamer": version(["gst-launch-1.0", "--version"]), "results": results}


if __name__ == "__main__":
    sys.exit(conclude(parse(sys.argv[1:]), run))
