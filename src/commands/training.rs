//! `batchstep run` on a spec of `kind = "training"`: from the data to the table, the chart and the advice.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use batchstep::analysis::epochs::EpochStudy;
use batchstep::atomic;
use batchstep::data;
use batchstep::engine::automatic::First;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::{Error, Kind, Result};
use batchstep::figures;
use batchstep::page;
use batchstep::qualification::{Asked, Qualified};
use batchstep::report::{self, Warning};
use batchstep::run::RunFacts;
use batchstep::run::environment::RunEnvironment;
use batchstep::spec::training::Training;
use batchstep::store::{Begin, EpochRow, Opened, RunDirectory, count_visits, files};
use batchstep::training::{self, Observer, Outcome, Progress, Study, TrainingCell, TrainingPlan};
use batchstep::units::human;

use super::left_out::narrow;
use super::progress::StudyDisplay;
use super::qualify::qualify;
use super::report::{PAGE, Trained};
use super::run::said;
use super::{Exit, notice, print, print_aside};

/// One training study that is being run.
pub struct Session<'a> {
    pub spec: &'a Training,
    pub device: DeviceChoice,
    pub path: PathBuf,
    pub begin: Begin,
    /// Where the results go in hyperfine's format, if anywhere.
    pub export: Option<&'a Path>,
    /// Which engines are checked before.
    pub asked: Asked,
    pub interrupted: &'a AtomicBool,
}

/// The resolved spec and the size of the plan; nothing is opened.
pub fn dry_run(spec: &Training) {
    spec.notices.iter().for_each(notice);
    print(&spec.to_toml());
    let cells = spec.cell_count();
    let visits = cells * spec.measure.repetitions;
    let epochs = human::counted((visits * spec.measure.epochs) as u64, "epoch");
    let counted = |number: usize, noun| human::counted(number as u64, noun);
    print(&format!(
        "\n{}, visited {} each: {epochs}, each visit after {} of warm-up\n",
        counted(cells, "cell"),
        counted(spec.measure.repetitions, "time"),
        counted(spec.measure.warmup_steps, "step")
    ));
}

