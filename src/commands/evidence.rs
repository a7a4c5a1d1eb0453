//! What the stored data of a run say, gathered once for its tables, its charts and its page.

use std::path::Path;

use batchstep::analysis::compare::Rules;
use batchstep::analysis::contrast::Contrast;
use batchstep::analysis::contrast::parallel::{Parallel, parallel, reducing};
use batchstep::analysis::contrast::scaling::scaling;
use batchstep::analysis::contrast::side_by_side::{Pair, side_by_side};
use batchstep::analysis::contrast::transfer::transfers;
use batchstep::analysis::crossover::Crossovers;
use batchstep::analysis::losses;
use batchstep::analysis::mechanisms::{self, Answers};
use batchstep::analysis::roofline::{self, Nearest};
use batchstep::analysis::{Analysed, Query, Series, analyse};
use batchstep::chart::ChartSeries;
use batchstep::chart::chart_data::{self, Drawing, SweepCharts};
use batchstep::detect::FEWEST_POINTS;
use batchstep::error::Result;
use batchstep::os::look;
use batchstep::page::{Charts, Files, Picture, Reason, RunPage};
use batchstep::report::json::PathFindings;
use batchstep::report::{self, Answer, Document, Question};
use batchstep::store::files;
use serde_json::json;

use super::findings;
use super::jumps::{inside, jump_tables, switches};
use super::output::or_said;

/// Everything that is known about one run or file.
pub struct Evidence {
    pub seen: PathFindings,
    /// The engines of the run side by side.
    pub pairs: Vec<Pair>,
    /// Several threads and several processes against the fewest, and copies of the batch against none, where the run has them.
    scaling: Vec<Contrast<u32>>,
    parallel: Vec<Parallel>,
    transfers: Vec<Contrast>,
    /// For each series the mechanisms behind its jumps; empty where there are no layers.
    pub answers: Vec<Answers>,
    /// From which size on one series is the faster one.
    pub crossovers: Crossovers,
    pub figures: SweepCharts,
    /// What the run has of crossovers, efficiency and copies.
    pub drawings: Vec<Drawing>,
}

impl Evidence {
    /// Reads a run or a file.
    pub fn read(path: &Path, query: &Query) -> Result<Self> {
        Self::of(findings::stored(path, analyse(path, query, None)?)?)
    }

    /// Gathers what else is known.
    pub fn of(seen: PathFindings) -> Result<Self> {
        let PathFindings { path, found, explained, advices, .. } = &seen;
        let answers = if look::is_file(&path.join(files::LAYERS))? && look::is_file(&path.join(files::SPEC))? {
            or_said("the mechanisms of the jumps are not named", mechanisms::of_run(path, found, explained))
        } else {
            Vec::new()
        };
        // Those of which something may be reported.
        let ripe: Vec<&Analysed> = found.iter().filter(|found| found.findings.early.is_none()).collect();
        let reducing = or_said("the time in all-reduce is not known", reducing(path));
        let parallel = parallel(&ripe, &reducing);
        let ripe: Vec<&Series> = ripe.into_iter().map(|found| &found.series).collect();
        let pairs = side_by_side(&ripe, &Rules::default());
        let (scaling, transfers) = (scaling(&ripe), transfers(&ripe));
        let crossovers = Crossovers::of(path, &ripe)?;
        let figures = SweepCharts::of(path, found, advices);
        let drawings = [
            chart_data::crossover(path, found, &crossovers),
            chart_data::efficiency(path, found, &parallel),
            chart_data::copying(path, found, &answers),
        ];
        let drawings = drawings.into_iter().flatten().collect();
        Ok(Self { seen, pairs, scaling, parallel, transfers, answers, crossovers, figures, drawings })
    }

    /// The mechanisms of the series for which any is known, and what their copies have to do with their jumps.
    pub fn mechanisms(&self) -> Vec<Reason> {
        let known = |answers: &Answers| {
            let candidates = answers.jumps.iter().any(|jump| !jump.candidates.is_empty());
            candidates || (answers.copying.is_some() || !answers.interventions.is_empty()) && !answers.jumps.is_empty()
        };
        let shown = self.seen.found.iter().zip(&self.answers).filter(|(_, answers)| known(answers));
        let reason = |(found, answers): (&Analysed, &Answers)| Reason {
            name: format!("{}: mechanisms", found.series.label()),
            document: report::explanation(found, answers),
        };
        shown.map(reason).collect()
    }

    /// The layers that step at the jumps of each series.
    fn layers(&self) -> impl Iterator<Item = Reason> {
        self.seen.found.iter().zip(&self.seen.explained).map(|(found, explained)| {
            let label = found.series.label();
            Reason { name: format!("{label}: layers"), document: report::causes(&label, explained) }
        })
    }

