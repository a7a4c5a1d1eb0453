//! `batchstep run` on a spec of `kind = "fit"`: from the surface to the table, the picture and the loss curves.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use batchstep::analysis::fits::FitStudy;
use batchstep::atomic;
use batchstep::engine::automatic::First;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::figures;
use batchstep::fitting::{self, Observer, Outcome, Progress, Study};
use batchstep::page;
use batchstep::plan::Plan;
use batchstep::qualification::{Asked, Qualified};
use batchstep::report::{self, Warning};
use batchstep::run::RunFacts;
use batchstep::run::environment::RunEnvironment;
use batchstep::spec::fit::Fit;
use batchstep::store::{Begin, FitRow, Opened, RunDirectory, count_visits, files};
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
    pub spec: &'a Fit,
    pub device: DeviceChoice,
    pub path: PathBuf,
    pub begin: Begin,
    /// Which engines are checked before.
    pub asked: Asked,
    pub interrupted: &'a AtomicBool,
}

/// The resolved spec and the size of the plan; nothing is opened.
pub fn dry_run(spec: &Fit) -> Result<()> {
    let plan = Plan::new(&spec.experiment)?;
    spec.experiment.notices.iter().for_each(notice);
    print(&spec.to_toml());
    let counted = |number: usize, noun| human::counted(number as u64, noun);
    print(&format!("\n{}, {} each\n", counted(plan.cells.len(), "fit"), counted(spec.epochs, "update")));
    Ok(())
}

impl Session<'_> {
    pub fn run(&self) -> Result<Exit> {
        let asked = &self.spec.experiment;
        asked.notices.iter().for_each(notice);
        let mut engines =
            Engines::open_available(&asked.engine.name, &asked.engine.optional, First::Cudnn, self.device, None)?;
        engines.notices.drain(..).for_each(notice);
        let mut experiment = asked.clone();
        experiment.engine.name.retain(|engine| engines.has(*engine));
        experiment.engine.optional.retain(|engine| engines.has(*engine));
        let left_out = narrow(&mut experiment.grid, &experiment.engine.name, &mut engines)?;
        let mut warnings: Vec<Warning> = left_out.into_iter().collect();
        let spec = Fit { experiment, epochs: self.spec.epochs };
        let plan = Plan::new(&spec.experiment)?;
        let notices = batchstep::run::check(&plan, &mut engines)?;
        let qualified = qualify(&plan, &mut engines, self.asked)?;
        let opened = RunDirectory::open(&self.path, &spec.to_toml(), self.begin)?;
        notices.iter().chain(&opened.notices).for_each(notice);
        if opened.complete {
            notice("this run is finished; nothing is left to resume");
            return self.conclude(warnings);
        }
        let outcome = self.study(&spec, &plan, &mut engines, (opened, qualified))?;
        if !outcome.complete {
            warnings.push(Warning::Interrupted);
        }
        if outcome.out_of_time {
            let visits = count_visits::<FitRow>(&self.path)?;
            warnings.push(Warning::OutOfTime { visits, of: plan.cells.len() });
        }
        self.conclude(warnings)
    }

    fn study(
        &self,
        spec: &Fit,
        plan: &Plan,
        engines: &mut Engines,
        (opened, qualified): (Opened, Qualified),
    ) -> Result<Outcome> {
        let Opened { directory, environment, .. } = opened;
        let mut device = engines.open_device();
        let name = &spec.experiment.name;
        let environment = match environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => begun?.resumed(device.as_mut()),
            None => RunEnvironment::begin(name, plan, engines, device.as_mut()),
        };
        directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        let mut notices = Vec::new();
        let stored = directory.all(&mut notices)?;
        notices.iter().for_each(notice);
        let mut display = StudyDisplay::new(name);
        let study = Study {
            plan,
            epochs: spec.epochs,
            time_limit_s: spec.experiment.measure.time_limit_s,
            facts: RunFacts::new(environment.run_id.clone(), plan, engines)?.with_qualified(qualified.cells),
            engines,
            ledger: &directory,
            observer: &mut display,
            interrupted: self.interrupted,
        };
        let mut outcome = fitting::run(study, &stored)?;
        display.finish();
        outcome.complete = said(directory.seal_fits(outcome.complete)?);
        Ok(outcome)
    }

    /// Prints the table and draws the picture from the stored data.
    fn conclude(&self, mut warnings: Vec<Warning>) -> Result<Exit> {
        let style = report::Style::of_terminal();
        let texts = |warnings: &[Warning]| {
            warnings.iter().for_each(|warning| print_aside(&format!("{}\n", warning.text(&style))));
        };
        let study = match FitStudy::read(&self.path) {
            Ok(study) => study,
            // If no fit ended, there is nothing to analyse, and the warnings say why.
            Err(error) if warnings.is_empty() => return Err(error),
            Err(_) => {
                texts(&warnings);
                return Ok(Exit::Warned);
            }
        };
        warnings.extend(report::fit_warnings(&study));
        print(&report::fits(&study).render(&style));
        atomic::write_text(&self.path.join(files::FITS), &report::fits_json(&study))?;
        let destination = figures::Destination::in_run(self.path.clone());
        let drawn = figures::fits(&self.path, &study).draw(&destination)?;
        let written = self.path.join(PAGE);
        page::write(&[Pictured::of_fit(&self.path, &study, warnings.clone()).page()?], &written)?;
        print(&format!("\nRun      {}\n", self.path.display()));
        print(&format!("Chart    {}\n", drawn.display()));
        print(&format!("Report   {}\n", written.display()));
        texts(&warnings);
        Ok(if warnings.is_empty() { Exit::Done } else { Exit::Warned })
    }
}

impl Observer for StudyDisplay {
    fn fitted(&mut self, name: &str, last: &FitRow, progress: Progress) {
        let error = last.loss.map_or_else(|| "failed".to_owned(), |loss| format!("error {}", human::digits(loss)));
        let Progress { fits, of, left_s } = progress;
        StudyDisplay::visited(self, fits, of, left_s, &format!("{name}: {error}"));
    }

    fn warn(&mut self, message: &str) {
        StudyDisplay::warn(self, message);
    }
}
