"""Why players stalled: from the log of a server (JSON, `info,millpond_store=trace`, with an access log) and samples of its link.

For each stall, the time between the start of the segment before it and its own arrival is divided into what the late segment
lost: the link was idle, it carried bytes of other titles, or it gave less than its rate. The largest of them is the cause.
"""

import json
import re
from datetime import datetime

SEGMENT = re.compile(r"/film-(\d+)-\w+\.mp4/ts/.*\.ts$")
TITLE = re.compile(r"film-(\d+)-\w+\.mp4")


def lines(text: str):
    """Lines of a log, with their times in seconds."""
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            entry["at"] = datetime.fromisoformat(entry["timestamp"].replace("Z", "+00:00")).timestamp()
        except (ValueError, KeyError, TypeError):
            continue
        yield entry


def segments(log: list) -> dict:
    """For each title the segments that a player got: when it asked, and when it had all."""
    titles = {}
    for entry in log:
        found = SEGMENT.search(entry.get("uri", "")) if entry.get("message") == "request" else None
        if found and entry.get("status") in (200, 206):
            titles.setdefault(int(found[1]), []).append((entry["at"] - entry["us"] / 1e6, entry["at"]))
    return {title: sorted(got) for title, got in titles.items()}


def late(got: list, duration: float):
    """Segments that came too late: number, when they were needed, and when they came."""
    until = None
    for number, (_, end) in enumerate(got):
        if until is not None and end > until + 1e-3:
            yield number, until, end
        until = max(until or end, end) + duration


def cause(title: int, number: int, needed: float, came: float, since: float, log: list, samples: list, rate: float) -> dict:
    """What the link did from `since` until the segment came. `samples` are moments and bytes received up to then."""
    idle = slow = 0.0
    window = [(a, b) for a, b in zip(samples, samples[1:]) if a[0] >= since and b[0] <= came]
    for (at, bytes_before), (then, bytes_after) in window:
        share = (bytes_after - bytes_before) / max(then - at, 1e-9) / rate
        if share < 0.1:
            idle += then - at
        else:
            slow += max(1 - share, 0) * (then - at)
    within = [entry for entry in log if since <= entry["at"] <= came]
    others, asked, guesses = 0, None, []
    for entry in within:
        found = TITLE.search(entry.get("path", ""))
        if entry.get("message") == "slice complete" and found and int(found[1]) != title:
            others += entry.get("bytes", 1 << 20)
        if entry.get("message") == "origin request" and found and int(found[1]) == title:
            asked = entry["at"]
        if entry.get("message") == "look ahead":
            guesses.append(entry.get("bandwidth", 0.0))
    lost = {"the link was idle": idle, "the link gave less than its rate": slow, "the link carried other titles": others / rate}
    largest = max(lost, key=lost.get)
    return {
        "title": title, "segment": number, "late": came - needed,
        "cause": largest if lost[largest] > 0.05 else "neither idle, nor slow, nor others: the server or the player was late",
        "lost": lost, "asked-before": None if asked is None else needed - asked,
        "guesses": [min(guesses), max(guesses)] if guesses else None, "rate": rate,
    }


def stalls(text: str, samples: list, rate: float, duration: float) -> list:
    """All stalls of a run with their causes. `rate` is what the link gives, in bytes a second."""
    log = list(lines(text))
    found = []
    for title, got in segments(log).items():
        for number, needed, came in late(got, duration):
            since = got[max(number - 1, 0)][0]
            found.append(cause(title, number, needed, came, since, log, samples, rate))
    return found


def show(stall: dict) -> str:
    """A line for a stall."""
    lost = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in stall["lost"].items())
    asked = "not asked for in that time" if stall["asked-before"] is None else f"asked for {stall['asked-before']:.1f} s before"
    guess = stall["guesses"] and f"; taken for {stall['guesses'][0] / 1e3:.0f}-{stall['guesses'][1] / 1e3:.0f} of {stall['rate'] / 1e3:.0f} kB/s"
    return f"film-{stall['title']} segment {stall['segment']}: {stall['late']:.2f} s late: {stall['cause']} ({lost}; {asked}{guess or ''})"
