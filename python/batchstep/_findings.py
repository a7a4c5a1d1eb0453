"""What was found in a series: the JSON of `batchstep jumps`, version 1, as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

VERSION = 1


@dataclass(frozen=True)
class Jump:
    """The time leaves, after one x, the line that held up to it."""

    after: float
    #: Signed, in the unit of the series; `low` and `high` are the ends of its 95 % interval.
    size: float
    low: float
    high: float
    #: The size as a share of the time at `after`.
    relative: float
    direction: str
    #: Corrected for looking at every boundary.
    p_value: float
    #: Whether the device did more: work, clock or ambiguous; None where no clock was read.
    verdict: Optional[str] = None


@dataclass(frozen=True)
class Kink:
    """The slope changes at one x, without a gap. Slopes are in the unit of the series for each further example."""

    at: float
    slope_before: float
    slope_after: float
    p_value: float


@dataclass(frozen=True)
class Period:
    """Jumps after multiples of `value`."""

    value: float
    p_value: float
    #: After which x there is one.
    explains: tuple[float, ...]


@dataclass(frozen=True)
class Rated:
    """A size and its work per second, in the unit of the advice."""

    size: float
    rate: float


@dataclass(frozen=True)
class Avoided:
    """Sizes behind a jump whose rate is shown to be lower than that of the size before it."""

    after: float
    sizes: tuple[float, ...]


@dataclass(frozen=True)
class Memory:
    """What the best size takes at its peak, and up to which size a line through the peaks leaves the share `spare` free."""

    size: float
    peak_bytes: float
    total_bytes: Optional[int] = None
    fits_about: Optional[float] = None
    fits_more_than: Optional[float] = None
    spare: Optional[float] = None


@dataclass(frozen=True)
class Advice:
    """Which sizes to use and which to avoid. Another batch size is another training: its learning rate and its result may differ."""

    #: The unit of the rates: "examples/s".
    unit: str
    best: Rated
    #: All sizes that are not shown to be worse than the best one.
    not_worse: tuple[float, ...]
    #: The share of the best rate that a smaller size may lack, and the smallest size that is shown to lack no more; None if there is none.
    within: float
    smallest_within: Optional[Rated]
    avoid: tuple[Avoided, ...]
    #: Whether the rate still rises where the sweep ends, so that a larger size may be better.
    still_rises: bool
    memory: Optional[Memory]

    def __str__(self) -> str:
        """One line: what to use, what to avoid."""
        text = f"use {self.best.size:g} ({self.best.rate:,.4g} {self.unit})"
        if self.smallest_within and self.smallest_within.size != self.best.size:
            text += f" or {self.smallest_within.size:g}, the smallest within {self.within:.3g} of it"
        if self.still_rises:
            text += ", and the rate still rises where the sweep ends"
        sizes = [f"{size:g}" for avoided in self.avoid for size in avoided.sizes]
        return f"{text}; avoid {', '.join(sizes)}" if sizes else text


@dataclass(frozen=True)
class Series:
    """One curve and what was found in it."""

    source: str
    group: Mapping[str, str]
    points: int
    unit: str
    jumps: tuple[Jump, ...]
    kinks: tuple[Kink, ...]
    period: Optional[Period]
    #: The share of series like this one without a jump that show a step as strong as the strongest here.
    p_value: Optional[float]
    #: The share of series without a jump in which one is reported, at most.
    false_positive_rate: float
    #: The smallest jump, as a share of the time, that would have been found with a probability of 90 %.
    detectable: Optional[float]
    notes: tuple[str, ...]
    #: Which sizes to use; None where the data do not show it.
    advice: Optional[Advice]
    #: The entry of the document, including keys that later versions add.
    document: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """What sets it apart from the others: `step, pad=8`; of a file with one series, the file."""
        return ", ".join(_words(value) for value in self.group.values() if value is not None) or self.source

    def summary(self) -> str:
        """One line: the jumps, or what would have been seen."""
        name = self.name
        early = self.document.get("too_early")
        if early:
            return f"{name}: too early to say: {early['blocks']} of {early['of']} blocks"
        if self.jumps:
            found = ", ".join(f"after {jump.after:g} ({jump.relative:+.1%})" for jump in self.jumps)
            return f"{name}: {len(self.jumps)} jump{'s' if len(self.jumps) > 1 else ''}: {found}"
        seen = f"; one of {self.detectable:.{0 if self.detectable >= 0.1 else 1}%} or more would have been seen" if self.detectable else ""
        return f"{name}: no jump found{seen}"


def _words(value: Any) -> str:
    """Arguments of a step are stored as one JSON object: `pad=8, mode=eager` is shorter."""
    try:
        given = json.loads(value) if isinstance(value, str) and value.startswith("{") else None
    except ValueError:
        given = None
    return ", ".join(f"{name}={one}" for name, one in given.items()) if isinstance(given, dict) else str(value)


def series_of(document: Mapping[str, Any]) -> tuple[Series, ...]:
    """The series of a document. Fields that this version does not know are left in `Series.document`."""
    if document.get("version") != VERSION:
        raise ValueError(f"version {document.get('version')} of the document; this package reads version {VERSION}")
    return tuple(_series(entry) for entry in document["series"])


def _series(entry: Mapping[str, Any]) -> Series:
    period = entry.get("period")
    return Series(
        source=entry["source"],
        group=dict(entry["group"]),
        points=entry["points"],
        unit=entry["unit"],
        jumps=tuple(_known(Jump, jump) for jump in entry["jumps"]),
        kinks=tuple(_known(Kink, kink) for kink in entry["kinks"]),
        period=period and Period(period["value"], period["p_value"], tuple(period["explains"])),
        p_value=entry.get("p_value"),
        false_positive_rate=entry["false_positive_rate"],
        detectable=entry.get("detectable"),
        notes=tuple(entry.get("notes", ())),
        advice=_advice(entry.get("advice")),
        document=entry,
    )


def _advice(entry: Optional[Mapping[str, Any]]) -> Optional[Advice]:
    if entry is None:
        return None
    smallest, memory = entry["smallest_within"], entry["memory"]
    return Advice(
        unit=entry["unit"],
        best=_known(Rated, entry["best"]),
        not_worse=tuple(entry["not_worse"]),
        within=entry["within"],
        smallest_within=smallest and _known(Rated, smallest),
        avoid=tuple(Avoided(avoided["after"], tuple(avoided["sizes"])) for avoided in entry["avoid"]),
        still_rises=entry["still_rises"],
        memory=memory and _known(Memory, memory),
    )


def _known(kind: Any, entry: Mapping[str, Any]) -> Any:
    return kind(**{name: entry[name] for name in kind.__dataclass_fields__ if name in entry})
