"""Attacks on a server, one function each: `attack(target, stop, extras)` goes on until `stop` is set.

A function's attributes say what it needs: `arguments` (of the server), `origin` (a handler of a hostile web server that becomes
the place `far`), `cached` (the place `far` is an honest nginx that the honest viewer plays too), `blocked_log`, `plain` (no TLS), `bucket` (a
handler of a hostile S3), `files` (limit of open files), `own_files` (needs no hostile files), `folders` (a function that makes further
places in a folder), `protected` (the place `private` has users), `cluster` (the server is a node with a secret).

What an attack itself measures, it leaves in `extras.measured`.
"""

import contextlib
import http.client
import http.server
import os
import select
import signal
import socket
import ssl
import shutil
import struct
import subprocess
import threading
import time
from pathlib import Path

from attack_access import etcd, guesses, registrations
from attack_pictures import thumbnails
from servers import nginx

OUTPUTS = ["index.m3u8", "ts/index.m3u8", "index.mpd", "v1/index.m3u8", "v1/iframes.m3u8", "ts/v1/index.m3u8", "v1/1.m4s", "ts/v1/1.ts"]


def write_hostile(root: Path, folder: Path):
    """Media files that cost more than they look like, and folders of very many."""
    subprocess.run(["cargo", "run", "--quiet", "--release", "-p", "millpond-hostile", "--", folder], cwd=root, check=True)
    sample = root / "assets/sample/180p.mp4"
    many = folder / "many"
    if not many.exists():
        many.mkdir()
        (folder / "copy.mp4").write_bytes(sample.read_bytes())
        for number in range(3000):
            os.link(folder / "copy.mp4", many / f"film{number}.mp4")


