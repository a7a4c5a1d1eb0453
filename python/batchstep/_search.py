"""Jumps in arrays."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from ._findings import Series, series_of
from ._program import output_of

#: Seconds in the units that `unit` takes, and how the program's columns end in them.
_UNITS = {"s": "s", "ms": "ms", "us": "us", "ns": "ns"}


def jumps(
    x: Iterable[float],
    y: Iterable[float],
    *,
    order: Optional[Iterable[float]] = None,
    block: Optional[Iterable[int]] = None,
    unit: str = "s",
) -> Series:
    """Finds jumps, kinks and periods of y over x.

    x holds batch sizes (or any size), y the time of each measurement in `unit`: s, ms, us or ns. Repeated x are repetitions. `order` says when each was
    measured, by any increasing number, and `block` in which pass over all x; with them, what the machine does over time is told apart from the
    curve. Lists, numpy arrays and columns of data frames will do.

    Raises ValueError where the arrays differ in length, BatchstepError with the program's words for anything else.
    """
    if unit not in _UNITS:
        raise ValueError(f"unit {unit!r} is none of: {', '.join(_UNITS)}")
    columns: dict[str, Sequence[Any]] = {"batch_size": list(x), f"time_{_UNITS[unit]}": list(y)}
    if order is not None:
        columns["order"] = list(order)
    if block is not None:
        columns["block"] = list(block)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("the arrays differ in length: " + ", ".join(f"{name} {length}" for name, length in lengths.items()))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.csv")
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(map(_number, values) for values in columns.values())))
        arguments = ["jumps", path, "--x", "batch_size", "--y", f"time_{_UNITS[unit]}", "--format", "json"]
        return series_of(json.loads(output_of(arguments)))[0]


def _number(value: Any) -> Any:
    """numpy's numbers print as themselves, and Python's floats with all their digits."""
    return repr(float(value)) if isinstance(value, float) else value
