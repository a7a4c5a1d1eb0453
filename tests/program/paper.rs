//! A figure for a paper.

use crate::support::{Folder, ends, experiment, refused, stdout};

const COLUMN: &str = "3.3in";

#[test]
fn a_figure_is_as_wide_as_the_column_has_its_title_and_is_the_curve_alone() {
    let folder = Folder::new();
    let source = experiment("runs/2026-11-26-epyc-2-cores-keras");
    for (format, size) in [("pdf", "/MediaBox [0 0 237.6"), ("svg", "<svg width=\"237.6pt\"")] {
        let arguments =
            ["plot", &source, "--width", COLUMN, "--format", format, "--title", "A title", "--out", "paper"];
        let output = ends(0, &folder, &arguments);
        assert_eq!(stdout(&output), format!("paper/step_time.{format}\n"));
        let bytes = std::fs::read(folder.join(format!("paper/step_time.{format}"))).expect("a file");
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(size) && text.contains("A title"), "{format}");
        assert!(!text.contains("Made by"), "{format}");
    }
    for width in ["3.3", "0in", "two", "-3in"] {
        refused(&folder, &["plot", &source, &format!("--width={width}"), "--out", "x"], &["for example 3.3in, 84mm"]);
    }
}
