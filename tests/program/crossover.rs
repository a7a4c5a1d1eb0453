//! A run of two ways to compute, from the spec to the size from which on one is faster.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::support::{Folder, ends, parsed, read, run, stderr, stdout, write};

#[test]
fn a_file_of_two_engines_is_plotted_with_its_crossover() {
    let folder = Folder::new();
    // 1 ms + 1 us a sample against 5 ms + 0.5 us: equal at 8,000.
    let mut text = String::from("engine,batch_size,block,step_time_s\n");
    for block in 0..5 {
        for size in [25, 100, 400, 1600, 6400, 25_600, 102_400] {
            let noise = 1.0 + 0.001 * f64::from((block * 7 + size) % 5 - 2);
            for (engine, fixed, each) in [("cpu", 1e-3, 1e-6), ("cuda", 5e-3, 5e-7)] {
                text.push_str(&format!("{engine},{size},{block},{}\n", (fixed + each * f64::from(size)) * noise));
            }
        }
    }
    write(&folder, "measured.csv", &text);
    let output = ends(0, &folder, &["plot", "measured.csv", "--format", "svg"]);
    let drawn = stdout(&output).lines().find(|line| line.contains("crossover")).map(|line| folder.join(line));
    let svg = std::fs::read_to_string(drawn.expect("a chart of the crossover")).expect("readable");
    assert!(svg.contains("cuda is faster than cpu from") && svg.contains("cuda over cpu from"), "{svg}");
    ends(0, &folder, &["report", "measured.csv"]);
    let page = read(&folder, "measured-report.html");
    // By hand: 1 ms + 1 us x = 5 ms + 0.5 us x at 8,000; the page rounds what was interpolated between 6,400 and 25,600.
    assert!(
        page.contains("cuda is faster than cpu from size ") && page.contains("Crossovers of a step"),
        "the answer and the table"
    );
    assert!(
        page.contains("From which size on one is faster</h2><img class=\"picture\" alt=\"cuda is faster than cpu from")
    );
    let picture = page
        .split("src=\"data:image/svg+xml;base64,")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a picture");
    let drawn = String::from_utf8(BASE64_STANDARD.decode(picture).expect("base64")).expect("UTF-8");
    let command = |text: &str| text.replace("results/", "");
    assert_eq!(command(&drawn), command(&svg), "the picture is the chart");
}

#[test]
#[ignore = "slow"]
fn a_run_of_two_engines_stores_its_crossovers() {
    let folder = Folder::new();
    let spec = "version = 1\nname = \"c\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [8, 64, 512]\n[train]\noptimizer = \"adam\"\n\
                learning_rate = 0.08\nloss = \"mean_squared_error\"\nprecision = \"fp32\"\n\
                data = [\"resident\", \"pageable\", \"pinned\"]\n[engine]\nname = [\"cpu\", \"candle\"]\nthreads = 1\n\
                [measure]\ndecide = \"cells\"\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 2\n";
    write(&folder, "c.toml", spec);
    let output = run(&folder, &["run", "c.toml", "--details"]);
    // Memory is not page-locked for a processor: this is left out, with a warning.
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("left out: `data = \"pinned\"`"), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("Copying the batch in each step") && text.contains("copying.png"), "{text}");
    let page = read(&folder, "results/c/report.html");
    assert!(
        page.contains("The copies of the batch</h2><img class=\"picture\""),
        "the chart of the copies is on the page"
    );
    let path = folder.join("results/c/crossover.json");
    let document = parsed(&std::fs::read_to_string(path).expect("a file"));
    let pair = &document["pairs"][0];
    assert_eq!(
        (document["version"].as_i64(), pair["smallest"].as_f64(), pair["largest"].as_f64()),
        (Some(1), Some(8.0), Some(512.0))
    );
    // Setup was measured for both engines with both data paths, and is part of a training; engines are compared only
    // with the same data path.
    assert_eq!(document["setups"].as_array().map(Vec::len), Some(4), "{document}");
    assert!(document["setups"][1]["largest"]["prepare_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{document}");
    let pairs = document["training"]["pairs"].as_array().expect("pairs");
    let ways: Vec<bool> =
        pairs.iter().map(|pair| pair["first"].as_str().is_some_and(|name| name.contains("pageable"))).collect();
    assert_eq!(ways, [false, true], "{document}");
    assert!(pairs.iter().all(|pair| pair["second"].as_str().is_some_and(|name| name.contains("candle"))), "{document}");
    // Which one is faster depends on the machine; if they cross, the crossover is within the measured range.
    let size = pair["crossover"]["size"].as_f64();
    assert!(size.is_none_or(|size| (8.0..=512.0).contains(&size)), "{document}");
}
