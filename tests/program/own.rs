//! A step of one's own: a file of Python without any framework, whose times are planted.

use std::path::Path;
use std::process::Output;

use crate::needs;
use crate::support::{Folder, batchstep, ends, has, parsed, read, refused, run, stderr, stdout, succeeds, tidy, write};

/// Takes 0.4 ms, and 0.8 ms above 8, of processor time: what else runs here makes no jumps.
const PLANTED: &str = "import time\n\
    def step(batch_size):\n\
    \x20   takes = 0.4e-3 if batch_size <= 8 else 0.8e-3\n\
    \x20   def run():\n\
    \x20       end = time.thread_time() + takes\n\
    \x20       while time.thread_time() < end:\n\
    \x20           pass\n\
    \x20       return 0.25\n\
    \x20   return run\n";

/// A folder with a file, and whether there is a Python to run it.
fn with(text: &str) -> Option<Folder> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        needs::missing("python", "there is no python3");
        return None;
    }
    Some(Folder::with("mine.py", text))
}

fn said(output: &Output) -> String {
    format!("{}{}", stdout(output), stderr(output))
}

#[test]
#[ignore = "slow"]
fn the_jump_of_a_planted_step_is_found_without_a_spec() {
    let Some(folder) = with(PLANTED) else { return };
    let arguments = ["run", "mine.py", "--batch-size", "1..=16", "--smallest-jump", "20%", "--time", "2min"];
    let output = run(&folder, &arguments);
    assert!(stdout(&output).contains("after 8"), "{}", said(&output));
    assert!(stderr(&output).contains("runs ") && stderr(&output).contains("mine.py with "), "{}", stderr(&output));

    let environment = parsed(&read(&folder, "results/mine/environment.json"));
    let engine = &environment["engines"][0];
    assert_eq!((&engine["name"], &engine["files"][0]["name"]), (&"python".into(), &"mine.py".into()));
    assert_eq!(engine["files"][0]["sha256"].as_str().map(str::len), Some(64));
    assert_eq!(read(&folder, "results/mine/mine.py"), PLANTED);
    let spec = read(&folder, "results/mine/spec.toml");
    assert!(spec.contains("step = \"../../mine.py\"") && !spec.contains("precision"), "{spec}");

    // What is stored is read without Python, and never run.
    std::fs::remove_file(folder.join("mine.py")).expect("removed");
    for command in ["jumps", "report", "plot", "explain"] {
        let mut again = batchstep(&folder);
        let output =
            again.args([command, "results/mine"]).env("BATCHSTEP_PYTHON", "/nonexistent").output().expect("starts");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {}", said(&output));
        assert!(command != "jumps" || stdout(&output).contains("after 8"), "{}", said(&output));
    }
}

/// Errors in a file or in its arguments are reported before anything is measured.
#[test]
fn what_cannot_run_is_refused_with_its_reason() {
    let takes_two = "def step(batch_size, seq_len):\n    return lambda: None\n";
    for (text, arguments, expected) in [
        ("x = 1\n", &[][..], "mine.py defines no function `step`"),
        ("step = 3\n", &[], "mine.py defines no function `step`"),
        (
            "def step(batch_size):\n    pass\n",
            &[],
            "step() in mine.py returned NoneType: it must return a function that runs one step",
        ),
        (takes_two, &[], "needs `seq_len`"),
        (takes_two, &["--set", "seqlen=4"], "step() in mine.py takes no `seqlen`; it takes batch_size, seq_len"),
        ("import nowhere\n", &[], "No module named 'nowhere'"),
        ("def step(:\n", &[], "mine.py"),
        ("1 / 0\n", &[], "ZeroDivisionError"),
        (PLANTED, &["--device", "cpu"], "chooses its device itself"),
        (PLANTED, &["--set", "batch"], "gives no value"),
        (PLANTED, &["--x", "n"], "gives no values for `n`"),
    ] {
        let Some(folder) = with(text) else { return };
        let output = batchstep(&folder).args(["run", "mine.py"]).args(arguments).output().expect("starts");
        assert_eq!(output.status.code(), Some(2), "{text}{arguments:?}: {}", said(&output));
        assert!(stderr(&output).contains(expected), "{text}{arguments:?}: {}", stderr(&output));
        assert!(!folder.join("results/mine/steps.parquet").exists());
    }
}

