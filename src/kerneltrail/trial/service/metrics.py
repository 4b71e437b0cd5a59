"""Numbers for Prometheus, in its text format: counters and a histogram of seconds, kept in memory."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Of the histogram, in seconds."""
ABOUT = {
    "kerneltrail_calls_total": ("counter", "Calls by method, route and status."),
    "kerneltrail_call_seconds": ("histogram", "Time to answer, by route."),
    "kerneltrail_decisions_total": ("counter", "Decisions answered by this process, by rung; repeats apart."),
    "kerneltrail_items_total": ("counter", "Outcomes and observations, by what became of them."),
    "kerneltrail_background_failures_total": ("counter", "Looks at the clock that failed, by what was tried."),
    "kerneltrail_ready": ("gauge", "Whether this process is ready."),
    "kerneltrail_entries": ("gauge", "Entries of the ledger."),
    "kerneltrail_participants": ("gauge", "Participants by status."),
    "kerneltrail_open_incidents": ("gauge", "Incidents that nobody has acknowledged."),
    "kerneltrail_alerts": ("gauge", "Alerts by kind and severity."),
    "kerneltrail_expected_decisions": ("gauge", "Decisions that should have been asked for in the last 24 hours."),
    "kerneltrail_received_decisions": ("gauge", "How many of those were."),
    "kerneltrail_update_due": ("gauge", "Whether an update of the policy is due."),
    "kerneltrail_last_decision_timestamp_seconds": ("gauge", "When the newest decision was recorded."),
}
"""Type and meaning of each."""

Labels = tuple[tuple[str, str], ...]
Sample = tuple[str, Mapping[str, str], float]
"""Name, labels and value."""


@dataclass
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0


class Metrics:
    """What this process has counted.

    >>> metrics = Metrics()
    >>> metrics.count("kerneltrail_decisions_total", rung="policy")
    >>> print(metrics.text([("kerneltrail_ready", {}, 1.0)]), end="")
    # HELP kerneltrail_decisions_total Decisions answered by this process, by rung; repeats apart.
    # TYPE kerneltrail_decisions_total counter
    kerneltrail_decisions_total{rung="policy"} 1
    # HELP kerneltrail_ready Whether this process is ready.
    # TYPE kerneltrail_ready gauge
    kerneltrail_ready 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, _Histogram]] = {}

    def count(self, name: str, by: float = 1.0, **labels: str) -> None:
        """Count something."""
        with self._lock:
            family = self._counters.setdefault(name, {})
            key = tuple(sorted(labels.items()))
            family[key] = family.get(key, 0.0) + by

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a time to a histogram."""
        with self._lock:
            family = self._histograms.setdefault(name, {})
            histogram = family.setdefault(tuple(sorted(labels.items())), _Histogram())
            histogram.counts[bisect_left(BOUNDS, seconds)] += 1
            histogram.total += seconds

    def called(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a call."""
        known = method if method in ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH") else "other"
        self.count("kerneltrail_calls_total", method=known, route=route, status=str(status))
        self.observe("kerneltrail_call_seconds", seconds, route=route)

    def text(self, gauges: Iterable[Sample] = ()) -> str:
        """All of it, and what is known only now, in Prometheus' text format."""
        families: dict[str, list[str]] = {}
        with self._lock:
            for name, counters in self._counters.items():
                lines = families.setdefault(name, [])
                lines += [_line(name, labels, value) for labels, value in counters.items()]
            for name, histograms in self._histograms.items():
                lines = families.setdefault(name, [])
                for labels, histogram in histograms.items():
                    seen = 0
                    for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
                        seen += count
                        lines.append(_line(f"{name}_bucket", (*labels, ("le", bound)), seen))
                    lines.append(_line(f"{name}_sum", labels, histogram.total))
                    lines.append(_line(f"{name}_count", labels, seen))
        for name, sample, value in gauges:
            families.setdefault(name, []).append(_line(name, tuple(sample.items()), value))
        parts = []
        for name, lines in sorted(families.items()):
            kind, about = ABOUT[name]
            parts += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *lines]
        return "\n".join(parts) + "\n"


def _line(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {value:.17g}" if inner else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
