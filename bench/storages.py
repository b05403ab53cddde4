"""Storages near and far: a folder behind nginx or behind an S3-compatible server, on the loopback or a round trip away, or the folder itself."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import servers
from thin_link import long_way, run

BUCKET = "media"


@dataclass(frozen=True)
class Storage:
    """A kind of storage at a distance."""

    kind: str
    """`http`, `s3` or `folder`."""
    round_trip: int
    """Milliseconds; 0 is the loopback."""

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.round_trip or 'near'}"

    @property
    def title(self) -> str:
        if self.kind == "folder":
            return "local folder"
        return f"{self.kind.upper()}, {f'{self.round_trip} ms' if self.round_trip else 'near'}"


def parse(text: str) -> Storage:
    """A storage by its name: `http-near`, `s3-20`, `folder-near`."""
    kind, _, distance = text.partition("-")
    if text != "folder-near" and (kind not in ("http", "s3") or not (distance == "near" or distance.isdecimal())):
        raise ValueError(f"{text}: a storage is http or s3, a dash, and near or milliseconds, such as s3-20; or folder-near")
    return Storage(kind, 0 if distance == "near" else int(distance))


@contextlib.contextmanager
def far_host(number: int, round_trip: int, work: Path):
    """A network namespace that many milliseconds away. Gives its address and the command that runs others in it. Each number has its own."""
    if not round_trip:
        yield "127.0.0.1", ()
        return
    name, near, far = f"thesis{number}", f"ts{number}a", f"ts{number}b"
    address, within = f"10.78.{number}.2", ("ip", "netns", "exec", name)
    run("ip", "netns", "del", name, check=False)
    run("ip", "link", "del", near, check=False)
    run("ip", "netns", "add", name)
    process = None
    try:
        process = long_way(near, far, round_trip / 2, work)
        run("ip", "link", "set", far, "netns", name)
        run("ip", "addr", "add", f"10.78.{number}.1/24", "dev", near)
        run("ip", "link", "set", near, "up")
        run(*within, "ip", "addr", "add", f"{address}/24", "dev", far)
        run(*within, "ip", "link", "set", far, "up")
        yield address, within
    finally:
        if process:
            process.terminate()
            process.wait()
        run("ip", "netns", "del", name, check=False)


def received(number: int) -> int:
    """Bytes that have arrived from the far host of that number."""
    return int(Path(f"/sys/class/net/ts{number}a/statistics/rx_bytes").read_text())


@contextlib.contextmanager
def started(storage: Storage, number: int, root: Path, work: Path):
    """Runs a storage over the bucket below `root`. Gives the place to serve; credentials are set in the environment."""
    work.mkdir(parents=True, exist_ok=True)
    if storage.kind == "folder":
        yield str(root / BUCKET)
        return
    with far_host(number, storage.round_trip, work) as (host, within):
        if storage.kind == "http":
            with servers.nginx_with("storage", work, f"root {root / BUCKET}; autoindex on;", host=host, within=within) as server:
                yield server.url
            return
        with servers.versitygw("storage", root, work, host, within) as server:
            os.environ |= {
                "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": servers.S3_ACCESS, "AWS_ALLOW_HTTP": "true",
                "AWS_SECRET_ACCESS_KEY": servers.S3_SECRET, "AWS_REGION": "us-east-1",
            }
            yield f"s3://{BUCKET}"
