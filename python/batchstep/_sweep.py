"""A sweep of a function that lives in this process."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterable
from typing import Any, Optional, Union

from ._program import BatchstepError, environment, program
from ._run import Run, load

#: A line of the program that says how far it has come.
_PROGRESS = re.compile(r"[\d,]+ visits? to [\d,]+ cells?: ")
_WIDTH = 118

#: What the program says of its options and of the spec, and what the arguments of `sweep` are called.
_WORDS = [
    (re.compile(r"`--set (\w+)=\.\.\.`, or a key of \[sweep\]"), r"`\1=...`"),
    (re.compile(r"\S*/spec\.toml:\d+: (?:sweep\.)?"), ""),
    # The spec, and mostly the run, are in a folder that goes with this process. A long command is broken over two lines.
    (re.compile(r"continue with `batchstep run [^`\n]*(?:`|$)"), "raise `time`"),
    (re.compile(r"^ {8}[^`\n]*--resume --time [^`\n]*`\n"), ""),
    (re.compile(r"--smallest-jump"), "smallest_jump"),
    (re.compile(r"--(time|out)\b"), r"\1"),
    (re.compile(r"`time_limit` or `blocks\.max` in \[measure\]"), "`time`"),
    (re.compile(r"\[sweep\] gives no values"), "no argument gives values"),
    (re.compile(r'(\w+) = "(\d+)\.\.=(\d+)"'), r"\1=range(\2, \3 + 1)"),
]

Values = Union[int, float, str, bool, Iterable[Any]]


def sweep(
    step: Union[Callable[..., Any], str, os.PathLike[str]],
    *,
    x: str = "batch_size",
    time: Union[str, float] = "5min",
    smallest_jump: Union[str, float, None] = None,
    out: Union[str, os.PathLike[str], None] = None,
    **arguments: Values,
) -> Run:
    """Measures a step at every size, and finds where it gets slower.

    `step(batch_size, ...)` makes what a step needs, which is not timed, and gives back a function that runs one step, which is; or that function and a
    torch.nn.Module, for the times of its layers. It stays in this process: what it closes over, and a model on a GPU, are used where they are. A path of
    a Python file in its place runs in a process of its own, where a crash ends nothing else.

        run = batchstep.sweep(step, batch_size=range(1, 71), seq_len=[128, 512], time="2min")

    Every further argument is one of the step's; several values are measured side by side. `x` names the one that is swept. `time` as a number counts seconds, and
    `smallest_jump` is a share: 0.05, or "5%". `out` is the run's folder; without it the run goes with this process.

    Raises BatchstepError with the program's words.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="batchstep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spec, name = _spec(step, folder, x, arguments)
    destination = pathlib.Path(out) if out is not None else folder / name
    command = [program(), "run", str(spec), "--out", str(destination), "--time", time if isinstance(time, str) else f"{float(time):g}s"]
    if smallest_jump is not None:
        command += ["--smallest-jump", smallest_jump if isinstance(smallest_jump, str) else f"{100 * float(smallest_jump):g}%"]
    if callable(step):
        code, said = _serve(command, step)
    else:
        with _Program(command) as running:
            code, said = running.ended()
    if code not in (0, 1) or not (destination / "jumps.json").is_file():
        raise BatchstepError(said or f"batchstep ended with code {code}")
    return load(destination)


def _spec(step: Any, folder: pathlib.Path, x: str, arguments: dict[str, Values]) -> tuple[pathlib.Path, str]:
    """A spec in the folder, beside the text of the function, of which the run keeps a copy; and the name of the step."""
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
    return spec, name


def _in_python(text: str) -> str:
    """What the program says, with the names of this function's arguments in place of its own."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def _source(step: Callable[..., Any]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(step))
    except (OSError, TypeError):
        return f"# the source of {step!r} is not known\n"


def _values(values: Values) -> str:
    # A NumPy number has no dimensions.
    if isinstance(values, (str, int, float)) or getattr(values, "ndim", None) == 0:
        return _toml(values)
    return "[" + ", ".join(map(_toml, values)) + "]"


def _toml(value: Any) -> str:
    """Of texts, numbers and truth values JSON's form is TOML's too; a NumPy number is one of Python first."""
    return json.dumps(value.item() if hasattr(value, "item") else value)


class _Program:
    """The program, while it runs. What it says is shown as it comes, in a notebook too."""

    def __init__(self, command: list[str], pipes: tuple[int, ...] = ()):
        # In a session of its own: an interrupt comes to it from here, once.
        self.child = subprocess.Popen(
            command,
            pass_fds=pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment(),
        )
        self.lines: list[str] = []
        self.shown = threading.Thread(target=self._show, daemon=True)
        self.shown.start()
        self.is_in_step = False
        self.former: Any = None

    def __enter__(self) -> _Program:
        # Only the main thread is interrupted.
        if threading.current_thread() is threading.main_thread():
            self.former = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self.former is not None:
            signal.signal(signal.SIGINT, self.former)
        self.child.terminate()
        self.child.wait()
        self.shown.join()

    def _interrupt(self, *_: object) -> None:
        """The program ends after what it has begun, and reports; a step that hangs is left at once."""
        self.child.send_signal(signal.SIGINT)
        if self.is_in_step:
            raise KeyboardInterrupt

    def _show(self) -> None:
        in_progress = False
        with self.child.stderr as stream:
            for line in stream:
                if _PROGRESS.match(line):
                    # One line, which each one takes the place of.
                    sys.stderr.write("\r" + line.rstrip()[:_WIDTH].ljust(_WIDTH))
                else:
                    line = _in_python(line)
                    self.lines.append(line)
                    sys.stderr.write("\n" + line if in_progress else line)
                in_progress = bool(_PROGRESS.match(line))
        if in_progress:
            sys.stderr.write("\n")

    def ended(self) -> tuple[int, str]:
        """Its exit code, and the last that it said: the reason where it failed."""
        code = self.child.wait()
        self.shown.join()
        return code, "".join(self.lines[-6:]).strip()


def _serve(command: list[str], step: Callable[..., Any]) -> tuple[int, str]:
    """Runs the program, and the steps that it asks for over two pipes."""
    asked, requests = os.pipe()
    answers, answered = os.pipe()
    with os.fdopen(asked, encoding="utf-8") as requested, os.fdopen(answered, "w", encoding="utf-8") as replies:
        with _Program([*command, "--worker-fds", f"{requests},{answers}"], (requests, answers)) as running:
            os.close(requests)
            os.close(answers)
            try:
                _answer(requested, replies, step, running)
            except BrokenPipeError:
                pass
            return running.ended()


def _answer(requested: Any, replies: Any, step: Callable[..., Any], running: _Program) -> None:
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
        for line in requested:
            try:
                running.is_in_step = True
                reply = worker["answer"](serving, line)
            except KeyboardInterrupt:
                reply = {"error": {"kind": "engine", "what": "interrupted"}}
            running.is_in_step = False
            worker["send"](reply)
    finally:
        worker["gc"].unfreeze()
        if collects:
            worker["gc"].enable()
