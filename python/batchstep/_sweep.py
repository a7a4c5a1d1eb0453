"""A sweep of a function that lives in this process."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterable
from typing import Any, Optional, Union

from ._program import BatchstepError, program
from ._run import Run, load

Values = Union[int, float, str, bool, Iterable[Any]]


def sweep(
    step: Union[Callable[..., Any], str, os.PathLike[str]],
    *,
    x: str = "batch_size",
    time: str = "5min",
    smallest_jump: Optional[str] = None,
    out: Union[str, os.PathLike[str], None] = None,
    **arguments: Values,
) -> Run:
    """Measures a step at every size, and finds where it gets slower.

    `step(batch_size, ...)` makes what a step needs, which is not timed, and gives back a function that runs one step, which is; or that function and a
    torch.nn.Module, for the times of its layers. It stays in this process: what it closes over, and a model on a GPU, are used where they are. A path of
    a Python file in its place runs in a process of its own, where a crash ends nothing else.

        run = batchstep.sweep(step, batch_size=range(1, 71), seq_len=[128, 512], time="2min")

    Every further argument is one of the step's; several values are measured side by side. `x` names the one that is swept. `out` is the run's folder; without it
    the run goes with this process.

    Raises BatchstepError with the program's words.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="batchstep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spec = _spec(step, folder, x, arguments)
    destination = pathlib.Path(out) if out is not None else folder / "run"
    command = [program(), "run", str(spec), "--out", str(destination), "--time", time]
    if smallest_jump is not None:
        command += ["--smallest-jump", smallest_jump]
    if callable(step):
        code, said = _serve(command, step)
    else:
        code, said = _wait(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    if code not in (0, 1):
        raise BatchstepError(said or f"batchstep ended with code {code}")
    return load(destination)


def _spec(step: Any, folder: pathlib.Path, x: str, arguments: dict[str, Values]) -> pathlib.Path:
    """A spec in the folder, beside the text of the function, of which the run keeps a copy."""
    if callable(step):
        name = "".join(letter if letter.isalnum() else "_" for letter in getattr(step, "__name__", "step")).strip("_") or "step"
        file = folder / f"{name}.py"
        file.write_text(_source(step), encoding="utf-8")
    else:
        file = pathlib.Path(step).resolve()
        name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in file.stem)
    lines = ["version = 1", f"name = {_toml(name)}", "[engine]", f"step = {_toml(str(file))}", "[sweep]"]
    if x != "batch_size":
        lines.append(f"x = {_toml(x)}")
    for key, values in arguments.items():
        lines.append(f"{_toml(key)} = {_values(values)}")
    spec = folder / "spec.toml"
    spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return spec


def _source(step: Callable[..., Any]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(step))
    except (OSError, TypeError):
        return f"# the source of {step!r} is not known\n"


def _values(values: Values) -> str:
    if isinstance(values, (str, int, float)):
        return _toml(values)
    return "[" + ", ".join(_toml(value.item() if hasattr(value, "item") else value) for value in values) + "]"


def _toml(value: Any) -> str:
    """Of texts, numbers and truth values JSON's form is TOML's too."""
    return json.dumps(value)


def _serve(command: list[str], step: Callable[..., Any]) -> tuple[int, str]:
    """Runs the program, and the steps that it asks for over two pipes."""
    asked, requests = os.pipe()
    answers, answered = os.pipe()
    child = subprocess.Popen(
        [*command, "--worker-fds", f"{requests},{answers}"],
        pass_fds=(requests, answers),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(requests)
    os.close(answers)
    said = _Said(child)
    with os.fdopen(asked, encoding="utf-8") as requested, os.fdopen(answered, "w", encoding="utf-8") as replies:
        try:
            _answer(requested, replies, step, child)
        except BrokenPipeError:
            pass
    return child.wait(), said.last()


def _answer(requested: Any, replies: Any, step: Callable[..., Any], child: subprocess.Popen[str]) -> None:
    """The first request brings the worker, which answers all others."""
    first = requested.readline()
    if not first:
        return
    worker: dict[str, Any] = {"__name__": "batchstep_worker"}
    exec(compile(json.loads(first)["text"], "<batchstep worker>", "exec"), worker)
    worker.update(REQUESTS=requested, ANSWERS=replies)
    worker["send"]({"ok": {}})
    serving = worker["Worker"](step)
    collects = worker["gc"].isenabled()
    try:
        while True:
            try:
                worker["serve"](serving)
                return
            except KeyboardInterrupt:
                # The program finishes what it has begun, and reports.
                child.send_signal(signal.SIGINT)
                worker["send"]({"error": {"kind": "engine", "what": "interrupted"}})
    finally:
        worker["gc"].unfreeze()
        if collects:
            worker["gc"].enable()


def _wait(child: subprocess.Popen[str]) -> tuple[int, str]:
    said = _Said(child)
    try:
        return child.wait(), said.last()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        return child.wait(), said.last()


class _Said:
    """What the program says is shown as it comes, in a notebook too; the last of it is the reason where it fails."""

    def __init__(self, child: subprocess.Popen[str]):
        self.lines: list[str] = []
        self.threads = [threading.Thread(target=self._show, args=(child.stderr,)), threading.Thread(target=child.stdout.read)]
        for thread in self.threads:
            thread.daemon = True
            thread.start()

    def _show(self, stream: Any) -> None:
        for line in stream:
            self.lines.append(line)
            sys.stderr.write(line)

    def last(self) -> str:
        for thread in self.threads:
            thread.join()
        return "".join(self.lines[-6:]).strip()