/// The text that stands for the options is not the person's file: an error names the option.
#[test]
fn an_option_that_cannot_be_read_is_named() {
    let folder = Folder::with("mine.py", PLANTED);
    for (arguments, expected) in [
        (&["--set", "n=1,2", "--set", "n=3"][..], "--set: `n` is given twice\n  help: write `--set n=1,2,3`"),
        (&["--set", "n=1..=4", "--set", "n=9"], "leave out `--set n=1..=4` or `--set n=9`"),
        (&["--batch-size", "8", "--set", "batch_size=4"], "leave out `--batch-size 8` or `--set batch_size=4`"),
        (&["--env", "A=1,2", "--env", "A=3"], "--env: `A` is given twice\n  help: write `--env A=1,2,3`"),
        (&["--env", "A"], "for example --env OMP_NUM_THREADS=1,4"),
        (&["--env", "A=1,1"], "--env A=1,1: this value is in the list already"),
        (&["--set", "n=2,2"], "--set n=2,2: this value is in the list already"),
        (&["--set", "x=4"], "--set x=4: an argument cannot be called `x`"),
        (
            &["--set", "n=1,None"],
            "--set n: `None` cannot be given: a value is a number, a text or a truth value\n  help: leave",
        ),
        (&["--set", "1n=2"], "--set 1n=2: `1n` can't be the name of an argument"),
        (&["--batch-size", "1-64"], "--batch-size: `1-64` is not a range, and no list of whole numbers\n  help: for"),
        (&["--batch-size", "0,1"], "--batch-size 0,1: expected a whole number from 1 to"),
        (&["--batch-size", "8,8"], "--batch-size 8,8: list the batch sizes in ascending order"),
        (&["--batch-size", "5..=4"], "--batch-size 5..=4: the range from 5 to 4 is empty"),
        (&["--x", "n", "--set", "n=a"], "help: for example --set n=1..=64, or --set n=8,16,32"),
        (&["--x", "n"], "--x n: `--set` gives no values for `n`\n  help: add `--set n=1..=70`"),
    ] {
        let said = stderr(&ends(2, &folder, &[&["run", "mine.py", "--dry-run"], arguments].concat()));
        assert!(said.contains(expected) && !said.contains("mine.py:"), "{arguments:?}: {said}");
    }
}

/// An error in a step is a row of its size, with the line of the person's file; a process that dies is started again.
#[test]
#[ignore = "slow"]
fn a_step_that_fails_costs_only_its_size() {
    let text = "import os\n\
        def step(batch_size):\n\
        \x20   def run():\n\
        \x20       if batch_size == 3:\n\
        \x20           raise ValueError('three is odd')\n\
        \x20       if batch_size == 5:\n\
        \x20           os.abort()\n\
        \x20       if batch_size == 6:\n\
        \x20           raise MemoryError('too large')\n\
        \x20       print('not an answer')\n\
        \x20       return float('nan')\n\
        \x20   return run\n";
    let Some(folder) = with(text) else { return };
    let output = run(&folder, &["run", "mine.py", "--batch-size", "1..=7", "--time", "1min"]);
    let warned = stderr(&output);
    assert!(warned.contains("ValueError: three is odd (mine.py, line 5)"), "{warned}");
    assert!(warned.contains("python mine at batch size 5: the mine.py process ended"), "{warned}");
    assert!(warned.contains("the loss is NaN"), "{warned}");
    let cells = parsed(&stdout(&run(&folder, &["jumps", "results/mine", "--format", "json"])));
    assert!(cells["series"][0]["points"] == 4, "{cells}");
}

