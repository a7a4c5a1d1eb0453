//! What was found in one series, as a table with its explanations.

use super::document::remark;
use super::style::Look;
use super::{Column, Document, Repeated, Style, Table, human};
use crate::analysis::Kind;
use crate::detect::{Candidate, FEWEST_POINTS, Findings, HardwareNumbers, Jump, Kink, Period, coincidences};

/// What x and y are.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Of the y values: `s`, `ms`, `GB/s`, or empty where it is not known.
    pub unit: &'a str,
    pub kind: Kind,
    /// One more of x: `example`, `token`, `unit of M`.
    pub item: &'a str,
}

/// What to say about one series.
#[derive(Clone, Copy, Debug)]
pub struct JumpTable<'a> {
    /// The series' name.
    pub label: &'a str,
    pub findings: &'a Findings,
    pub axes: Axes<'a>,
    /// The smallest jump, relative, that would have been seen, where that is known.
    pub smallest: Option<f64>,
    /// What the machine counts in, as far as it is known.
    pub hardware: HardwareNumbers,
    /// The share of false alarms of the machine's A/A runs, where there are any.
    pub aa_rate: Option<f64>,
}

/// The jump table of a series of which it is not known how small a jump would have been seen.
pub fn jump_table(label: &str, findings: &Findings, unit: &str, style: &Style) -> String {
    let axes = Axes { unit, kind: Kind::Time, item: "example" };
    JumpTable { label, findings, axes, smallest: None, hardware: HardwareNumbers::default(), aa_rate: None }
        .render(style)
}

/// What was found, in a sentence: `4 jumps after 16, 32, 48 and 64; period 16 (p = 0.0004)`. The charts say the same.
pub fn summary(findings: &Findings, smallest: Option<f64>) -> String {
    if let Some(repeated) = Repeated::of(findings) {
        let p = human::p_equals(repeated.p_value());
        let others: Vec<f64> = repeated.others(findings).map(|jump| jump.after).collect();
        return match others.len() {
            0 => format!("A jump {} ({p})", repeated.text()),
            1..17 => {
                let number = human::counted(others.len() as u64, "jump");
                format!("{number} after {}, and one {} ({p})", places(others.into_iter()), repeated.text())
            }
            number => format!("{}, and one {} ({p})", human::counted(number as u64, "jump"), repeated.text()),
        };
    }
    let period = findings.period.as_ref().map_or(String::new(), |period| {
        format!("; period {} ({})", human::batch_size(period.value), human::p_equals(period.p_value))
    });
    let number = human::counted(findings.jumps.len() as u64, "jump");
    match (findings.jumps.len(), smallest) {
        // Silence about jumps is a result only where one could have been seen.
        (0, _) if findings.points.is_empty() => "Nothing was measured.".to_string(),
        (0, _) if findings.points.len() < FEWEST_POINTS => {
            let sizes = human::counted(findings.points.len() as u64, "point");
            format!("Too few points to judge a jump: {sizes}, and at least {FEWEST_POINTS} are needed.")
        }
        (0, Some(smallest)) => format!("No jump; one of {} or more would have been seen.", human::limit(smallest)),
        (0, None) => "No jump.".to_string(),
        // More places than that are a table, not a sentence.
        (17.., _) => format!("{number}{period}"),
        _ => format!("{number} after {}{period}", places(findings.jumps.iter().map(|jump| jump.after))),
    }
}

fn places(x: impl Iterator<Item = f64>) -> String {
    human::listed(&x.map(human::batch_size).collect::<Vec<_>>())
}

