//! The table and the sentences around it.

use super::*;
use crate::detect::{AlarmRate, Early, Point, Rejection};
use crate::report::tidy;
use crate::words::has_too_few_points;

fn jump(after: f64, size: f64) -> Jump {
    Jump { low: size * 0.96, high: size * 1.05, p_value: 0.0002, ..Jump::planted(after, size, size / 0.1458) }
}

/// The findings of a series of times in seconds.
fn analysed(findings: &Findings) -> Analysed {
    Analysed { series: Series::planted(Vec::new(), Vec::new()), findings: findings.clone() }
}

fn table<'a>(label: &'a str, found: &'a Analysed) -> JumpTable<'a> {
    JumpTable { label, found, aa_rate: None }
}

fn rendered(found: &Findings) -> String {
    table("", &analysed(found)).render(&Style::PLAIN)
}

fn brief(found: &Findings) -> String {
    JumpTable { aa_rate: Some(0.01), ..table("vgg16", &analysed(found)) }.brief(&Style::PLAIN)
}

/// The words of a text, with a space between them.
fn words(text: &str) -> String {
    tidy(text).join(" ")
}

fn kink(at: f64, slope_before: f64, slope_after: f64) -> Vec<Kink> {
    vec![Kink { at, slope_before, slope_after, p_value: 0.001 }]
}

fn period(value: f64, explains: Vec<f64>, unconfirmed: Vec<f64>) -> Option<Period> {
    Some(Period { value, p_value: 0.0004, explains, unconfirmed })
}

fn findings(jumps: Vec<Jump>) -> Findings {
    let point = |x| Point { x: f64::from(x), count: 5, center: 1.0, low: 1.0, high: 1.0, fit: 1.0, off: false };
    Findings {
        points: (1..=70).map(point).collect(),
        jumps,
        false_positive_rate: 0.01,
        alarm_rate: Some(AlarmRate { alarms: 4, series: 1000 }),
        p_value: Some(0.34),
        ..Findings::default()
    }
}

#[test]
fn the_table_says_where_how_much_and_what() {
    let mut found = findings(vec![jump(16.0, 0.0121), jump(32.0, -0.000_58)]);
    found.period = period(16.0, vec![16.0, 32.0], vec![]);
    found.kinks = kink(5.0, 0.001, 0.0021);
    found.rejected = vec![Candidate { after: 40.0, size: 0.001, p_value: 0.2, reason: Rejection::NearTheEnd }];
    let expected = "\
vgg16: 2 jumps after 16 and 32; period 16 (p = 0.0004)
  after        size   95 % interval         relative        p   p nearby   more work
 ────────────────────────────────────────────────────────────────────────
 16   ▲ +12.1 ms   11.6 to 12.7 ms           +8.3 %   0.0002     0.010   yes
 32    ▼ -580 µs   -557 to -609 µs          -0.40 %   0.0002     0.010   yes
  Period   16 (p = 0.0004), explains 16 and 32
  Kink     at 5: each further example takes 2.10 ms instead of 1.00 ms (p = 0.001)
  Rejected +1.00 ms after 40 (p = 0.200): too near the end to be confirmed
  Chance   a change as strong as the strongest here is in 34 % of series without a jump (p = 0.340)
  Alarms   0.40 % of 1,000 simulated series of this kind show a false jump (95 % interval 0.16 to 1.02 %); other curves may show more
";
    let text = table("vgg16", &analysed(&found)).render(&Style::PLAIN);
    let tidy = |text: &str| tidy(&text.replace('─', ""));
    assert_eq!(tidy(&text), tidy(expected), "{text}");
}

#[test]
fn the_brief_table_has_no_column_in_which_all_rows_agree_and_no_remark_on_the_method() {
    let mut found = findings(vec![jump(16.0, 0.0121), jump(32.0, -0.000_58)]);
    found.kinks = kink(5.0, 0.001, 0.0021);
    let text = brief(&found);
    assert!(text.contains("11.6 to 12.7 ms") && text.contains("  Kink     at 5"), "{text}");
    assert!(!text.contains("0.0002") && !text.contains("Chance") && !text.contains("Alarms"), "{text}");
    found.jumps[1].p_value = 0.003;
    let text = brief(&found);
    assert!(text.contains("0.0002") && text.contains("0.003"), "{text}");
    // The work is a column only where it is in doubt.
    let of = |verdicts: [Verdict; 2]| {
        let jumps = [16.0, 32.0].into_iter().zip(verdicts);
        brief(&findings(jumps.map(|(after, of)| Jump { verdict: Some(of), ..jump(after, 0.0121) }).collect()))
    };
    assert!(!of([Verdict::Work; 2]).contains("more work"));
    assert!(of([Verdict::Work, Verdict::Clock]).contains("more work"));
}

