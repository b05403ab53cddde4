"""Tables and plots of translation.py, with the paper's statements. Interarrival times are those of packets; in Fig. 3
of fragments, which hold a frame end to end, and about 100 ms translated."""

import statistics
from pathlib import Path

import svg

NAMES = {
    "cubic": "HTTP end to end, cubic", "bbr": "HTTP end to end, BBR", "plain": "translated, no retransmission", "rtx": "translated, retransmission",
    "stream": "translated, stream.mp4 by cubic", "hls": "translated, HLS by cubic", "rtp": "RTP by UDP, no rate control", "tfrc": "RTP by UDP, TFRC",
}
# The paper has no numbers beside its plots; these are its statements (sections 5.1 and 5.2).
PAPER = {
    "3": "The paper: HTTP has large performance drops with loss and delay; translated, a mostly constant rate",
    "4": "The paper: TFRC is similar to cubic, slightly more pessimistic",
    "5": "The paper: TCP's variation increases with the loss, TFRC is less affected",
}


def mean(results: list, key: str, **which):
    """Mean of a figure over runs; None where there are none."""
    found = [one[key] for one in results if all(one[name] == value for name, value in which.items()) and one.get(key) is not None]
    return statistics.mean(found) if found else None


def axis(results: list, key: str) -> list:
    return sorted({one[key] for one in results})


def ways(results: list) -> list:
    return [way for way in NAMES if any(one["way"] == way for one in results)]


def cell(value, form: str, factor: float = 1) -> str:
    return "" if value is None else form.format(value * factor)


def table(results: list, key: str, form: str, factor: float = 1) -> str:
    """A row for each way and loss, a column for each delay."""
    delays = axis(results, "delay")
    lines = ["| | loss | " + " | ".join(f"{delay} ms" for delay in delays) + " |", "|" + "---|" * (len(delays) + 2)]
    for way in ways(results):
        for loss in axis(results, "loss"):
            cells = [cell(mean(results, key, way=way, delay=delay, loss=loss), form, factor) for delay in delays]
            lines.append(f"| {NAMES[way]} | {loss:g} % | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def over(results: list, key: str, points: str, factor: float, **fixed) -> dict:
    """Lines of a plot: a figure over delays or losses, for each way."""
    at = axis(results, points)
    lines = {NAMES[way]: [mean(results, key, way=way, **{points: point}, **fixed) for point in at] for way in ways(results)}
    return {name: [None if value is None else value * factor for value in values] for name, values in lines.items()}


class Plots:
    """Lines over the delay at the greatest loss, and over the loss at the greatest delay."""

    def __init__(self, figure: str, results: list, out: Path):
        self.figure, self.results, self.out = figure, results, out
        self.worst, self.far = max(axis(results, "loss")), max(axis(results, "delay"))

    def both(self, key: str, title: str, unit: str, factor: float):
        unit = f"{unit}. {PAPER[self.figure]}"
        delays, losses = axis(self.results, "delay"), axis(self.results, "loss")
        if len(delays) > 1:
            lines = over(self.results, key, "delay", factor, loss=self.worst)
            svg.lines(self.path(key, "delay"), f"{title} at {self.worst:g} % loss, over the delay each way", unit, [f"{delay} ms" for delay in delays], lines)
        if len(losses) > 1:
            lines = over(self.results, key, "loss", factor, delay=self.far)
            svg.lines(self.path(key, "loss"), f"{title} at {self.far} ms each way, over the loss", unit, [f"{loss:g} %" for loss in losses], lines)

    def path(self, key: str, axis_name: str) -> Path:
        return self.out / f"{self.figure}-{key}-over-{axis_name}.svg"

    def seconds(self):
        """Bandwidth over time of one run of each way, like Fig. 3 (b) and (c)."""
        runs = {}
        for one in self.results:
            if one["delay"] == self.far and one["loss"] == self.worst and one.get("bits"):
                runs.setdefault(NAMES[one["way"]], [bits / 1e6 for bits in one["bits"]])
        points = [str(second) if second % 5 == 0 else "" for second in range(max(map(len, runs.values()), default=1))]
        svg.lines(self.out / f"{self.figure}-seconds.svg", f"Bandwidth in each second at {self.worst:g} % loss and {self.far} ms each way", "Mbit/s", points, runs)


def tables(results: list, *which: tuple):
    for title, key, form, factor in which:
        print(f"\n{title}\n\n{table(results, key, form, factor)}")


BANDWIDTH = [
    ("Bandwidth, Mbit/s", "mean", "{:.2f}", 1e-6),
    ("Variation of the bandwidth (coefficient over 1 s)", "variation", "{:.3f}", 1),
    ("Frames that arrived whole", "whole", "{:.2%}", 1),
    ("Frames shown exactly and in time", "shown-in-time", "{:.1%}", 1),
]
GAPS = [
    ("Mean interarrival time, ms", "gap-mean", "{:.1f}", 1e3),
    ("Standard deviation of interarrival times, ms", "gap-deviation", "{:.1f}", 1e3),
    ("Greatest interarrival time, ms", "gap-greatest", "{:.0f}", 1e3),
]


def smoothness(results: list) -> str:
    """Variation of translated streams beside those end to end, at the greatest loss and delay."""
    at = {"loss": max(axis(results, "loss")), "delay": max(axis(results, "delay"))}
    lines = [f"At {at['loss']:g} % loss and {at['delay']} ms each way:"]
    for way in ("plain", "rtx"):
        varies, whole = mean(results, "variation", way=way, **at), mean(results, "whole", way=way, **at)
        others = [(NAMES[other], mean(results, "variation", way=other, **at)) for other in ("cubic", "bbr")]
        ratios = [f"{varies / other:.2f} of {name}" for name, other in others if varies and other]
        if ratios:
            lines.append(f"{NAMES[way]} varies by {varies:.3f} ({', '.join(ratios)}); {whole:.2%} of frames are whole.")
    return " ".join(lines)


def draw(figure: str, results: list, out: Path):
    """Writes the plots of a figure, and prints its tables."""
    plots = Plots(figure, results, out)
    print(f"{PAPER[figure]}.")
    if figure == "3":
        print(smoothness(results))
    if figure != "5":
        plots.both("mean", "Bandwidth", "Mbit/s", 1e-6)
        plots.both("variation", "Variation of the bandwidth", "coefficient over 1 s", 1)
        plots.seconds()
        tables(results, *BANDWIDTH)
    if figure != "4":
        plots.both("gap-mean", "Mean interarrival time", "ms", 1e3)
        plots.both("gap-deviation", "Standard deviation of interarrival times", "ms", 1e3)
        tables(results, *GAPS)
    print(f"\nplots: {out}")
