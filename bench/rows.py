#!/usr/bin/env python3
"""The rows of five papers' designs, each with the tests that show it and the figures that measure it.

    bench/rows.py check                 # whether all tests and figures of bench/rows.tsv exist, by the sources
    bench/rows.py run                   # runs the tests of each row, and writes docs/measured/rows.md
    bench/rows.py run --only P1,T2      # the same for some rows; the others keep their results
    bench/rows.py page                  # writes the page again, from the results in docs/measured/rows.json

`run` builds nothing: `cargo test --workspace --locked --no-run` makes the programs. It needs root, and what scripts/setup installs. A test is a
path within the program e2e of millpond, or CRATE:PATH for a unit test, or CRATE/PROGRAM:PATH. A figure is one of `bench/paper.py list`.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from rows_table import NAMES, PAGE, TOP, Row, faults, table

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target")).resolve()
RESULTS, RECORDS = TOP / "docs/measured/rows.json", TOP / "docs/measured/papers"
HEAD = """# The papers' rows, and what shows each

`cargo test --workspace --locked --no-run && bench/rows.py run` runs the tests of all rows as root, and writes this page.
`bench/rows.py run --only P1,T2` runs some of them. The table is `bench/rows.tsv`, which `bench/rows.py check` compares with the sources.
A figure is measured by `bench/paper.py NAME --quick`, and is not measured again here.

