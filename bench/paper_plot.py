"""Plots of cluster_paper.py: simulated lines, real points, and what the paper states."""

from pathlib import Path

from svg import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, escape, ticks

# The paper's statements at 1.5 Mbit/s (section 5): streams, and what they are.
STATED = [
    (400, "paper: none, no misses"), (500, "paper: cache, no misses"), (650, "paper: none, 30 % missed (600 to 700)"),
    (800, "paper: cache and delays, under 30 %"),
]


class Plane(Frame):
    """Axes with numbers on both."""

    def __init__(self, title: str, unit: str, values: list, across: list):
        super().__init__(title, unit, values, False)
        self.most = max(ticks(max(across)))
        for mark in ticks(max(across)):
            self.label(self.x(mark), f"{mark:g}")

    def x(self, value: float) -> float:
        return LEFT + value / self.most * (WIDTH - LEFT - RIGHT)

    def line(self, points: list, colour: str, dash: str):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="{dash}"/>')

    def points(self, points: list, colour: str):
        self.parts += [f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="4.5" fill="{colour}" stroke="black"/>' for x, y in points]

    def mark(self, number: int, at: float, text: str):
        x = self.x(at)
        self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#999" stroke-dasharray="1 3"/>')
        self.parts.append(f'<text x="{x - 3:.1f}" y="{TOP + 10 + 13 * number}" text-anchor="end" font-size="10" fill="#555">{escape(text)}</text>')


def draw(folder: Path, simulated: list, real: list, disks: int, techniques):
    """A plot for each rate, skew and figure. Streams of the real run are told as those of 11 storages."""
    for rate, skew in sorted({(row["rate"], row["skew"]) for row in simulated}):
        for figure in ("missed", "cached", "delayed"):
            chosen = lambda rows: [row for row in rows if (row["rate"], row["skew"]) == (rate, skew)]
            lines = [row for row in chosen(simulated) if row["storages"] == 11]
            dots = chosen(real)
            scaled = lambda row: (row["streams"] * 11 / disks, 100 * row[figure])
            title = f"{figure.capitalize()}: {rate / 1000:g} Mbit/s, skew {skew}"
            unit = f"% by streams of 11 storages; lines simulated, dots real ({disks} storages, as many streams a storage)"
            plane = Plane(title, unit, [100], [row["streams"] for row in lines] + [scaled(row)[0] for row in dots])
            for number, technique in enumerate(techniques):
                colour = COLOURS[number]
                of = lambda rows: sorted((row for row in rows if row["technique"] == technique), key=lambda row: row["streams"])
                plane.legend(number, technique, colour)
                plane.line([(row["streams"], 100 * row[figure]) for row in of(lines)], colour, "")
                plane.points([scaled(row) for row in of(dots)], colour)
            if figure == "missed" and rate == 1500:
                for number, (at, text) in enumerate(STATED):
                    plane.mark(number, at, text)
            plane.write(folder / f"{figure}-{rate}-{skew}.svg")
