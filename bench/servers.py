"""Servers as child processes on free ports: ours, and those that it is compared with or stands before."""

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

NGINX = """
{user}
worker_processes 1;
daemon off;
pid {work}/nginx.pid;
error_log {work}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  types {{
    application/vnd.apple.mpegurl m3u8;
    application/dash+xml mpd;
    video/mp4 mp4 m4s;
    video/mp2t ts;
  }}
  access_log off;
  sendfile on;
  tcp_nopush off;
  keepalive_timeout 1h;
  keepalive_requests 1000000000;
  client_body_temp_path {work}/body;
  proxy_temp_path {work}/proxy;
  fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi;
  scgi_temp_path {work}/scgi;
  {extra}
  server {{ listen {host}:{port}; {server} }}
}}
"""


S3_ACCESS = "tester"
S3_SECRET = "a-secret-for-tests"


class Server:
    """A running server. Use it in a `with`: it is stopped at the end."""

    def __init__(self, name: str, command: list, port: int, log: Path, host: str = "127.0.0.1"):
        self.name = name
        self.port = port
        self.url = f"http://{host}:{port}"
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)

    def __enter__(self):
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def wait(self):
        """Until it answers anything at all."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            try:
                urllib.request.urlopen(self.url, timeout=5).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{self.name} does not answer at {self.url}:\n{self.tail()}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def get(self, path: str, seconds: float = 60) -> bytes:
        try:
            with urllib.request.urlopen(self.url + path, timeout=seconds) as response:
                return response.read()
        except OSError as error:
            raise RuntimeError(f"{self.name}: GET {path}: {error}\n{self.tail()}") from error

    def warm(self, path: str, length: int, step: int = 8 << 20):
        """Has it fetch an object whole, twice, and gives it time to write."""
        for _ in range(2):
            for start in range(0, length, step):
                last = min(start + step, length) - 1
                request = urllib.request.Request(self.url + path, headers={"Range": f"bytes={start}-{last}"})
                with urllib.request.urlopen(request, timeout=60) as response:
                    response.read()
            time.sleep(1)

    def pids(self) -> list:
        """The server's processes: the one started and its children."""
        found = [self.process.pid]
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # threads come and go
                found += [int(pid) for pid in children.read_text().split()]
        return found

    def cpu_seconds(self) -> float:
        """User and system time of all threads of all its processes (proc(5), fields 14 and 15 of stat)."""
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def floor(file: Path, work: Path) -> Server:
    """A server of one file that does the least (floor.c)."""
    work.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", work / "server", Path(__file__).with_name("floor.c")], check=True)
    port = free_port()
    return Server("floor", [str(work / "server"), str(port), str(file)], port, work / "log")


def nginx(name: str, site: Path, work: Path) -> Server:
    """Debian's nginx with one worker, serving a folder of files."""
    return nginx_with(name, work, f"root {site};")


def nginx_cache(name: str, origin: str, work: Path) -> Server:
    """The same, caching what another server has in slices of 1 MB on the disk."""
    shutil.rmtree(work / "cache", ignore_errors=True)
    keep = f"proxy_cache_path {work}/cache levels=1:2 keys_zone=media:16m max_size=4g inactive=1d use_temp_path=off;"
    upstream = f"upstream origin {{ server {origin.removeprefix('http://')}; keepalive 64; }}"
    location = """location / {
      slice 1m; proxy_cache media; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range;
      proxy_cache_valid 200 206 1h; proxy_cache_lock on; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_pass http://origin;
    }"""
    return nginx_with(name, work, location, f"{keep}\n  {upstream}")


def nginx_with(
    name: str, work: Path, server: str, extra: str = "", binary: str | Path = "nginx", host: str = "127.0.0.1", within: tuple = ()
) -> Server:
    """nginx with a configuration; on another address where that is given, started by the command `within`."""
    work.mkdir(parents=True, exist_ok=True)
    port = free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    text = NGINX.format(user=user, work=work, host=host, port=port, server=server, extra=extra)
    (work / "nginx.conf").write_text(text)
    command = [*within, str(binary), "-e", str(work / "nginx.log"), "-c", str(work / "nginx.conf")]
    return Server(name, command, port, work / "output.log", host)


def versitygw(name: str, root: Path, work: Path, host: str = "127.0.0.1", within: tuple = ()) -> Server:
    """An S3-compatible server whose buckets are the folders below `root`. It keeps connections open, as S3 does. The credentials are `S3_ACCESS` and
    `S3_SECRET`."""
    work.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [*within, "versitygw", "--keep-alive", "--access", S3_ACCESS, "--secret", S3_SECRET, "--port", f"{host}:{port}", "posix", str(root)]
    return Server(name, command, port, work / "output.log", host)


class Edge(Server):
    """Our server before an origin, on ports of its own for HTTP, metrics and RTSP, its cache in the folder `work`."""

    def __init__(self, binary: Path, origin: str, work: Path, *arguments, name: str = "millpond", access_log: bool = False):
        work.mkdir(parents=True, exist_ok=True)
        port, self.admin, self.rtsp = free_port(), free_port(), free_port()
        command = [
            binary, "serve", origin, "--http", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{self.admin}",
            "--rtsp", f"127.0.0.1:{self.rtsp}", "--cache", work / "cache", f"--access-log={str(access_log).lower()}", *arguments,
        ]
        super().__init__(name, [str(part) for part in command], port, work / "output.log")

    def told(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=30) as reply:
            return reply.read()

    def metrics(self) -> dict:
        """Values by their names, labels left out."""
        lines = [line.rsplit(" ", 1) for line in self.told("/metrics").decode().splitlines() if not line.startswith("#")]
        return {name.split("{")[0]: float(value) for name, value in lines}

    def origin_requests(self) -> int:
        """Requests to the origin so far, of all kinds."""
        lines = self.told("/metrics").decode().splitlines()
        return int(sum(float(line.split()[-1]) for line in lines if line.startswith("millpond_origin_requests_total")))

    def place(self) -> dict:
        """What is counted of the origin."""
        (origin,) = json.loads(self.told("/api/v1/origins"))["items"]
        return origin


def millpond(binary: Path, arguments: str, media: Path, work: Path) -> Server:
    """Our server, with `{media}` and `{port}` filled into the arguments."""
    work.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [str(binary)] + [word.format(media=media, port=port) for word in shlex.split(arguments)]
    return Server("millpond", command, port, work / "output.log")
