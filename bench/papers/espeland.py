"""The figures of the translation paper, by bench/translation.py."""

import json

from papers.figure import Shown, figure
from papers.plot import Panel
from translation_figures import NAMES, mean

NETWORK = ("root", "ip", "ffmpeg", "gst", "link")
RATE_MBPS = 2.0
SMOOTHER = 0.5
ONLY = "The paper's values are in the picture only."


def runs(bench, number: str) -> list:
    """Runs of a figure; Fig. 4 and 5 are drawn from the same."""

    def run() -> list:
        file = bench.work / f"espeland-{number}.json"
        arguments = ["--delays", "0,100,200", "--losses", "0,1", "--seconds", 12] if bench.options.quick else ["--losses", "0,0.5,1"]
        bench.bench("translation.py", number, "--bin", bench.options.bin, "--json", file, "--out", bench.work / "espeland", *arguments)
        return json.loads(file.read_text())

    return bench.measured(f"espeland-{number}", run)


def over(results: list, key: str, axis: str, factor: float, ways: list, **fixed) -> tuple:
    """Points of an axis, and a series of each way."""
    points = sorted({one[axis] for one in results})
    value = lambda way, point: mean(results, key, way=way, **{axis: point}, **fixed)
    return points, {NAMES[way]: [None if (found := value(way, point)) is None else found * factor for point in points] for way in ways}


@figure("espeland-3", *NETWORK)
def server_side(bench, stated) -> Shown:
    results = runs(bench, "3")
    ways = [way for way in ("cubic", "bbr", "plain", "rtx") if any(one["way"] == way for one in results)]
    worst, far = max(one["loss"] for one in results), max(one["delay"] for one in results)
    delays, by_delay = over(results, "mean", "delay", 1e-6, ways, loss=worst)
    losses, by_loss = over(results, "mean", "loss", 1e-6, ways, delay=far)
    _, varies = over(results, "variation", "delay", 1, ways, loss=worst)
    constant = {"the paper: translated mostly constant (shape only)": [RATE_MBPS] * len(delays)}
    across = f"delay of the link each way, ms (loss {worst:g} %)"
    seconds = {}
    for one in results:
        if (one["delay"], one["loss"]) == (far, worst) and one.get("bits"):
            seconds.setdefault(NAMES[one["way"]], [bits / 1e6 for bits in one["bits"]])
    length = max(map(len, seconds.values()), default=1)
    panels = [
        Panel("(a) Bandwidth over delay", across, "bandwidth, Mbit/s", delays, by_delay, constant, note=f"HTTP end to end: large drops with loss and delay. {ONLY}"),
        Panel(f"(a) Bandwidth over loss, {far} ms each way", "packets lost each way, %", "bandwidth, Mbit/s", [f"{loss:g}" for loss in losses], by_loss,
              {"the paper: translated mostly constant (shape only)": [RATE_MBPS] * len(losses)}),
        Panel(f"(b, c) Each second, {far} ms and {worst:g} %", "time, s", "bandwidth, Mbit/s", [second if second % 4 == 0 else "" for second in range(length)],
              {name: (values + [None] * length)[:length] for name, values in seconds.items()}, note=f"Translated is smoother, HTTP oscillates heavily. {ONLY}"),
        Panel("Variation of the bandwidth", across, "coefficient of variation over 1 s", delays, varies, note="Not a figure of the paper: its word is smoother."),
    ]
    at = {"loss": worst, "delay": far}
    own = "; ".join(f"{NAMES[way]} {mean(results, 'mean', way=way, **at) / 1e6:.2f} Mbit/s (variation {mean(results, 'variation', way=way, **at):.3f})" for way in ways)
    rate = lambda way: mean(results, "mean", way=way, **at)
    drops = rate("cubic") < SMOOTHER * mean(results, "mean", way="cubic", delay=min(delays), loss=min(losses))
    steady = rate("plain") > 0.85 * mean(results, "mean", way="plain", delay=min(delays), loss=min(losses))
    smoother = mean(results, "variation", way="plain", **at) < mean(results, "variation", way="cubic", **at)
    return Shown(panels, f"{worst:g} % and {far} ms: {own}", "yes" if drops and steady and smoother else f"partly: HTTP drops {drops}, translated constant {steady}, smoother {smoother}")


