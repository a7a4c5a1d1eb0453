//! The sources of an analysis: the names of several runs side by side, and paths that cannot contain measured times.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Kind, Result, nearest_beside};
use crate::foreign;
use crate::os::look;
use crate::table;

/// Refuses a path that does not exist, a spec, and a spreadsheet, each with its own message.
pub(super) fn check(path: &Path) -> Result<()> {
    let shown = path.display();
    if table::is_stdin(path) {
        return Ok(());
    }
    if !look::is_there(path)? {
        let near = nearest_beside(path).map(|near| format!("did you mean `{}`?", near.display()));
        return Err(Error::new(Kind::Io, "there is no such file or run directory").at(shown.to_string()).hint(
            near.unwrap_or_else(|| {
                "give a run directory such as results/vgg16, a Parquet file, or a CSV file".to_owned()
            }),
        ));
    }
    if !look::is_file(path)? {
        return Ok(());
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
    if extension == "toml" {
        return Err(Error::data("this is a spec: it says what to measure, and contains no measured times")
            .at(shown.to_string())
            .hint(format!(
                "measure it with `batchstep run {shown}`, and give the run directory that it names at its end"
            )));
    }
    let mut start = [0; 4];
    let archive = File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"PK\x03\x04";
    if archive || ["xlsx", "xlsm", "xls", "ods"].contains(&extension.as_str()) {
        return Err(Error::data("this is a spreadsheet (.xlsx, .ods) or another archive, and not a table as text")
            .at(shown.to_string())
            .hint("save its sheet as CSV, with the names of the columns in the first row"));
    }
    Ok(())
}

/// A name for each path, all different where the paths are: the last part of each, and where two share it as many parts before it as
/// distinguish them: `vgg16`; `t4/vgg16` and `h100/vgg16`.
pub fn run_names(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths.iter().map(|path| parts(path)).collect();
    let name = |parts: &[String], count: usize| parts[parts.len().saturating_sub(count)..].join("/");
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let shortest = |own: &Vec<String>| {
        let alone = |count: &usize| {
            let alike = |other: &&Vec<String>| *other != own && name(other, *count) == name(own, *count);
            parts.iter().find(alike).is_none()
        };
        name(own, (1..most).find(alone).unwrap_or(most))
    };
    parts.iter().map(|own| foreign::name(&shortest(own))).collect()
}

/// The parts of a path, that of a file without its extension; a path such as `..` is a single part.
fn parts(path: &Path) -> Vec<String> {
    // What follows the point in a folder's name, as in `vgg16.2`, is no extension.
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    let Some(stem) = stem else { return vec![path.display().to_string()] };
    let folders = path.parent().into_iter().flat_map(Path::components).filter_map(|component| match component {
        Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        Component::ParentDir => Some("..".to_owned()),
        _ => None,
    });
    folders.chain([stem]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<String> {
        run_names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>())
    }

    #[test]
    fn files_without_times_are_refused_by_their_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        let refusal = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            check(&path).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let error = refusal("vgg16.toml", b"version = 1\n");
        assert!(error.contains("vgg16.toml: this is a spec") && error.contains("batchstep run"), "{error}");
        // Whatever it is called.
        for name in ["times.xlsx", "times.csv"] {
            let error = refusal(name, b"PK\x03\x04\x14\x00");
            assert!(error.contains("this is a spreadsheet") && error.contains("as CSV"), "{error}");
        }
        assert_eq!(refusal("mine.csv", b"batch_size,time_ms\n"), "");
        assert!(check(folder.path()).is_ok());
        let error = check(&folder.path().join("mne.csv")).expect_err("missing").to_string();
        assert!(error.contains("no such file") && error.contains("mine.csv`?"), "{error}");
    }

    #[test]
    fn names_are_as_short_as_distinguishes_them() {
        assert_eq!(names(&["results/vgg16/", "other/mine.csv"]), ["vgg16", "mine"]);
        assert_eq!(names(&["a/t4/vgg16", "a/h100/vgg16", "a/h100/vgg19"]), ["t4/vgg16", "h100/vgg16", "vgg19"]);
        assert_eq!(names(&["vgg16", "../vgg16", "."]), ["vgg16", "../vgg16", "."]);
        assert_eq!(names(&["results/vgg16", "results/vgg16"]), ["vgg16", "vgg16"]);
        let folder = tempfile::tempdir().expect("a folder");
        let runs = ["vgg16.1", "vgg16.2"].map(|name| folder.path().join(name));
        runs.iter().for_each(|run| std::fs::create_dir(run).expect("created"));
        assert_eq!(run_names(&runs), ["vgg16.1", "vgg16.2"]);
    }
}