#[test]
fn a_period_is_reported_with_its_coincidences() {
    let mut found = findings(vec![jump(16.0, 0.0121), jump(32.0, 0.0121)]);
    found.period = period(16.0, vec![16.0, 32.0], vec![]);
    let mut found = analysed(&found);
    found.series.facts.insert("threads".to_owned(), "8".to_owned());
    let text = table("", &found).render(&Style::PLAIN);
    let expected = "  Test     16 is 2 times the number of threads (8): a coincidence to test, not a cause\n";
    assert!(text.contains(expected), "{text}");
}

/// What was found, in a sentence: silence about jumps is a result only where one could have been seen.
#[test]
fn the_sentence_says_how_many_and_what_could_have_been_seen() {
    let none = |detectable: f64| Findings { detectable: Some(detectable), ..findings(vec![]) };
    let few = |most: usize| {
        let mut found = none(0.005);
        found.points.truncate(most);
        found
    };
    // The middle third of the 21 sizes 1 to 16, 32, 64, ..., 512 is that from 8 to 14, with a boundary on each side.
    let mut uneven = none(0.04);
    let sizes: Vec<u32> = (1..=16).chain([32, 64, 128, 256, 512]).collect();
    uneven.points.truncate(sizes.len());
    uneven.points.iter_mut().zip(sizes).for_each(|(point, x)| point.x = f64::from(x));
    // If the measurement cannot show jumps as small as those asked for, the result is open.
    let open = Findings { asked: Some(0.05), ..none(0.42) };
    let unsearched = |note| Findings { notes: vec![note], ..findings(vec![]) };
    let wide =
        "No jump was looked for: the sizes span too many orders of magnitude to be one curve; give a part of them.";
    let too_few = "Too few points to judge a jump: 7 points, and at least 8 are needed.";
    let too_many = "No jump was looked for: there are 1,001 sizes, and this method takes at most 1,000.";
    for (found, sentence) in [
        (none(0.005), "No jump; one of 0.5 % or more between 23 and 48 would have been seen."),
        (none(0.04), "No jump; one of 4 % or more between 23 and 48 would have been seen."),
        (
            Findings { asked: Some(0.05), ..none(0.04) },
            "No jump; one of 4 % or more between 23 and 48 would have been seen.",
        ),
        (uneven, "No jump; one of 4 % or more between 7 and 15 would have been seen."),
        (findings(vec![]), "No jump."),
        (open.clone(), "Jumps below 42 % are neither shown nor ruled out; none of 42 % or more was found."),
        (Findings { jumps: vec![jump(16.0, 0.1)], ..open }, "1 jump after 16"),
        (findings((1..=17).map(|k| jump(f64::from(k), 0.01)).collect()), "17 jumps"),
        (few(7), too_few),
        (few(0), "Nothing was measured."),
        (unsearched(Note::TooWide { sizes: true }), wide),
        (unsearched(Note::TooWide { sizes: false }), &wide.replace("sizes", "values")),
        (unsearched(Note::TooManyPoints { count: 1001, most: 1000 }), too_many),
    ] {
        assert_eq!(summary(&found), sentence);
        // Where nothing can be judged, that is all: not even the rate of false alarms is reported.
        assert_eq!(rendered(&found) == format!("{sentence}\n"), !found.is_judged());
        assert_eq!(has_too_few_points(&found), sentence == too_few);
    }
    let sentence = "3 series have too few points to judge a jump: 4 to 7 each, and at least 8 are needed.\n";
    assert_eq!(too_few_points(&[&few(7), &few(4), &few(7)], &Style::PLAIN), sentence);
    let early = Findings { early: Some(Early { blocks: 1, of: 4 }), ..findings(vec![]) };
    assert_eq!(table("mlp", &analysed(&early)).render(&Style::PLAIN), "mlp: Too early: 1 of 4 blocks.\n");
    let control = JumpTable { aa_rate: Some(0.005), ..table("A/A", &analysed(&none(0.005))) }.render(&Style::PLAIN);
    assert!(words(&control).ends_with("may show more; A/A runs of this machine in 0.5 %"), "{control}");
    assert!(control.starts_with("A/A: No jump; one of") && !control.contains("after"), "no empty table: {control}");
}

