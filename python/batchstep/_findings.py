"""What was found in a series: the JSON of `batchstep jumps`, version 1, as objects."""

from __future__ import annotations

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
    #: The entry of the document, with what later versions add.
    document: Mapping[str, Any] = field(repr=False, compare=False)

    def summary(self) -> str:
        """One line: the jumps, or what would have been seen."""
        name = ", ".join(str(value) for value in self.group.values()) or self.source
        early = self.document.get("too_early")
        if early:
            return f"{name}: too early to say: {early['blocks']} of {early['of']} blocks"
        if self.jumps:
            found = ", ".join(f"after {jump.after:g} ({jump.relative:+.1%})" for jump in self.jumps)
            return f"{name}: {len(self.jumps)} jump{'s' if len(self.jumps) > 1 else ''}: {found}"
        seen = f"; one of {self.detectable:.2g} of the time or more would have been seen" if self.detectable else ""
        return f"{name}: no jump found{seen}"


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
        document=entry,
    )


def _known(kind: Any, entry: Mapping[str, Any]) -> Any:
    return kind(**{name: entry[name] for name in kind.__dataclass_fields__ if name in entry})