impl JumpTable<'_> {
    /// Heading, table and explanations, each line with its end.
    pub fn render(&self, style: &Style) -> String {
        let mut text = format!("{}\n", style.paint(&style.wrap(&self.heading(), 2), Look::Bold));
        if !self.findings.jumps.is_empty() {
            // Narrow terminals keep what decides: where, how much, what it is.
            text.push_str(&self.painted(&self.table(style.width >= 72).render(style), style));
        }
        self.remarks().for_each(|(subject, line)| text.push_str(&remark(subject, &line, style)));
        text
    }

    /// The same, not laid out yet.
    pub fn document(&self) -> Document {
        let mut document = Document::default();
        document.heading(self.heading());
        if !self.findings.jumps.is_empty() {
            document.table(self.table(true));
        }
        self.remarks().for_each(|(subject, line)| document.remark(subject, line));
        document
    }

    fn heading(&self) -> String {
        let sentence = summary(self.findings, self.smallest);
        if self.label.is_empty() { sentence } else { format!("{}: {sentence}", self.label) }
    }

    /// Where nothing can be judged, none: the heading has said why.
    fn remarks(&self) -> impl Iterator<Item = (&'static str, String)> {
        let judged = self.findings.points.len() >= FEWEST_POINTS;
        self.explanations().into_iter().filter(move |_| judged)
    }

    fn table(&self, wide: bool) -> Table {
        let mut columns = vec![Column::right("after"), Column::right("size"), Column::right("relative")];
        if wide {
            columns.insert(2, Column::left("interval"));
            columns.push(Column::right("p"));
        }
        columns.push(Column::left("verdict"));
        let mut table = Table::new(columns);
        let repeated = Repeated::of(self.findings);
        let mut shown = false;
        for jump in &self.findings.jumps {
            let row = match &repeated {
                Some(repeated) if repeated.holds(jump) => {
                    if std::mem::replace(&mut shown, true) {
                        continue;
                    }
                    self.row_of_all(repeated)
                }
                _ => self.row(jump),
            };
            table.row(row.cells(wide));
        }
        table
    }

    fn row(&self, jump: &Jump) -> Row {
        let [first, at, last] = [jump.after_low, jump.after, jump.after_high].map(human::batch_size);
        Row {
            after: if first == last { at } else { format!("{at} ({first} to {last})") },
            size: self.size(jump.size),
            interval: human::range(jump.low, jump.high, self.axes.unit),
            relative: human::signed_percent(jump.relative),
            p: human::p_value(jump.p_value),
            verdict: jump.verdict.name(),
        }
    }

    /// All members of a staircase or sawtooth: their median, and from the smallest to the largest.
    fn row_of_all(&self, repeated: &Repeated) -> Row {
        Row {
            after: repeated.places(),
            size: self.size(repeated.size()),
            interval: human::range(repeated.smallest(), repeated.largest(), self.axes.unit),
            relative: format!("{} each", human::signed_percent(repeated.relative())),
            p: human::p_value(repeated.p_value()),
            verdict: repeated.verdict().name(),
        }
    }

    fn size(&self, size: f64) -> String {
        format!("{} {}", if size < 0.0 { DOWN } else { UP }, human::signed(size, self.axes.unit))
    }

    /// Everything beside the jumps, as (subject, text).
    fn explanations(&self) -> Vec<(&'static str, String)> {
        let findings = self.findings;
        let mut lines = Vec::new();
        if self.axes.kind == Kind::Rate && !findings.jumps.is_empty() {
            lines.push(("Rate", "these are changes of a rate: where it falls, the work is slower".to_string()));
        }
        lines.extend(findings.period.iter().map(|period| ("Period", explain_period(period))));
        lines.extend(findings.period.iter().filter_map(|period| Some(("Test", self.explain_coincidences(period)?))));
        lines.extend(findings.kinks.iter().map(|kink| ("Kink", self.explain_kink(kink))));
        let rejected = findings.rejected.iter().take(REJECTED).map(|candidate| ("Rejected", self.explain(candidate)));
        lines.extend(rejected);
        if findings.rejected.len() > REJECTED {
            let more = human::count((findings.rejected.len() - REJECTED) as u64);
            lines.push(("Rejected", format!("and {more} more candidates")));
        }
        lines.extend(findings.notes.iter().map(|note| ("Note", note.to_string())));
        lines.extend(findings.p_value.map(|p| ("Chance", explain_chance(p))));
        let rate = findings.false_positive_rate;
        let alarms = if rate.is_nan() {
            "this method states no rate of false alarms".to_string()
        } else {
            format!("a series without a jump shows one in at most {} of cases", human::limit(rate))
        };
        let control = self.aa_rate.map(|rate| format!("; A/A runs of this machine in {}", human::limit(rate)));
        lines.push(("Alarms", alarms + &control.unwrap_or_default()));
        lines
    }

    /// What of the hardware the period coincides with, where there is any.
    fn explain_coincidences(&self, period: &Period) -> Option<String> {
        let found = coincidences(period.value, &self.hardware);
        let value = human::batch_size(period.value);
        (!found.is_empty()).then(|| format!("{value} {}: a coincidence to test, not a cause", human::listed(&found)))
    }

    fn explain_kink(&self, kink: &Kink) -> String {
        let Axes { unit, kind, item } = self.axes;
        let (before, after) = (kink.slope_before, kink.slope_after);
        let size = |slope: f64| human::quantity(slope.abs(), unit);
        let verb = |slope: f64, up: &'static str, down: &'static str| if slope < 0.0 { down } else { up };
        let change = match kind {
            Kind::Time if before >= 0.0 && after >= 0.0 => {
                format!("each further {item} takes {} instead of {}", size(after), size(before))
            }
            Kind::Time => format!(
                "from there on each further {item} {} {}, up to there it {} {}",
                verb(after, "takes", "saves"),
                size(after),
                verb(before, "takes", "saves"),
                size(before)
            ),
            Kind::Rate => format!(
                "from there on the rate {} by {} with each further {item}, up to there it {} by {}",
                verb(after, "rises", "falls"),
                size(after),
                verb(before, "rises", "falls"),
                size(before)
            ),
        };
        format!("at {}: {change} ({})", human::batch_size(kink.at), human::p_equals(kink.p_value))
    }

    fn explain(&self, candidate: &Candidate) -> String {
        let size = human::signed(candidate.size, self.axes.unit);
        let p = human::p_equals(candidate.p_value);
        format!("{size} after {} ({p}): {}", human::batch_size(candidate.after), candidate.reason)
    }

    /// Slower is red, faster is green. Only after the layout: escapes have no width.
    fn painted(&self, table: &str, style: &Style) -> String {
        let (up, down) = match self.axes.kind {
            Kind::Time => (Look::Red, Look::Green),
            Kind::Rate => (Look::Green, Look::Red),
        };
        table.replace(UP, &style.paint(UP, up)).replace(DOWN, &style.paint(DOWN, down))
    }
}

