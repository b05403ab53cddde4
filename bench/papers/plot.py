"""Plots with the paper's values and ours, as SVG that suits light and dark pages."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

OURS = ["#2a7fbf", "#d9822b", "#3f9b4f", "#8e63b5", "#2aa198", "#b8860b", "#7a8288", "#c05a8e"]
THEIRS = ["#d0342c", "#a8506b", "#c4602a", "#8c3b3b"]
WIDTH, LEFT, RIGHT = 900, 76, 300
PANEL, TOP, BOTTOM, HEAD = 276, 34, 60, 46
# Least distance between two labels of the horizontal axis.
LABEL = 18
DARK = (
    "<style>@media (prefers-color-scheme: dark) {"
    " .page { fill: #14181d } .text { fill: #e3e6ea } .faint { fill: #a9b1ba } .grid { stroke: #3a424b } .axis { stroke: #a9b1ba } }</style>"
)


@dataclass
class Band:
    """A statement of the paper as a range over the whole axis; a line where both ends are equal."""

    name: str
    low: float
    high: float


@dataclass
class Panel:
    """One part of a figure: values over points of the horizontal axis. A value that is missing is None."""

    title: str
    across: str
    """Label of the horizontal axis, with its unit."""
    up: str
    """Label of the vertical axis, with its unit."""
    points: list
    ours: dict
    theirs: dict = field(default_factory=dict)
    """Values that the paper states at points."""
    bands: list = field(default_factory=list)
    bars: bool = False
    logarithmic: bool = False
    note: str = ""
    """What the paper says of this part without numbers."""


def ticks(most: float) -> list:
    """Round values from 0 to at least `most`."""
    if most <= 0:
        return [0, 1]
    step = 10 ** math.floor(math.log10(most))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2, 5) if most / (step * part) <= 6)
    return [step * number for number in range(math.ceil(round(most / step, 9)) + 1)]


def powers(least: float, most: float) -> list:
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def lines_of(text: str, width: int) -> list:
    """Words in lines of at most `width` letters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + 1 > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def shares_of(points: list) -> list:
    """Places of points on an axis from 0 to 1: in proportion where points are numbers, else at equal distances."""
    if len(points) < 3 or not all(isinstance(point, (int, float)) for point in points):
        return [place / max(len(points) - 1, 1) for place in range(len(points))]
    least, most = min(points), max(points)
    return [(point - least) / (most - least) for point in points]