def client_side(bench) -> tuple:
    results = runs(bench, "4")
    ways = [way for way in ("cubic", "bbr", "stream", "rtp", "tfrc") if any(one["way"] == way for one in results)]
    return results, ways, max(one["loss"] for one in results), max(one["delay"] for one in results)


@figure("espeland-4", *NETWORK, "dumpcap")
def rate_control(bench, stated) -> Shown:
    results, ways, worst, far = client_side(bench)
    delays, by_delay = over(results, "mean", "delay", 1e-6, ways, loss=worst)
    losses, by_loss = over(results, "mean", "loss", 1e-6, ways, delay=far)
    note = f"TFRC is similar to cubic, slightly more pessimistic. {ONLY}"
    panels = [Panel(f"Bandwidth over delay, {worst:g} % lost", "delay of the link each way, ms", "bandwidth, Mbit/s", delays, by_delay, note=note),
              Panel(f"Bandwidth over loss, {far} ms each way", "packets lost each way, %", "bandwidth, Mbit/s", [f"{loss:g}" for loss in losses], by_loss, note=note)]
    pairs = {delay: (mean(results, "mean", way="cubic", delay=delay, loss=worst) / 1e6, mean(results, "mean", way="tfrc", delay=delay, loss=worst) / 1e6) for delay in delays}
    ours = "; ".join(f"{delay} ms: cubic {cubic:.2f}, TFRC {tfrc:.2f} Mbit/s" for delay, (cubic, tfrc) in pairs.items())
    below = all(tfrc <= cubic * 1.05 for cubic, tfrc in pairs.values())
    ratio = min(tfrc / cubic for cubic, tfrc in pairs.values())
    holds = "yes" if below and ratio > 0.75 else f"partly: TFRC has {ratio:.2f} of cubic's rate at least, more than slightly pessimistic" if below else "no"
    return Shown(panels, f"{worst:g} % lost, {ours}", holds)


@figure("espeland-5", *NETWORK, "dumpcap")
def interarrival(bench, stated) -> Shown:
    results, ways, worst, far = client_side(bench)
    panels, own, holds = [], [], {}
    for key, name in (("gap-mean", "Mean"), ("gap-deviation", "Standard deviation")):
        for delay in sorted({0, far} & {one["delay"] for one in results}):
            losses, of = over(results, key, "loss", 1e3, ways, delay=delay)
            panels.append(Panel(f"{name}, {delay} ms each way", "packets lost each way, %", "interarrival time, ms", [f"{loss:g}" for loss in losses], of,
                                note=f"TCP's variation grows with the loss, TFRC is less affected. {ONLY}" if key == "gap-deviation" else ONLY))
    for delay in sorted({one["delay"] for one in results}):
        deviation = lambda way, loss: 1e3 * (mean(results, "gap-deviation", way=way, delay=delay, loss=loss) or 0)
        cubic, tfrc = (deviation(way, worst) - deviation(way, 0) for way in ("cubic", "tfrc"))
        own.append(f"{delay} ms: cubic {deviation('cubic', 0):.0f} to {deviation('cubic', worst):.0f}, TFRC {deviation('tfrc', 0):.0f} to {deviation('tfrc', worst):.0f} ms")
        holds[delay] = cubic > tfrc
    good = [f"{delay} ms" for delay, held in holds.items() if held]
    return Shown(panels, f"deviation without loss to {worst:g} %: {'; '.join(own)}", "yes" if all(holds.values()) else f"partly: TFRC is less affected at {', '.join(good) or 'no delay'}")
