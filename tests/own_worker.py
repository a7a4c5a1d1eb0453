"""Tests of the process that runs a person's own step: `python3 tests/own_worker.py`, without any package.

It is started as the program starts it, by its text. Frameworks are stand-ins (tests/fixtures/frameworks), whose devices exist nowhere, so
that what needs a GPU is exercised too; where PyTorch is installed, its layers are timed in earnest."""

import hashlib
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = ROOT / "src/engine/own"
STAND_INS = ROOT / "tests/fixtures/frameworks"
SIGNATURE = (ENGINE / "worker/signature.py").read_text()


def text():
    """The program, joined as the Rust side joins it."""
    names = re.findall(r'include_str!\("([^"]*)"\)', (ENGINE / "mod.rs").read_text())
    return "".join((ENGINE / name).read_text() for name in names if not name.endswith("signature.py"))


class Process:
    """The other end of the worker's pipes."""

    def __init__(self, folder, frameworks=None, **environment):
        path = {"PYTHONPATH": str(frameworks)} if frameworks else {}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": open(folder / "stderr", "w")}
        environment = {**os.environ, "PYTHONSAFEPATH": "1", **path, **environment}
        self.process = subprocess.Popen([sys.executable, "-c", text()], text=True, env=environment, cwd=folder, **pipes)
        pipes["stderr"].close()

    def answer(self, do, **request):
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ok(self, do, **request):
        answer = self.answer(do, **request)
        assert "ok" in answer, answer
        return answer["ok"]

    def error(self, do, **request):
        answer = self.answer(do, **request)
        assert "error" in answer, answer
        return answer["error"]["kind"], answer["error"]["what"]

    def visit(self, batch_size, count=1, cells=1, **arguments):
        """One visit: what its preparation and its steps answer."""
        prepared = self.ok("prepare", id=batch_size, arguments={"batch_size": batch_size, **arguments}, cells=cells)
        steps = self.ok("step", id=batch_size, count=count)["steps"]
        self.ok("release", id=batch_size)
        return prepared, steps

    def notices(self):
        return self.ok("summary")["notices"]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(20)
        self.process.stdout.close()
        return code


