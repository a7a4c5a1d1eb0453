//! A small network fitted to a surface: `kind = "fit"`.

use serde_json::Value;

use crate::support::{run, stderr, stdout, write};

const SPEC: &str = "version = 1\nkind = \"fit\"\nname = \"f\"\n[sweep]\nbatch_size = [16, 100]\n[engine]\nname = [\"cpu\", \"candle\"]\n\
                    threads = 1\n[measure]\nepochs = 60\n";

#[test]
fn two_engines_fit_the_surface_alike_and_the_picture_shows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "f.toml", SPEC);
    let output = run(folder.path(), &["run", "f.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("candle and cpu, 100 points: the same over 20 updates"), "{said}");
    let run_folder = folder.path().join("results/f");
    let document: Value =
        serde_json::from_str(&std::fs::read_to_string(run_folder.join("fit.json")).expect("a file")).expect("JSON");
    assert_eq!(document["fits"].as_array().map(Vec::len), Some(4));
    assert!(document["agreements"].as_array().is_some_and(|pairs| pairs.iter().all(|pair| pair["same"] == true)));
    // The network learns: the heights have a variance of about 3.
    let error = document["fits"][1]["error"].as_f64().expect("a number");
    assert!((0.0..3.0).contains(&error), "{document}");
    assert!(["fit.png", "fit.parquet", "surface.parquet"].iter().all(|name| run_folder.join(name).is_file()));
    assert!(said.contains("Report   results/f/report.html"), "{said}");
    let page = std::fs::read_to_string(run_folder.join("report.html")).expect("a page");
    for words in [
        "<h2>Fits</h2>",
        "Losses of the same seed",
        "cpu and candle have the same losses over 20 updates; errors at the end ",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("<img class=\"picture\" alt=") && page.contains("spec.toml, as resolved"));
    std::fs::remove_file(run_folder.join("report.html")).expect("removed");
    let reported = run(folder.path(), &["report", "results/f"]);
    assert_eq!(reported.status.code(), Some(0), "{}", stderr(&reported));
    assert_eq!(
        std::fs::read_to_string(run_folder.join("report.html")).expect("a page"),
        page,
        "from the stored data alone"
    );
    let plotted = run(folder.path(), &["plot", "results/f", "--out", "charts", "--format", "svg"]);
    assert_eq!(plotted.status.code(), Some(0), "{}", stderr(&plotted));
    let svg = std::fs::read_to_string(folder.path().join("charts/fit.svg")).expect("a chart");
    for words in ["Training set: 100 points", "Fit: cpu", "Error: fit less training set", "Mean squared error"] {
        assert!(svg.contains(words), "{words}");
    }
    let again = run(folder.path(), &["run", "f.toml", "--resume"]);
    assert!(stderr(&again).contains("nothing is left to resume"), "{}", stderr(&again));
    let jumps = run(folder.path(), &["jumps", "results/f"]);
    assert!(stderr(&jumps).contains("a study of fits"), "{}", stderr(&jumps));
}

#[test]
fn a_network_that_cannot_fit_a_surface_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "f.toml", &format!("{SPEC}[model]\nname = \"vgg16\"\n"));
    let output = run(folder.path(), &["run", "f.toml"]);
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("a surface over two inputs"), "{said}");
    assert!(said.contains("help: use the network `mlp`") && !folder.path().join("results").exists(), "{said}");
}

#[test]
fn points_that_do_not_fit_in_memory_are_left_out_with_both_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    // 60 million points with 100,000 features each are 22 TiB.
    let layers = "[model]\ninput = [2]\n[[model.layers]]\ntype = \"dense\"\nout_features = 100000\n[[model.layers]]\ntype = \"relu\"\n\
                  [[model.layers]]\ntype = \"dense\"\nout_features = 1\n";
    let spec = SPEC.replace("[16, 100]", "[16, 60000000]").replace("epochs = 60", "epochs = 2");
    write(folder.path(), "f.toml", &format!("{spec}{layers}"));
    let output = run(folder.path(), &["run", "f.toml"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("GiB more, and") && said.contains("use a smaller batch"), "{said}");
}
