#!/usr/bin/env python3
"""The figures and tables of five papers, measured on Millpond, with the paper's values in each plot.

    bench/paper.py list                     # all figures, with what the paper states
    bench/paper.py sproxy-9 --quick         # one figure
    bench/paper.py sproxy kylili --full     # all figures of papers
    bench/paper.py all --quick              # everything, within an hour on two cores
    bench/paper.py page                     # writes docs/measured/papers.md and the plots from the records

`millpond-lab paper` is the same. A figure gives a record (JSON) and a plot (SVG) in the folder of --out; --record writes them into
docs/measured/papers, from which `page` makes the page. Needs are checked before the first figure: a figure that lacks something, or could
not be measured, is told at the end, and the status is 1.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import measure
from compare import TARGET, TOP
from papers import amps, espeland, kylili, kylili_requests, needs, page, plot, sproxy, srinilta  # noqa: F401, some only declare figures
from papers.figure import PAPERS, REGISTRY, figures_of, stated

DOCS = TOP / "docs/measured/papers"


class Bench:
    """What measurements share: the program, a folder, and figures that several of them are drawn from."""

    def __init__(self, options):
        self.options, self.work = options, TARGET / "bench/paper-figures"
        self.known = {}
        self.clips = TARGET / "bench/rtsp-media"
        """Folder of AMPS's clips."""

    @staticmethod
    def stated(paper: str, name: str) -> dict:
        """What a paper states of a figure."""
        return stated()[paper][name]

    def pick(self, quick, full):
        """One of two values, by the form of the run."""
        return quick if self.options.quick else full

    def measured(self, name: str, run):
        """What `run` gives, measured once; a failure is every figure's that is drawn from it."""
        if name not in self.known:
            try:
                self.known[name] = run()
            except Exception as error:  # noqa: BLE001, it is raised again below
                self.known[name] = error
        if isinstance(self.known[name], Exception):
            raise RuntimeError(f"{name} could not be measured: {self.known[name]}") from self.known[name]
        return self.known[name]

    def millpond(self, *arguments, timeout: float = 1800) -> str:
        """What a command of millpond prints."""
        command = [str(word) for word in (self.options.bin, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}")
        return done.stdout

    def simulate(self, *arguments) -> list:
        """Outcomes of `millpond simulate`."""
        return json.loads(self.millpond("simulate", *arguments, "--json", "-"))

    def bench(self, name: str, *arguments, timeout: float = 3600) -> str:
        """Runs another bench to its end."""
        command = [sys.executable, str(TOP / "bench" / name), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"bench/{name} ended with {done.returncode}: {(done.stderr or done.stdout)[-800:]}")
        return done.stdout


def build(options) -> str:
    """Version of the program, and the commit of the checkout."""
    printed = lambda *command: subprocess.run([str(word) for word in command], capture_output=True, text=True).stdout.strip()
    commit = options.commit or (printed("git", "-C", TOP, "rev-parse", "--short=8", "HEAD") if shutil.which("git") else "")
    return ", ".join(word for word in (printed(options.bin, "--version").rpartition(" ")[2], commit) if word)


def chosen(words: list) -> list:
    """Names of figures by words: a figure, a paper, or `all`."""
    names, known = [], [name for paper in stated().values() for name in figures_of(paper)]
    for word in words:
        found = [name for name in known if word in ("all", name) or name.startswith(f"{word}-") and word in PAPERS]
        if not found:
            raise SystemExit(f"error: {word}: no such figure or paper; `list` prints all")
        names += [name for name in found if name not in names]
    return names


def show(bench: Bench, name: str, entry: dict, options) -> dict:
    """Measures one figure; writes its plot and its record."""
    began, load = time.monotonic(), os.getloadavg()[0]
    shown = REGISTRY[name].measure(bench, entry)
    record = {
        "figure": name, "form": "quick" if options.quick else "full", "date": datetime.date.today().isoformat(), "build": build(options),
        "machine": f"{os.cpu_count()} cores, Linux {platform.release()}", "load": round(load, 1), "seconds": round(time.monotonic() - began, 1),
        "ours": shown.ours, "holds": shown.holds, "panels": plot.told(shown.panels),
    }
    plot.write(options.out / f"{name}.svg", f"{entry['figure']}: {entry['measures']}", shown.panels)
    (options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    return record


def run(names: list, options) -> int:
    """Measures figures one after the other; the status to exit with."""
    entries = {name: entry for paper in stated().values() for name, entry in figures_of(paper).items()}
    lacks = {name: [told for need in REGISTRY[name].needs if (told := needs.missing(need, options, TOP, TARGET))] for name in names}
    for cure in dict.fromkeys(cure for told in lacks.values() for cure in told):
        print(f"missing: {cure}", file=sys.stderr)
    bench, failed = Bench(options), {}
    bench.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    # Figures without a network leave the machine as it is.
    has_network = any(REGISTRY[name].needs for name in names)
    with measure.congestion_control("cubic") if has_network else contextlib.nullcontext():
        for name in names:
            if lacks[name]:
                failed[name] = "; ".join(lacks[name])
                continue
            try:
                record = show(bench, name, entries[name], options)
            except Exception as error:  # noqa: BLE001, a figure that failed is told at the end
                failed[name] = f"{type(error).__name__}: {error}"
                print(f"{name}: FAILED: {failed[name]}", file=sys.stderr, flush=True)
                if options.verbose:
                    traceback.print_exc()
                continue
            print(f"{name} ({record['seconds']:.0f} s)\n  paper:    {entries[name]['says']}\n  Millpond: {record['ours']}\n  holds:    {record['holds']}", flush=True)
    print(f"\n{len(names) - len(failed)} of {len(names)} figures are in {options.out}")
    for name, why in failed.items():
        print(f"FAILED {name}: {why.splitlines()[0]}", file=sys.stderr)
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", help="a figure, a paper, all, list or page")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--quick", action="store_true", help="fewer and shorter measurements: to see the shape")
    form.add_argument("--full", action="store_true", help="the paper's sizes, where the machine can (the default)")
    parser.add_argument("--bin", type=Path, default=TARGET / "release/millpond", help="millpond's binary, with millpond-lab beside it (%(default)s)")
    parser.add_argument("--profiled", type=Path, default=TARGET / "profiling/millpond", help="that with function names, for amps-2 (%(default)s)")
    parser.add_argument("--commit", help="commit that the binary was built from (that of the checkout)")
    parser.add_argument("--out", type=Path, default=TARGET / "bench/paper-figures/results", help="folder of records and plots (%(default)s)")
    parser.add_argument("--record", action="store_true", help="writes into docs/measured/papers, and the page after it")
    parser.add_argument("--verbose", action="store_true", help="prints where a failed figure failed")
    options = parser.parse_args()
    if options.record:
        options.out = DOCS
    return options


def listed():
    """Prints all figures."""
    for paper in stated().values():
        print(f"\n{paper['paper']}")
        for name, entry in figures_of(paper).items():
            print(f"  {name:20} {entry['figure']}: {entry['measures']}\n{'':22} {entry['says']} ({entry['source']})")


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.names == ["list"]:
        listed()
        return 0
    if options.names == ["page"]:
        return page.write(DOCS)
    names = chosen(options.names)
    if not options.bin.is_file():
        print(f"error: {options.bin} is not there: cargo build --release -p millpond -p millpond-lab, or --bin", file=sys.stderr)
        return 1
    status = run(names, options)
    return status or page.write(DOCS) if options.record else status


if __name__ == "__main__":
    sys.exit(main())
