#!/usr/bin/python3
"""GStreamer's gst-rtsp-server with live sources: live_source.py [ADDRESS:]PORT NAME=PIPELINE...

All clients of a name share one pipeline, as those of a camera do. Requests that tests wait for are printed. It needs Debian's
own Python and gir1.2-gst-rtsp-server-1.0. With RETRANSMISSION=avpf or both it sends lost packets again.
"""

import os
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

AVP, AVPF = GstRtsp.RTSPProfile.AVP, GstRtsp.RTSPProfile.AVPF
# Profiles for clients that ask for lost packets.
PROFILES = {"avpf": AVPF, "both": AVP | AVPF}


def watch(_server, client):
    for method in ("describe", "play", "teardown"):
        client.connect(f"{method}-request", lambda _, context, name: print(name, context.uri.abspath, flush=True), method)
    client.connect("closed", lambda _: print("closed", flush=True))


def main() -> None:
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    address, _, port = sys.argv[1].rpartition(":")
    server.set_address(address or "127.0.0.1")
    server.set_service(port)
    server.connect("client-connected", watch)
    for argument in sys.argv[2:]:
        name, launch = argument.split("=", 1)
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(launch)
        # Each client of a stored title has a pipeline of its own, as it seeks.
        factory.set_shared(os.environ.get("SHARED") != "no")
        if profiles := PROFILES.get(os.environ.get("RETRANSMISSION")):
            factory.set_profiles(profiles)
            factory.set_retransmission_time(2 * Gst.SECOND)
        server.get_mount_points().add_factory("/" + name, factory)
    if server.attach(None) == 0:
        sys.exit(f"port {sys.argv[1]} is taken")
    print("ready", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
