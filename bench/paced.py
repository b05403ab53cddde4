#!/usr/bin/env python3
"""A web server that limits the average rate of a fragmented MP4 file to that of its media, as that of the translation paper did.

Each fragment is sent at its time after the first one, or as soon as the connection takes it. One thread a client. It logs nothing.

    bench/paced.py FILE PORT SECONDS-BETWEEN-FRAGMENTS
"""

import http.server
import struct
import sys
import time
from pathlib import Path


def boxes(data: bytes) -> list:
    """Kinds and ends of the boxes at the top, a box that is not complete left out."""
    found, at = [], 0
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if length == 1:
            length = struct.unpack_from(">Q", data, at + 8)[0] if at + 16 <= len(data) else 0
        if length < 8 or at + length > len(data):
            break
        at += length
        found.append((kind.decode("latin-1"), at))
    return found


def pieces(data: bytes) -> list:
    """The head of a fragmented file with its first fragment, then each further fragment."""
    ends = [end for kind, end in boxes(data) if kind == "mdat"]
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def main():
    file, port = Path(sys.argv[1]), int(sys.argv[2])
    fragments = pieces(file.read_bytes())
    interval = float(sys.argv[3])

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "video/mp4")
            self.end_headers()
            start = time.monotonic()
            for number, fragment in enumerate(fragments):
                time.sleep(max(0, start + number * interval - time.monotonic()))
                try:
                    self.wfile.write(fragment)
                except OSError:
                    return

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