    /// What changes inside a step of one's own, and what would show the causes.
    fn of_own_step(&self) -> impl Iterator<Item = Reason> {
        let documents = [
            ("Inside the step", inside(&self.seen.path)),
            ("To see the cause", switches(&self.seen.path, &self.seen.found)),
        ];
        let shown = documents.into_iter().filter(|(_, document)| !document.is_empty());
        shown.map(|(name, document)| Reason { name: name.to_owned(), document })
    }

    /// Several engines side by side, several numbers of threads or of processes, several ways of the data, the device's peaks, and crossovers, where the
    /// run has them.
    pub fn beside(&self) -> Vec<Document> {
        let documents = [
            report::side_by_side(&self.pairs),
            report::scaling(&self.scaling),
            report::parallel(&self.parallel),
            report::transfers(&self.transfers),
            report::roofline(&self.nearest()),
            report::crossover(&self.crossovers),
        ];
        documents.into_iter().filter(|document| !document.is_empty()).collect()
    }

    /// Where the run was made, for the grounds of an answer.
    fn origin(&self) -> String {
        self.seen.found.first().map_or_else(String::new, |found| found.series.origin())
    }

    /// How several engines of the run compare.
    pub fn engines(&self) -> Vec<Answer> {
        let mut answers = report::side_by_side_answers(&self.pairs, &self.origin());
        answers.extend(report::crossover_answers(&self.crossovers, &self.origin()));
        // Whether they compute the same.
        if !self.pairs.is_empty() {
            let agreements = or_said("whether the losses agree is not known", losses::of_run(&self.seen.path));
            answers.extend(agreements.iter().map(|one| Answer { sentence: one.sentence(), grounds: Vec::new() }));
        }
        answers
    }

    /// How near the run comes to the device's peaks.
    fn nearest(&self) -> Vec<Nearest> {
        // Nothing may be reported of a series yet.
        if self.seen.found.iter().any(|found| found.findings.early.is_some()) {
            return Vec::new();
        }
        or_said("the distance from the device's peaks is not known", roofline::of_run(&self.seen.path))
    }

    /// How the engines compare, and where each series jumps; series with too few points to say so share a sentence.
    pub fn answers(&self) -> Vec<Answer> {
        let step_time = &self.figures.step_time;
        let origin = self.origin();
        let answer = |(at, series): (usize, &ChartSeries)| {
            let (y, x, unit) = (&step_time.y.name, &step_time.x.name, &step_time.y.unit);
            let (findings, answers, origin) = (&series.findings, self.answers.get(at), origin.as_str());
            let question = Question { label: &series.name, findings, y, x, unit, origin, answers };
            report::answer(&question)
        };
        let judged = |series: &ChartSeries| series.findings.points.len() >= FEWEST_POINTS;
        let short = step_time.series.iter().filter(|series| !judged(series)).count();
        let mut answers = self.engines();
        let shown = step_time.series.iter().enumerate().filter(|(_, series)| judged(series) || short == 1);
        answers.extend(shown.map(answer));
        if short > 1 {
            let sentence = format!("{short} series have fewer than {FEWEST_POINTS} points, too few to judge a jump.");
            answers.push(Answer { sentence, grounds: Vec::new() });
        }
        answers
    }

    /// The run as its page shows it.
    pub fn page(&self) -> Result<RunPage<'_>> {
        let SweepCharts { step_time, honesty } = &self.figures;
        Ok(RunPage {
            source: &self.seen.path,
            title: Some(&step_time.title),
            facts: step_time.caption.split_last().map_or(&[][..], |(_made, said)| said).to_vec(),
            kind: "Jumps",
            charts: Charts::Sweep { found: &self.seen.found, step_time, honesty: honesty.as_ref() },
            answers: self.answers(),
            advice: report::size_advices(&self.seen.found, &self.seen.advices, self.seen.found.len(), false),
            warnings: self.seen.warnings.clone(),
            tables: jump_tables(&self.seen.found, &self.seen.controls),
            why: self.layers().chain(self.mechanisms()).chain(self.of_own_step()).collect(),
            beside: self.beside(),
            pictures: self.drawings.iter().map(Picture::new).collect::<Result<_>>()?,
            documents: self.documents(),
            files: Files::of(&self.seen.path),
        })
    }

    /// The contents of `jumps.json`, and of `batchstep explain --format json`.
    fn documents(&self) -> serde_json::Value {
        json!({
            "source": self.seen.path.display().to_string(),
            "jumps": report::json::jumps(std::slice::from_ref(&self.seen)),
            "mechanisms": report::explanation_json(self.seen.found.iter().zip(&self.answers)),
        })
    }
}