class Worker(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, source, name="my_step.py"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(textwrap.dedent(source))
        return path

    def start(self, **options):
        process = Process(self.folder, **options)
        self.addCleanup(process.process.stdout.close)
        self.addCleanup(process.process.wait)
        self.addCleanup(process.process.kill)
        self.addCleanup(process.process.stdin.close)
        return process

    def open(self, source, arguments=("batch_size",), name="my_step.py", **options):
        process = self.start(**options)
        path = self.write(source, name)
        return process, process.answer("open", file=str(path), arguments=list(arguments))

    def opened(self, source, arguments=("batch_size",), **options):
        process, answer = self.open(source, arguments, **options)
        self.assertIn("ok", answer)
        return process

    def refused(self, source, arguments=("batch_size",), **options):
        """Why `open` refuses the file."""
        _, answer = self.open(source, arguments, **options)
        return answer["error"]["kind"], answer["error"]["what"]

    def stderr(self):
        return (self.folder / "stderr").read_text()


class Lifetimes(Worker):
    def test_the_top_runs_once_step_for_each_visit_and_what_it_gives_for_each_step(self):
        process = self.opened(
            """
            import os
            said = open(os.path.join(os.path.dirname(__file__), "said"), "a", buffering=1)
            print("top", __name__, file=said)
            def step(batch_size):
                print("step", batch_size, file=said)
                return lambda: print("run", batch_size, file=said)
            """
        )
        process.visit(2, count=2)
        process.visit(3, count=1)
        process.visit(2, count=1)
        first = ["top my_step", "step 2", "run 2", "run 2", "run 2", "step 3", "run 3", "run 3"]
        self.assertEqual((self.folder / "said").read_text().splitlines(), [*first, "step 2", "run 2"], "a size's very first step does not count")

    def test_a_step_without_a_framework_has_no_operators(self):
        process = self.opened("def step(batch_size):\n    return lambda: None\n")
        process.ok("prepare", id=1, arguments={"batch_size": 48}, cells=1)
        self.assertEqual(process.ok("kernels", id=1), [])

    def test_prints_do_not_get_between_the_answers(self):
        process = self.opened(
            """
            import os, subprocess, sys
            print("at the top")
            def step(batch_size):
                def run():
                    print("printed")
                    os.write(1, b"written\\n")
                    subprocess.run(["echo", "by a child"])
                return run
            """
        )
        self.assertEqual(len(process.visit(2, count=3)[1]), 3)
        self.assertEqual(process.notices(), [])
        for words in ("at the top", "printed", "written", "by a child"):
            self.assertIn(words + "\n", self.stderr())

    def test_what_step_made_is_dropped_at_the_end_of_the_visit_cycles_too(self):
        process = self.opened(
            """
            import gc, weakref
            class Made: pass
            alive = []
            def step(batch_size):
                made = Made()
                made.itself = made
                alive.append(weakref.ref(made))
                left = sum(ref() is not None for ref in alive) - 1
                def run():
                    assert made and not gc.isenabled()
                    return float(left)
                return run
            """
        )
        for batch_size in range(1, 8):
            self.assertEqual(process.visit(batch_size)[1][0]["loss"], "0.0")

    def test_what_a_step_held_that_failed_is_dropped(self):
        process = self.opened(
            """
            import weakref
            class Made: pass
            alive = []
            def step(batch_size):
                made = Made()
                left = sum(ref() is not None for ref in alive)
                alive.append(weakref.ref(made))
                def run():
                    if batch_size < 3: raise RuntimeError(str(made))
                    return float(left)
                return run
            """
        )
        for batch_size in (1, 2):
            process.error("prepare", id=batch_size, arguments={"batch_size": batch_size})
        self.assertEqual(process.visit(3)[1][0]["loss"], "0.0")

    def test_it_imports_as_import_does_and_sees_its_folder(self):
        source = """
            import sys, helper
            assert sys.argv == [__file__] and sys.modules[__name__].__file__ == __file__ and __name__ == "my_step"
            import inspect
            def step(batch_size): return lambda: helper.number
            assert "helper.number" in inspect.getsource(step)
            """
        self.write("number = 0.5\n", "helper.py")
        self.write("", "lib/site-packages/installed.py")
        process, answer = self.open(
            source.replace("import sys, helper", "import sys, helper; sys.path.append('lib/site-packages'); import installed")
        )
        hashes = [{"name": path, "sha256": hashlib.sha256((self.folder / path).read_bytes()).hexdigest()} for path in ("my_step.py", "helper.py")]
        self.assertEqual(answer["ok"]["files"], hashes)
        self.assertEqual(answer["ok"]["python"], ".".join(map(str, sys.version_info[:3])))
        self.assertEqual((answer["ok"]["device"], answer["ok"]["device_name"], answer["ok"]["version"]), ("cpu", None, ""))
        self.assertEqual(process.visit(1)[1][0]["loss"], "0.5")
        self.assertEqual(list(self.folder.glob("__pycache__/my_step*")), [], "what is recorded of it is what runs")

    def test_it_ends_with_its_input_and_children_do_not_hold_its_pipes(self):
        process = self.opened(
            """
            import os, subprocess, time
            children = [subprocess.Popen(["sleep", "30"])]
            if (child := os.fork()) == 0:
                time.sleep(30)
                os._exit(0)
            def step(batch_size): return lambda: None
            open("children", "w").write(f"{child} {children[0].pid}")
            """
        )
        process.visit(1)
        process.process.stdin.close()
        begun = time.monotonic()
        self.assertEqual(process.process.stdout.read(), "", "nobody else holds it")
        self.assertLess(time.monotonic() - begun, 10)
        for child in (self.folder / "children").read_text().split():
            os.kill(int(child), 9)

    def test_a_forked_child_that_comes_back_does_not_answer(self):
        process = self.opened(
            """
            import os
            def step(batch_size):
                return lambda: float(os.fork() == 0)
            """
        )
        for batch_size in (1, 2, 3):
            self.assertEqual([step["loss"] for step in process.visit(batch_size)[1]], ["0.0"])


class Times(Worker):
    PLANTED = """
        import time
        def step(batch_size):
            def run():
                end = time.process_time() + batch_size * 1e-3
                while time.process_time() < end: pass
                return {"loss": 0.25}
            return run
        """

    def test_each_step_of_a_request_has_its_times_and_the_last_the_memory(self):
        process = self.opened(self.PLANTED)
        prepared, steps = process.visit(5, count=4)
        self.assertEqual(
            {key: prepared[key] for key in ("compile_s", "compilations", "has_layers", "device")},
            {"compile_s": None, "compilations": 0, "has_layers": False, "device": "cpu"},
        )
        self.assertGreater(prepared["prepare_s"], 0.004)
        self.assertEqual(len(steps), 4)
        for number, step in enumerate(steps):
            self.assertGreater(step["step_s"], 0.0045)
            self.assertAlmostEqual(step["cpu_s"], 0.005, delta=0.004)
            self.assertEqual((step["loss"], step["repeats"], step["compilations"]), ("0.25", 1, 0))
            for name in ("gpu_s", "enqueue_s", "forward_s", "backward_s", "optimizer_s"):
                self.assertIsNone(step[name])
            for name in ("page_faults", "voluntary_switches", "involuntary_switches"):
                self.assertGreaterEqual(step[name], 0)
            if number < 3 or not sys.platform.startswith("linux"):
                self.assertIsNone(step["peak_memory_bytes"])
        if sys.platform.startswith("linux"):
            self.assertGreater(steps[-1]["peak_memory_bytes"], 1 << 20)

    def test_page_faults_and_peak_memory_are_the_visits(self):
        process = self.opened("def step(batch_size):\n    return lambda: len(bytearray(batch_size << 20))\n")
        large, small = process.visit(200)[1][0], process.visit(1)[1][0]
        self.assertGreater(large["page_faults"], 100)
        if sys.platform.startswith("linux") and large["peak_memory_bytes"]:
            self.assertGreater(large["peak_memory_bytes"] - small["peak_memory_bytes"], 150 << 20)

    def test_losses_in_all_their_forms(self):
        forms = {
            "0.5": "0.5",
            "2": "2.0",
            "{'loss': 0.5, 'x': 1}": "0.5",
            "(0.5, [1, 2])": "0.5",
            "[0.5, 1]": "0.5",
            "Has()": "0.5",
            "({'loss': 0.5},)": "0.5",
            "Item()": "0.5",
            "float('nan')": "nan",
            "-float('inf')": "-inf",
            "None": None,
            "'0.5'": None,
            "True": None,
            "[]": None,
            "{}": None,
            "Odd()": None,
            "Index()": None,
            "object()": None,
            "1j": None,
        }
        source = f"""
            class Has: loss = 0.5
            class Item:
                dtype = "torch.float32"
                def item(self): return 0.5
            class Index:
                dtype = "torch.int64"
                def item(self): return 3
            class Odd:
                @property
                def loss(self): raise RuntimeError("no")
            forms = [{", ".join(forms)}]
            def step(batch_size): return lambda: forms[batch_size]
            """
        process = self.opened(source)
        for number, (form, loss) in enumerate(forms.items()):
            self.assertEqual(process.visit(number)[1][0]["loss"], loss, form)

    def test_the_loss_that_diverges_is_a_notice_and_no_failure(self):
        source = """
            import math
            lost = False
            def step(batch_size, seq_len=1):
                def run():
                    global lost
                    lost = lost or batch_size == {at}
                    return math.nan if {when} else 1.0
                return run
            """
        process = self.opened(source.format(at=33, when="lost"))
        for batch_size in (2, 33, 7):
            process.visit(batch_size)
        self.assertEqual(
            process.notices(), ["the loss is NaN from the visit of batch_size 33 on: the times still count; a smaller learning rate avoids it"]
        )
        process = self.opened(source.format(at=33, when="batch_size == 33"), ["batch_size", "seq_len"])
        for batch_size, seq_len in ((2, 1), (33, 2), (7, 1)):
            process.visit(batch_size, seq_len=seq_len)
        expected = "the loss is NaN in 1 step, first at batch_size 33, seq_len 2: the times still count; a smaller learning rate avoids it"
        self.assertEqual(process.notices(), [expected])
        self.assertEqual(process.notices(), [expected], "a second time the same")

    def test_a_visit_costs_little_besides_its_steps(self):
        process = self.opened("import json, decimal, unittest, asyncio\ndef step(batch_size): return lambda: None\n")
        seconds = []
        for number in range(60):
            begun = time.perf_counter()
            process.visit(number % 5, count=3)
            seconds.append(time.perf_counter() - begun)
        self.assertLess(min(seconds), 3e-3, "three requests and their answers")


class Failures(Worker):
    def test_no_function(self):
        expected = "my_step.py defines no function `step`; it needs `def step(batch_size):` that returns a function that runs one step"
        self.assertEqual(self.refused("x = 1"), ("spec", expected))
        self.assertEqual(self.refused("step = 1"), ("spec", expected))

    def test_step_gives_no_function(self):
        for made, what in {"None": "NoneType", "1": "int", "(1, 2)": "int", "()": "tuple"}.items():
            process = self.opened(f"def step(batch_size): return {made}")
            expected = f"step() in my_step.py returned {what}: it must return a function that runs one step"
            self.assertEqual(process.error("prepare", id=1, arguments={"batch_size": 1}), ("spec", expected))

    def test_a_step_that_has_not_run_when_it_returns(self):
        for kind, body in {"coroutine": "async def run(): pass", "generator": "def run(): yield"}.items():
            process = self.opened(f"def step(batch_size):\n    {body}\n    return run\n")
            expected = f"the step in my_step.py returned a {kind}, which has not run anything yet"
            self.assertEqual(process.error("prepare", id=1, arguments={"batch_size": 1}), ("spec", expected))

    def test_arguments_that_do_not_fit(self):
        source = "def step(batch_size, seq_len, attention='sdpa'): return lambda: None"
        takes = "step() in my_step.py takes no `seqlen`; it takes batch_size, seq_len, attention (did you mean `seq_len`?)"
        self.assertEqual(self.refused(source, ["batch_size", "seqlen"]), ("spec", takes))
        needs = "step() in my_step.py needs `seq_len`, and it is given no value: `--set seq_len=...`, or a key of [sweep]"
        self.assertEqual(self.refused(source, ["batch_size"]), ("spec", needs))
        other = "step() in my_step.py takes no `zzz`; it takes batch_size, seq_len, attention"
        self.assertEqual(self.refused(source, ["batch_size", "seq_len", "zzz"]), ("spec", other))
        nothing = "step() in my_step.py takes no `batch_size`; it takes nothing"
        self.assertEqual(self.refused("def step(): return lambda: None"), ("spec", nothing))
        placed = "step() in my_step.py takes `batch_size` only by position, and arguments are passed by name: remove the `/`"
        self.assertEqual(self.refused("def step(batch_size, /, **more): return lambda: None"), ("spec", placed))
        self.opened("def step(**all): return lambda: all['x']", ["batch_size", "x"])
        self.opened("def step(batch_size, *, x=1): return lambda: x", ["batch_size", "x"])
        self.opened("import functools\nstep = functools.partial(lambda a, batch_size: lambda: None, 1)")
        self.opened("class step:\n    def __init__(self, batch_size): pass\n    def __call__(self): pass").visit(1)

    def test_failing_imports(self):
        kind, what = self.refused("import os\nimport no_such_module\n")
        expected = "cannot import the step's file: ModuleNotFoundError: No module named 'no_such_module' (my_step.py, line 2)"
        self.assertEqual((kind, what), ("device", f"{sys.executable} {expected}"))
        self.write("", "own_package/__init__.py")
        self.write("", "own_module.py")
        for source, help in [
            ("import own_package", "`own_package` is in the working folder, which is not searched: add `--env PYTHONPATH=$PWD`"),
            ("from own_module import x", "`own_module` is in the working folder, which is not searched: add `--env PYTHONPATH=$PWD`"),
            (
                "from . import x",
                "the file is imported by itself, as part of no package: import from `steps` by its name, and add `--env PYTHONPATH=$PWD`",
            ),
            ("import no_such_module", None),
        ]:
            _, answer = self.open(source, name="steps/my_step.py")
            self.assertEqual((answer["error"]["kind"], answer["error"].get("help")), ("device", help), source)
        self.write("", "helper.py")
        kind, what = self.refused("from helper import nothing")
        self.assertEqual(kind, "spec")
        self.assertIn("cannot import name 'nothing' from 'helper'", what)

    def test_syntax_errors(self):
        kind, what = self.refused("x = 1\nif x\n")
        self.assertEqual(kind, "spec")
        self.assertRegex(what, r"^my_step\.py has a syntax error in line 2: \S")
        self.write("def f(:\n", "helper.py")
        kind, what = self.refused("import helper")
        self.assertEqual(kind, "spec")
        self.assertRegex(what, r"^helper\.py has a syntax error in line 1: \S")
        self.assertEqual(self.refused("x = 1\0")[0], "spec")
        self.assertEqual(self.refused("import json\njson.loads('{')\n")[0], "engine")

    def test_a_missing_file_and_a_name_that_is_taken(self):
        process = self.start()
        self.assertEqual(process.error("open", file="/nowhere/my.py", arguments=[]), ("spec", "there is no file /nowhere/my.py"))
        process = self.start()
        self.assertEqual(process.error("open", file=str(self.folder), arguments=[]), ("spec", f"{self.folder} cannot be read: Is a directory"))
        self.assertEqual(self.refused("", name="json.py"), ("spec", "json.py has the name of a module that Python itself uses; give it another"))

    def test_what_a_step_raises_is_said_with_its_line_and_the_others_go_on(self):
        self.write("def deeper(x):\n\n    raise ValueError('one\\ntwo' if x else 'x' * 400)\n", "helper.py")
        process = self.opened(
            """
            import helper, json
            class Mute(Exception):
                def __str__(self): raise RuntimeError
            def step(batch_size):
                if batch_size == 1:
                    json.loads("{")
                def run():
                    if batch_size == 2: helper.deeper(True)
                    if batch_size == 3: helper.deeper(False)
                    if batch_size == 4: raise Mute()
                    if batch_size == 5: [][1]
                    if batch_size == 6: raise MemoryError("")
                    if batch_size == 7: raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
                return run
            """
        )
        failure = lambda batch_size: process.error("prepare", id=batch_size, arguments={"batch_size": batch_size})
        kind, what = failure(1)
        self.assertEqual(kind, "engine")
        self.assertRegex(what, r"^JSONDecodeError: Expecting .* \(my_step\.py, line 7\)$")
        self.assertEqual(failure(2), ("engine", "ValueError: one (helper.py, line 3)"))
        self.assertEqual(failure(3), ("engine", f"ValueError: {'x' * 300} (helper.py, line 3)"))
        self.assertEqual(failure(4), ("engine", "Mute: no message (my_step.py, line 11)"))
        self.assertEqual(failure(5), ("engine", "IndexError: list index out of range (my_step.py, line 12)"))
        self.assertEqual(failure(6), ("out_of_memory", "MemoryError: no message (my_step.py, line 13)"))
        self.assertEqual(failure(7)[0], "out_of_memory")
        process.visit(8)
        self.assertIn("Traceback", self.stderr())
        self.assertNotIn("<string>", self.stderr(), "what a person did not write is left out")
        self.assertEqual(process.error("step", id=2, count=1), ("engine", "this step was prepared by a process that has ended"))

    def test_a_file_that_ends_the_program_does_not(self):
        self.assertEqual(self.refused("import sys\n\nsys.exit()"), ("engine", "my_step.py called sys.exit() (line 3)"))
        self.assertEqual(self.refused("raise SystemExit('no data\\nx')"), ("engine", "my_step.py called sys.exit() (line 1): no data"))
        self.assertEqual(self.refused("raise KeyboardInterrupt"), ("engine", "my_step.py raised KeyboardInterrupt (line 1)"))
        self.assertEqual(self.refused("raise ValueError('at the top')"), ("engine", "ValueError: at the top (my_step.py, line 1)"))
        kind, what = self.refused("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('x')\nparser.parse_args()")
        self.assertEqual((kind, what), ("engine", "my_step.py called sys.exit() (line 4)"))
        process = self.opened("import sys\ndef step(batch_size):\n    return lambda: sys.exit(3) if batch_size == 1 else None")
        self.assertEqual(process.error("prepare", id=1, arguments={"batch_size": 1}), ("engine", "my_step.py called sys.exit() (line 3)"))
        process.visit(2)

    def test_nothing_can_be_read_from_its_input(self):
        self.assertEqual(self.refused("input()")[1], "EOFError: EOF when reading a line (my_step.py, line 1)")


class StandIns(Worker):
    """Frameworks that are not there."""

    def opened(self, source, arguments=("batch_size",), **environment):
        return super().opened(source, arguments, frameworks=STAND_INS, **environment)

    TORCH = """
        import torch
        if {early}: torch.zeros(1, device="cuda")
        def step(batch_size):
            def run():
                torch.work(batch_size * 1e-4, device="{device}")
                return torch.Number(0.5)
            return run
        """

    def test_torch_on_a_gpu(self):
        path = self.write(self.TORCH.format(early=True, device="cuda"))
        process = self.start(frameworks=STAND_INS)
        answer = process.ok("open", file=str(path), arguments=["batch_size"])
        facts = {"version": "torch 2.99.0", "device": "cuda:0", "device_name": "Stand-in", "pci_bus_id": "0000:3b:00.0", "multiprocessors": 68}
        self.assertEqual({name: answer[name] for name in facts}, facts)
        prepared, steps = process.visit(200, count=2)
        self.assertEqual(prepared["device"], "cuda:0")
        for step in steps:
            self.assertGreater(step["step_s"], 0.019, "it was waited for")
            self.assertGreater(step["gpu_s"], 0.019)
            self.assertLess(step["enqueue_s"], step["step_s"])
            self.assertEqual((step["loss"], step["repeats"]), ("0.5", 1))
        self.assertEqual([step["peak_memory_bytes"] for step in steps], [None, 4096])
        self.assertEqual(process.notices(), [])

    def test_short_steps_on_a_gpu_run_several_times_between_two_waits(self):
        # Waiting takes 1 ms here.
        process = self.opened(self.TORCH.format(early=True, device="cuda"), TORCH_WAIT="1e-3")
        (step,) = process.visit(20)[1]
        self.assertGreaterEqual(step["repeats"], 2)
        self.assertGreater(step["gpu_s"], 0.0015)
        self.assertEqual(process.visit(20)[1][0]["repeats"], step["repeats"], "the same at each visit")
        (long,) = process.visit(1000)[1]
        self.assertEqual(long["repeats"], 1)
        expected = f"short steps ran up to {step['repeats']} times between two waits for the device; their times are the mean"
        self.assertEqual(process.notices(), [expected])

    def test_a_gpu_that_the_step_begins_to_use(self):
        path = self.write(self.TORCH.format(early=False, device="cuda"))
        process = self.start(frameworks=STAND_INS)
        self.assertEqual(process.ok("open", file=str(path), arguments=["batch_size"])["device"], "cuda:0", "it is mentioned")
        prepared, steps = process.visit(100)
        self.assertEqual(prepared["device"], "cuda:0")
        self.assertGreater(steps[0]["step_s"], 0.009, "it was waited for")
        self.assertGreater(steps[0]["gpu_s"], 0.009)

    def test_a_gpu_that_the_step_does_not_use(self):
        path = self.write(self.TORCH.format(early=False, device="cpu").replace("cuda", "cpu"))
        process = self.start(frameworks=STAND_INS)
        self.assertEqual(process.ok("open", file=str(path), arguments=["batch_size"])["device"], "cpu")
        prepared, (step,) = process.visit(10)
        self.assertEqual((prepared["device"], step["gpu_s"], step["repeats"]), ("cpu", None, 1))
        self.assertEqual(process.notices(), ["torch sees a GPU, and the step does not use it"])

    def test_a_gpu_without_memory(self):
        source = """
            import torch
            torch.zeros(1, device="cuda")
            def step(batch_size):
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
            """
        answer = self.opened(source).answer("prepare", id=1, arguments={"batch_size": 1})
        what = "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (my_step.py, line 5)"
        self.assertEqual(answer, {"error": {"kind": "out_of_memory", "what": what}})

    COMPILED = """
        import torch
        model = torch.compile(torch.nn.Module(), {how})
        def step(batch_size, seq_len=1):
            return lambda: model(batch_size), model
        """

    def test_torch_compile_is_counted_and_may_compile_for_each_size(self):
        without = {"TORCH_BUILD": "cpu"}
        process = self.opened(self.COMPILED.format(how="dynamic=None"), **without)
        prepared = [process.visit(batch_size, cells=70)[0] for batch_size in (18, 3, 1, 44, 70, 18)]
        self.assertEqual([one["compilations"] for one in prepared], [1, 1, 1, 0, 0, 0])
        self.assertEqual([one["compile_s"] is not None for one in prepared], [True, True, True, False, False, False])
        self.assertFalse(prepared[0]["has_layers"])
        remedy = "`dynamic=False` or `dynamic=True` in torch.compile treats all alike"
        text = f"torch compiled 3 graphs for 5 sizes; the first visited (18) has its own: {remedy}"
        self.assertEqual(process.notices(), [text])
        process.ok("prepare", id=1, arguments={"batch_size": 18}, cells=70)
        self.assertEqual(process.ok("layers", id=1), [])
        self.assertEqual(process.notices(), [text, "the model is compiled: its layers cannot be timed separately"])

        process = self.opened(self.COMPILED.format(how="dynamic=False"), **without)
        compiled = [process.visit(batch_size, cells=70)[0]["compilations"] for batch_size in range(2, 72)]
        self.assertEqual(compiled, [1] * 70, "more than its own limit")
        self.assertEqual(process.notices(), [], "each has its own")

        process = self.opened(self.COMPILED.format(how="dynamic=True"), ["batch_size", "seq_len"], **without)
        for batch_size in (18, 1, 3):
            process.visit(batch_size, seq_len=batch_size % 2)
        self.assertEqual(process.notices(), ["torch compiled 2 graphs for 3 sets of arguments"])

    def test_what_compiles_again_in_a_step_that_counts_is_said(self):
        source = "import torch\ndef step(batch_size): return torch.compiled\n"
        process = self.opened(source, TORCH_BUILD="cpu")
        steps = process.visit(1, count=2)[1]
        self.assertEqual([step["compilations"] for step in steps], [1, 1])
        expected = "2 steps that count have compiled something, though a step of that size had run before: their times contain it"
        self.assertEqual(process.notices(), [expected])

    def test_jax_is_waited_for_and_has_to_be_given(self):
        source = """
            import jax
            def step(batch_size):
                return lambda: jax.work(batch_size * 1e-4) if batch_size < 1000 else None
            """
        process = self.opened(source)
        prepared, (step,) = process.visit(200)
        self.assertGreater(step["step_s"], 0.019, "it was waited for")
        self.assertEqual((step["gpu_s"], step["repeats"], step["loss"]), (None, 1, "0.5"))
        self.assertEqual(prepared["compilations"], 1)
        self.assertIsNotNone(prepared["compile_s"])
        self.assertEqual(process.visit(200)[0]["compilations"], 0)
        what = "the step in my_step.py returns nothing, and JAX computes asynchronously: `return` its result, so that it can be waited for"
        self.assertEqual(process.error("prepare", id=1, arguments={"batch_size": 1000}), ("spec", what))

    def test_jax_that_only_someone_else_uses(self):
        process = self.opened("import jax\ndef step(batch_size): return lambda: None", JAX_UNUSED="1")
        process.visit(3)

    def test_jax_on_a_gpu(self):
        source = """
            import jax
            def step(batch_size):
                if batch_size == 2: raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.")
                return lambda: jax.work(batch_size * 1e-4)
            """
        path = self.write(source)
        process = self.start(frameworks=STAND_INS, JAX_PLATFORM="gpu")
        answer = process.ok("open", file=str(path), arguments=["batch_size"])
        self.assertEqual((answer["device"], answer["device_name"]), ("cuda:0", "Stand-in"))
        self.assertEqual(process.visit(100)[1][0]["peak_memory_bytes"], 100)
        self.assertIsNone(process.visit(50)[1][0]["peak_memory_bytes"], "it never falls")
        what = "RuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes. (my_step.py, line 4)"
        answer = process.answer("prepare", id=1, arguments={"batch_size": 2})
        self.assertEqual(answer, {"error": {"kind": "out_of_memory", "what": what, "spent": True}})

    def test_a_files_own_way_to_wait_is_used_alone(self):
        source = """
            import jax, torch, time
            jax.block_until_ready = torch.accelerator.synchronize = None
            torch.zeros(1, device="cuda")
            waits = 0
            def synchronize():
                global waits
                waits += 1
                time.sleep(5e-3)
            def step(batch_size):
                return lambda: time.sleep(0.3)
            """
        process = self.opened(source)
        prepared, (step,) = process.visit(1)
        self.assertGreater(step["step_s"], 0.304)

    def test_tensorflow(self):
        source = """
            import tensorflow
            def step(batch_size): return lambda: tensorflow.work(0.02)
            """
        process = self.opened(source)
        self.assertEqual(process.visit(1)[0]["device"], "cpu")
        process = self.opened(source, TENSORFLOW_GPU="1")
        prepared, (step,) = process.visit(1)
        self.assertEqual(prepared["device"], "cuda:0")
        self.assertGreater(step["step_s"], 0.019)
        self.assertEqual(step["peak_memory_bytes"], 2048)

    def test_mlx_and_cupy(self):
        process = self.opened("import mlx.core\ndef step(batch_size): return lambda: mlx.core.lazy(0.02) if batch_size == 1 else None")
        prepared, (step,) = process.visit(1)
        self.assertEqual((prepared["device"], step["repeats"]), ("mps", 1))
        self.assertGreater(step["step_s"], 0.019)
        self.assertIn("MLX computes asynchronously", process.error("prepare", id=1, arguments={"batch_size": 2})[1])
        process = self.opened("import cupy\ndef step(batch_size): return lambda: cupy.work(0.02)")
        prepared, (step,) = process.visit(1)
        self.assertEqual(prepared["device"], "cuda:0")
        self.assertGreater(step["step_s"], 0.019)

    @unittest.skipUnless(shutil.which("cc") and sys.platform.startswith("linux"), "needs a C compiler")
    def test_cudas_driver_where_something_else_has_loaded_it(self):
        library = self.folder / "libcuda.so.1"
        options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library)]
        subprocess.run(["cc", *options, str(STAND_INS / "libcuda.c")], check=True)
        source = f"""
            import ctypes
            if {{loads}}: cuda = ctypes.CDLL("{library}")
            def step(batch_size):
                return lambda: cuda.work(20000) if {{loads}} else None
            """
        process = self.opened(source.format(loads=False))
        self.assertEqual(process.visit(1)[0]["device"], "cpu")
        process = self.opened(source.format(loads=True))
        prepared, (step,) = process.visit(1)
        self.assertEqual(prepared["device"], "cuda:0", "its context has begun with the first step")
        self.assertGreater(step["step_s"], 0.019)
        path = self.write(source.format(loads=True).replace("def step", "cuda.work(1)\n            def step"))
        process = self.start()
        answer = process.ok("open", file=str(path), arguments=["batch_size"])
        facts = {"device": "cuda:0", "device_name": "A driver's stand-in", "pci_bus_id": "0000:3b:00.0", "multiprocessors": 46}
        self.assertEqual({name: answer[name] for name in facts}, facts)


