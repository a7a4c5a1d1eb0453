//! candle and PyTorch together with the CPU engine, in one run.

use batchstep::store::Table;

use crate::needs;
use crate::support::{Folder, has, read, run, stderr, stdout};

const SPEC: &str = "version = 1\nname = \"beside\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = [1, 2]\n[train]\nprecision = \"fp32\"\n[engine]\nname = [\"cpu\", \"candle\", \"torch\"]\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

#[test]
fn a_run_of_three_engines_ends_with_their_ratios() {
    let folder = Folder::with("beside.toml", SPEC);
    let output = run(&folder, &["run", "beside.toml", "--device", "cpu", "--details"]);
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
    let again = run(&folder, &["compare", "results/beside"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(text.contains(&stdout(&again)), "the stored data give the same tables");
    let environment = read(&path, "environment.json");
    assert!(environment.contains("\"version\": \"PyTorch "), "{environment}");
}