/// The cells of a jump, as texts.
struct Row {
    after: String,
    size: String,
    interval: String,
    relative: String,
    p: String,
    verdict: &'static str,
}

impl Row {
    fn cells(self, wide: bool) -> Vec<String> {
        let mut cells = vec![self.after, self.size, self.relative];
        if wide {
            cells.insert(2, self.interval);
            cells.push(self.p);
        }
        cells.push(self.verdict.to_string());
        cells
    }
}

/// So many rejected candidates are listed one by one.
const REJECTED: usize = 5;
const UP: &str = "▲";
const DOWN: &str = "▼";

fn explain_period(period: &Period) -> String {
    let some = |all: &[f64], what: &str| match all.len() {
        ..17 => places(all.iter().copied()),
        many => human::counted(many as u64, what),
    };
    let missing = match period.unconfirmed.len() {
        0 => String::new(),
        _ => format!("; not confirmed after {}", some(&period.unconfirmed, "other place")),
    };
    let (value, p) = (human::batch_size(period.value), human::p_equals(period.p_value));
    format!("{value} ({p}), explains {}{missing}", some(&period.explains, "jump"))
}

fn explain_chance(p: f64) -> String {
    // Below that, another percentage says nothing.
    let share = if p < 0.001 { "fewer than 0.1 %".to_string() } else { human::limit(p) };
    format!("a step as strong as the strongest here is in {share} of series without a jump ({})", human::p_equals(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Point, Rejection, Verdict};

    const SECONDS: Axes = Axes { unit: "s", kind: Kind::Time, item: "example" };

    fn jump(after: f64, size: f64) -> Jump {
        let (low, high) = (size * 0.96, size * 1.05);
        let (after_low, after_high) = (after, after);
        Jump {
            after,
            after_low,
            after_high,
            size,
            low,
            high,
            relative: size / 0.1458,
            p_value: 0.0002,
            verdict: Verdict::Work,
        }
    }

    fn findings(jumps: Vec<Jump>) -> Findings {
        let point = |x| Point { x: f64::from(x), count: 5, center: 1.0, low: 1.0, high: 1.0, fit: 1.0, off: false };
        Findings {
            points: (1..=70).map(point).collect(),
            jumps,
            kinks: vec![],
            period: None,
            rejected: vec![],
            notes: vec![],
            false_positive_rate: 0.01,
            p_value: Some(0.34),
            detectable: None,
            factor: vec![],
        }
    }

    #[test]
    fn the_table_says_where_how_much_and_what() {
        let mut found = findings(vec![jump(16.0, 0.0121), jump(32.0, -0.000_58)]);
        found.period = Some(Period { value: 16.0, p_value: 0.0004, explains: vec![16.0, 32.0], unconfirmed: vec![] });
        found.kinks = vec![Kink { at: 5.0, slope_before: 0.001, slope_after: 0.0021, p_value: 0.001 }];
        found.rejected =
            vec![Candidate { after: 40.0, size: 0.001, p_value: 0.2, reason: Rejection::NoStepOfTheStaircase }];
        let expected = "\
vgg16: 2 jumps after 16 and 32; period 16 (p = 0.0004)
  after        size   interval              relative        p   verdict
 ────────────────────────────────────────────────────────────────────────
     16   ▲ +12.1 ms   11.6 to 12.7 ms           +8.3 %   0.0002   work
     32    ▼ -580 us   -557 to -609 us          -0.40 %   0.0002   work
  Period   16 (p = 0.0004), explains 16 and 32
  Kink     at 5: each further example takes 2.10 ms instead of 1.00 ms (p = 0.001)
  Rejected +1.00 ms after 40 (p = 0.200): the staircase has no step here
  Chance   a step as strong as the strongest here is in 34 % of series without a jump (p = 0.340)
  Alarms   a series without a jump shows one in at most 1 % of cases
";
        let squeezed = |text: &str| -> Vec<String> {
            text.lines().map(|l| l.replace('─', "").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
        };
        let text = jump_table("vgg16", &found, "s", &Style::PLAIN);
        assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    }

    #[test]
    fn a_period_is_reported_with_its_coincidences() {
        let mut found = findings(vec![jump(16.0, 0.0121), jump(32.0, 0.0121)]);
        found.period = Some(Period { value: 16.0, p_value: 0.0004, explains: vec![16.0, 32.0], unconfirmed: vec![] });
        let hardware = HardwareNumbers { threads: Some(8), ..HardwareNumbers::default() };
        let text = JumpTable { label: "", findings: &found, axes: SECONDS, smallest: None, hardware, aa_rate: None }
            .render(&Style::PLAIN);
        let expected = "  Test     16 is 2 times the number of threads (8): a coincidence to test, not a cause\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn no_jump_says_so_and_what_would_have_been_seen() {
        let found = findings(vec![]);
        let text = JumpTable {
            label: "A/A",
            findings: &found,
            axes: SECONDS,
            smallest: Some(0.005),
            hardware: HardwareNumbers::default(),
            aa_rate: Some(0.005),
        }
        .render(&Style::PLAIN);
        assert!(text.ends_with("in at most 1 % of cases; A/A runs of this machine in 0.5 %\n"), "{text}");
        assert!(text.starts_with("A/A: No jump; one of 0.5 % or more would have been seen.\n"), "{text}");
        assert!(jump_table("", &found, "s", &Style::PLAIN).starts_with("No jump.\n"));
        assert!(!text.contains("after"), "an empty table is not shown: {text}");
    }

    #[test]
    fn too_little_data_is_not_called_jump_free() {
        let mut found = findings(vec![]);
        found.points.truncate(7);
        let few = "Too few points to judge a jump: 7 points, and at least 8 are needed.";
        assert_eq!(summary(&found, Some(0.005)), few);
        assert_eq!(jump_table("", &found, "s", &Style::PLAIN), format!("{few}\n"));
        found.points.clear();
        assert_eq!(summary(&found, Some(0.005)), "Nothing was measured.");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut found = findings((1..=15).map(|k| jump(f64::from(4 * k), 0.01)).collect());
        let reason = Rejection::NotAmongNeighbours { local: 1.3 };
        found.rejected = vec![Candidate { after: 40.0, size: 0.001, p_value: 0.2, reason }; 7];
        for width in [40, 60, 72, 80, 160] {
            let text = jump_table("vgg16, tf32", &found, "s", &Style { color: false, width });
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{width}: {text}");
            assert_eq!(text.matches('▲').count(), 15);
            assert!(text.contains("and 2 more"));
        }
    }

    #[test]
    fn colour_changes_nothing_but_escapes() {
        let found = findings(vec![jump(16.0, 0.0121), jump(32.0, -0.0121)]);
        let plain = jump_table("vgg16", &found, "s", &Style { color: false, width: 100 });
        let mut colored = jump_table("vgg16", &found, "s", &Style { color: true, width: 100 });
        assert!(colored.contains("\x1b[31m▲\x1b[0m") && colored.contains("\x1b[32m▼\x1b[0m"));
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
            colored = colored.replace(code, "");
        }
        assert_eq!(colored, plain);
    }

    fn rendered(found: &Findings, axes: Axes) -> String {
        let hardware = HardwareNumbers::default();
        JumpTable { label: "", findings: found, axes, smallest: None, hardware, aa_rate: None }.render(&Style::PLAIN)
    }

    #[test]
    fn a_place_that_is_not_certain_has_an_interval() {
        let found =
            findings(vec![Jump { after_low: 15.0, after_high: 17.0, ..jump(16.0, 0.0121) }, jump(32.0, 0.0121)]);
        let text = rendered(&found, SECONDS);
        let lines: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let starts = |start: &str| lines.iter().any(|line| line.starts_with(start));
        assert!(starts("16 (15 to 17) ▲ +12.1 ms") && starts("32 ▲ +12.1 ms"), "{text}");
    }

    #[test]
    fn a_staircase_of_many_members_is_one_line() {
        let mut jumps: Vec<Jump> = (1..=24).map(|k| jump(f64::from(2 * k), 0.0121)).collect();
        jumps.push(jump(61.0, 0.2));
        let mut found = findings(jumps);
        let explains: Vec<f64> = (1..=24).map(|k| f64::from(2 * k)).collect();
        found.period = Some(Period { value: 2.0, p_value: 0.0004, explains, unconfirmed: vec![50.0, 52.0] });
        // 0.0121 of 0.1458 is 8.3 %.
        let sentence = "1 jump after 61, and one every 2, 24 times, +8.3 % each (p = 0.0004)";
        assert_eq!(summary(&found, None), sentence);
        let text = rendered(&found, SECONDS);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains('▲')).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert!(rows[0].contains("every 2, 24 times") && rows[0].contains("+8.3 % each"), "{text}");
        assert!(text.contains("Period   2 (p = 0.0004), explains 24 jumps; not confirmed after 50 and 52"), "{text}");
    }

    #[test]
    fn a_rate_is_called_a_rate() {
        let mut found = findings(vec![Jump { relative: -0.12, ..jump(256.0, -14.0) }]);
        found.kinks = vec![Kink { at: 64.0, slope_before: 2.5, slope_after: -0.5, p_value: 0.001 }];
        let axes = Axes { unit: "GB/s", kind: Kind::Rate, item: "unit of N" };
        let text = rendered(&found, axes);
        assert!(text.contains("▼ -14.0 GB/s") && text.contains("-12 %"), "{text}");
        assert!(text.contains("these are changes of a rate: where it falls, the work is slower"), "{text}");
        let kink = "at 64: from there on the rate falls by 0.500 GB/s with each further unit of N, up to there it rises by 2.50 GB/s";
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(kink), "{text}");
        let style = Style { color: true, width: 100 };
        let hardware = HardwareNumbers::default();
        let table = JumpTable { label: "", findings: &found, axes, smallest: None, hardware, aa_rate: None };
        assert!(table.render(&style).contains("\x1b[31m▼\x1b[0m"), "a fall of the rate is slower");
    }

    #[test]
    fn a_time_that_falls_is_saved() {
        let mut found = findings(vec![]);
        found.kinks = vec![Kink { at: 5.0, slope_before: -0.0002, slope_after: 0.0021, p_value: 0.001 }];
        let text = rendered(&found, Axes { item: "token", ..SECONDS });
        let expected = "at 5: from there on each further token takes 2.10 ms, up to there it saves 200 us";
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected), "{text}");
    }

    #[test]
    fn many_jumps_are_counted_and_not_listed() {
        let found = findings((1..=17).map(|k| jump(f64::from(k), 0.01)).collect());
        assert_eq!(summary(&found, None), "17 jumps");
        assert_eq!(summary(&findings(vec![jump(16.0, 0.01)]), None), "1 jump after 16");
    }
}