class Traces(unittest.TestCase):
    """What is read in a profiler's trace. The forms are those of PyTorch's and XLA's traces; the numbers are made up, so that sums can be seen."""

    def kernels_of(self, *events):
        functions = {"json": json}
        exec((ENGINE.parent / "worker/python/kernels.py").read_text(), functions)
        return functions["kernels_of"]({"traceEvents": list(events)})

    def event(self, name, ts, dur, cat="Kernel", tid=7, **args):
        return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}

    def test_launches_of_one_kernel_and_grid_are_one_row_and_operators_beside_them_are_left_out(self):
        sgemm = {"grid": [8, 1, 36], "block": [128, 1, 1]}
        found = self.kernels_of(
            self.event("volta_sgemm_128x64_nn", 0, 30, **sgemm),
            self.event("volta_sgemm_128x64_nn", 40, 20, **sgemm),
            self.event("volta_sgemm_128x64_nn", 70, 5, grid=[16, 1, 36], block=[128, 1, 1]),
            self.event("aten::conv2d", 0, 900, cat="cpu_op"),
        )
        rows = [(row["name"], row["grid"], row["count"], round(row["seconds"] * 1e6)) for row in found]
        self.assertEqual(rows, [("volta_sgemm_128x64_nn", [8, 1, 36], 2, 50), ("volta_sgemm_128x64_nn", [16, 1, 36], 1, 5)])

    def test_xla_states_a_launch_in_a_text(self):
        [row] = self.kernels_of(self.event("fusion_3", 0, 7, cat=None, kernel_details="regs:32 grid:80,1,1 block:256,1,1"))
        self.assertEqual((row["grid"], row["block"]), ([80, 1, 1], [256, 1, 1]))

    def test_an_operator_has_its_own_time_and_not_that_of_those_inside_it(self):
        found = self.kernels_of(
            self.event("aten::linear", 0, 100, cat="cpu_op", **{"Input Dims": [[16, 64], []]}),
            self.event("aten::addmm", 10, 80, cat="cpu_op", **{"Input Dims": [[256], [16, 64]]}),
            self.event("aten::relu", 5, 40, cat="cpu_op", tid=8),
        )
        rows = {row["name"]: (round(row["seconds"] * 1e6), row["shapes"]) for row in found}
        self.assertEqual(rows["aten::linear"], (20, "[[16,64]]"))
        self.assertEqual(rows["aten::addmm"], (80, "[[256],[16,64]]"))
        self.assertEqual(rows["aten::relu"][0], 40)

    def test_a_trace_of_a_v100(self):
        """PyTorch's own sample, which `scripts/fetch-traces` fetches: 30 launches, as counted in the file by hand."""
        path = ROOT / "results/traces/gpu_metrics_input.json"
        if not path.exists():
            self.skipTest("`scripts/fetch-traces` fetches a trace of a V100 (PyTorch's kineto, BSD licence)")
        found = self.kernels_of(*json.loads(path.read_text())["traceEvents"])
        self.assertEqual(sum(row["count"] for row in found), 30)
        self.assertTrue(all(len(row["grid"]) == len(row["block"]) == 3 and row["shapes"] is None for row in found))
        self.assertTrue(any(row["name"].startswith("void gemmSN_TN_kernel_64addr<float, 128, 16") for row in found))


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class InEarnest(Worker):
    MODEL = """
        import torch
        from torch import nn
        torch.set_num_threads(1)
        relu = nn.ReLU(inplace=True)
        model = nn.Sequential(nn.Linear(64, 256), relu, nn.Linear(256, 256), relu, nn.Linear(256, 8))
        called = {called}
        def step(batch_size):
            x = torch.rand(batch_size, 64)
            def run():
                loss = called(x).square().mean()
                loss.backward()
                return loss
            return run, model
        """

    def test_the_layers_of_a_model(self):
        process = self.opened(self.MODEL.format(called="model"))
        prepared = process.ok("prepare", id=1, arguments={"batch_size": 64}, cells=1)
        self.assertTrue(prepared["has_layers"])
        layers = process.ok("layers", id=1)
        named = [(layer["layer"], layer["operation"]) for layer in layers]
        self.assertEqual(named, [("0", "Linear"), ("1", "ReLU"), ("2", "Linear"), ("4", "Linear")])
        for layer in layers:
            self.assertGreater(layer["forward_s"], 0)
            self.assertGreater(layer["backward_s"], 0)
        self.assertTrue(math.isfinite(float(process.ok("step", id=1, count=1)["steps"][0]["loss"])))

    def test_torch_compile(self):
        sizes = [18, 3, 1, 44, *range(4, 16)]
        notices = {
            "dynamic=None": [
                f"torch compiled 3 graphs for {len(sizes)} sizes; the first visited (18) has its own: "
                "`dynamic=False` or `dynamic=True` in torch.compile treats all alike",
            ],
            "dynamic=False": [],
            "dynamic=True": [f"torch compiled 2 graphs for {len(sizes)} sizes"],
        }
        for how, expected in notices.items():
            process = self.opened(self.MODEL.format(called=f"torch.compile(model, backend='eager', {how})"))
            compilations = [process.visit(size, cells=len(sizes))[0]["compilations"] for size in sizes]
            self.assertEqual(sum(compilations), {"dynamic=None": 3, "dynamic=False": len(sizes), "dynamic=True": 2}[how], compilations)
            self.assertEqual(process.notices(), expected)
            process.ok("prepare", id=1, arguments={"batch_size": 3})
            self.assertEqual(process.ok("layers", id=1), [])
            self.assertIn("the model is compiled: its layers cannot be timed separately", process.notices())

    def test_without_gradients_there_is_no_backward_pass(self):
        source = self.MODEL.format(called="torch.no_grad()(model)").replace("loss.backward()", "pass")
        process = self.opened(source)
        process.ok("prepare", id=1, arguments={"batch_size": 64}, cells=1)
        self.assertEqual({layer["backward_s"] for layer in process.ok("layers", id=1)}, {None})

    def test_the_operators_of_a_step_are_named_with_the_shapes_of_their_operands(self):
        process = self.opened(self.MODEL.format(called="model"))
        process.ok("prepare", id=1, arguments={"batch_size": 48}, cells=1)
        operators = process.ok("kernels", id=1)
        by_name = {(operator["name"], operator["shapes"]): operator for operator in operators}
        product = by_name["aten::addmm", "[[256],[48,64],[64,256]]"]
        self.assertEqual((product["count"], product["grid"]), (1, None))
        self.assertEqual(operators, sorted(operators, key=lambda operator: -operator["seconds"]))
        self.assertTrue(all(operator["seconds"] >= 0 for operator in operators))

    def test_a_step_that_passes_the_modules_by(self):
        process = self.opened(self.MODEL.format(called="lambda x: (x @ model[0].weight.T)"))
        process.ok("prepare", id=1, arguments={"batch_size": 64}, cells=1)
        self.assertEqual(process.ok("layers", id=1), [])
        self.assertEqual(
            process.notices(), ["the step calls none of the model's modules (a captured step calls none): its layers cannot be timed separately"]
        )