class Extras:
    """What some attacks need beside the server."""

    def __init__(self, stack: contextlib.ExitStack, hostile: Path):
        self.stack = stack
        self.hostile = hostile
        self.files = sorted(path.name for path in hostile.glob("*.mp4") if path.name != "copy.mp4")
        self.measured = {}

    def places(self, attack, folders: dict) -> list:
        """Arguments that name the places: folders, and a hostile or an honest origin."""
        if getattr(attack, "bucket", None):
            url = self.serve(attack.bucket)
            config = self.hostile.parent / "bucket.toml"
            folders = "".join(f'[places.{name}]\nurl = "{folder}"\n' for name, folder in folders.items())
            config.write_text(f'{folders}[places.far]\nurl = "s3://bucket"\nendpoint = "{url}"\nretries = 0\n')
            return ["--config", config]
        if getattr(attack, "protected", False):
            return ["--config", self.protected(folders)]
        if make := getattr(attack, "folders", None):
            folders = {**folders, **make(self.hostile.parent / f"{attack.__name__}-films")}
        return [f"{name}={folder}" for name, folder in folders.items()] + self.of_web(attack) + self.of_cluster(attack)

    def protected(self, folders: dict) -> Path:
        """A configuration with the place `private`, which has a user."""
        users, config = self.hostile.parent / "users", self.hostile.parent / "protected.toml"
        users.write_text("ann:a-password-that-nobody-guesses\n")
        places = "".join(f'[places.{name}]\nurl = "{folder}"\n' for name, folder in folders.items())
        config.write_text(f'{places}[places.private]\nurl = "{folders["films"]}"\naccess-users = "{users}"\n')
        return config

    def of_cluster(self, attack) -> list:
        if not getattr(attack, "cluster", False):
            return []
        folder = self.hostile.parent / f"{attack.__name__}-etcd"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        secret = folder / "secret"
        secret.write_text("the secret of the cluster: thirty-two bytes")
        self.etcd = etcd(self.stack, folder / "etcd")
        return ["--cluster", self.etcd, "--node", "own", "--cluster-steering", "none", "--cluster-secret", secret]

    def of_web(self, attack) -> list:
        if getattr(attack, "cached", False):
            site = self.hostile.parent / "site"
            origin = self.stack.enter_context(nginx("origin", site, self.hostile.parent / "nginx"))
            return [f"far={origin.url}"]
        handler = getattr(attack, "origin", None)
        return [] if handler is None else [f"far={self.serve(handler)}/"]

    def serve(self, handler) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.stack.callback(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def paths(self, attack) -> list:
        return ["/far/a.mp4"] if getattr(attack, "cached", False) else []


def impatient(target, path: str, patience: float = 2.0):
    """Asks and hangs up when no answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", target.http, timeout=patience)
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", path)
        connection.getresponse().read(1 << 20)
    connection.close()


def in_turn(target, stop, paths: list, threads: int = 4):
    """Asks for all paths in turn, several at once, and never waits long."""

    def client(offset: int):
        turn = offset
        while not stop.is_set():
            impatient(target, paths[turn % len(paths)])
            turn += threads
            time.sleep(0.01)

    running = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def quiet(target, stop, extras):
    """Nothing: what the honest see without an attack."""
    stop.wait()


def hostile_files(target, stop, extras):
    """Every output of every hostile file, by clients that hang up."""
    in_turn(target, stop, [f"/hostile/{name}/{output}" for name in extras.files for output in OUTPUTS])


def of_file(name: str):
    def attack(target, stop, extras):
        in_turn(target, stop, [f"/hostile/{name}/{output}" for output in OUTPUTS])

    attack.__name__ = name.removesuffix(".mp4")
    return attack


def folder_of_3000(target, stop, extras):
    in_turn(target, stop, [f"/hostile/many/{output}" for output in OUTPUTS])


class IndexPages(http.server.BaseHTTPRequestHandler):
    """Any folder has a page of 8 MiB of unended links."""

    protocol_version = "HTTP/1.1"
    page = b"<a href=X" * ((8 << 20) // 9)

    def do_GET(self):
        is_folder = self.path.endswith("/")
        body = self.page if is_folder else b""
        self.send_response(200 if is_folder else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


def index_pages(target, stop, extras):
    in_turn(target, stop, [f"/far/folder{number}/index.m3u8" for number in range(10_000)], 2)


index_pages.origin = IndexPages


def tls(target) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(socket.create_connection(("127.0.0.1", target.https), timeout=10))


def tls_idle(target, stop, extras):
    """A hundred TLS connections that say nothing, opened again when they are closed."""
    held = []
    while not stop.is_set():
        while len(held) < 100 and not stop.is_set():
            with contextlib.suppress(OSError):
                held.append(tls(target))
        closed = [s for s in select.select(held, [], [], 0.2)[0]]
        held = [s for s in held if s not in closed]


def tls_unread(target, stop, extras):
    """Fifty TLS clients that ask for all of a file and read nothing."""
    held = []
    while not stop.is_set():
        with contextlib.suppress(OSError):
            client = tls(target)
            client.sendall(b"GET /films/a.mp4 HTTP/1.1\r\nhost: a\r\n\r\n")
            held.append(client)
        if len(held) > 50:
            held.pop(0).close()
        stop.wait(0.05)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def h2_streams(target, stop, connections: int, streams: int, window: int):
    """HTTP/2 clients (RFC 9113) whose streams have next to no window; they answer PING and SETTINGS."""
    path = b"/films/a.mp4"
    head = b"\x82\x86\x04" + bytes([len(path)]) + path + b"\x01\x01a"
    opening = PREFACE + frame(4, 0, 0, struct.pack(">HI", 4, window))
    opening += b"".join(frame(1, 5, 2 * number + 1, head) for number in range(streams))
    held = {}
    poll = select.poll()
    while not stop.is_set():
        while len(held) < connections and not stop.is_set():
            with contextlib.suppress(OSError):
                client = socket.create_connection(("127.0.0.1", target.http), timeout=5)
                client.sendall(opening)
                client.settimeout(0.5)
                held[client.fileno()] = (client, bytearray())
                poll.register(client, select.POLLIN)
        for fd, _ in poll.poll(200):
            client, buffer = held[fd]
            try:
                got = client.recv(1 << 16)
            except OSError:
                got = b""
            if not got:
                poll.unregister(fd)
                del held[fd]
                client.close()
                continue
            buffer += got
            while len(buffer) >= 9:
                length = int.from_bytes(buffer[:3], "big")
                if len(buffer) < 9 + length:
                    break
                kind, flags, body = buffer[3], buffer[4], bytes(buffer[9 : 9 + length])
                del buffer[: 9 + length]
                if kind in (4, 6) and not flags & 1:
                    with contextlib.suppress(OSError):
                        client.sendall(frame(kind, 1, 0, body if kind == 6 else b""))


def h2_window_0(target, stop, extras):
    h2_streams(target, stop, 50, 20, 0)


def h2_window_1(target, stop, extras):
    h2_streams(target, stop, 100, 100, 1)


h2_window_1.arguments = ["--memory", "64MiB"]


def rtsp_sessions(target, stop, extras):
    """SETUP without end, never PLAY, on connections that are left."""
    url = f"rtsp://127.0.0.1:{target.rtsp}/films/a.mp4"
    while not stop.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target.rtsp), timeout=5) as client:
            asks = [
                f"SETUP {url}/v1 RTSP/1.0\r\nCSeq: {n}\r\nTransport: RTP/AVP;unicast;client_port={20000 + 2 * n}-{20001 + 2 * n}\r\n\r\n"
                for n in range(1, 201)
            ]
            client.sendall("".join(asks).encode())
            client.settimeout(1)
            with contextlib.suppress(OSError):
                while client.recv(1 << 16):
                    pass


def blocked_log(target, stop, extras):
    """Standard error is a pipe that nobody reads; every request is logged."""
    in_turn(target, stop, [f"/nothing/{number}" for number in range(1000)])


blocked_log.blocked_log = True


def hang_ups(target, stop, extras):
    """SIGHUP, again and again."""
    while not stop.wait(0.2):
        with contextlib.suppress(ProcessLookupError):
            target.process.send_signal(signal.SIGHUP)


hang_ups.plain = True


def truncated_slabs(target, stop, extras):
    """Somebody cuts the cache's files while they are sent."""
    while not stop.wait(0.5):
        for path in (target.work / "cache").rglob("*"):
            if path.is_file() and path.stat().st_size > 1 << 16 and "slices" in path.parts:
                with contextlib.suppress(OSError):
                    os.truncate(path, path.stat().st_size // 3 // 4096 * 4096)


truncated_slabs.cached = True


class Interim(http.server.BaseHTTPRequestHandler):
    """Each request is answered by interim replies without end."""

    again = b"HTTP/1.1 100 Continue\r\n\r\n" * 4096

    def do_GET(self):
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(self.again)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def interim_replies(target, stop, extras):
    in_turn(target, stop, [f"/far/film{number}.mp4/index.m3u8" for number in range(10_000)])


interim_replies.origin = Interim
interim_replies.own_files = True


class Bucket(http.server.BaseHTTPRequestHandler):
    """Each listing is one page without end; there are no objects."""

    entry = b"<Contents><Key>a/b.mp4</Key><Size>1</Size><LastModified>2020-01-01T00:00:00.000Z</LastModified></Contents>" * 512

    def do_GET(self):
        is_listing = "list-type=2" in self.path
        self.send_response(200 if is_listing else 404)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(b'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>')
            while is_listing:
                self.wfile.write(self.entry)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def endless_listing(target, stop, extras):
    in_turn(target, stop, [f"/far/folder{number}/index.m3u8" for number in range(10_000)], 2)


endless_listing.bucket = Bucket
endless_listing.own_files = True


def idle_connections(target, stop, extras):
    """Connections of HTTP, RTSP and RTMP that say nothing, as many as the server takes."""
    held = []
    while not stop.is_set():
        for port in [target.http, target.rtsp, target.rtmp] * 64:
            if len(held) > 6000 or stop.is_set():
                break
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=0.2))
        poll = select.poll()
        by_fd = {client.fileno(): client for client in held}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        gone = {fd for fd, _ in poll.poll(100)}
        for fd in gone:
            by_fd[fd].close()
        held = [client for fd, client in by_fd.items() if fd not in gone]