/// A curve that doubles after 20 and a last point far above it, of which the detector named nothing.
#[test]
fn what_anyone_sees_is_named_though_no_jump_is_proven() {
    let y = |x: u32| if x > 39 { 9.0 } else { f64::from(if x > 20 { 4 } else { 2 }) * (1.0 + 1e-5 * f64::from(x % 3)) };
    let point = |x: u32| Point { x: x.into(), count: 1, center: y(x), low: y(x), high: y(x), fit: y(x), off: false };
    let found = Findings { points: (1..=40).map(point).collect(), detectable: Some(0.01), ..findings(vec![]) };
    assert_eq!(summary(&found), "No jump is proven, but the curve changes by +100 % after 20.");
    let text = table("", &analysed(&found)).render(&Style { color: false, width: 120 });
    // By hand: 9 of 4.
    assert!(
        text.contains("Ends     the last point, 40, is 125 % above the trend: a size or two more decides"),
        "{text}"
    );
}

/// A table of another program contains nothing from which a verdict could follow, so none is shown.
#[test]
fn without_a_clock_no_verdict_is_reported() {
    let of = |verdict| rendered(&findings(vec![Jump { verdict, ..jump(16.0, 0.0121) }]));
    let untold = of(None);
    assert!(!untold.contains("more work") && !untold.contains("ambiguous"), "{untold}");
    let told = [Verdict::Work, Verdict::Clock, Verdict::Ambiguous].map(|verdict| of(Some(verdict)));
    for (text, words) in told.iter().zip(["yes", "no, the clock", "not known"]) {
        assert!(text.contains("more work") && text.contains(words) && !text.contains("ambiguous"), "{text}");
    }
}

#[test]
fn what_only_the_clock_shows_is_said_at_once() {
    let mut found = findings(vec![]);
    let change = |after: f64, relative: f64| Candidate {
        after,
        size: 0.001,
        p_value: 1e-9,
        reason: Rejection::OtherPrograms { relative },
    };
    found.rejected = vec![change(17.0, 0.3), change(22.0, 0.9)];
    let said =
        "only by the clock: +90 % after 22 and +30 % after 17; absent in processor time, so other programs made it";
    assert!(words(&brief(&found)).contains(said), "{}", brief(&found));
    found.rejected = [17.0, 22.0, 30.0, 40.0, 50.0].map(|after| change(after, 0.01 * after)).to_vec();
    assert!(brief(&found).contains("2 more"), "{}", brief(&found));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut found = findings((1..=15).map(|k| jump(f64::from(4 * k), 0.01)).collect());
    let reason = Rejection::NotAmongNeighbours { local: 1.3 };
    found.rejected = vec![Candidate { after: 40.0, size: 0.001, p_value: 0.2, reason }; 7];
    for width in [40, 60, 72, 80, 160] {
        let text = table("vgg16, tf32", &analysed(&found)).render(&Style { color: false, width });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{width}: {text}");
        assert_eq!(text.matches('▲').count(), 15);
        assert!(text.contains("and 2 more"));
    }
}

#[test]
fn colour_changes_nothing_but_escapes() {
    let found = findings(vec![jump(16.0, 0.0121), jump(32.0, -0.0121)]);
    let text = |color: bool| table("vgg16", &analysed(&found)).render(&Style { color, width: 100 });
    let (plain, mut colored) = (text(false), text(true));
    assert!(colored.contains("\x1b[31m▲\x1b[0m") && colored.contains("\x1b[32m▼\x1b[0m"));
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
        colored = colored.replace(code, "");
    }
    assert_eq!(colored, plain);
}

