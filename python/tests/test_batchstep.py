"""The installed package: run with its interpreter, `python -m unittest discover python/tests`."""

import importlib.util
import inspect
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import batchstep
from batchstep import _program, _sweep

SPEC = """
version = 1
name = "planted"
[sweep]
batch_size = "1..=40"
[engine]
name = "synthetic"
[synthetic]
base = "10ms"
slope = "1ms"
jumps = [{ after = 16, size = "5ms" }]
noise = { sd = "0.5%" }
[measure]
blocks = { min = 4, max = 4 }
steps_per_visit = 3
"""


def padded(batch_size, pad=16):
    """2 ms for each `pad` examples that are begun."""
    seconds = 2e-3 * -(-batch_size // pad)

    def run():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    return run


class Sweep(unittest.TestCase):
    """Steps whose times are planted: they jump where another `pad` examples begin."""

    def test_a_function_of_this_process_is_measured_where_it_is(self):
        calls = []

        def step(batch_size, pad):
            run = padded(batch_size, pad)
            return lambda: (calls.append(batch_size), run())

        run = batchstep.sweep(step, batch_size=range(1, 25), pad=[8, 12], time="60s")
        self.assertEqual(
            [(series.summary().split(":")[0], [jump.after for jump in series.jumps]) for series in run.series],
            [("step, pad=8", [8, 16]), ("step, pad=12", [12])],
        )
        self.assertEqual(set(calls), set(range(1, 25)), "the closure saw every size")
        self.assertEqual(str(run).count("\n"), 1, str(run))
        self.assertIn("def step(batch_size, pad):", (run.path / "step.py").read_text())
        if importlib.util.find_spec("polars"):
            self.assertEqual(set(run.steps["pad"]), {8, 12})

    def test_another_argument_may_be_the_axis_and_a_path_runs_in_a_process_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "tokens.py"
            file.write_text("import time\n" + inspect.getsource(padded).replace("padded(batch_size, pad=16)", "step(tokens)").replace("batch_size // pad", "tokens // 16"))
            run = batchstep.sweep(file, x="tokens", tokens=range(8, 33), time="60s", out=pathlib.Path(folder) / "run")
            self.assertEqual([jump.after for jump in run.jumps], [16])
            self.assertIn("<svg", run._repr_html_())
            if importlib.util.find_spec("polars"):
                self.assertIn("tokens", run.steps.columns)

    def test_a_step_that_raises_is_said_with_its_line(self):
        def step(batch_size):
            raise ValueError(f"no place for {batch_size}")

        with self.assertRaisesRegex(batchstep.BatchstepError, "ValueError: no place for"):
            batchstep.sweep(step, batch_size=range(1, 9), time="10s")

    def test_arguments_that_the_step_does_not_take_are_refused(self):
        with self.assertRaisesRegex(batchstep.BatchstepError, "takes no `pda`.*did you mean `pad`"):
            batchstep.sweep(padded, batch_size=range(1, 9), pda=8, time="10s")

    def test_a_refusal_names_the_arguments_of_sweep(self):
        def needy(batch_size, tokens):
            return lambda: None

        for arguments, words in [
            ({}, "it is given no value: `tokens=...`$"),
            ({"tokens": 8, "time": "a while"}, "^batchstep: time: `a while` is not a time limit"),
            ({"tokens": 8, "x": "token"}, r"no argument gives values for `token`\n  help: token=range\(1, 70 \+ 1\)"),
        ]:
            with self.assertRaisesRegex(batchstep.BatchstepError, words):
                batchstep.sweep(needy, **{"batch_size": range(1, 9), "time": "10s", **arguments})

    def test_a_run_that_ends_too_early_asks_for_more_time(self):
        command = "batchstep run /tmp/b/step/spec.toml --out /tmp/b/step --resume --time 20s"
        self.assertEqual(_sweep._in_python(f"  help: continue with `{command}`\n"), "  help: raise `time`\n")
        lines = ["  help: continue with `batchstep run /tmp/b/spec.toml\n", "        --out /tmp/b --resume --time 20s`\n"]
        self.assertEqual("".join(map(_sweep._in_python, lines)), "  help: raise `time`\n")

    def test_a_number_of_numpy_is_a_number(self):
        class Number:
            ndim = 0

            def item(self):
                return 128

        self.assertEqual((_sweep._values(Number()), _sweep._values([Number(), 256])), ("128", "[128, 256]"))

    def test_a_file_runs_with_this_python_unless_another_is_named(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("BATCHSTEP_PYTHON", None)
            self.assertEqual(_program.environment()["BATCHSTEP_PYTHON"], sys.executable)
            os.environ["BATCHSTEP_PYTHON"] = "/other/python"
            self.assertEqual(_program.environment()["BATCHSTEP_PYTHON"], "/other/python")

    def test_an_interrupt_ends_the_run_and_keeps_what_was_measured(self):
        visits = []

        def step(batch_size):
            visits.append(batch_size)
            if len(visits) == 60:
                os.kill(os.getpid(), signal.SIGINT)
            return padded(batch_size)

        run = batchstep.sweep(step, batch_size=range(1, 25), time="60s")
        self.assertLess(len(visits), 70)
        self.assertTrue((run.path / "steps.parquet").is_file())


class Jumps(unittest.TestCase):
    """A line of 10 ms and 1 ms for each x, with 5 ms more after 16."""

    def test_a_planted_jump_is_found_at_its_place_with_its_size(self):
        x = [b for b in range(1, 41) for _ in range(3)]
        y = [0.010 + 0.001 * b + (0.005 if b > 16 else 0) + 0.00002 * (i % 3 - 1) for i, b in enumerate(x)]
        found = batchstep.jumps(x, y)
        (jump,) = found.jumps
        self.assertEqual((jump.after, jump.direction, found.points, found.unit), (16, "up", 40, "s"))
        self.assertTrue(jump.low <= 0.005 <= jump.high, jump)
        # 5 ms at a time of 26 ms.
        self.assertAlmostEqual(jump.relative, 0.005 / 0.026, delta=0.01)
        self.assertLess(jump.p_value, 0.001)
        self.assertIsNone(found.period)
        # Three repetitions are too few to compare rates.
        self.assertIsNone(found.advice)

    def test_units_are_those_that_were_said(self):
        noise = random.Random(1)
        y = [10 + b + (5 if b > 16 else 0) + noise.gauss(0, 0.02) for b in range(1, 41)]
        found = batchstep.jumps(range(1, 41), y, unit="ms", order=range(40))
        self.assertEqual([(jump.after, round(jump.size)) for jump in found.jumps], [(16, 5)])
        self.assertEqual(found.unit, "ms")

    def test_what_cannot_be_used_is_refused_in_words(self):
        with self.assertRaisesRegex(ValueError, "differ in length: batch_size 3, time_s 2"):
            batchstep.jumps([1, 2, 3], [1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "none of: s, ms, us, ns"):
            batchstep.jumps([1], [1.0], unit="h")
        with self.assertRaises(batchstep.BatchstepError):
            batchstep.jumps(["small", "large"], [1.0, 2.0])


class Runs(unittest.TestCase):
    def test_a_run_is_loaded_with_its_tables_and_findings(self):
        with tempfile.TemporaryDirectory() as folder:
            spec = pathlib.Path(folder) / "planted.toml"
            spec.write_text(SPEC)
            command = [sys.executable, "-m", "batchstep", "run", str(spec), "--out", f"{folder}/run"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            run = batchstep.load(f"{folder}/run")
            (series,) = run.series
            self.assertEqual([jump.after for jump in series.jumps], [16])
            self.assertIn('name = "planted"', run.spec)
            self.assertEqual(run.steps.filter(~run.steps["warmup"]).height, 40 * 4 * 3)
            self.assertEqual(run.cells.height, 40)
            # x / (10 + x) up to 16, x / (15 + x) behind: the rate at 40 is the highest, and that at 16 is had again at 24.
            (advice,) = run.advice
            self.assertEqual((advice, advice.unit, advice.still_rises), (series.advice, "examples/s", True))
            self.assertGreaterEqual(advice.best.size, 36)
            (avoided,) = advice.avoid
            self.assertEqual(avoided.after, 16)
            self.assertTrue({17, 18, 19} <= set(avoided.sizes) <= set(range(17, 24)), avoided)
            self.assertTrue(str(advice).startswith(f"use {advice.best.size:g} ("), str(advice))

    def test_a_folder_without_a_run_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(FileNotFoundError, "steps.parquet and jumps.json missing"):
                batchstep.load(folder)


if __name__ == "__main__":
    unittest.main()
