"""A run of the program."""

from __future__ import annotations

import html
import json
import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ._findings import Advice, Jump, Series, series_of
from ._program import output_of

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Run:
    """The tables and the findings of one run."""

    path: pathlib.Path
    series: tuple[Series, ...]
    #: What it ran on.
    environment: dict[str, Any]
    #: The spec as it was resolved, TOML.
    spec: str

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Those of all series, in their order."""
        return tuple(jump for series in self.series for jump in series.jumps)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Which sizes to use: that of every series whose data show it, in their order."""
        return tuple(series.advice for series in self.series if series.advice)

    @property
    def steps(self) -> polars.DataFrame:
        """Every step that was executed, warm-up and outliers included; times in seconds. Arguments of a step of one's own are columns."""
        return _with_arguments(self._table("steps"))

    @property
    def cells(self) -> polars.DataFrame:
        """Each cell's step time with its interval, and why its visits ended."""
        return self._table("cells")

    @property
    def layers(self) -> polars.DataFrame:
        """For each cell and layer the algorithm, FLOPs and bytes, and times where they were measured."""
        return self._table("layers")

    def report(self, path: Union[str, os.PathLike[str]]) -> pathlib.Path:
        """Writes one HTML file to keep or mail."""
        output_of(["report", str(self.path), "--out", str(path)])
        return pathlib.Path(path)

    def __str__(self) -> str:
        """A line for each series."""
        return "\n".join(series.summary() for series in self.series)

    def _repr_html_(self) -> str:
        """The chart and the jumps, in a notebook."""
        with tempfile.TemporaryDirectory() as folder:
            output_of(["plot", str(self.path), "--format", "svg", "--out", folder])
            charts = sorted(pathlib.Path(folder).glob("*step_time*.svg"))
            drawn = "".join(chart.read_text(encoding="utf-8") for chart in charts)
        drawn = drawn[drawn.index("<svg") :] if "<svg" in drawn else ""
        return f"<div style='max-width: 60em'>{drawn}</div><pre>{html.escape(str(self))}</pre>"

    def _table(self, name: str) -> polars.DataFrame:
        try:
            import polars
        except ImportError as error:
            raise ImportError('tables are polars frames: pip install "batchstep[frames]"') from error
        return polars.read_parquet(self.path / f"{name}.parquet")


def _with_arguments(steps: polars.DataFrame) -> polars.DataFrame:
    import polars

    if "x_name" in steps.columns and steps["x_name"].drop_nulls().len():
        steps = steps.rename({"batch_size": steps["x_name"].drop_nulls()[0]})
    for column in ("arguments", "env"):
        texts = steps[column].drop_nulls().unique().to_list() if column in steps.columns else []
        given = {text: json.loads(text) for text in texts}
        for name in dict.fromkeys(name for values in given.values() for name in values):
            if name not in steps.columns:
                values = polars.Series(name, [given[text].get(name) if text is not None else None for text in steps[column]], strict=False)
                steps = steps.with_columns(values)
    return steps


def load(path: Union[str, os.PathLike[str]]) -> Run:
    """Reads the run in a folder. Tables are read when they are asked for.

    Raises FileNotFoundError where the folder holds no finished run.
    """
    folder = pathlib.Path(path)
    missing = [name for name in ("steps.parquet", "jumps.json") if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"{folder} holds no finished run of batchstep: {' and '.join(missing)} missing")
    return Run(
        path=folder,
        series=series_of(json.loads((folder / "jumps.json").read_text(encoding="utf-8"))),
        environment=json.loads((folder / "environment.json").read_text(encoding="utf-8")),
        spec=(folder / "spec.toml").read_text(encoding="utf-8"),
    )
