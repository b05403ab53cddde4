#!/usr/bin/env python3
"""An honest viewer: plays segments one after another over one connection and notes how long each takes.

Usage: honest.py HOST:PORT SECONDS PATH...   prints one line of JSON. A body that changes between two reads is an error.
"""

import hashlib
import http.client
import json
import sys
import time

PAUSE = 0.05
PATIENCE = 30


def fetch(connection, path: str) -> bytes:
    connection.request("GET", path)
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        raise OSError(f"{path}: {reply.status} {body[:200]!r}")
    return body


def main():
    address, seconds, *paths = sys.argv[1:]
    connection = http.client.HTTPConnection(address, timeout=PATIENCE)
    seen, took, errors = {}, [], []
    end = time.monotonic() + float(seconds)
    turn = 0
    while time.monotonic() < end:
        path = paths[turn % len(paths)]
        turn += 1
        began = time.monotonic()
        try:
            digest = hashlib.md5(fetch(connection, path)).hexdigest()
            took.append(time.monotonic() - began)
            if seen.setdefault(path, digest) != digest:
                errors.append(f"{path}: other bytes than before")
        except (OSError, http.client.HTTPException) as error:
            took.append(time.monotonic() - began)
            errors.append(f"{path}: {error!r}"[:300])
            connection.close()
        time.sleep(PAUSE)
    took.sort()
    at = lambda part: round(took[min(len(took) - 1, int(len(took) * part))] * 1000, 1) if took else None
    print(json.dumps({"requests": len(took), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1), "errors": errors[:5], "failed": len(errors)}))


main()
