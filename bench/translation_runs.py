"""Runs of translation.py: a stream over one bad network, fetched and judged."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import arrivals
import netns
import packets
from compare import TARGET, TOP

RATE, FPS, PORT, RTSP = 2_000_000, 25, 8000, 8554
WORK = TARGET / "bench/translation"
SYSTEM_PYTHON = "/usr/bin/python3"
# Seconds of media in a player's buffer.
BUFFER = 3.0
# Seconds for which the source keeps packets for retransmission.
KEPT = 3


def has(binary: Path, setting: str) -> bool:
    """Whether this build has a setting."""
    told = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True).stdout
    return f"--{setting}" in told


class Run:
    """A way to stream, over one link. Subclasses say where servers and viewers are."""

    # Ways to stream, and settings of Millpond that they need: name and value.
    WAYS: dict = {}
    # Of the namespaces.
    CONGESTION = {"bbr": "bbr"}

    def __init__(self, way: str, point: dict, number: int, options):
        self.way, self.point, self.number, self.options = way, point, number, options
        self.work = WORK / "runs" / "-".join(map(str, (type(self).__name__, way, *point.values(), number)))
        self.body = self.work / "body.mp4"

    @classmethod
    def ways(cls, binary: Path) -> list:
        """Those that this build knows."""
        return [way for way, setting in cls.WAYS.items() if not setting or has(binary, setting[0])]

    def settings(self) -> list:
        """Arguments of Millpond."""
        setting = self.WAYS[self.way]
        return [f"--{setting[0]}={setting[1]}"] if setting else []

    def measure(self):
        """Fetches the stream, and writes it with its times and the link's counters into a folder."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        problem = ""
        with netns.Pair(**self.link(), seed=self.number, congestion=self.CONGESTION.get(self.way, "cubic")) as pair:
            try:
                self.stream(pair)
            except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                problem = str(error)
        (self.work / "run.json").write_text(json.dumps({"problem": problem, "link": pair.report}))

    def link(self) -> dict:
        """Impairments: delay and loss are those of both directions."""
        each = self.point["delay"] / (2 if self.options.round_trip else 1)
        return {"both": f"delay={each}ms,loss={self.point['loss']}%"}

    def judge(self, source: arrivals.Source) -> dict:
        """Figures of the stream that was fetched."""
        told = json.loads((self.work / "run.json").read_text())
        try:
            figures = {} if told["problem"] else self.figures(source)
        except (OSError, ValueError) as error:
            figures, told["problem"] = {}, str(error)
        if not self.options.keep:
            shutil.rmtree(self.work)
        return {"way": self.way, **self.point, "run": self.number, **told, **figures}

    def fetch(self, namespace: netns.Namespace, url: str):
        """Has a viewer in a namespace fetch a stream."""
        seconds = self.options.seconds
        command = [sys.executable, TOP / "bench/arrivals.py", url, seconds, self.body]
        fetched = namespace.run(*command, check=False, timeout=seconds * 2 + 60)
        if fetched.returncode:
            raise RuntimeError(fetched.stderr[-300:])

    def web_server(self, namespace: netns.Namespace):
        namespace.start(sys.executable, TOP / "bench/paced.py", self.options.fragments, PORT, 1 / FPS, log=self.work / "paced.log")
        namespace.wait_for(namespace.address, PORT, 60)

    def rtsp_server(self, namespace: netns.Namespace, keeps: bool):
        kept = ["--retransmission", KEPT] if keeps else []
        command = [SYSTEM_PYTHON, TOP / "bench/gst_server.py", self.options.clip.parent, "--port", RTSP, "--address", namespace.address, *kept]
        namespace.start(*command, log=self.work / "gst.log")
        namespace.wait_for(namespace.address, RTSP, 60)

    def millpond(self, namespace: netns.Namespace, source: str):
        """Millpond before the RTSP server at `source`, at all addresses of a namespace."""
        namespace.start(
            self.options.bin, "serve", f"cams=rtsp://{source}:{RTSP}/", "--http", f"0.0.0.0:{PORT}", "--rtsp", f"0.0.0.0:{RTSP + 1}",
            "--cache", self.work / "cache", "--source-transport", "udp", *self.settings(), log=self.work / "millpond.log",
        )
        namespace.wait_for("127.0.0.1", PORT)

    def path(self) -> str:
        return f"cams/{self.options.clip.name}"


class ServerSide(Run):
    """The bad network is between server and proxy; the viewer is beside the proxy."""

    WAYS = {"cubic": (), "bbr": (), "plain": (), "rtx": ("source-retransmission", "true")}

    def stream(self, pair: netns.Pair):
        if self.way in ("cubic", "bbr"):
            self.web_server(pair.a)
            return self.fetch(pair.b, f"http://{pair.a.address}:{PORT}/")
        # A server that does not offer retransmission is not asked.
        self.rtsp_server(pair.a, self.way == "rtx")
        self.millpond(pair.b, pair.a.address)
        self.fetch(pair.b, f"http://127.0.0.1:{PORT}/{self.path()}/stream.mp4")

    def figures(self, source: arrivals.Source) -> dict:
        return arrivals.judge(source, self.body, self.options.seconds, BUFFER)


class ClientSide(Run):
    """The bad network is between proxy and viewer. Bandwidth and times are those of packets at the viewer's device."""

    WAYS = {"cubic": (), "bbr": (), "stream": (), "hls": (), "rtp": (), "tfrc": ("rtsp-rate-control", "tfrc")}

    def stream(self, pair: netns.Pair):
        if self.way in ("cubic", "bbr"):
            self.web_server(pair.a)
        else:
            self.rtsp_server(pair.a, False)
            self.millpond(pair.a, pair.a.address)
        with packets.Capture(pair.b, self.work / "packets.pcap"):
            self.fetch(pair.b, self.url(pair))

    def url(self, pair: netns.Pair) -> str:
        base = f"http://{pair.a.address}:{PORT}"
        if self.way in ("cubic", "bbr"):
            return f"{base}/"
        if self.way in ("rtp", "tfrc"):
            return f"rtsp://{pair.a.address}:{RTSP + 1}/{self.path()}"
        return f"{base}/{self.path()}/{'index.m3u8' if self.way == 'hls' else 'stream.mp4'}"

    def figures(self, source: arrivals.Source) -> dict:
        # A player of HLS begins three segments of 2 s behind, and holds them.
        judged = arrivals.judge(source, self.body, self.options.seconds, 6 if self.way == "hls" else BUFFER)
        found = packets.figures(self.work / "packets.pcap", self.options.seconds)
        return {**found, **{name: judged[name] for name in ("whole", "whole-in-time", "shown-in-time")}}
