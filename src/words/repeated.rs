//! The members of a staircase or sawtooth, reported together.

use crate::detect::{Findings, Jump, Period, Verdict};
use crate::units::human;

/// Many jumps that a period explains, about equal in size: one line in a table, one clause in a sentence.
#[derive(Clone, Debug)]
pub struct Repeated<'a> {
    period: &'a Period,
    /// Ascending; more than [`FEW`].
    members: Vec<&'a Jump>,
    /// Whether each leads to a multiple of the period, and the curve goes back before the next: the teeth of a saw, not the treads of a staircase.
    teeth: bool,
}

/// Up to this many members are listed one by one.
const FEW: usize = 8;
/// A jump that is at least this many times larger or smaller than the median member, or has the other sign, has a line of its own: it is
/// another jump at the same place.
const ALIKE: f64 = 3.0;

impl<'a> Repeated<'a> {
    /// `None` if there is no period, or if few of its jumps are alike.
    pub fn of(findings: &'a Findings) -> Option<Self> {
        let period = findings.period.as_ref()?;
        let explained = |jump: &&Jump| period.explains.contains(&jump.after);
        let mut members: Vec<&Jump> = findings.jumps.iter().filter(explained).collect();
        let mut sizes: Vec<f64> = members.iter().map(|jump| jump.size).collect();
        sizes.sort_by(f64::total_cmp);
        let median = *sizes.get(sizes.len() / 2)?;
        members.retain(|jump| (1.0 / ALIKE..=ALIKE).contains(&(jump.size / median)));
        (members.len() > FEW).then(|| Self { period, teeth: teeth(findings, period, &members), members })
    }

    pub fn holds(&self, jump: &Jump) -> bool {
        self.members.iter().any(|member| member.after == jump.after)
    }

    pub fn others<'b>(&'b self, findings: &'b Findings) -> impl Iterator<Item = &'b Jump> {
        findings.jumps.iter().filter(|jump| !self.holds(jump))
    }

    /// `every 2, 247 times`; with the first, where it is no multiple of the period: `every 82 from 83, 12 times`. Of a saw: `to multiples of 4, 16 times`.
    pub fn places(&self) -> String {
        let first = self.members[0].after;
        let is_multiple = first % self.period.value == 0.0;
        let (value, times) = (human::batch_size(self.period.value), human::count(self.members.len() as u64));
        match (self.teeth, is_multiple) {
            (true, _) => format!("to multiples of {value}, {times} times"),
            (false, true) => format!("every {value}, {times} times"),
            (false, false) => format!("every {value} from {}, {times} times", human::batch_size(first)),
        }
    }

    /// `every 2, 247 times, +3.1 % each`.
    pub fn text(&self) -> String {
        format!("{}, {} each", self.places(), human::signed_percent(self.relative()))
    }

    /// For a saw: `Multiples of 4 are 18 % below the size before them, 16 times`; else `A jump every 2, 247 times, +3.1 % each`.
    pub fn sentence(&self) -> String {
        if !self.teeth {
            return format!("A jump {}", self.text());
        }
        let (value, times) = (human::batch_size(self.period.value), human::count(self.members.len() as u64));
        let way = if self.sizes()[1] < 0.0 { "below" } else { "above" };
        let percent = human::percent(self.relative().abs());
        format!("Multiples of {value} are {percent} {way} the size before them, {times} times")
    }

    /// The size nearest to zero, the median one, and the farthest from zero, in the unit of y.
    pub fn sizes(&self) -> [f64; 3] {
        self.spread(|jump| jump.size)
    }

    pub fn relative(&self) -> f64 {
        self.spread(|jump| jump.relative)[1]
    }

    fn spread(&self, value: fn(&Jump) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.members.iter().map(|jump| value(jump)).collect();
        values.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        [values[0], values[values.len() / 2], values[values.len() - 1]]
    }

    pub fn p_value(&self) -> f64 {
        self.period.p_value
    }

    /// The verdict of all members if they agree, else ambiguous.
    pub fn verdict(&self) -> Option<Verdict> {
        let first = self.members[0].verdict;
        if self.members.iter().all(|jump| jump.verdict == first) { first } else { Some(Verdict::Ambiguous) }
    }
}

