//! The page docs/detector.md: each constant that it names is in the code, with the value behind its name.

use std::path::Path;

/// The name and the value of each constant in the files of `folder`.
fn constants(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            constants(&path, found);
            continue;
        }
        let code = std::fs::read_to_string(&path).expect("readable");
        found.extend(code.lines().filter_map(|line| {
            let (name, rest) = line.split_once("const ")?.1.split_once(": ")?;
            let value = rest.split_once(" = ")?.1.trim_end_matches(';');
            Some((name.to_owned(), value.replace('_', "")))
        }));
    }
}

/// A number, a product or a quotient of two; `None` for anything else.
fn number(text: &str) -> Option<f64> {
    let two = |by: char| text.split_once(by).and_then(|(a, b)| Some((number(a.trim())?, number(b.trim())?)));
    text.parse().ok().or_else(|| two('*').map(|(a, b)| a * b)).or_else(|| two('/').map(|(a, b)| a / b))
}

#[test]
fn the_page_has_the_constants_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/detector.md")).expect("readable");
    let mut known = Vec::new();
    constants(&root.join("src"), &mut known);
    let is_name = |word: &str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let words: Vec<&str> = page.split(|c: char| c.is_whitespace() || "(),:;".contains(c)).collect();
    let (mut compared, mut wrong) = (0, Vec::new());
    for pair in words.windows(2).filter(|pair| is_name(pair[0]) && pair[0] != "RSS") {
        let own = known.iter().filter(|(name, _)| name == pair[0]);
        let values: Vec<Option<f64>> = own.map(|(_, value)| number(value)).collect();
        let alike = |said: f64| values.iter().any(|value| value.is_none_or(|v| (v - said).abs() <= 1e-5 * v.abs()));
        let said = number(pair[1]);
        compared += usize::from(said.is_some());
        if values.is_empty() || said.is_some_and(|said| !alike(said)) {
            wrong.push(format!("{} {}", pair[0], pair[1]));
        }
    }
    assert!(compared > 90, "only {compared} values were found on the page");
    assert!(wrong.is_empty(), "the code does not have: {}", wrong.join(", "));
}
