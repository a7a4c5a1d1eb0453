//! candle and PyTorch together with the CPU engine, in one run.

use std::process::Output;

use batchstep::store::Table;

use crate::needs;
use crate::support::{self, Folder, batchstep, has, read, stderr, stdout, write};

const SPEC: &str = "version = 1\nname = \"beside\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = [1, 2]\n[train]\nprecision = \"fp32\"\n[engine]\nname = [\"cpu\", \"candle\", \"torch\"]\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

fn run(folder: &std::path::Path, python: Option<&str>) -> Output {
    write(folder, "beside.toml", SPEC);
    let mut command = batchstep(folder);
    command.args(["run", "beside.toml", "--device", "cpu", "--details"]);
    if let Some(python) = python {
        command.env("BATCHSTEP_PYTHON", python);
    }
    command.output().expect("the program starts")
}

#[test]
fn without_python_the_run_is_refused_before_it_begins() {
    let folder = Folder::new();
    let output = run(&folder, Some("/nonexistent/python3"));
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("/nonexistent/python3") && message.contains("pip install torch"), "{message}");
    assert!(!folder.join("results").exists());
}

#[test]
fn a_run_of_three_engines_ends_with_their_ratios() {
    let folder = Folder::new();
    let output = run(&folder, None);
    if output.status.code() == Some(2) && stderr(&output).contains("BATCHSTEP_PYTHON") {
        return needs::missing("torch", stderr(&output));
    }
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    has(&text, &["Side by side: candle against cpu", "Side by side: torch against cpu", "geometric means"]);
    let path = folder.join("results/beside");
    let table = Table::read(&path, &["engine", "compile", "batch_size", "step", "loss"]).expect("a table");
    let (engines, losses) = (table.texts("engine").expect("texts"), table.numbers("loss").expect("numbers"));
    // The value is null for engines that compile nothing.
    let compiles = table.texts("compile").expect("texts");
    let expected = |engine: &str| if engine == "torch" { "none" } else { "" };
    assert!(engines.iter().zip(&compiles).all(|(engine, compile)| compile == expected(engine)), "{compiles:?}");
    let sizes = table.numbers("batch_size").expect("numbers");
    let steps = table.numbers("step").expect("numbers");
    for size in [1.0, 2.0] {
        let first = |engine: &str| {
            let row = |row: &usize| engines[*row] == engine && sizes[*row] == size && steps[*row] == 0.0;
            (0..table.rows()).find(row).map(|row| losses[row])
        };
        let [cpu, candle, torch] = ["cpu", "candle", "torch"].map(|engine| first(engine).expect("a first loss"));
        // PyTorch draws its own dropout masks.
        assert!((cpu - candle).abs() < 1e-4 * cpu && torch.is_finite(), "{cpu} {candle} {torch}");
    }
    let again = support::run(&folder, &["compare", "results/beside"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(text.contains(&stdout(&again)), "the stored data give the same tables");
    let environment = read(&path, "environment.json");
    assert!(environment.contains("\"version\": \"PyTorch "), "{environment}");
}
