//! The pictures in the repository, compared with their data.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use batchstep::analysis::advice::{self, Options};
use batchstep::analysis::{Query, analyse};
use batchstep::chart::Chart;
use batchstep::chart::chart_data::SweepCharts;
use batchstep::units::human;

use crate::support::{has, root};

/// The texts of a chart that batchstep drew.
fn texts(picture: &Path) -> String {
    let file = BufReader::new(File::open(picture).expect("a picture"));
    let reader = png::Decoder::new(file).read_info().expect("a PNG");
    let description = reader.info().utf8_text.iter().find(|text| text.keyword == "Description");
    let description = description.unwrap_or_else(|| panic!("{} was drawn by an earlier program", picture.display()));
    description.get_text().expect("a text")
}

fn pictures(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "png")).collect()
}

/// `scripts/redraw-plots` draws them again.
#[test]
fn the_charts_of_the_readme_agree_with_their_data() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("readable");
    for (run, picture) in [
        ("2026-11-21-formula-synthetic", "synthetic"),
        ("2026-11-23-epyc-2-cores-quickstart", "quickstart"),
        ("2026-11-26-epyc-2-cores-keras", "keras"),
    ] {
        let source = Path::new("experiments/runs").join(run);
        let found = analyse(&root().join(&source), &Query::default(), None).expect("a run");
        let figures = SweepCharts::of(&source, &found, &advice::of_run(&source, &found, &Options::default()));
        let honesty = figures.honesty.map(Chart::Timeline).expect("the order of the steps");
        for (chart, name) in
            [(Chart::StepTime(figures.step_time), picture.to_owned()), (honesty, format!("{picture}-honesty"))]
        {
            let today: Vec<String> = chart.scene().texts().map(|text| text.text.clone()).collect();
            assert_eq!(texts(&root().join(format!("plots/{name}.png"))), today.join("\n"), "{name}");
        }
        if picture == "quickstart" {
            let jump = found[0].findings.jumps.iter().find(|jump| jump.after == 16.0).expect("a jump after 16");
            let longer = format!("the 17th example of a batch makes the step {} longer", human::percent(jump.relative));
            assert!(text.contains(&longer), "README.md does not say: {longer}");
        }
        if picture == "keras" {
            let jump = found[0].findings.jumps.iter().find(|jump| jump.after == 15.0).expect("a jump after 15");
            let longer = format!("a batch of 16 takes {} longer than a batch of 15", human::percent(jump.relative));
            assert!(text.contains(&longer), "README.md does not say: {longer}");
            assert!(found[1].findings.jumps.is_empty(), "without oneDNN there is none");
        }
    }
}

#[test]
fn a_forecast_is_not_drawn_as_a_measurement() {
    let drawn = texts(&root().join("plots/why-sixteen.png"));
    has(&drawn, &["Forecast, not measured. ", "\nforecast\n", "Forecast step time", "forecast and not measured"]);
    assert!(!drawn.contains("false alarms") && !drawn.contains("median"), "{drawn}");
    // Today's forecast and its jumps are in the notebook and the README: after 16, 32, 48 and 64.
    assert!(drawn.contains("4 jumps after 16, 32, 48 and 64"), "{drawn}");
}

#[test]
fn every_stored_chart_names_the_folder_that_it_lies_in() {
    let runs = std::fs::read_dir(root().join("experiments/runs")).expect("a folder");
    let runs: Vec<PathBuf> = runs.map(|entry| entry.expect("an entry").path()).collect();
    for picture in runs.iter().flat_map(|run| pictures(run)) {
        let run = picture.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        let texts = texts(&picture).replace('\n', " ");
        assert!(
            texts.contains(&format!("Made by: batchstep plot experiments/runs/{run}")),
            "{}: {texts}",
            picture.display()
        );
    }
}
