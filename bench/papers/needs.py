"""Programs that measurements need, and how to install them."""

import os
import shutil
import subprocess
from pathlib import Path

PROGRAMS = {
    "nginx": "apt install nginx-light", "ip": "apt install iproute2", "tc": "apt install iproute2", "ethtool": "apt install ethtool", "ffmpeg": "apt install ffmpeg",
    "cc": "apt install gcc libc6-dev", "perf": "apt install linux-perf", "chromium": "scripts/setup", "node": "scripts/setup",
    "versitygw": "scripts/setup builds it (needs go)", "readelf": "apt install binutils", "dumpcap": "apt install tshark",
}


def has_gst() -> bool:
    """Whether Debian's Python finds gst-rtsp-server."""
    probe = "import gi; gi.require_version('GstRtspServer', '1.0')"
    return Path("/usr/bin/python3").exists() and not subprocess.run(["/usr/bin/python3", "-c", probe], capture_output=True).returncode


def has_player(top: Path) -> bool:
    """Whether the driver of the browser is installed."""
    return (top / "tests/players/node_modules").is_dir()


def missing(need: str, options, top: Path, target: Path) -> str | None:
    """What is missing of a need, and what to do; None where nothing is."""
    tests = {
        "root": (lambda: os.geteuid() == 0, "network namespaces need root: run as root"),
        "gst": (has_gst, "gst-rtsp-server is missing: apt install python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-good gstreamer1.0-plugins-ugly"),
        "link": (lambda: any((target / kind / "millpond-link").exists() for kind in ("release", "debug")),
                 "millpond-link is not built: cargo build --release -p millpond-link"),
        "profiled": (lambda: options.profiled.exists(), f"{options.profiled} is not built: cargo build --profile profiling -p millpond"),
        "players": (lambda: has_player(top), "the browser's driver is missing: scripts/setup"),
    }
    if need in tests:
        is_there, cure = tests[need]
        return None if is_there() else cure
    return None if shutil.which(need, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") else f"{need} is not installed: {PROGRAMS[need]}"