/// A spec of three blocks for mine.py.
fn three_blocks(engine: &str, sizes: &str, measure: &str) -> String {
    format!(
        "version = 1\nname = \"t\"\n[engine]\nstep = \"mine.py\"\n{engine}\n[sweep]\nbatch_size = {sizes}\n[measure]\n\
         blocks = {{ min = 3, max = 3 }}\nsteps_per_visit = 2\ndecide = \"cells\"\n{measure}\n"
    )
}

#[test]
#[ignore = "slow"]
fn a_step_that_hangs_costs_only_its_size() {
    let text = "import time\ndef step(batch_size):\n    return lambda: time.sleep(600 if batch_size == 3 else 1e-3)\n";
    let Some(folder) = with(text) else { return };
    write(&folder, "t.toml", &three_blocks("", "\"1..=6\"", "visit_limit = \"4s\""));
    let output = ends(1, &folder, &["run", "t.toml"]);
    let warned = stderr(&output);
    assert!(warned.contains("python mine at batch size 3: mine.py gave no answer for"), "{warned}");
    assert!(warned.contains("1 cell failed") && !warned.contains("never ended"), "{warned}");
}

/// The step writes into its own file, and each block has a process of its own.
#[test]
fn a_file_that_is_changed_during_the_run_ends_it() {
    let text = "def step(batch_size):\n\
        \x20   with open(__file__, 'a') as file:\n\
        \x20       file.write('# changed\\n')\n\
        \x20   return lambda: None\n";
    let Some(folder) = with(text) else { return };
    write(&folder, "t.toml", &three_blocks("fresh = \"block\"", "\"1..=6\"", ""));
    let output = ends(1, &folder, &["run", "t.toml"]);
    let warned = stderr(&output);
    assert!(warned.contains("mine.py was changed while the run measured it"), "{warned}");
    assert!(folder.join("results/t/steps.parquet").exists(), "what was measured is kept: {warned}");
}

#[test]
#[ignore = "slow"]
fn a_file_lives_as_long_as_its_process_and_a_step_as_long_as_its_visit() {
    let text = "import os\n\
        def note(what):\n\
        \x20   with open(os.path.join(os.path.dirname(__file__), 'log'), 'a') as log:\n\
        \x20       log.write(what + '\\n')\n\
        note('import ' + os.environ.get('PLANTED', 'unset'))\n\
        def step(batch_size):\n\
        \x20   note('step')\n\
        \x20   return lambda: note('run')\n";
    let count = |folder: &Path, what: &str| read(folder, "log").lines().filter(|line| line.starts_with(what)).count();
    for (engine, imports, expected) in [
        ("", "import unset", 1),
        ("env = { PLANTED = [false, \"a\"] }", "import", 2),
        ("env = { PLANTED = \"a\" }", "import a", 1),
        // The process that looked at the file, and one for each block.
        ("fresh = \"block\"", "import", 4),
    ] {
        let Some(folder) = with(text) else { return };
        write(&folder, "t.toml", &three_blocks(engine, "[1, 2]", ""));
        let output = run(&folder, &["run", "t.toml"]);
        assert_eq!(count(&folder, imports), expected, "{engine}: {}", said(&output));
        let visits = if engine.contains('[') { 12 } else { 6 };
        assert_eq!(count(&folder, "step"), visits, "{engine}: {}", said(&output));
        assert!(count(&folder, "run") >= 2 * visits, "{engine}");
        assert_eq!(engine.contains('['), stdout(&output).contains("PLANTED=a"), "{engine}: {}", stdout(&output));
    }
}