P is SProxy, A is AMPS, C is Srinilta's server, T is Espeland's translation, K is Kylili's thesis. The command of a row can be typed as it stands, after
`cargo test --workspace --locked --no-run`. A figure says whether it holds beside the paper: [the papers' figures](papers.md) has the values.

Conditions: {conditions}. At most six tests run at once. A test whose program is missing fails here.

| row | what | command | result |
|---|---|---|---|
"""


@cache
def listed(program: Path) -> frozenset:
    """Names of a program's tests; none where it has no tests to list."""
    done = subprocess.run([program, "--list", "--format", "terse"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return frozenset(line.removesuffix(": test") for line in done.stdout.splitlines() if line.endswith(": test") and not done.returncode)


def built(crate: str, program: str, paths: list) -> Path | None:
    """The newest built program that has any of some tests: programs of a crate's name and their tests are called as its unit tests."""
    found = [file for file in (TARGET / "debug/deps").glob(f"{program or crate.replace('-', '_')}-*") if not file.suffix and os.access(file, os.X_OK)]
    return next((file for file in sorted(found, key=lambda file: file.stat().st_mtime, reverse=True) if listed(file).intersection(paths)), None)


def run_tests(crate: str, program: str, paths: list) -> dict:
    """Runs tests of one program: how many passed, what failed, and what they left out."""
    file = built(crate, program, paths)
    if missing := [path for path in paths if not file or path not in listed(file)]:
        return {"passed": 0, "failed": [f"{file.name if file else f'{crate} {program}'.strip() + ' as built'}: no test {path}" for path in missing], "left-out": []}
    with tempfile.NamedTemporaryFile("r") as skips:
        command = [file, "--exact", "--test-threads", "6", *paths]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=TOP / "crates" / crate, env={**os.environ, "CI": "true", "MILLPOND_TEST_SKIPS": skips.name})
        left_out = sorted({line.strip().removeprefix("SKIPPED: ") for line in skips})
    passed = int((re.findall(r"^test result: .*?(\d+) passed", done.stdout, re.M) or ["0"])[-1])
    failed = re.findall(r"^test (\S+) \.\.\. FAILED", done.stdout, re.M)
    if passed != len(paths) or done.returncode:
        print(done.stdout[-5000:] + done.stderr[-2000:], file=sys.stderr)
        failed = failed or [f"{passed} of {len(paths)} tests ran and passed"]
    return {"passed": passed, "failed": failed, "left-out": left_out}


def run_row(row: Row, conditions: dict) -> dict:
    """Runs the tests of a row, and looks for the records of its figures; the result."""
    began = time.monotonic()
    runs = [run_tests(crate, program, paths) for (crate, program), paths in row.programs().items()]
    failed = [name for run in runs for name in run["failed"]]
    failed += [f"no record of {name}: bench/paper.py {name} --quick --record" for name in row.figures if not (RECORDS / f"{name}.json").is_file()]
    left_out = [line for run in runs for line in run["left-out"]]
    passed, seconds = sum(run["passed"] for run in runs), round(time.monotonic() - began, 1)
    return {"tests": row.tests, "passed": passed, "seconds": seconds, "failed": failed, "left-out": left_out, **conditions}


def told_of_figures(row: Row) -> list:
    """How the row's figures hold, by their records: the figures of each verdict with links."""
    verdicts = {}
    for name in row.figures:
        path = RECORDS / f"{name}.json"
        holds = json.loads(path.read_text())["holds"] if path.is_file() else "not measured"
        verdict = re.match(r"yes|partly|no\b|not measured|", holds)[0] or "nothing to compare"
        verdicts.setdefault(verdict, []).append(f"[{name}](papers.md#{name.partition('-')[0]})")
    return [f"holds {verdict}: {', '.join(links)}" for verdict, links in verdicts.items()]


def result_cell(row: Row, result: dict | None) -> str:
    """The last column of a row."""
    told = []
    if row.tests and (not result or result["tests"] != row.tests):
        told.append("tests not run yet")
    elif result:
        told += [f"{result['passed']} test{'s' * (result['passed'] != 1)} passed in {result['seconds']:.0f} s"] if row.tests else []
        told += [f"FAILED: {', '.join(result['failed'])}"] if result["failed"] else []
        told += [f"left out: {', '.join(result['left-out'])}"] if result["left-out"] else []
    return "; ".join(told + told_of_figures(row)).replace("|", "\\|")


def conditions_of(results: dict) -> str:
    """What is common to all results, in words."""
    if not results:
        return "no tests were run yet"
    each = lambda key: " and ".join(sorted({result[key] for result in results.values()}))
    return f"{each('date')}; {each('machine')}; checkout at {each('commit')}"


def write_page(rows: list, results: dict):
    """Writes the page."""
    text = HEAD.replace("{conditions}", conditions_of(results))
    PAGE.write_text(text + "".join(f"{row.begins()} {result_cell(row, results.get(row.name))} |\n" for row in rows))
    print(f"the page is {PAGE}")


def run(rows: list, chosen: list, results: dict) -> int:
    """Runs rows one after the other, keeps their results and writes the page; the status to exit with."""
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--exclude=*", "--dirty", "--abbrev=8"], capture_output=True, text=True).stdout.strip()
    conditions = {"date": datetime.date.today().isoformat(), "machine": f"{os.cpu_count()} cores, Linux {platform.release()}", "commit": commit or "no commit"}
    for row in chosen:
        results[row.name] = run_row(row, conditions)
        print(f"{row.name}: {result_cell(row, results[row.name])}", flush=True)
        RESULTS.write_text(json.dumps({name: results[name] for name in NAMES if name in results}, indent=1) + "\n")
    write_page(rows, results)
    failed = [row.name for row in chosen if results[row.name]["failed"]]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} rows passed" + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "run", "page"])
    parser.add_argument("--only", metavar="ROWS", help="names of rows, such as P1,T2")
    options, rows = parser.parse_args(), table()
    chosen = [row for row in rows if not options.only or row.name in options.only.split(",")]
    if unknown := [name for name in (options.only or "").split(",") if name and name not in NAMES]:
        parser.error(f"no such row: {', '.join(unknown)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    if options.what == "page":
        write_page(rows, results)
    wrong = faults(rows) if options.what != "run" else [fault for fault in faults(rows) if "bench/rows.py page" not in fault]
    for fault in wrong:
        print(f"error: {fault}", file=sys.stderr)
    if wrong or options.what != "run":
        print(f"{len(rows)} rows, {sum(len(row.tests) for row in rows)} tests, {len(wrong)} faults")
        return 1 if wrong else 0
    return run(rows, chosen, results)


if __name__ == "__main__":
    sys.exit(main())