#[test]
fn a_place_that_is_not_certain_has_an_interval() {
    let found = findings(vec![Jump { after_low: 15.0, after_high: 17.0, ..jump(16.0, 0.0121) }, jump(32.0, 0.0121)]);
    let text = rendered(&found);
    let starts = |start: &str| tidy(&text).iter().any(|line| line.starts_with(start));
    assert!(starts("16 (15 to 17) ▲ +12.1 ms") && starts("32 ▲ +12.1 ms"), "{text}");
}

#[test]
fn a_staircase_of_many_members_is_one_line() {
    let mut jumps: Vec<Jump> = (1..=24).map(|k| jump(f64::from(2 * k), 0.0121)).collect();
    jumps.push(jump(61.0, 0.2));
    let mut found = findings(jumps);
    let explains: Vec<f64> = (1..=24).map(|k| f64::from(2 * k)).collect();
    found.period = period(2.0, explains, vec![50.0, 52.0]);
    // 0.0121 of 0.1458 is 8.3 %.
    let sentence = "1 jump after 61, and one every 2, 24 times, +8.3 % each (p = 0.0004)";
    assert_eq!(summary(&found), sentence);
    let text = rendered(&found);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains('▲')).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].contains("every 2, 24 times") && rows[0].contains("+8.3 % each"), "{text}");
    assert!(text.contains("Period   2 (p = 0.0004), explains 24 jumps; not confirmed after 50 and 52"), "{text}");
}

#[test]
fn a_rate_is_called_a_rate() {
    let mut found = findings(vec![Jump { relative: -0.12, ..jump(256.0, -14.0) }]);
    found.kinks = kink(64.0, 2.5, -0.5);
    let mut found = analysed(&found);
    (found.series.unit, found.series.kind, found.series.size) = ("GB/s".into(), TimeOrRate::Rate, Size::of("N"));
    let text = table("", &found).render(&Style::PLAIN);
    assert!(text.contains("▼ -14.0 GB/s") && text.contains("-12 %"), "{text}");
    assert!(text.contains("these are changes of a rate: where it falls, the work is slower"), "{text}");
    let kink = "at 64: from there on the rate falls by 0.500 GB/s with each further unit of N, up to there it rises by 2.50 GB/s";
    assert!(words(&text).contains(kink), "{text}");
    let text = table("", &found).render(&Style { color: true, width: 100 });
    assert!(text.contains("\x1b[31m▼\x1b[0m"), "a fall of the rate is slower");
}

#[test]
fn a_time_that_falls_is_saved() {
    let mut found = findings(vec![]);
    found.kinks = kink(5.0, -0.0002, 0.0021);
    let mut found = analysed(&found);
    found.series.size = Size::of("tokens");
    let text = table("", &found).render(&Style::PLAIN);
    let expected = "at 5: from there on each further token takes 2.10 ms, up to there it saves 200 µs";
    assert!(words(&text).contains(expected), "{text}");
}

fn changed(points: &[(f64, f64)]) -> String {
    let point = |&(x, y): &(f64, f64)| Point { x, count: 1, center: y, low: y, high: y, fit: y, off: false };
    let points = points.iter().map(point).collect();
    let found = Findings { points, detectable: Some(0.9), ..findings(vec![]) };
    words(&brief(&found))
}

#[test]
fn the_largest_changes_are_those_that_exceed_their_neighbours() {
    // Three sizes around two boundaries, at the first and second of which the time changes.
    let triplets = [
        (15.0, 2.0),
        (16.0, 2.001),
        (17.0, 2.6),
        (39.0, 4.0),
        (40.0, 4.005),
        (41.0, 4.4),
        (79.0, 7.0),
        (80.0, 7.01),
        (81.0, 7.7),
    ];
    let text = changed(&triplets);
    assert!(text.contains("are +9.8 % after 80, +30 % after 16 and +9.9 % after 40; none is proven"), "{text}");
    // For a steep curve, the place at which it turns comes first.
    let steep = [1.0, 2.0, 4.0, 8.0, 16.0, 8.0, 8.1, 8.0, 8.1];
    let steep: Vec<(f64, f64)> = steep.iter().enumerate().map(|(at, y)| (f64::from(1 << at), *y)).collect();
    let text = changed(&steep);
    assert!(text.contains("stand out most from those beside them are -50 % after 16"), "{text}");
}