/// The most of the sum of all teeth that remains of it from the first to the last.
const LEFT: f64 = 0.5;

fn teeth(findings: &Findings, period: &Period, members: &[&Jump]) -> bool {
    let next = |after: f64| findings.points.iter().find(|point| point.x > after);
    let leads = |jump: &&Jump| next(jump.after).is_some_and(|point| point.x.rem_euclid(period.value) == 0.0);
    let ends = members.first().zip(members.last()).and_then(|(a, b)| next(a.after).zip(next(b.after)));
    // The first tooth is before the first of these points.
    let sum: f64 = members.iter().skip(1).map(|jump| jump.size).sum();
    members.iter().all(leads) && ends.is_some_and(|(first, last)| (last.fit - first.fit) / sum < LEFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Point;

    fn jump(after: f64, size: f64) -> Jump {
        Jump::planted(after, size, size / 10.0)
    }

    fn staircase(sizes: &[f64]) -> Findings {
        let jumps: Vec<Jump> = sizes.iter().enumerate().map(|(i, size)| jump(83.0 + 82.0 * i as f64, *size)).collect();
        let explains = jumps.iter().map(|jump| jump.after).collect();
        let period = Some(Period { value: 82.0, p_value: 1e-5, explains, unconfirmed: vec![] });
        Findings { jumps, period, ..Findings::default() }
    }

    #[test]
    fn the_middle_member_represents_all() {
        let findings = staircase(&[-3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0, -10.0, -11.0]);
        let repeated = Repeated::of(&findings).expect("nine");
        assert_eq!(repeated.text(), "every 82 from 83, 9 times, -70 % each");
        assert_eq!(repeated.sizes(), [-3.0, -7.0, -11.0]);
        assert_eq!(repeated.verdict(), Some(Verdict::Work));
    }

    #[test]
    fn another_jump_at_a_place_of_the_period_is_no_member() {
        let mut sizes = [-1.0; 12];
        (sizes[3], sizes[7]) = (2.0, -4.0);
        let findings = staircase(&sizes);
        let repeated = Repeated::of(&findings).expect("ten");
        assert_eq!(repeated.text(), "every 82 from 83, 10 times, -10 % each");
        // 83 + 3 x 82 and 83 + 7 x 82.
        assert_eq!(repeated.others(&findings).map(|jump| jump.after).collect::<Vec<_>>(), [329.0, 657.0]);
    }

    /// From 3 to 4, from 7 to 8, ... the planted curve falls, and rises back before the next multiple of 4; with the slope the falls are no staircase.
    #[test]
    fn the_teeth_of_a_saw_are_told_by_their_multiples() {
        let falls: Vec<f64> = (0..12).map(|i| f64::from(3 + 4 * i)).collect();
        let fit = |x: f64| 10.0 + 0.01 * x + x.rem_euclid(4.0);
        let point = |x: u32| {
            let fit = fit(f64::from(x));
            Point { x: f64::from(x), count: 1, center: fit, low: fit, high: fit, fit, off: false }
        };
        let jumps: Vec<Jump> = falls.iter().map(|after| jump(*after, -3.0)).collect();
        let period = Some(Period { value: 4.0, p_value: 1e-9, explains: falls.clone(), unconfirmed: vec![] });
        let findings = Findings { jumps, period, points: (1..=60).map(point).collect(), ..Findings::default() };
        let repeated = Repeated::of(&findings).expect("twelve");
        assert_eq!(repeated.sentence(), "Multiples of 4 are 30 % below the size before them, 12 times");
        assert_eq!(repeated.places(), "to multiples of 4, 12 times");
        let mut falling = findings.clone();
        falling.points.iter_mut().for_each(|point| point.fit = 100.0 - 0.75 * point.x);
        assert_eq!(Repeated::of(&falling).expect("twelve").places(), "every 4 from 3, 12 times");
    }

    #[test]
    fn few_members_are_listed_one_by_one() {
        assert!(Repeated::of(&staircase(&[1.0; 8])).is_none());
        assert!(Repeated::of(&Findings { period: None, ..staircase(&[1.0; 9]) }).is_none());
    }
}
