"""docs/measured/papers.md: a row for each figure, from the records, and the plots."""

import json
from pathlib import Path

from papers import plot
from papers.figure import figures_of, stated

HEAD = """# The papers' figures, beside ours

`bench/paper.py page` writes this page from the records in `docs/measured/papers`, so a change goes there. Each row is a figure or table of one of the five
papers that Millpond follows. The command of a row is `millpond-lab paper NAME --quick` or `--full`, such as `millpond-lab paper sproxy-9 --quick`.
It needs a checkout, as it runs `bench/paper.py` there. `millpond-lab paper list` prints all names, `all --quick` measures everything. A figure whose
needs are missing says what to install. Its plot has the paper's values and ours.

"Paper" has what tables and prose state. Most figures are pictures without numbers in the text: where the prose has none, a row says so, and the
plot has the shape that the prose describes. Such lines say "shape only", or the share of our own figure that they are. "Holds" compares with the
paper's statement, and is computed by the program.

Conditions: {conditions}. Other programs ran too, compilers among them: quick forms show the shape, not the limits.
Compare within a row, not between rows or with other pages. A row of 0 s is drawn from the runs of a row above it.
"""
FOOT = """
## What is left out

Architectures, sequence diagrams and set-ups have no figures: SProxy Fig. 1 and 2; AMPS Figure 1 and Table 1 (the clips, which `bench/rtsp_capacity.py`
makes); Srinilta Figures 1 to 4 (the last has the request patterns: Zipf 0.729 and 1.2 here); Espeland Fig. 1 and 2; Kylili Figures 2.1 to 3.3, 3.6, 4.1 to 4.6,
5.1, 5.2 and Tables 3.1 to 3.3, 4.1. Kylili's appendix B tunes Apache's threads, which Millpond does not have. Her setup 2, a client in
another cloud than the server, is not measured. Real nodes of Srinilta's server are in [Clusters](cluster.md#the-papers-server-with-real-nodes).
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def conditions(records: list) -> str:
    """What is common to all records."""
    machines = sorted({record["machine"] for record in records})
    loads = [record["load"] for record in records]
    busy = f"load average {min(loads):g} to {max(loads):g} when a row began"
    return f"{'; '.join(machines)}; server, clients and origin on the same machine; {busy}"


def row(name: str, entry: dict, record: dict | None) -> str:
    """The row of a figure."""
    source = entry["source"]
    paper = f"{entry['says']} (section {entry['section']}, {source})"
    if not record:
        why = entry.get("missing", "not measured yet")
        return f"| {entry['figure']}: {cell(entry['measures'])}<br>`{name}` | {cell(paper)} | - | - | {cell(why)} | - |"
    run = f"{record['form']}, {record['date']}, {record['build']}, load {record['load']:g}, {record['seconds']:.0f} s"
    what = f"[{entry['figure']}](papers/{name}.svg): {cell(entry['measures'])}<br>`{name}`"
    return f"| {what} | {cell(paper)} | {cell(record['ours'])} | {cell(record['holds'])} | {cell(entry['differs'])} | {run} |"


def write(folder: Path) -> int:
    """Writes the page of the records in a folder, and their plots again; the status to exit with."""
    records = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    if not records:
        print(f"error: no records in {folder}: bench/paper.py all --quick --record writes them")
        return 1
    for paper in stated().values():
        for name, entry in figures_of(paper).items():
            if name in records:
                plot.write(folder / f"{name}.svg", f"{entry['figure']}: {entry['measures']}", plot.read(records[name]["panels"]))
    text = HEAD.replace("{conditions}", conditions(list(records.values())))
    for paper in stated().values():
        text += f"\n## {paper['short']}\n\n{paper['paper']}. Its machines: {paper['setup']}.\n\n"
        text += "| figure | paper | Millpond | holds | what differs | run |\n|---|---|---|---|---|---|\n"
        text += "\n".join(row(name, entry, records.get(name)) for name, entry in figures_of(paper).items()) + "\n"
    path = folder.parent / "papers.md"
    path.write_text(text + FOOT)
    print(f"{len(records)} records are in {path}")
    return 0