class Drawing:
    """One panel, drawn from `top` downwards."""

    def __init__(self, panel: Panel, top: float):
        self.panel, self.top, self.parts = panel, top, []
        self.entries = 0
        values = [value for series in (*panel.ours.values(), *panel.theirs.values()) for value in series if value is not None]
        values += [end for band in panel.bands for end in (band.low, band.high)]
        positive = [value for value in values if value > 0] or [1]
        self.shares = shares_of(panel.points)
        self.marks = powers(min(positive), max(positive)) if panel.logarithmic else ticks(max(positive))

    def y(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        part = math.log(max(value, low) / low) / math.log(high / low) if self.panel.logarithmic else value / high
        return self.top + PANEL - BOTTOM - part * (PANEL - BOTTOM - TOP)

    def x(self, place: int) -> float:
        room = WIDTH - LEFT - RIGHT
        if self.panel.bars:
            return LEFT + room * (place + 0.5) / len(self.panel.points)
        return LEFT + room * (0.04 + 0.92 * self.shares[place])

    def text(self, x: float, y: float, words: str, kind: str = "text", anchor: str = "start", size: int = 12, more: str = ""):
        fill = {"text": "#20262c", "faint": "#59626b"}[kind]
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(words)}</text>')

    def legend(self, name: str, colour: str, is_theirs: bool):
        x, y = WIDTH - RIGHT + 16, self.top + TOP + 4 + 17 * self.entries
        dash = ' stroke-dasharray="5 3"' if is_theirs else ""
        self.parts.append(f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"{dash}/>')
        for line in lines_of(name, 40):
            self.text(x + 28, self.top + TOP + 8 + 17 * self.entries, line)
            self.entries += 1

    def axes(self):
        panel = self.panel
        self.text(LEFT, self.top + 14, panel.title, size=13)
        for mark in self.marks:
            y = self.y(mark)
            self.parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d8dde2"/>')
            self.text(LEFT - 7, y + 4, f"{mark:g}", "faint", "end", 11)
        bottom = self.top + PANEL - BOTTOM
        self.parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}" stroke="#59626b"/>')
        labelled = -LABEL
        for place, point in enumerate(panel.points):
            if point == "" or self.x(place) - labelled < LABEL:
                continue
            labelled = self.x(place)
            for number, line in enumerate(str(point).split("\n")):
                self.text(self.x(place), bottom + 15 + 12 * number, line, "faint", "middle", 11)
        self.text((LEFT + WIDTH - RIGHT) / 2, self.top + PANEL - 12, panel.across, "text", "middle")
        middle = self.top + (PANEL - BOTTOM + TOP) / 2
        self.text(16, middle, panel.up, "text", "middle", more=f' transform="rotate(-90 16 {middle:.1f})"')

    def bands(self):
        for number, band in enumerate(self.panel.bands):
            colour = THEIRS[number % len(THEIRS)]
            top, bottom = self.y(band.high), self.y(band.low)
            if bottom - top > 2:
                self.parts.append(f'<rect x="{LEFT}" y="{top:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{bottom - top:.1f}" fill="{colour}" opacity="0.16"/>')
            for y in {top, bottom}:
                self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="2" stroke-dasharray="5 3"/>')
            self.legend(band.name, colour, True)

    def series(self):
        ours = [(name, values, OURS[number % len(OURS)], False) for number, (name, values) in enumerate(self.panel.ours.items())]
        used = len(self.panel.bands)
        theirs = [(name, values, THEIRS[(used + number) % len(THEIRS)], True) for number, (name, values) in enumerate(self.panel.theirs.items())]
        every = [*theirs, *ours]
        for name, _, colour, _ in theirs:
            self.legend(name, colour, True)
        if not any("Millpond" in name for name, *_ in ours):
            self.text(WIDTH - RIGHT + 16, self.top + TOP + 8 + 17 * self.entries, "measured here:", "faint")
            self.entries += 1
        for name, _, colour, _ in ours:
            self.legend(name, colour, False)
        # The paper's lines lie above ours, as they are dashed.
        for number, (name, values, colour, is_theirs) in sorted(enumerate(every), key=lambda pair: pair[1][3]):
            known = [(place, value) for place, value in enumerate(values) if value is not None]
            if self.panel.bars:
                self.bars(number, len(ours) + len(theirs), known, colour, is_theirs)
            else:
                self.line(known, colour, is_theirs)

    def bars(self, number: int, count: int, known: list, colour: str, is_theirs: bool):
        width = (WIDTH - LEFT - RIGHT) / len(self.panel.points) * 0.84 / count
        look = f'fill="{colour}" fill-opacity="0.25" stroke="{colour}" stroke-dasharray="5 3"' if is_theirs else f'fill="{colour}"'
        for place, value in known:
            x, y = self.x(place) + (number - count / 2) * width, self.y(value)
            self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.9:.1f}" height="{max(self.top + PANEL - BOTTOM - y, 1):.1f}" {look}/>')

    def line(self, known: list, colour: str, is_theirs: bool):
        at = [(self.x(place), self.y(value)) for place, value in known]
        dash, fill = (' stroke-dasharray="5 3"', "none") if is_theirs else ("", colour)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if len(at) <= 30:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{fill}" stroke="{colour}"/>' for x, y in at]

    def drawn(self) -> str:
        self.axes()
        self.bands()
        self.series()
        if self.panel.note:
            self.entries += 0.4
            for line in lines_of(self.panel.note, 46):
                self.text(WIDTH - RIGHT + 16, self.top + TOP + 8 + 17 * self.entries, line, "faint", size=11)
                self.entries += 0.85
        return "\n".join(self.parts)


def write(path: Path, title: str, panels: list):
    """Writes the panels of a figure below each other."""
    height = HEAD + PANEL * len(panels) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="12">', DARK,
        f'<rect class="page" width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text class="text" x="16" y="26" fill="#20262c" font-size="16">{escape(title)}</text>',
        *(Drawing(panel, HEAD + PANEL * number).drawn() for number, panel in enumerate(panels)),
        "</svg>",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts) + "\n")


def told(panels: list) -> list:
    """The panels as JSON has them."""
    return [asdict(panel) for panel in panels]


def read(told_panels: list) -> list:
    """Panels of JSON."""
    return [Panel(**{**panel, "bands": [Band(**band) for band in panel["bands"]]}) for panel in told_panels]
