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
BUFFER = 1.0
# Seconds for which the source keeps packets for retransmission.
KEPT = 3


def has(binary: Path, setting: str) -> bool:
    """Whether this build has a setting."""
    told = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True).stdout
    return f"--{setting}" in told


class Run:
    """A way to stream, over one link. Subclasses say where servers and viewers are."""

    # Ways to stream, and the settings of Millpond that they need.
    WAYS: dict = {}
    # Of the namespaces.
    CONGESTION = {"bbr": "bbr"}

    def __init__(self, way: str, delay: int, loss: float, number: int, options):
        self.way, self.delay, self.loss, self.number, self.options = way, delay, loss, number, options
        self.work = WORK / f"runs/{type(self).__name__}-{way}-{delay}-{loss}-{number}"
        self.body = self.work / "body.mp4"

    @classmethod
    def ways(cls, binary: Path) -> list:
        """Those that this build knows."""
        return [way for way, setting in cls.WAYS.items() if not setting or has(binary, setting)]

    def measure(self):
        """Fetches the stream, and writes it with its times and the link's counters into a folder."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        each = self.delay / 2 if self.options.round_trip else self.delay
        problem = ""
        with netns.Pair(f"delay={each}ms,loss={self.loss}%", seed=self.number, congestion=self.CONGESTION.get(self.way, "cubic")) as pair:
            try:
                self.stream(pair)
            except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                problem = str(error)
        (self.work / "run.json").write_text(json.dumps({"problem": problem, "link": pair.report}))

    def judge(self, source: arrivals.Source) -> dict:
        """Figures of the stream that was fetched."""
        told = json.loads((self.work / "run.json").read_text())
        try:
            figures = {} if told["problem"] else self.figures(source)
        except (OSError, ValueError) as error:
            figures, told["problem"] = {}, str(error)
        if not self.options.keep:
            shutil.rmtree(self.work)
        return {"way": self.way, "delay": self.delay, "loss": self.loss, "run": self.number, **told, **figures}

    def fetch(self, namespace: netns.Namespace, url: str):
        """Has a viewer in a namespace fetch a stream."""
        seconds = self.options.seconds
        command = [sys.executable, TOP / "bench/arrivals.py", url, seconds, self.body]
        fetched = namespace.run(*command, check=False, timeout=seconds * 3 + 60)
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

    def millpond(self, namespace: netns.Namespace, source: str, *settings):
        """Millpond before the RTSP server at `source`, at all addresses of a namespace."""
        namespace.start(
            self.options.bin, "serve", f"cams=rtsp://{source}:{RTSP}/", "--http", f"0.0.0.0:{PORT}", "--rtsp", f"0.0.0.0:{RTSP + 1}",
            "--cache", self.work / "cache", "--source-transport", "udp", *settings, log=self.work / "millpond.log",
        )
        namespace.wait_for("127.0.0.1", PORT)

    def path(self) -> str:
        return f"cams/{self.options.clip.name}"


class ServerSide(Run):
    """The bad network is between server and proxy; the viewer is beside the proxy."""

    WAYS = {"cubic": "", "bbr": "", "plain": "", "rtx": "source-retransmission"}

    def stream(self, pair: netns.Pair):
        if self.way in ("cubic", "bbr"):
            self.web_server(pair.a)
            return self.fetch(pair.b, f"http://{pair.a.address}:{PORT}/")
        is_asked = self.way == "rtx"
        self.rtsp_server(pair.a, is_asked)
        settings = [f"--source-retransmission={str(is_asked).lower()}"] if has(self.options.bin, "source-retransmission") else []
        self.millpond(pair.b, pair.a.address, *settings)
        self.fetch(pair.b, f"http://127.0.0.1:{PORT}/{self.path()}/stream.mp4")

    def figures(self, source: arrivals.Source) -> dict:
        return arrivals.judge(source, self.body, self.options.seconds, BUFFER)


class ClientSide(Run):
    """The bad network is between proxy and viewer. Bandwidth and times are those of packets at the viewer's device."""

    WAYS = {"cubic": "", "bbr": "", "stream": "", "rtp": "", "tfrc": "rtsp-rate-control"}

    def stream(self, pair: netns.Pair):
        if self.way in ("cubic", "bbr"):
            self.web_server(pair.a)
        else:
            self.rtsp_server(pair.a, False)
            settings = ["--rtsp-rate-control", "tfrc"] if self.way == "tfrc" else []
            self.millpond(pair.a, pair.a.address, *settings)
        with packets.Capture(pair.b, self.work / "packets.pcap"):
            if self.way in ("rtp", "tfrc"):
                self.watch(pair)
            else:
                path = f"{self.path()}/stream.mp4" if self.way == "stream" else ""
                self.fetch(pair.b, f"http://{pair.a.address}:{PORT}/{path}")

    def watch(self, pair: netns.Pair):
        """A viewer of RTSP by UDP, whose reports leave often."""
        seconds = self.options.seconds
        url = f"rtsp://{pair.a.address}:{RTSP + 1}/{self.path()}"
        command = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-rtsp_transport", "udp", "-i", url, "-t", seconds, "-c", "copy", self.body]
        process = pair.b.start(*command, log=self.work / "ffmpeg.log")
        try:
            process.wait(seconds + 15)
        except subprocess.TimeoutExpired:
            # Frames were lost at the end: it waits for more.
            process.send_signal(2)
            process.wait(20)

    def figures(self, source: arrivals.Source) -> dict:
        seconds = self.options.seconds
        found = packets.figures(self.work / "packets.pcap", seconds)
        if self.way not in ("rtp", "tfrc"):
            judged = arrivals.judge(source, self.body, seconds, BUFFER)
            return {**found, **{name: judged[name] for name in ("whole", "whole-in-time", "shown-in-time")}}
        coded = {source.coded[digest] for _, digest in arrivals.hashes("-i", self.body, is_coded=True).video if digest in source.coded}
        shown = {source.decoded[digest] for _, digest in arrivals.hashes("-i", self.body).video if digest in source.decoded}
        due = int((seconds - BUFFER - 1) * FPS)
        first = min(coded, default=0)
        share = lambda places: sum(1 for place in places if first <= place < first + due) / due
        # What RTP brings is never late: it is shown or dropped.
        return {**found, "whole": share(coded), "whole-in-time": share(coded), "shown-in-time": share(shown)}
