"""A run of the program."""

from __future__ import annotations

import json
import os
import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from ._findings import Series, series_of

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
    def steps(self) -> polars.DataFrame:
        """Every step that was executed, warm-up and outliers included; times in seconds."""
        return self._table("steps")

    @property
    def cells(self) -> polars.DataFrame:
        """Each cell's step time with its interval, and why its visits ended."""
        return self._table("cells")

    @property
    def layers(self) -> polars.DataFrame:
        """For each cell and layer the algorithm, FLOPs and bytes, and times where they were measured."""
        return self._table("layers")

    def _table(self, name: str) -> polars.DataFrame:
        try:
            import polars
        except ImportError as error:
            raise ImportError('tables are polars frames: pip install "batchstep[frames]"') from error
        return polars.read_parquet(self.path / f"{name}.parquet")


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