class Signatures(Worker):
    def signature(self, source):
        path = self.write(source)
        out = subprocess.run([sys.executable, "-c", SIGNATURE, str(path)], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.count("\n"), 1)
        return json.loads(out)

    def test_a_plain_function(self):
        source = "raise RuntimeError('it ran')\n@decorated\ndef step(batch_size, seq_len=512, *, attention=\"sd\" + 'pa', deep): pass\n"
        parameters = [("batch_size", None), ("seq_len", "512"), ("attention", "\"sd\" + 'pa'"), ("deep", None)]
        expected = [{"name": name, "default": default} for name, default in parameters]
        self.assertEqual(self.signature(source), {"parameters": expected, "any": False})
        self.assertEqual(self.signature("if True:\n    def step(**k): pass"), {"parameters": [], "any": True})
        self.assertEqual(
            self.signature("def step(a, /, b=None, *c): pass")["parameters"], [{"name": "a", "default": None}, {"name": "b", "default": "None"}]
        )

    def test_what_is_known_only_once_the_file_has_run(self):
        sources = [
            "step = make()",
            "from x import step",
            "from x import *",
            "class step: pass",
            "(step, other) = 1, 2",
            "step: object = f",
            "import a as step",
        ]
        for source in [*sources, "def step(a): pass\nstep = jit(step)", "try:\n    from x import step\nexcept ImportError:\n    def step(a): pass"]:
            self.assertEqual(self.signature(source), {"parameters": None, "any": True}, source)

    def test_what_is_no_step(self):
        nothing = "my_step.py defines no function `step`; it needs `def step(batch_size):` that returns a function that runs one step"
        self.assertEqual(self.signature("def f():\n    def step(): pass\nx.step = 1\n"), {"error": nothing})
        self.assertRegex(self.signature("x = 1\nif x\n")["error"], r"^my_step\.py has a syntax error in line 2: \S")
        out = subprocess.run([sys.executable, "-c", SIGNATURE, "/nowhere/x.py"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(out), {"error": "/nowhere/x.py cannot be read: No such file or directory"})


if __name__ == "__main__":
    unittest.main()
