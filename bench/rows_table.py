"""The table of the papers' rows, bench/rows.tsv: how a row is run, and whether the sources have what it names."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from papers.figure import figures_of, stated

TOP = Path(__file__).resolve().parent.parent
TABLE, PAGE = TOP / "bench/rows.tsv", TOP / "docs/measured/rows.md"
NAMES = [f"{letter}{n}" for letter, count in {"P": 11, "A": 7, "C": 7, "T": 7, "K": 8}.items() for n in range(1, count + 1)]
# Crates whose features are off by themselves, and on in the workspace.
FEATURES = {"millpond-rtp": "tfrc", "millpond-stream": "tfrc"}
STORAGES = ("folder", "nginx", "s3")
TEST = r"#\[(?:tokio::)?test\b[^\n]*\n(?:\s*(?:#\[|//)[^\n]*\n)*([ ]*)(?:async )?fn {}\("


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    name: str
    what: str
    tests: list
    figures: list

    def programs(self) -> dict:
        """Paths of the row's tests by (crate, program); a program of no name has unit tests."""
        found = {}
        for test in self.tests:
            where, _, path = ("millpond/e2e:" + test if not re.match(r"[\w/-]+:\w", test) else test).partition(":")
            crate, _, program = where.partition("/")
            found.setdefault((crate, program), []).append(path)
        return found

    def command(self) -> str:
        """What a reader types: a line of cargo for each program, or that of the figures where no test shows the row."""
        lines = []
        for (crate, program), paths in self.programs().items():
            features = f" --features {FEATURES[crate]}" if crate in FEATURES else ""
            which = f"--test {program}" if program else "--lib"
            lines.append(f"`cargo test --locked -p {crate}{features} {which} -- --exact {' '.join(paths)}`")
        return "<br>".join(lines) or f"`bench/paper.py {' '.join(self.figures)} --quick`"

    def begins(self) -> str:
        """The row on the page, without its result."""
        return f"| {self.name} | {self.what} | {self.command()} |"


def table() -> list:
    """All rows of the data file."""
    words = lambda cell: [] if cell == "-" else cell.split()
    with TABLE.open(newline="") as file:
        return [Row(row["row"], row["what"], words(row["tests"]), words(row["figures"])) for row in csv.DictReader(file, delimiter="\t")]


def fault_of_test(crate: str, program: str, path: str) -> str | None:
    """Why the sources do not have a test; nothing where they have it."""
    top = TOP / "crates" / crate
    folder = top / "tests" / program if program else top / "src"
    file = next((file for file in (folder / "main.rs", folder.with_suffix(".rs"), folder / "lib.rs") if file.is_file()), None)
    *modules, name = path.split("::")
    while modules and (below := next((at for at in (folder / f"{modules[0]}.rs", folder / modules[0] / "mod.rs") if at.is_file()), None)):
        file, folder = below, folder / modules.pop(0)
    if not file:
        return f"{crate} has no program {program}"
    text = file.read_text()
    if modules and modules[0] in STORAGES and re.search(r"over_every_storage! \{[^}]*\b" + name + r"\b", text):
        return None if f"fn {name}(" in text else f"{file.relative_to(TOP)} has no fn {name}"
    if lacks := [module for module in modules if not re.search(rf"\bmod {module} \{{", text)]:
        return f"{file.relative_to(TOP)} has no module {lacks[0]}"
    found = re.search(TEST.format(name), text)
    # A test that is indented is in a module within the file.
    return None if found and bool(found[1]) == bool(modules) else f"{file.relative_to(TOP)} has no test {'::'.join([*modules, name])}"


def faults(rows: list) -> list:
    """What is wrong with the table, by the sources alone."""
    known = [name for paper in stated().values() for name in figures_of(paper)]
    page = PAGE.read_text().splitlines() if PAGE.is_file() else []
    told = [] if [row.name for row in rows] == NAMES else [f"the rows are not {', '.join(NAMES)}"]
    for row in rows:
        wrong = [fault for (crate, program), paths in row.programs().items() for path in paths if (fault := fault_of_test(crate, program, path))]
        wrong += [f"{name} is no figure of bench/paper.py" for name in row.figures if name not in known]
        wrong += ["more than 15 words"] * (len(row.what.split()) > 15) + ["more than four tests"] * (len(row.tests) > 4)
        wrong += ["neither tests nor figures"] * (not row.tests and not row.figures)
        wrong += ["the page has another row: bench/rows.py page"] * (not any(line.startswith(row.begins()) for line in page))
        told += [f"{row.name}: {fault}" for fault in wrong]
    return told + [f"{name} is in no row" for name in known if not any(name in row.figures for row in rows)]
