//! A small network fitted to a surface: `kind = "fit"`.

use crate::support::{Folder, ends, has, parsed, read, run, stderr, stdout, warns, write};

const SPEC: &str = "version = 1\nkind = \"fit\"\nname = \"f\"\n[sweep]\nbatch_size = [16, 100]\n[engine]\nname = [\"cpu\", \"candle\"]\n\
                    threads = 1\n[measure]\nepochs = 60\n";

#[test]
#[ignore = "slow"]
fn two_engines_fit_the_surface_alike_and_the_picture_shows_it() {
    let folder = Folder::with("f.toml", SPEC);
    let output = ends(0, &folder, &["run", "f.toml"]);
    let said = stdout(&output);
    assert!(said.contains("candle and cpu, 100 points: the same over 20 updates"), "{said}");
    let run_folder = folder.join("results/f");
    let document = parsed(&read(&run_folder, "fit.json"));
    assert_eq!(document["fits"].as_array().map(Vec::len), Some(4));
    assert!(document["agreements"].as_array().is_some_and(|pairs| pairs.iter().all(|pair| pair["same"] == true)));
    // The network learns: the heights have a variance of about 3.
    let error = document["fits"][1]["error"].as_f64().expect("a number");
    assert!((0.0..3.0).contains(&error), "{document}");
    assert!(["fit.png", "fit.parquet", "surface.parquet"].iter().all(|name| run_folder.join(name).is_file()));
    assert!(said.contains("Report   results/f/report.html"), "{said}");
    let page = read(&run_folder, "report.html");
    has(
        &page,
        &[
            "<h2>Fits</h2>",
            "Losses of the same seed",
            "cpu and candle have the same losses over 20 updates; errors at the end ",
        ],
    );
    assert!(page.contains("<img class=\"picture\" alt=") && page.contains("spec.toml, as resolved"));
    std::fs::remove_file(run_folder.join("report.html")).expect("removed");
    ends(0, &folder, &["report", "results/f"]);
    assert_eq!(read(&run_folder, "report.html"), page, "from the stored data alone");
    ends(0, &folder, &["plot", "results/f", "--out", "charts", "--format", "svg"]);
    let svg = read(&folder, "charts/fit.svg");
    has(&svg, &["Training set: 100 points", "Fit: cpu", "Error: fit less training set", "Mean squared error"]);
    let again = run(&folder, &["run", "f.toml", "--resume"]);
    assert!(stderr(&again).contains("nothing is left to resume"), "{}", stderr(&again));
    let jumps = run(&folder, &["jumps", "results/f"]);
    assert!(stderr(&jumps).contains("a study of fits"), "{}", stderr(&jumps));
}

#[test]
fn a_network_that_cannot_fit_a_surface_is_refused_before_anything_runs() {
    let folder = Folder::with("f.toml", &format!("{SPEC}[model]\nname = \"vgg16\"\n"));
    let output = run(&folder, &["run", "f.toml"]);
    let said = stderr(&output);
    assert!(output.status.code() == Some(2) && said.contains("a surface over two inputs"), "{said}");
    assert!(said.contains("help: use the network `mlp`") && !folder.join("results").exists(), "{said}");
}

#[test]
#[ignore = "slow"]
fn points_that_do_not_fit_in_memory_are_left_out_with_both_numbers() {
    let folder = Folder::new();
    // 60 million points with 100,000 features each are 22 TiB.
    let layers = "[model]\ninput = [2]\n[[model.layers]]\ntype = \"dense\"\nout_features = 100000\n[[model.layers]]\ntype = \"relu\"\n\
                  [[model.layers]]\ntype = \"dense\"\nout_features = 1\n";
    let spec = SPEC.replace("[16, 100]", "[16, 60000000]").replace("epochs = 60", "epochs = 2");
    write(&folder, "f.toml", &format!("{spec}{layers}"));
    warns(1, &folder, &["run", "f.toml"], &["GiB more, and", "use a smaller batch"]);
}