#[test]
#[ignore = "slow"]
fn a_run_does_not_go_on_with_another_file() {
    let Some(folder) = with(PLANTED) else { return };
    let begun = run(&folder, &["run", "mine.py", "--batch-size", "1..=40", "--time", "200ms"]);
    assert!(folder.join("results/mine/spec.toml").exists(), "{}", said(&begun));
    let again = ["run", "results/mine/spec.toml", "--out", "results/mine", "--resume", "--time", "400ms"];
    succeeds(&folder, &again);
    write(&folder, "mine.py", &PLANTED.replace("0.8e-3", "0.7e-3"));
    refused(&folder, &[&again[..6], &["2s"]].concat(), &["mine.py is not the one that this run began with"]);
    assert_eq!(read(&folder, "results/mine/mine.py"), PLANTED);
}

#[test]
#[ignore = "slow"]
fn another_argument_may_be_swept_and_names_the_axis() {
    let text = PLANTED
        .replace("step(batch_size)", "step(tokens, batch_size=2, mode='a')")
        .replace("batch_size <=", "tokens <=");
    let Some(folder) = with(&text) else { return };
    let set = ["--set", "tokens=1..=12", "--set", "mode=a,b", "--set", "batch_size=4", "--x", "tokens"];
    let output = batchstep(&folder)
        .args(["run", "mine.py", "--smallest-jump", "20%", "--time", "1min"])
        .args(set)
        .output()
        .expect("starts");
    let text = stdout(&output);
    assert!(text.contains("mode=a") && text.contains("mode=b") && text.contains("after 8"), "{}", said(&output));
    let document = parsed(&read(&folder, "results/mine/jumps.json"));
    assert_eq!(document["series"][0]["x"], "tokens", "{document}");
    succeeds(&folder, &["plot", "results/mine", "--format", "svg"]);
    assert!(read(&folder, "results/mine/step_time.svg").contains("Number of tokens"));
}

#[test]
fn a_dry_run_reads_the_arguments_and_runs_nothing() {
    let text = "open(__file__ + '.ran', 'w')\ndef step(batch_size, seq_len=512):\n    return lambda: None\n";
    let Some(folder) = with(text) else { return };
    has(
        &stdout(&ends(0, &folder, &["run", "mine.py", "--set", "seq_len=128,384", "--dry-run"])),
        &["seq_len = [128, 384]"],
    );
    refused(&folder, &["run", "mine.py", "--set", "seqlen=128", "--dry-run"], &["did you mean `seq_len`?"]);
    assert!(!folder.join("mine.py.ran").exists() && !folder.join("results").exists());
}

#[test]
fn a_try_shows_one_visit_and_stores_nothing() {
    let text = "print('imported')\ndef step(batch_size):\n    print('made for', batch_size)\n    return lambda: 0.5\n";
    let Some(folder) = with(text) else { return };
    let output = ends(0, &folder, &["run", "mine.py", "--try", "17"]);
    assert!(stderr(&output).contains("imported") && stderr(&output).contains("made for 17"), "{}", stderr(&output));
    assert!(stdout(&output).contains("loss 0.5"), "{}", stdout(&output));
    assert!(!folder.join("results").exists());
}

/// Above 8 each step touches new pages, unless glibc is set to keep memory.
const GIVES_BACK: &str = "import mmap, os, time\n\
    def step(batch_size):\n\
    \x20   pages = 0 if batch_size <= 8 or 'GLIBC_TUNABLES' in os.environ else 1024\n\
    \x20   def run():\n\
    \x20       end = time.thread_time() + (0.9e-3 if pages else 0.4e-3)\n\
    \x20       if pages:\n\
    \x20           with mmap.mmap(-1, 4096 * pages) as memory:\n\
    \x20               memory.write(bytes(4096 * pages))\n\
    \x20       while time.thread_time() < end:\n\
    \x20           pass\n\
    \x20   return run\n";

