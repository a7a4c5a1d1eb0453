//! `batchstep run` on a spec of `kind = "pipeline"`: from the images that it makes to the tables, the chart and the advice.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use batchstep::analysis::feeding::FeedingStudy;
use batchstep::device::root::FilesystemRoot;
use batchstep::device::storage::Storage;
use batchstep::engine::automatic::First;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::figures;
use batchstep::page;
use batchstep::pipeline::{self, Made, Observer, Outcome, PipelineCell, PipelinePlan, Progress, Study};
use batchstep::qualification::{Asked, Qualified};
use batchstep::report::{self, Warning};
use batchstep::run::RunFacts;
use batchstep::run::environment::RunEnvironment;
use batchstep::spec::pipeline::Pipeline;
use batchstep::store::{Begin, Opened, PipelineRow, RunDirectory, count_visits, files};
use batchstep::units::human;

use super::left_out::narrow;
use super::pictured::Pictured;
use super::progress::StudyDisplay;
use super::qualify::qualify;
use super::report::PAGE;
use super::run::said;
use super::{Exit, notice, print, print_aside};

/// One study that is being run.
pub struct Session<'a> {
    pub spec: &'a Pipeline,
    pub device: DeviceChoice,
    pub path: PathBuf,
    pub begin: Begin,
    /// Which engines are checked first.
    pub asked: Asked,
    pub interrupted: &'a AtomicBool,
}

/// The resolved spec and the size of the plan; nothing is opened.
pub fn dry_run(spec: &Pipeline) {
    spec.notices.iter().for_each(notice);
    print(&spec.to_toml());
    let cells = spec.cell_count();
    let files = spec.data.images * spec.data.sizes.len() * spec.data.formats.len();
    print(&format!(
        "\n{}, visited {} each, on {} that are made and removed\n",
        human::counted(cells as u64, "cell"),
        human::counted(spec.measure.repetitions as u64, "time"),
        human::counted(files as u64, "file")
    ));
}