idle_connections.files = 1024
idle_connections.own_files = True


def without_pause(target, stop, ports: list, request: bytes):
    """Four connections that ask again and again without waiting, and read all replies."""

    def client(port: int):
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                threading.Thread(target=read_all, args=(connection,), daemon=True).start()
                while not stop.is_set():
                    connection.sendall(request * 200)

    running = [threading.Thread(target=client, args=(port,), daemon=True) for port in ports]
    for thread in running:
        thread.start()
    stop.wait()


def read_all(connection: socket.socket):
    with contextlib.suppress(OSError):
        while connection.recv(1 << 18):
            pass


def http_requests(target, stop, extras):
    without_pause(target, stop, [target.http] * 4, b"GET /nothing/x HTTP/1.1\r\nHost: a\r\n\r\n")


def rtsp_requests(target, stop, extras):
    without_pause(target, stop, [target.rtsp] * 4, b"OPTIONS rtsp://127.0.0.1/films/a.mp4 RTSP/1.0\r\nCSeq: 1\r\n\r\n")


def h2_pings(target, stop, extras):
    """HTTP/2 clients that send PING without a pause, and read the answers."""

    def client():
        while not stop.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", target.http), timeout=60) as connection:
                threading.Thread(target=read_all, args=(connection,), daemon=True).start()
                connection.sendall(PREFACE + frame(4, 0, 0, b""))
                while not stop.is_set():
                    connection.sendall(frame(6, 0, 0, b"12345678") * 1000)

    for _ in range(4):
        threading.Thread(target=client, daemon=True).start()
    stop.wait()


http_requests.own_files = rtsp_requests.own_files = h2_pings.own_files = True


FILES = ["edits", "constant_sizes", "tracks", "empty_samples", "zero_durations", "alternating_durations", "nested_sidx"]
ALL = [
    quiet, *(of_file(f"{name}.mp4") for name in FILES), hostile_files, folder_of_3000, index_pages, tls_idle, tls_unread,
    h2_window_0, h2_window_1, rtsp_sessions, blocked_log, hang_ups, truncated_slabs, interim_replies, endless_listing,
    idle_connections, thumbnails, guesses, registrations, http_requests, rtsp_requests, h2_pings,
]
