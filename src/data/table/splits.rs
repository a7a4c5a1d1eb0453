//! Which Parquet files hold the training examples, and which the others.
//!
//! Source of the names: Hugging Face's documentation of the structure of a data set's repository; `train-00000-of-00002.parquet` in the
//! folder or in `data/`, or `train/0000.parquet` on the branch of converted files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::error::{Error, Result};
use crate::os::look;
use crate::spec::data::{Data, place};

/// The files of each part, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    pub train: Vec<PathBuf>,
    /// Empty: there is nothing to test with.
    pub test: Vec<PathBuf>,
}

const TRAIN: &[&str] = &["train", "training"];
/// The validation part is used if there is no test part.
const TEST: &[&[&str]] = &[&["test", "testing"], &["validation", "valid", "val", "dev"]];

/// Lists the files; that a stated one is there is found when it is opened.
///
/// # Errors
/// [`crate::error::Kind::Io`] where a folder cannot be listed; [`crate::error::Kind::Data`] where no file is the training part's, or
/// one of its numbered files is missing.
pub fn find(data: &Data) -> Result<Files> {
    if let Some(folder) = &data.path {
        return in_folder(folder);
    }
    let test = data.test.as_deref().map(stated).transpose()?.unwrap_or_default();
    Ok(Files { train: stated(place(data.train.as_ref()))?, test })
}

fn in_folder(folder: &Path) -> Result<Files> {
    let nested = folder.join("data");
    let mut seen = Vec::new();
    for place in [folder, nested.as_path()] {
        if place != folder && !look::is_folder(place)? {
            continue;
        }
        let entries = look::visible(place)?;
        let train = of_part(&entries, TRAIN)?;
        if !train.is_empty() {
            let test = TEST.iter().map(|names| of_part(&entries, names));
            let test = test.collect::<Result<Vec<_>>>()?.into_iter().find(|files| !files.is_empty());
            return Ok(Files { train, test: test.unwrap_or_default() });
        }
        seen.extend(entries.iter().filter_map(|entry| Some(entry.file_name()?.to_string_lossy().into_owned())));
    }
    let seen = match seen.len() {
        0 => "the folder is empty".to_owned(),
        count if count < 8 => format!("there are {}", seen.join(", ")),
        count => format!("there are {} to {}, {count} in all", seen[0], seen[count - 1]),
    };
    Err(Error::data(format!("no Parquet file is the training part's by its name: {seen}"))
        .at(folder.display().to_string())
        .hint("a part is train-00000-of-00001.parquet or train/0000.parquet; or name the files with `train` and `test` in [data]"))
}

/// Files whose names begin with one of the part's names; if there are none, the files of a folder with such a name.
fn of_part(entries: &[PathBuf], names: &[&str]) -> Result<Vec<PathBuf>> {
    let named = |path: &Path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        names
            .iter()
            .any(|name| stem.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())))
    };
    let files = parquet_among(entries.iter().filter(|path| named(path)).cloned())?;
    if !files.is_empty() {
        are_all_there(&files)?;
        return Ok(files);
    }
    for folder in entries.iter().filter(|path| names.iter().any(|name| path.ends_with(name))) {
        if look::is_folder(folder)? {
            return entries_of_parquet(folder);
        }
    }
    Ok(Vec::new())
}

/// Refuses a part of which files are missing: `train-00000-of-00002.parquet` without `train-00001-of-00002.parquet`, whatever follows.
fn are_all_there(files: &[PathBuf]) -> Result<()> {
    // A folder may hold several thousand files of a part, and no more.
    const MOST: u32 = 100_000;
    let Ok(form) = Regex::new(r"^(.*?)([0-9]+)-of-([0-9]+)") else { return Ok(()) };
    let mut parts: BTreeMap<[String; 2], BTreeSet<u32>> = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some((_, [before, number, of])) = form.captures(&name).map(|found| found.extract()) else { continue };
        if number.len() == of.len()
            && let Ok(number) = number.parse()
        {
            parts.entry([before, of].map(str::to_owned)).or_default().insert(number);
        }
    }
    for ([before, of], there) in parts {
        let count = of.parse().ok().filter(|count| *count <= MOST).unwrap_or(0);
        if let Some(number) = (0..count).find(|number| !there.contains(number)) {
            let missing = format!("{before}{number:0width$}-of-{of}.parquet", width = of.len());
            return Err(Error::data(format!("{missing} is missing: {count} files make the part"))
                .at(files[0].with_file_name("").display().to_string())
                .hint("fetch the missing file, or name those to use: train = \"FOLDER/train-*.parquet\" in [data]"));
        }
    }
    Ok(())
}