impl Session<'_> {
    pub fn run(&self) -> Result<Exit> {
        self.spec.notices.iter().for_each(notice);
        let mut engines =
            Engines::open_available(&self.spec.engines, &self.spec.optional, First::Cudnn, self.device, None)?;
        engines.notices.drain(..).for_each(notice);
        let mut spec = self.spec.clone();
        spec.engines.retain(|engine| engines.has(*engine));
        spec.optional.retain(|engine| engines.has(*engine));
        let left_out = narrow(&mut spec.grid, &spec.engines, &mut engines)?.into_iter().collect();
        Session { spec: &spec, path: self.path.clone(), ..*self }.run_with(&mut engines, left_out)
    }

    /// Runs with open engines; the warnings `left_out` are printed at the end.
    fn run_with(&self, engines: &mut Engines, left_out: Vec<Warning>) -> Result<Exit> {
        let plan = self.plan(engines)?;
        let qualified = qualify(&plan.steps(), engines, self.asked)?;
        let notices = batchstep::run::check(&plan.steps(), engines)?;
        let opened = RunDirectory::open(&self.path, &self.spec.to_toml(), self.begin)?;
        notices.iter().chain(&opened.notices).for_each(notice);
        if opened.complete {
            notice("this run is finished; nothing is left to resume");
            return self.conclude(left_out);
        }
        let outcome = self.study(&plan, engines, (opened, qualified))?;
        self.conclude(left_out.into_iter().chain(self.warnings(&outcome, &plan)?).collect())
    }

    fn plan(&self, engines: &mut Engines) -> Result<PipelinePlan> {
        let plan = PipelinePlan::new(self.spec, engines)?;
        pipeline::check(&plan, self.spec, engines)?;
        Ok(plan)
    }

    /// Makes the images where the spec says.
    fn images(&self, directory: &RunDirectory) -> Result<Made> {
        let root = match &self.spec.data.folder {
            Some(folder) => folder.join(format!("batchstep-{}-{}", self.spec.name, std::process::id())),
            None => directory.scratch()?.join("images"),
        };
        notice(format!("making the images in {}", root.display()));
        Made::new(&root, &self.spec.data, self.spec.measure.seed)
    }

    fn study(
        &self,
        plan: &PipelinePlan,
        engines: &mut Engines,
        (opened, qualified): (Opened, Qualified),
    ) -> Result<Outcome> {
        let Opened { directory, environment, .. } = opened;
        let mut device = engines.open_device();
        let steps = plan.steps();
        let environment = match environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => begun?.resumed(device.as_mut()),
            None => RunEnvironment::begin(&self.spec.name, &steps, engines, device.as_mut()),
        };
        directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        let mut notices = Vec::new();
        let stored = directory.all(&mut notices)?;
        notices.iter().for_each(notice);
        let made = self.images(&directory)?;
        let folder = self.spec.data.folder.as_deref().unwrap_or(&self.path);
        let storage = Storage::under(&FilesystemRoot::system(), folder).describe();
        let mut display = StudyDisplay::new(&self.spec.name);
        let mut outcome = pipeline::run(
            Study {
                plan,
                spec: self.spec,
                made: &made,
                storage: &storage,
                facts: RunFacts::new(environment.run_id.clone(), &steps, engines)?.with_qualified(qualified.cells),
                engines,
                ledger: &directory,
                observer: &mut display,
                interrupted: self.interrupted,
            },
            &stored,
        )?;
        display.finish();
        drop(made);
        outcome.complete = said(directory.seal_pipeline(outcome.complete)?);
        Ok(outcome)
    }

    fn warnings(&self, outcome: &Outcome, plan: &PipelinePlan) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        match &outcome.stopped {
            Some(error) => warnings.push(Warning::Stopped { message: error.to_string() }),
            None if !outcome.complete => warnings.push(Warning::Interrupted),
            None => {}
        }
        if outcome.out_of_time {
            let visits = count_visits::<PipelineRow>(&self.path)?;
            warnings.push(Warning::OutOfTime { visits, of: plan.cells.len() * self.spec.measure.repetitions });
        }
        Ok(warnings)
    }

    /// Prints the tables and the advice, and draws the chart, from the stored data.
    fn conclude(&self, mut warnings: Vec<Warning>) -> Result<Exit> {
        let style = report::Style::of_terminal();
        let study = FeedingStudy::read(&self.path)?;
        warnings.extend(report::feeding_warnings(&study));
        print(&report::feeding(&study, &style));
        batchstep::atomic::write_text(&self.path.join(files::FEEDING), &report::feeding_json(&study))?;
        let destination = figures::Destination::in_run(self.path.clone());
        let drawn = figures::feeding(&self.path, &study).draw(&destination)?;
        let written = self.path.join(PAGE);
        page::write(&[Pictured::of_pipeline(&self.path, &study, warnings.clone()).page()?], &written)?;
        print(&format!("\nRun      {}\n", self.path.display()));
        print(&format!("Chart    {}\n", drawn.display()));
        print(&format!("Report   {}\n", written.display()));
        warnings.iter().for_each(|warning| print_aside(&format!("{}\n", warning.text(&style))));
        Ok(if warnings.is_empty() { Exit::Done } else { Exit::Warned })
    }
}

impl Observer for StudyDisplay {
    fn visited(&mut self, cell: &PipelineCell, rows: &[PipelineRow], progress: Progress) {
        let together = rows.iter().find(|row| row.stage == "together");
        let rate = together.and_then(|row| Some(row.images as f64 / row.elapsed_s?));
        let rate = rate.map_or_else(|| "failed".to_owned(), |rate| format!("{} images/s", human::count(rate as u64)));
        let Progress { visits, of, left_s, .. } = progress;
        StudyDisplay::visited(self, visits, of, left_s, &format!("{}: {rate}", cell.name()));
    }

    fn warn(&mut self, message: &str) {
        StudyDisplay::warn(self, message);
    }
}
