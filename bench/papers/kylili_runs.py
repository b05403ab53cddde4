"""Runs of bench/thesis.py for the figures of Kylili's thesis, and parts that several figures share."""

import contextlib

import thesis
from papers.plot import Panel
from thesis_tables import pick

STORAGE = ("root", "nginx", "versitygw", "ip", "ffmpeg", "cc")
NEAR, FAR, LOCAL = "s3-near", "s3-20", "folder-near"
TITLES = {NEAR: "S3 near", FAR: "S3 at 20 ms", LOCAL: "local folder"}
FORMATS = {"mp4": "MP4", "fmp4": "fMP4"}
CACHES = {"off": "caches off", "manifest": "server manifest", "dref": "server manifest and dref", "all": "all (default)"}
SEGMENTS = {"dash-low": "DASH\n200 kbit/s", "dash-high": "DASH\n1,000 kbit/s", "hls-low": "HLS\n200 kbit/s", "hls-high": "HLS\n1,000 kbit/s"}
MANIFESTS = {"mpd": "DASH manifest", "m3u8": "HLS manifest"}
ONLY = "The thesis's values are in the picture only."


def part(bench, name: str, storages: str) -> list:
    """Results of one part of thesis.py, run once."""

    def run() -> list:
        form = ["--quick"] if bench.options.quick else []
        where = [f"--{flag}={storages}" for flag in ("storages", "sweep-storages", "efficiency-storages", "startup-storages")]
        options = thesis.parse([*form, "--server", str(bench.options.bin), "--parts", name, "--out", str(bench.work / "kylili"), *where])
        options.sweep = thesis.SWEEP
        with (bench.work / f"kylili-{name}.log").open("w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            return thesis.run(options)["results"][name]

    return bench.measured(f"kylili-{name}", run)


def requests(bench) -> list:
    return part(bench, "requests", f"{NEAR},{FAR}")


def efficiencies(bench) -> list:
    return part(bench, "efficiency", f"{NEAR},{LOCAL}")


def sweep(bench) -> list:
    return part(bench, "connections", FAR)


def values(results: list, key: str, storage: str, kinds: dict, form: str, cache: str) -> list:
    return [(pick(results, storage=storage, kind=kind, format=form, cache=cache) or {}).get(key) for kind in kinds]


def by_kind(results: list, key: str, storage: str, kinds: dict, caches: tuple, unit: str, title: str, theirs=None, note: str = ONLY) -> Panel:
    """Bars of each format and state of the caches."""
    ours = {f"Millpond, {FORMATS[form]}, {CACHES[cache]}": values(results, key, storage, kinds, form, cache) for cache in caches for form in FORMATS}
    return Panel(f"{title}, {TITLES[storage]}", "request, 10 connections", unit, list(kinds.values()), ours, theirs or {}, bars=True, logarithmic=True, note=note)


def efficiency(bench, storage: str, form: str, cache: str) -> dict:
    return pick(efficiencies(bench), storage=storage, format=form, cache=cache)


def rates(found: dict) -> tuple:
    """MB a second in and out."""
    return found["in"] / 1e6 / found["seconds"], found["out"] / 1e6 / found["seconds"]


def ratios(stated: dict, form: str) -> list:
    return [out / read for read, out in zip(stated[form]["in"], stated[form]["out"])]


def span(numbers: list, form: str = "{:.2f}") -> str:
    return " to ".join(dict.fromkeys(form.format(value) for value in (min(numbers), max(numbers))))
