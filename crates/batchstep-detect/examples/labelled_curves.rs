//! Scores the detector on measured curves of others that were labelled by eye (`tests/fixtures/curves`).
//!
//! ```text
//! cargo run --release -p batchstep-detect --example labelled_curves [--held-out]
//! ```
//!
//! Prints each curve with an odd number, and sums over them. With `--held-out` it prints the sums over those with an even number, and
//! nothing of a single one: they judge the detector (`SPLIT.md`).

use std::error::Error;

use batchstep_detect::{Findings, Settings, detect};

mod labelled;

use labelled::{Curve, Judged, Sums, judge};

fn main() -> Result<(), Box<dyn Error>> {
    let held_out = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--held-out" => true,
        _ => return Err("usage: labelled_curves [--held-out]".into()),
    };
    let mut sums = Sums::default();
    for curve in labelled::read(&labelled::folder())?.iter().filter(|c| c.is_held_out() == held_out) {
        let findings = detect(&curve.observations, &Settings::default());
        let judged = judge(curve, &findings);
        sums.take(curve, &findings, &judged);
        if !held_out {
            print(curve, &findings, &judged);
        }
    }
    let Sums { curves, labelled, hits, near, wrong, missed, doubtful, extra, .. } = sums;
    println!(
        "{curves} curves: {labelled} labelled jumps, {hits} found at their place, {near} one x beside, {wrong} with the wrong sign, {missed} missed"
    );
    println!("findings at other places: {doubtful} doubtful, {extra} extra");
    println!("smooth: {} curves, {} with an alarm ({} alarms)", sums.smooth, sums.alarmed, sums.alarms);
    println!(
        "patterns of multiples: {} of {}, and {} that no label has",
        sums.patterns_found, sums.patterns, sums.patterns_extra
    );
    Ok(())
}

fn print(curve: &Curve, findings: &Findings, judged: &Judged) {
    let kind = if curve.jumps.is_empty() { "smooth".to_owned() } else { format!("{} jumps", curve.jumps.len()) };
    println!("{:>2} {}: {kind}", curve.number, curve.name);
    let groups = [
        ("found", &judged.hits),
        ("one x beside", &judged.near),
        ("wrong sign", &judged.wrong),
        ("doubtful", &judged.doubtful),
        ("extra", &judged.extra),
    ];
    for (name, places) in groups.iter().filter(|(_, places)| !places.is_empty()) {
        println!("     {name}: {places:?}");
    }
    for after in &judged.missed {
        let reason = findings.rejected.iter().find(|r| r.after == *after).map(|r| r.reason.to_string());
        println!("     missed: {after} ({})", reason.unwrap_or_else(|| "no candidate".to_owned()));
    }
    for multiples in &findings.multiples {
        println!("     multiples of {}", multiples.of);
    }
    for note in findings.notes.iter().filter(|_| !findings.is_judged()) {
        println!("     {note}");
    }
}