impl Session<'_> {
    pub fn run(&self) -> Result<Exit> {
        self.spec.notices.iter().for_each(notice);
        let mut engines =
            Engines::open_available(&self.spec.engines, &self.spec.optional, First::Cudnn, self.device, None)?;
        engines.notices.drain(..).for_each(notice);
        let data = data::open(&self.spec.data, self.spec.measure.seed)?;
        data.notices.iter().for_each(notice);
        let mut spec = self.spec.clone();
        spec.engines.retain(|engine| engines.has(*engine));
        spec.optional.retain(|engine| engines.has(*engine));
        let settings = narrow(&mut spec.grid, &spec.engines, &mut engines)?;
        let (spec, left_out) = training::without_unfit(&spec, &data, &mut engines);
        let unfit = (!left_out.is_empty()).then_some(Warning::EnginesLeftOut { what: left_out });
        let left_out = settings.into_iter().chain(unfit).collect();
        Session { spec: &spec, path: self.path.clone(), ..*self }.run_with(&mut engines, &data, left_out)
    }

    /// Runs with open engines and data; the warnings `left_out` are printed at the end.
    fn run_with(&self, engines: &mut Engines, data: &data::DataSet, left_out: Vec<Warning>) -> Result<Exit> {
        let plan = self.plan(data, engines)?;
        let qualified = qualify(&plan.steps(), engines, self.asked)?;
        let notices = batchstep::run::check(&plan.steps(), engines)?;
        let opened = RunDirectory::open(&self.path, &self.spec.to_toml(), self.begin)?;
        notices.iter().chain(&opened.notices).for_each(notice);
        if opened.complete {
            notice("this run is finished; nothing is left to resume");
            return self.conclude(left_out);
        }
        let outcome = self.study(&plan, data, engines, (opened, qualified))?;
        self.conclude(left_out.into_iter().chain(self.warnings(&outcome, &plan)?).collect())
    }

    fn plan(&self, data: &data::DataSet, engines: &mut Engines) -> Result<TrainingPlan> {
        let plan = TrainingPlan::new(self.spec, data, engines)?;
        training::check(&plan, &self.spec.loader, data, engines)?;
        Ok(plan)
    }

    fn study(
        &self,
        plan: &TrainingPlan,
        data: &data::DataSet,
        engines: &mut Engines,
        (opened, qualified): (Opened, Qualified),
    ) -> Result<Outcome> {
        let Opened { directory, environment, .. } = opened;
        let mut device = engines.open_device();
        let steps = plan.steps();
        let fingerprint = format!("{:016x}", data.fingerprint);
        let environment = match environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => begun?.resumed(device.as_mut()),
            None => RunEnvironment::begin(&self.spec.name, &steps, engines, device.as_mut()).with_data(&fingerprint),
        };
        if environment.data.as_ref().is_some_and(|begun| *begun != fingerprint) {
            return Err(Error::new(Kind::Conflict, "the data are not those that the run was begun with")
                .at(self.path.display().to_string())
                .hint("resume with the same data, or choose another folder with `--out DIR`"));
        }
        directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        let mut notices = Vec::new();
        let stored = directory.all(&mut notices)?;
        notices.iter().for_each(notice);
        let mut display = StudyDisplay::new(&self.spec.name);
        let mut outcome = training::run(
            Study {
                plan,
                spec: self.spec,
                data,
                facts: RunFacts::new(environment.run_id.clone(), &steps, engines)?.with_qualified(qualified.cells),
                engines,
                device: device.as_mut(),
                ledger: &directory,
                observer: &mut display,
                interrupted: self.interrupted,
                scratch: directory.scratch()?,
            },
            &stored,
        )?;
        display.finish();
        outcome.complete = said(directory.seal_epochs(outcome.complete)?);
        Ok(outcome)
    }

    fn warnings(&self, outcome: &Outcome, plan: &TrainingPlan) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        match &outcome.stopped {
            Some(error) => warnings.push(Warning::Stopped { message: error.to_string() }),
            None if !outcome.complete => warnings.push(Warning::Interrupted),
            None => {}
        }
        if outcome.out_of_time {
            let visits = count_visits::<EpochRow>(&self.path)?;
            warnings.push(Warning::OutOfTime { visits, of: plan.cells.len() * self.spec.measure.repetitions });
        }
        Ok(warnings)
    }

    /// Prints the table and the advice, and draws the chart, from the stored data.
    fn conclude(&self, mut warnings: Vec<Warning>) -> Result<Exit> {
        let style = report::Style::of_terminal();
        let study = EpochStudy::read(&self.path)?;
        warnings.extend(report::training_warnings(&study));
        print(&report::training(&study).render(&style));
        if let Some(path) = self.export {
            atomic::write_text(path, &report::hyperfine_json(&study))?;
        }
        let destination = figures::Destination::in_run(self.path.clone());
        let chart = figures::training(&self.path, &study);
        let drawn = figures::draw_training(&chart, &destination)?;
        let written = self.path.join(PAGE);
        let trained = Trained { path: self.path.clone(), study, chart, warnings };
        page::write(&[trained.page()], &written)?;
        let warnings = trained.warnings;
        print(&format!("\nRun      {}\n", self.path.display()));
        for figure in drawn {
            print(&format!("Chart    {}\n", figure.display()));
        }
        print(&format!("Report   {}\n", written.display()));
        warnings.iter().for_each(|warning| print_aside(&format!("{}\n", warning.text(&style))));
        Ok(if warnings.is_empty() { Exit::Done } else { Exit::Warned })
    }
}

impl Observer for StudyDisplay {
    fn visited(&mut self, cell: &TrainingCell, epochs: &[EpochRow], progress: Progress) {
        let time = epochs.iter().rev().find(|row| !row.warmup).and_then(|row| row.epoch_time_s);
        let time = time.map_or_else(|| "failed".to_owned(), human::seconds);
        let Progress { visits, of, left_s, .. } = progress;
        let place =
            format!("{} {}, {}", cell.step.engine, cell.step.batch_size, human::counted(cell.workers as u64, "worker"));
        StudyDisplay::visited(self, visits, of, left_s, &format!("{place}: {time}"));
    }

    fn warn(&mut self, message: &str) {
        StudyDisplay::warn(self, message);
    }
}
