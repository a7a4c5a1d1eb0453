//! The result of each fault, as a document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::engine::cudnn::recorded::{Fault, Library};

/// The result of one fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FaultRow {
    library: Library,
    call: String,
    when: String,
    captured: bool,
    code: u32,
    outcome: String,
    message: String,
}

impl FaultRow {
    pub fn new(fault: &Fault, outcome: &str, message: Option<&str>) -> Self {
        let call = &fault.call;
        let message = message.map(sentence).unwrap_or_default();
        let (library, captured) = (call.library, call.captured);
        let [name, when, outcome] = [call.name, call.when, outcome].map(str::to_owned);
        Self { library, call: name, when, captured, code: fault.code, outcome, message }
    }
}

/// Whether a message names the library that refused.
pub fn names_a_library(message: &str) -> bool {
    ["the CUDA driver", "cuDNN", "cuBLASLt", "NVRTC"].iter().any(|who| message.contains(who))
}

/// Whether all memory is freed though a call failed: where the GPU cannot be made the thread's own, or does not free, memory is lost with the
/// process.
pub fn frees(fault: &Fault) -> bool {
    !fault.lasts && !["cuCtxSetCurrent", "cuMemFree_v2", "cuMemFreeHost"].contains(&fault.call.name)
}

/// What, where, and what to do: the library that refused, the cell or the GPU, a remedy.
pub fn is_clear(messages: &[String]) {
    let is = |message: &String| {
        let place = message.contains("at batch size ") || message.starts_with("cuda:0: ");
        names_a_library(message) && place && message.contains("\n  help: ")
    };
    assert!(!messages.is_empty() && messages.iter().all(is), "not clear: {messages:#?}");
}

/// A message on one line, without the numbers that differ from call to call.
fn sentence(message: &str) -> String {
    let message = message.replace("at batch size 3", "at batch size 2");
    let (what, help) = message.split_once("\n  help: ").unwrap_or((&message, ""));
    let help = help.split("\n").next().unwrap_or_default();
    let what = what.split_once(": call ").map_or(what.to_owned(), |(place, rest)| {
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{place}: call N{rest}")
    });
    format!("{} *{help}*", what.replace(['|', '\n'], " "))
}

fn name(library: Library) -> &'static str {
    match library {
        Library::Driver => "The driver",
        Library::CublasLt => "cuBLASLt",
        Library::Cudnn => "cuDNN",
        Library::Nvrtc => "NVRTC",
    }
}

fn code(library: Library, code: u32) -> &'static str {
    match (library, code) {
        (Library::Driver, 2) => "2 out of memory",
        (Library::Driver, 4) => "4 deinitialised",
        (Library::Driver, 700) => "700 illegal address",
        (Library::Driver, 901) => "901 capture invalidated",
        (Library::Cudnn, 1008) => "1008 sub-library not loaded",
        (Library::Cudnn, 3000) => "3000 not supported",
        (Library::Cudnn, 4004) => "4004 device allocation failed",
        (Library::Cudnn, 5000) => "5000 execution failed",
        (Library::CublasLt, 1) => "1 not initialised",
        (Library::CublasLt, 3) => "3 allocation failed",
        (Library::CublasLt, 13) => "13 execution failed",
        (Library::CublasLt, 15) => "15 not supported",
        (Library::Nvrtc, 1) => "1 out of memory",
        (Library::Nvrtc, 6) => "6 compilation",
        (Library::Nvrtc, 7) => "7 builtin operation failure",
        other => panic!("{other:?} has no name"),
    }
}

/// The document, with a table for each library.
pub fn document(ways: &[&str], rows: &[FaultRow], called: &BTreeMap<Library, BTreeSet<String>>) -> String {
    let mut text = format!(
        "# When a call of a GPU library fails\n\n\
         Made by the test `run::tests::faults`, which fails if this page is out of date. Each call that a run makes of the driver, cuDNN,\n\
         cuBLASLt and NVRTC fails once, in turn, with each code that is plausible for it: at its first occurrence in each part of the run, and at\n\
         the last. No GPU and no NVIDIA library takes part: a recorder within the test answers the calls, so the table shows how\n\
         batchstep handles a failure, not when a GPU fails. After 700 and 4 every later call fails as well, as CUDA documents.\n\n\
         In all {} cases the program neither panicked nor hung; at most one cell was left out; what was stored stayed; the message named the\n\
         library, the cell or the GPU, and a remedy; and a new process continued with `--resume` to the end of the plan. The run is a small network\n\
         at two batch sizes in two blocks: {}. A way is used for the calls that those before it do not make.\n\
         *Checking the step* comes before a run ([GPU](gpu.md)): its parts are accepted without comparison, since the recorder computes nothing,\n\
         and the numbers of whole steps are the CPU engine's. Whatever failed, nothing was remembered as checked.\n",
        rows.len(),
        ways.join("; ")
    );
    for library in [Library::Driver, Library::Cudnn, Library::CublasLt, Library::Nvrtc] {
        let names = &called[&library];
        let _ = write!(text, "\n## {}\n\n{} functions. ", name(library), names.len());
        text += "\n\n| call | while | code | outcome |\n|---|---|---|---|\n";
        text += &lines(rows, library);
    }
    text += "\n## The messages\n\nOne message of each kind, with its remedy.\n\n";
    let messages: BTreeSet<String> =
        rows.iter().filter(|row| !row.message.is_empty()).map(|row| general(&row.message)).collect();
    messages.iter().for_each(|message| text += &format!("- {message}\n"));
    text
}

/// A line for the codes of a call that end alike.
fn lines(rows: &[FaultRow], library: Library) -> String {
    let mut groups: BTreeMap<(&str, &str, bool), BTreeMap<u32, BTreeSet<&str>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.library == library) {
        let codes = groups.entry((row.call.as_str(), row.when.as_str(), row.captured)).or_default();
        codes.entry(row.code).or_default().insert(&row.outcome);
    }
    let mut text = String::new();
    for ((call, when, captured), codes) in groups {
        let mut alike: Vec<(Vec<u32>, &BTreeSet<&str>)> = Vec::new();
        for (code, outcomes) in &codes {
            match alike.iter_mut().find(|(_, known)| *known == outcomes) {
                Some((codes, _)) => codes.push(*code),
                None => alike.push((vec![*code], outcomes)),
            }
        }
        let when = if captured { format!("{when}, captured") } else { when.to_owned() };
        for (codes, outcomes) in alike {
            let codes: Vec<&str> = codes.into_iter().map(|number| code(library, number)).collect();
            let outcomes: Vec<&str> = outcomes.iter().copied().collect();
            let _ = writeln!(text, "| `{call}` | {when} | {} | {} |", codes.join(", "), outcomes.join("; or "));
        }
    }
    text
}

/// A message without what it was that was refused: one for each library, code and remedy.
fn general(message: &str) -> String {
    let Some((before, rest)) = message.split_once(" refused to ") else { return message.to_owned() };
    let who = before.rsplit(": ").next().unwrap_or_default();
    let code = rest.split_once(": ").map_or(rest, |(_, code)| code);
    format!("… {who} refused to …: {code}")
}
