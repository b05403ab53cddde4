"""Guesses of passwords by a client that invents users, and registrations of a node that nobody signed."""

import contextlib
import hashlib
import http.client
import http.server
import json
import re
import socket
import subprocess
import time
import urllib.request

from servers import free_port

INVENTED = 6000


def answer(challenge: str, method: str, path: str, user: str, count: int) -> str:
    """A Digest answer (RFC 7616) with a wrong password."""
    field = lambda name: re.search(rf'{name}="?([^",]+)', challenge)
    hashed = lambda text: (hashlib.sha256 if "SHA-256" in challenge else hashlib.md5)(text.encode()).hexdigest()
    realm, nonce, number = field("realm")[1], field("nonce")[1], f"{count:08x}"
    secrets = hashed(f"{user}:{realm}:guess{count}"), hashed(f"{method}:{path}")
    response = hashed(f"{secrets[0]}:{nonce}:{number}:c:auth:{secrets[1]}")
    algorithm = f", algorithm={field('algorithm')[1]}" if field("algorithm") else ""
    return (
        f'Digest username="{user}", realm="{realm}", nonce="{nonce}", uri="{path}", response="{response}", '
        f'qop=auth, nc={number}, cnonce="c"{algorithm}'
    )


class Http:
    """A client of HTTP that guesses; the status of each guess."""

    path = "/private/a.mp4/index.m3u8"

    def __init__(self, target):
        self.connection = http.client.HTTPConnection("127.0.0.1", target.http, timeout=10, source_address=("127.0.0.9", 0))
        self.challenge, self.count = "", 0

    def ask(self, headers: dict) -> int:
        self.connection.request("GET", self.path, headers=headers)
        reply = self.connection.getresponse()
        reply.read()
        self.challenge = reply.getheader("WWW-Authenticate") or self.challenge
        return reply.status

    def guess(self, user: str) -> int:
        if not self.challenge:
            self.ask({})
        self.count += 1
        return self.ask({"Authorization": answer(self.challenge, "GET", self.path, user, self.count)})


class Rtsp:
    """The same of RTSP. The server closes connections after some wrong passwords."""

    def __init__(self, target):
        self.port = target.rtsp
        self.path = f"rtsp://127.0.0.1:{target.rtsp}/private/a.mp4"
        self.challenge, self.count = "", 0
        self.connect()

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=("127.0.0.10", 0))
        self.replies = self.socket.makefile("rb")

    def ask(self, authorization: str) -> int:
        request = f"DESCRIBE {self.path} RTSP/1.0\r\nCSeq: {self.count}\r\n{authorization}\r\n".encode()
        status = b""
        while not status:
            with contextlib.suppress(ConnectionError):
                self.socket.sendall(request)
                status = self.replies.readline()
            if not status:
                self.connect()
        length = 0
        while line := self.replies.readline().strip():
            name, _, value = line.decode().partition(":")
            if name.lower() == "www-authenticate":
                self.challenge = value
            if name.lower() == "content-length":
                length = int(value)
        self.replies.read(length)
        return int(status.split()[1])

    def guess(self, user: str) -> int:
        if not self.challenge:
            self.ask("")
        self.count += 1
        return self.ask(f"Authorization: {answer(self.challenge, 'DESCRIBE', self.path, user, self.count)}\r\n")


def refused(client, user: str) -> int:
    """Guesses of a user that are taken, until one is refused; a hundred at most."""
    return next((number for number in range(100) if client.guess(user) != 401), 100)


def guesses(target, stop, extras):
    """Ten guesses of one user, then of invented ones, then of the first again: by HTTP, then by RTSP."""
    for client in (Http(target), Rtsp(target)):
        name, began = type(client).__name__.upper(), time.monotonic()
        first, free = refused(client, "ann"), 0
        for number in range(INVENTED):
            if stop.is_set():
                break
            free += client.guess(f"user{number}") == 401
        again = refused(client, "ann")
        took = f"{time.monotonic() - began:.1f} s"
        extras.measured |= {name: f"{first} guesses of one user, {free} of {number + 1} of invented ones, {again} of the first again; {took}"}
    stop.wait()


guesses.protected = True
guesses.own_files = True


class Foreign(http.server.BaseHTTPRequestHandler):
    """A node that belongs to nobody: it counts what other nodes send to it, and the passes in it."""

    seen, passes = 0, 0

    def do_GET(self):
        Foreign.seen += 1
        Foreign.passes += self.path.startswith("/~")
        self.send_error(404)

    def log_message(self, *_):
        pass


def registrations(target, stop, extras):
    """Registers a node in etcd with the write access of a stranger, and asks for objects whose home it would be."""
    entry = {
        "name": "foreign", "http": extras.serve(Foreign), "rtsp": "rtsp://127.0.0.1:1", "capacity": 100_000_000_000,
        "roles": ["dispenser", "storage"], "draining": False, "load": {"rate": 0, "sessions": 0},
    }
    subprocess.run(["etcdctl", "--endpoints", extras.etcd, "put", "/millpond/nodes/foreign/1f", json.dumps(entry)], check=True, stdout=subprocess.DEVNULL)
    number = 0
    while not stop.wait(0.05):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{target.http}/far/film{number}.mp4", timeout=5).read()
        number += 1
        try:
            view = json.load(urllib.request.urlopen(f"http://127.0.0.1:{target.admin}/api/v1/cluster", timeout=5))
        except OSError:
            continue
        extras.measured = {
            "objects asked for": number, "nodes": len(view["nodes"]), "requests to the foreign node": Foreign.seen, "with a pass": Foreign.passes,
        }


def etcd(stack: contextlib.ExitStack, folder) -> str:
    """Starts an etcd of one member, and returns its URL."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    process = subprocess.Popen(
        ["etcd", "--name", "m", "--data-dir", str(folder), "--listen-client-urls", client, "--advertise-client-urls", client,
         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"m={peer}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    stack.callback(process.kill)
    for _ in range(200):
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{client}/health", timeout=5).close()
            return client
        time.sleep(0.1)
    raise RuntimeError("etcd does not answer")


registrations.cluster = True
registrations.cached = True
registrations.own_files = True
