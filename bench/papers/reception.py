"""Streams that Millpond receives from an RTSP server behind a link between namespaces, one viewer for each: AMPS's data configuration."""

import itertools
import json
import os
import shutil
import statistics
import subprocess
import time

import measure
import netns
import servers
from papers.waiting import answers
from rtsp_capacity import process_seconds
from thin_link import run

SOURCE, PROXY = "10.79.3.2", "10.79.3.1"
PORT = 8554
# Channels for each viewer: viewers choose at random, and a stream that two of them chose is received once.
CHANNELS = 4
NUMBERS = itertools.count()


class Source:
    """A Millpond whose channels are the streams, in a namespace of its own. Use it in a `with`."""

    def __init__(self, bench, clip: str, channels: int):
        self.bench, self.clip, self.channels = bench, clip, channels
        number = next(NUMBERS)
        self.name, self.near = f"mp{os.getpid()}s{number}", f"rs{os.getpid() % 100000}n{number}"
        self.process = None

    def __enter__(self):
        run("ip", "netns", "add", self.name)
        try:
            run("ip", "link", "add", self.near, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            run("ip", "addr", "add", f"{PROXY}/24", "dev", self.near)
            run("ip", "link", "set", self.near, "up")
            for words in (("addr", "add", f"{SOURCE}/24", "dev", "eth0"), ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
                run("ip", "-n", self.name, *words)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        work = self.bench.work / "reception-source"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        names = ", ".join(f'"c{number}={self.clip}.mp4"' for number in range(1, self.channels + 1))
        (work / "source.toml").write_text(f"rtsp-channels = [{names}]\n")
        command = ["ip", "netns", "exec", self.name, self.bench.options.bin, "serve", self.bench.clips.resolve(), "--config", work / "source.toml", "--http", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0", "--rtsp", f"0.0.0.0:{PORT}", "--access-log=false", "--cache", work / "cache",
                   "--cache-size", 0, "--log", "warn", "--shutdown-grace", "1s"]
        with (work / "log").open("wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)
        netns.hasten(self.process)
        answers(SOURCE, PORT, self.process)

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
        # A namespace is taken down later, and the address would still be taken by the next trial.
        run("ip", "link", "del", self.near, check=False)
        run("ip", "netns", "del", self.name, check=False)


def trial(bench, clip: str, viewers: int, transport: str = "udp", profile=None) -> dict:
    """Viewers of streams that Millpond receives by a transport: its CPU while all play. `profile` records the server meanwhile."""
    seconds, settle = bench.pick(6, 15), bench.pick(3, 6)
    ramp = max(2.0, viewers / 150)
    begin = ramp + settle
    total = begin + seconds + 1
    channels = CHANNELS * viewers
    work = bench.work / "reception"
    shutil.rmtree(work, ignore_errors=True)
    arguments = ["--source-transport", transport, "--max-streams", 2 * channels, "--cache-size", 0, "--log", "warn", "--shutdown-grace", "1s"]
    with Source(bench, clip, channels) as source, servers.Edge(bench.options.bin, f"cams=rtsp://{SOURCE}:{PORT}/", work, *arguments) as server:
        url = f"rtsp://127.0.0.1:{server.rtsp}/cams/c{{1..{channels}}}"
        command = [bench.options.bin, "load", url, "--clients", viewers, "--ramp-up", f"{1000 * ramp:.0f}ms", "--duration", f"{1000 * total:.0f}ms", "--json", "-"]
        began = time.monotonic()
        load = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            time.sleep(max(0.0, began + begin - time.monotonic()))
            spent = lambda: (server.cpu_seconds(), process_seconds(source.process.pid), process_seconds(load.pid), measure.machine_seconds(), time.monotonic())
            before, counted = spent(), server.metrics()
            if profile:
                profile(server, seconds)
            time.sleep(max(0.0, began + begin + seconds - time.monotonic()))
            after, later = spent(), server.metrics()
            output, errors = load.communicate(timeout=120)
        finally:
            load.kill()
            load.wait()
    if not output:
        raise RuntimeError(f"millpond load gave no report: {errors[-500:]}\n{server.tail()}")
    report = json.loads(output)
    cpu, sources, generator, machine, wall = (b - a for a, b in zip(before, after))
    gained = lambda name: (later.get(name, 0) - counted.get(name, 0)) / wall
    window = [step for step in report["timeline"] if begin < step["elapsed"] <= total - 1]
    mean = lambda name: statistics.mean(step[name] for step in window) if window else 0.0
    found = {
        "clip": clip, "transport": transport, "viewers": viewers, "active": mean("active"), "cpu": 100 * cpu / wall, "source": 100 * sources / wall,
        "generator": 100 * generator / wall, "foreign": 100 * max(0.0, machine - cpu - sources - generator) / wall, "mbps": mean("megabits-per-second"),
        "packets": mean("packets-per-second"), "late": mean("late-percent"), "lost": report["media"]["lost-percent"], "failed": report["sessions"]["failed"],
        "received-frames": gained("millpond_live_received_frames_total"), "lost-packets": gained("millpond_live_lost_packets_total"),
        "received-mbps": 8e-6 * gained("millpond_live_received_bytes_total"), "streams": later.get("millpond_live_streams", 0),
        "between": report["media"]["between"], "buffer": report["media"]["buffer"], "histogram": report["histograms"]["between"],
    }
    if found["failed"] or found["active"] < 0.98 * viewers:
        raise RuntimeError(f"{clip}, {viewers} viewers by {transport}: {found['active']:.0f} play, {found['failed']} failed: {report['failures']}\n{server.tail()}")
    return found
