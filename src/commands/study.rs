//! `batchstep run` on the spec of a study: from the spec to the tables, the chart and the page.

use std::path::PathBuf;

use batchstep::chart::chart_data::Destination;
use batchstep::engine::automatic::First;
use batchstep::engine::open::Engines;
use batchstep::error::{Error, Kind, Result};
use batchstep::os::atomic;
use batchstep::page;
use batchstep::report::{Style, Warning};
use batchstep::run::RowContext;
use batchstep::run::environment::RunEnvironment;
use batchstep::store::{Opened, RunDirectory, count_visits, files};
use batchstep::study::{Bench, Outcome, Plan, Study, carry_out, without_unfit};

use super::output::is_complete;
use super::progress::StudyDisplay;
use super::qualify::{drop_unsupported, qualify};
use super::run::How;
use super::{Exit, notice, print, print_places, print_warnings};

/// Runs a study, or says how much it would measure.
pub fn run<S: Study>(spec: &S, how: How, dry: bool) -> Result<Exit> {
    if !dry {
        return Session { spec, how }.run();
    }
    spec.subject().notices.iter().for_each(notice);
    print(&spec.to_toml());
    print(&format!("\n{}\n", spec.size()));
    Ok(Exit::Done)
}

/// One study that is being run.
struct Session<'a, S> {
    spec: &'a S,
    how: How<'a>,
}

impl<S: Study> Session<'_, S> {
    /// Opens the engines and the data, and runs the study with what is available.
    fn run(&self) -> Result<Exit> {
        let asked = self.spec.subject();
        asked.notices.iter().for_each(notice);
        let (names, optional) = (&asked.engine.name, &asked.engine.optional);
        let mut engines = Engines::open_available(names, optional, First::Cudnn, self.how.device, None)?;
        engines.notices.drain(..).for_each(notice);
        let data = self.spec.data()?;
        S::notices(&data).iter().for_each(notice);
        let mut spec = self.spec.clone();
        let subject = spec.subject_mut();
        subject.engine.name.retain(|engine| engines.has(*engine));
        subject.engine.optional.retain(|engine| engines.has(*engine));
        let settings = drop_unsupported(&mut subject.grid, &subject.engine.name, &mut engines)?;
        let (spec, unfit) = without_unfit(&spec, &data, &mut engines);
        let unfit = (!unfit.is_empty()).then_some(Warning::EnginesLeftOut { what: unfit });
        let left_out = settings.into_iter().chain(unfit).collect();
        Session { spec: &spec, how: self.how }.run_with(&mut engines, &data, left_out)
    }

    /// Runs with open engines and data; the warnings `left_out` are printed at the end.
    fn run_with(&self, engines: &mut Engines, data: &S::Data, left_out: Vec<Warning>) -> Result<Exit> {
        let plan = self.spec.plan(data, engines)?;
        let qualified = qualify(&plan.steps, engines, self.how.asked)?;
        let notices = batchstep::run::check(&plan.steps, engines)?;
        let opened = RunDirectory::open(self.how.path, &self.spec.to_toml(), self.how.begin)?;
        notices.iter().chain(&opened.notices).for_each(notice);
        if opened.complete {
            notice("this run is finished; nothing is left to resume");
            return self.conclude(left_out);
        }
        let outcome = self.measure(&plan, data, engines, (opened, qualified))?;
        self.conclude(left_out.into_iter().chain(self.warnings(&outcome, &plan)?).collect())
    }

    fn measure(
        &self,
        plan: &Plan<S::Beside>,
        data: &S::Data,
        engines: &mut Engines,
        (opened, qualified): (Opened, Vec<Option<bool>>),
    ) -> Result<Outcome> {
        let Opened { directory, environment, .. } = opened;
        let mut device = engines.open_device();
        let name = &self.spec.subject().name;
        let environment = match environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => begun.map_err(|e| e.at(self.how.path.display().to_string()))?.resumed(device.as_mut()),
            None => RunEnvironment {
                data: S::fingerprint(data),
                ..RunEnvironment::begin(name, &plan.steps, engines, device.as_mut())
            },
        }
        .with_spec(directory.spec_digest()?);
        if environment.data.is_some() && environment.data != S::fingerprint(data) {
            return Err(Error::new(Kind::Conflict, "the data are not those that the run was begun with")
                .at(self.how.path.display().to_string())
                .hint("resume with the same data, or choose another folder with `--out DIR`"));
        }
        directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        let mut notices = Vec::new();
        let stored = directory.all(&mut notices)?;
        notices.iter().for_each(notice);
        let supplies = self.spec.supplies(&directory, &|what| notice(what))?;
        let mut display = StudyDisplay::new(name);
        let bench = Bench {
            spec: self.spec,
            plan,
            data,
            supplies: &supplies,
            facts: RowContext::new(environment.run_id.clone(), &plan.steps, engines)?.with_qualified(qualified),
            engines,
            device: device.as_mut(),
            observer: &mut display,
            interrupted: self.how.interrupted,
        };
        let mut outcome = carry_out(bench, &stored, |visit| {
            // The details first: a visit is there once its rows are.
            directory.append(&visit.details)?;
            directory.append(&visit.rows)
        })?;
        display.finish();
        drop(supplies);
        outcome.complete = is_complete(directory.seal_visits::<S::Row, S::Detail>(outcome.complete)?);
        Ok(outcome)
    }

    fn warnings(&self, outcome: &Outcome, plan: &Plan<S::Beside>) -> Result<Vec<Warning>> {
        let mut warnings = Vec::new();
        match &outcome.stopped {
            Some(error) => warnings.push(Warning::Stopped { message: error.to_string() }),
            None if !outcome.complete => warnings.push(Warning::Interrupted),
            None => {}
        }
        if outcome.out_of_time {
            let visits = count_visits::<S::Row>(self.how.path)?;
            warnings.push(Warning::OutOfTime { visits, of: plan.cells.len() * self.spec.course().repetitions });
        }
        Ok(warnings)
    }

    /// Prints the tables, and draws the chart and the page, from the stored data.
    fn conclude(&self, warnings: Vec<Warning>) -> Result<Exit> {
        let mut told = match S::told(self.how.path) {
            Ok(told) => told,
            // If no visit ended, there is nothing to analyse, and the warnings say why.
            Err(error) if warnings.is_empty() => return Err(error),
            Err(_) => {
                print_warnings(&warnings);
                return Ok(Exit::Warned);
            }
        };
        told.warnings.splice(..0, warnings);
        print(&told.document.render(&Style::of_terminal()));
        let kept = told.file.map(|name| self.how.path.join(name));
        for path in kept.iter().map(PathBuf::as_path).chain(self.how.export) {
            atomic::write_text(path, &told.text())?;
        }
        let drawn = Destination::in_run(self.how.path.to_path_buf()).write(&told.drawing.chart, told.drawing.name)?;
        let written = self.how.path.join(page::NAME);
        page::write(&[told.page()?], &written)?;
        print_places(self.how.path, &[drawn], &written);
        print_warnings(&told.warnings);
        Ok(if told.warnings.is_empty() { Exit::Done } else { Exit::Warned })
    }
}
