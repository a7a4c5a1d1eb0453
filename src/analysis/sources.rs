//! What several runs are called beside one another.

use std::path::{Component, Path, PathBuf};

use crate::foreign;

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

/// The parts of a path, the last without its extension; a path such as `..` is one part as it is written.
fn parts(path: &Path) -> Vec<String> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
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
    fn names_are_as_short_as_distinguishes_them() {
        assert_eq!(names(&["results/vgg16/", "other/mine.csv"]), ["vgg16", "mine"]);
        assert_eq!(names(&["a/t4/vgg16", "a/h100/vgg16", "a/h100/vgg19"]), ["t4/vgg16", "h100/vgg16", "vgg19"]);
        assert_eq!(names(&["vgg16", "../vgg16", "."]), ["vgg16", "../vgg16", "."]);
        assert_eq!(names(&["results/vgg16", "results/vgg16"]), ["vgg16", "vgg16"]);
    }
}
