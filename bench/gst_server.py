#!/usr/bin/python3
"""GStreamer's gst-rtsp-server, serving the MP4 files of a folder on demand over UDP and TCP.

The peer that rtsp_capacity.py measures against. It needs Debian's own Python and gir1.2-gst-rtsp-server-1.0. Every client
has a pipeline of its own, as a title on demand needs, and one payloader for the video: nothing is encoded or decoded.
"""

import argparse
import signal
import sys
from pathlib import Path

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
gi.require_version("GstRtsp", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

LAUNCH = "( filesrc location={path} ! qtdemux ! rtph264pay name=pay0 pt=96 config-interval=-1 )"
WITH_SOUND = (
    "( filesrc location={path} ! qtdemux name=demux demux.video_0 ! queue ! rtph264pay name=pay0 pt=96 config-interval=-1 "
    "demux.audio_0 ! queue ! rtpmp4gpay name=pay1 pt=97 )"
)


def offer_retransmission(factory: GstRtspServer.RTSPMediaFactory, seconds: float):
    """Has a factory offer AVPF and RTX (RFC 4585, 4588), and keep packets for so long."""
    factory.set_profiles(GstRtsp.RTSPProfile.AVP | GstRtsp.RTSPProfile.AVPF)
    factory.set_do_retransmission(True)
    factory.set_retransmission_time(int(seconds * Gst.SECOND))

    def added(_pipeline, _bin, element):
        # Without this it keeps 100 packets, which is less than the time that was set.
        if element.get_factory().get_name() == "rtprtxsend":
            element.set_property("max-size-packets", 0)

    def configure(_factory, made):
        pipeline = Gst.Pipeline()
        pipeline.connect("deep-element-added", added)
        made.take_pipeline(pipeline)

    factory.connect("media-configure", configure)


def serve(folder: Path, port: int, threads: int, launch: str, address: str, retransmission: float) -> GstRtspServer.RTSPServer:
    server = GstRtspServer.RTSPServer()
    server.set_address(address)
    server.set_service(str(port))
    # As many connections at once as clients of a ramp-up may bring; the default queue holds 5.
    server.set_backlog(1024)
    pool = GstRtspServer.RTSPThreadPool()
    pool.set_max_threads(threads)
    server.set_thread_pool(pool)
    sessions = server.get_session_pool()
    sessions.set_max_sessions(0)
    mounts = server.get_mount_points()
    for path in sorted(folder.glob("*.mp4")):
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(launch.format(path=path))
        factory.set_shared(False)
        # Ports of media are taken from the system: there is no pool of addresses that could run out.
        factory.set_eos_shutdown(False)
        if retransmission:
            offer_retransmission(factory, retransmission)
        mounts.add_factory("/" + path.name, factory)
    # Sessions whose clients went away without a word.
    GLib.timeout_add_seconds(2, lambda: sessions.cleanup() >= 0)
    if server.attach(None) == 0:
        raise RuntimeError(f"port {port} is taken")
    return server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="MP4 files with H.264; each is at /NAME.mp4")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=-1, help="for media, -1 is one for each client (%(default)s)")
    parser.add_argument("--sound", action="store_true", help="the files have AAC too, which is served")
    parser.add_argument("--address", default="127.0.0.1", help="(%(default)s)")
    parser.add_argument("--retransmission", type=float, default=0, help="offer it, and keep packets for so many seconds")
    options = parser.parse_args()
    Gst.init(None)
    launch = WITH_SOUND if options.sound else LAUNCH
    server = serve(options.folder.resolve(), options.port, options.threads, launch, options.address, options.retransmission)
    loop = GLib.MainLoop()
    for number in (signal.SIGTERM, signal.SIGINT):
        GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, loop.quit)
    print(f"rtsp://{server.get_address()}:{options.port}/", flush=True)
    loop.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
