"""Plots as SVG files: grouped bars and lines, without a library."""

import math
from pathlib import Path
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#e08214", "#4d9221", "#b2182b", "#762a83", "#666666", "#35978f", "#a6611a"]
DASHES = ["", "7 4", "2 3", "9 3 2 3"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 880, 420, 80, 240, 50, 60


def ticks(most: float) -> list:
    """Round values from 0 to at least `most`."""
    if most <= 0:
        return [0, 1]
    step = 10 ** math.floor(math.log10(most))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2, 5) if most / (step * part) <= 6)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def powers(least: float, most: float) -> list:
    return [10.0**power for power in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]


class Frame:
    """A plot's axes: values upwards, and a legend at the right."""

    def __init__(self, title: str, unit: str, values: list, logarithmic: bool):
        positive = [value for value in values if value > 0] or [1]
        self.marks = powers(min(positive), max(positive)) if logarithmic else ticks(max(positive))
        self.logarithmic = logarithmic
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
            f'<text x="{LEFT}" y="40" fill="#555">{escape(unit)}</text>',
        ]
        for mark in self.marks:
            y = self.y(mark)
            self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            self.parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:g}</text>')

    def y(self, value: float) -> float:
        low, high = self.marks[0], self.marks[-1]
        if self.logarithmic:
            part = math.log(max(value, low) / low) / math.log(high / low) if high > low else 0
        else:
            part = value / high
        return HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)

    def legend(self, number: int, name: str, colour: str):
        y = TOP + 18 * number
        self.parts.append(f'<rect x="{WIDTH - RIGHT + 15}" y="{y}" width="12" height="12" fill="{colour}"/>')
        self.parts.append(f'<text x="{WIDTH - RIGHT + 33}" y="{y + 10}">{escape(name)}</text>')

    def label(self, x: float, text: str):
        y = HEIGHT - BOTTOM + 18
        for number, line in enumerate(text.split("\n")):
            self.parts.append(f'<text x="{x:.1f}" y="{y + 15 * number}" text-anchor="middle">{escape(line)}</text>')

    def write(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*self.parts, "</svg>"]) + "\n")


def bars(path: Path, title: str, unit: str, groups: list, series: dict, logarithmic: bool = False):
    """Bars of each series side by side, for each group. Values that are missing are None."""
    frame = Frame(title, unit, [value for values in series.values() for value in values if value], logarithmic)
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    width = room * 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        frame.legend(number, name, colour)
        for at, value in enumerate(values):
            if value:
                x, y = LEFT + room * (at + 0.1) + width * number, frame.y(value)
                height = HEIGHT - BOTTOM - y
                frame.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.9:.1f}" height="{height:.1f}" fill="{colour}"/>')
    for at, group in enumerate(groups):
        frame.label(LEFT + room * (at + 0.5), group)
    frame.write(path)


def lines(path: Path, title: str, unit: str, points: list, series: dict, logarithmic: bool = False):
    """Lines over named points at equal distances. Values that are missing are None."""
    frame = Frame(title, unit, [value for values in series.values() for value in values if value], logarithmic)
    step = (WIDTH - LEFT - RIGHT) / max(len(points) - 1, 1)
    for number, (name, values) in enumerate(series.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        frame.legend(number, name, colour)
        at = [(LEFT + step * place, frame.y(value)) for place, value in enumerate(values) if value]
        path_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        frame.parts.append(f'<polyline points="{path_of}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
        frame.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at]
    for place, point in enumerate(points):
        frame.label(LEFT + step * place, str(point))
    frame.write(path)