/// A file, all Parquet files of a folder, or those whose names fit a pattern with one `*`.
fn stated(path: &Path) -> Result<Vec<PathBuf>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let files = match name.split_once('*') {
        _ if look::is_folder(path)? => entries_of_parquet(path)?,
        None => return Ok(vec![path.to_path_buf()]),
        Some((front, back)) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let fits = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.len() >= front.len() + back.len() && name.starts_with(front) && name.ends_with(back)
            };
            look::visible(folder)?.into_iter().filter(fits).collect()
        }
    };
    if files.is_empty() {
        return Err(Error::data("there are no such Parquet files").at(path.display().to_string()));
    }
    Ok(files)
}

fn entries_of_parquet(folder: &Path) -> Result<Vec<PathBuf>> {
    parquet_among(look::visible(folder)?.into_iter())
}

fn parquet_among(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths.filter(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))) {
        if look::is_file(&path)? {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, b"").expect("written");
        }
        folder
    }

    /// The names of the files of both parts, below the folder.
    fn found(names: &[&str]) -> [Vec<String>; 2] {
        let folder = folder(names);
        let Files { train, test } = find(&Data { path: Some(folder.path().into()), ..Data::default() }).expect("files");
        [train, test].map(|files| {
            let below = |path: &PathBuf| path.strip_prefix(folder.path()).expect("below").display().to_string();
            files.iter().map(below).collect()
        })
    }

    #[test]
    fn the_names_of_the_hubs_say_which_part_a_file_is_of() {
        let [train, test] = found(&[
            "README.md",
            "data/train-00001-of-00002.parquet",
            "data/train-00000-of-00002.parquet",
            "data/test-00000-of-00001.parquet",
            "data/validation-00000-of-00001.parquet",
        ]);
        assert_eq!(train, ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"]);
        assert_eq!(test, ["data/test-00000-of-00001.parquet"]);
        // With the hash of older uploads, and no part for tests.
        let [train, test] = found(&["train-00000-of-00001-1f2e3d.parquet", "validation-00000-of-00001-4c5b6a.parquet"]);
        assert_eq!((train.len(), test), (1, vec!["validation-00000-of-00001-4c5b6a.parquet".to_owned()]));
        // The branch of converted files.
        let [train, test] = found(&["train/0000.parquet", "train/0001.parquet", "test/0000.parquet"]);
        assert_eq!((train.len(), test), (2, vec!["test/0000.parquet".to_owned()]));
        let [train, test] = found(&["train.parquet", "training_notes.txt", "trainer.parquet"]);
        assert_eq!((train, test), (vec!["train.parquet".to_owned()], vec![]));
    }

    #[test]
    fn a_part_that_lacks_a_file_is_refused() {
        let refusal = |names: &[&str]| in_folder(folder(names).path()).expect_err("refused").to_string();
        let lacking = refusal(&["train-00000-of-00003.parquet", "train-00002-of-00003.parquet"]);
        assert!(lacking.contains("train-00001-of-00003.parquet is missing: 3 files make the part"), "{lacking}");
        let none = refusal(&["a.parquet", "b.parquet"]);
        assert!(none.contains("there are a.parquet, b.parquet") && none.contains("`train` and `test`"), "{none}");
        assert!(refusal(&[".hidden"]).contains("the folder is empty"));
    }

    #[test]
    fn stated_files_are_a_file_a_folder_or_a_pattern() {
        let folder = folder(&["a-0.parquet", "a-1.parquet", "b.parquet", "a.txt"]);
        let count = |name: &str| stated(&folder.path().join(name)).map(|files| files.len());
        assert_eq!(
            ["a-*.parquet", "*", "", "b.parquet", "none.parquet"].map(|name| count(name).ok()),
            [Some(2), Some(4), Some(3), Some(1), Some(1)]
        );
        assert!(count("c-*.parquet").expect_err("refused").to_string().contains("no such Parquet files"));
    }
}