#[test]
#[ignore = "slow"]
fn the_likeliest_cause_is_taken_away_and_the_verdict_is_printed() {
    let Some(folder) = with(GIVES_BACK) else { return };
    let arguments = ["run", "mine.py", "--batch-size", "1..=18", "--smallest-jump", "20%", "--time", "2min"];
    let words = |output: &Output| tidy(&stdout(output));
    let output = run(&folder, &arguments);
    assert!(words(&output).contains("`batchstep explain results/mine --intervene`"), "{}", said(&output));
    let output = run(&folder, &["explain", "results/mine", "--intervene"]);
    let text = words(&output);
    assert!(text.contains("the jump after 8 is gone (shown by intervention)"), "{}", said(&output));
    assert!(text.contains("Shown") && text.contains("after 8 gone"), "{}", said(&output));
    let spec = read(&folder, "results/mine-with-and-without/spec.toml");
    assert!(spec.contains("\"GLIBC_TUNABLES\" = [false, \"glibc.malloc.mmap_threshold=33554432"), "{spec}");
    assert!(spec.contains("batch_size = \"1..=16\""), "eight on each side: {spec}");

    write(&folder, "mine.py", &GIVES_BACK.replace("1024", "2048"));
    let output = ends(2, &folder, &["explain", "results/mine", "--intervene"]);
    assert!(stderr(&output).contains("mine.py is not the one that this run began with"), "{}", said(&output));
    let output = run(&folder, &["explain", "results/mine-with-and-without", "--intervene"]);
    assert!(stderr(&output).contains("no jump of this run has a cause"), "{}", said(&output));
}

/// The step does its work after it returns, like a library that computes asynchronously.
#[test]
#[ignore = "slow"]
fn a_step_that_takes_next_to_nothing_whatever_its_size_is_warned_about() {
    let Some(folder) = with("def step(batch_size):\n    return lambda: None\n") else { return };
    let output = run(&folder, &["run", "mine.py", "--batch-size", "1..=16", "--time", "3s"]);
    assert!(stderr(&output).contains("whatever its size, next to nothing"), "{}", said(&output));
    assert!(stderr(&output).contains("is its work finished when it returns?"), "{}", said(&output));
}

/// The steps of examples/own/ for other frameworks; each at one size. `BATCHSTEP_REQUIRE=torch,jax,keras` makes a lack of them a failure.
#[test]
fn the_examples_run_where_their_frameworks_are() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own");
    for (file, word, modules) in [
        ("torch_mlp.py", "torch", "torch"),
        ("torch_cnn.py", "torch", "torch"),
        ("resnet50.py", "torchvision", "torch, torchvision"),
        ("inference.py", "torchvision", "torch, torchvision"),
        ("bert.py", "transformers", "torch, transformers"),
        ("trainer.py", "transformers", "torch, transformers, accelerate"),
        ("jax_mlp.py", "jax", "jax, flax, optax"),
        ("keras_mlp.py", "keras", "keras, tensorflow"),
        ("torch_lstm.py", "torch", "torch"),
        ("torch_compile.py", "torch", "torch"),
        ("onnx_mlp.py", "onnx", "numpy, onnx, onnxruntime"),
        ("sklearn_mlp.py", "sklearn", "sklearn"),
    ] {
        let python = std::env::var("BATCHSTEP_PYTHON").unwrap_or_else(|_| "python3".into());
        let imported = std::process::Command::new(&python).args(["-c", &format!("import {modules}")]).output();
        if !imported.is_ok_and(|output| output.status.success()) {
            needs::missing(word, format!("{python} cannot import {modules}, which examples/own/{file} needs"));
            continue;
        }
        let folder = Folder::new();
        let path = examples.join(file);
        let more: &[&str] = if file == "bert.py" { &["--set", "seq_len=16"] } else { &[] };
        let output = run(&folder, &[&["run", path.to_str().expect("UTF-8"), "--try", "3"], more].concat());
        assert!(output.status.success() && stdout(&output).contains("step 5"), "{file}: {}", said(&output));
    }
}
