//! `batchstep run`: from the spec to the jump table, the charts and the page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use batchstep::analysis::control;
use batchstep::analysis::{Query, analyse};
use batchstep::chart::chart_data::Destination;
use batchstep::check::precheck::{Asked, keep_comparison};
use batchstep::device::environment::node;
use batchstep::device::root::FilesystemRoot;
use batchstep::device::witness::Witness;
use batchstep::engine::automatic::First;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::engine::own::StepHost;
use batchstep::error::{Error, Kind, Result};
use batchstep::kinds::StudyKind;
use batchstep::os::atomic;
use batchstep::os::child;
use batchstep::os::look;
use batchstep::page;
use batchstep::report::json::PathFindings;
use batchstep::report::{self, Warning};
use batchstep::run::environment::RunEnvironment;
use batchstep::run::processors::{Kept, QuietProcessors};
use batchstep::run::{self as sweep, History, Outcome, RowContext, Sweep};
use batchstep::settings::EngineName;
use batchstep::spec::plan::Plan;
use batchstep::spec::{Experiment, Shard};
use batchstep::store::{Begin, Opened, RunDirectory, StepRow, files};
use batchstep::study::{Runner, Spec, Study};
use batchstep::units::Share;

use super::evidence::Evidence;
use super::inside;
use super::jumps::{advice_lines, likely, reasons, switch_lines, tables};
use super::output::is_complete;
use super::progress::Display;
use super::qualify::{self, drop_unsupported, qualify};
use super::{
    Exit, findings, notice, own, print, print_aside, print_places, print_warnings, refused, seconds_of, shards_by,
    study,
};
use crate::cli::RunArgs;

/// How a spec is run.
#[derive(Clone, Copy)]
pub struct How<'a> {
    pub device: DeviceChoice,
    pub path: &'a Path,
    pub begin: Begin,
    /// Which engines are checked.
    pub asked: Asked,
    /// Where the JSON document of a training goes as well, if anywhere.
    pub export: Option<&'a Path>,
    pub interrupted: &'a AtomicBool,
    /// What to call this machine.
    node: Option<&'a str>,
    /// Where a user's own step runs.
    place: StepHost,
    /// Whether everything that is known is printed at the end.
    details: bool,
    /// The run whose files this one must have.
    begun: Option<&'a RunEnvironment>,
}

pub fn run(args: &RunArgs) -> Result<Exit> {
    let device = DeviceChoice::parse(&args.device)?;
    let specs = read_all(args)?;
    if let Some(size) = args.own.try_size {
        return own::try_each(&specs, size, device);
    }
    if args.export_json.is_some() && specs.len() > 1 {
        return Err(Error::spec("each study would overwrite the file of the one before")
            .at("--export-json")
            .hint("run one spec at a time"));
    }
    let place = own::place(args.own.worker_fds.as_deref())?;
    let interrupted = Arc::new(AtomicBool::new(false));
    if !args.dry_run {
        stop_on_interrupt(&interrupted, Exit::Warned);
    }
    let begin = match (args.resume, args.take_over) {
        (false, _) => Begin::Anew,
        (true, false) => Begin::Resume,
        (true, true) => Begin::TakeOver,
    };
    let mut exit = Exit::Done;
    for spec in &specs {
        let how = How {
            device,
            path: &run_path(args, spec, specs.len()),
            begin,
            asked: qualify::asked(&args.qualify),
            export: args.export_json.as_deref(),
            interrupted: &interrupted,
            node: args.node.as_deref(),
            place,
            details: args.details,
            begun: None,
        };
        exit = exit.worse(spec.run_by(Run { how, dry: args.dry_run })?);
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(exit)
}

/// A spec that is being run, or only said how much it would measure.
struct Run<'a> {
    how: How<'a>,
    dry: bool,
}

impl Runner for Run<'_> {
    type Output = Result<Exit>;

    fn sweep(self, experiment: &Experiment) -> Result<Exit> {
        if self.dry { dry_run(experiment) } else { Session { experiment, how: self.how, left_out: None }.run() }
    }

    fn study<S: Study>(self, study: &S) -> Result<Exit> {
        study::run(study, self.how, self.dry)
    }
}

/// Runs `experiment` anew into `path`, where its files are still those of `begun`.
///
/// # Errors
/// As those of a run; [`batchstep::error::Kind::Spec`] where a file was changed.
pub fn again(experiment: &Experiment, begun: &RunEnvironment, path: &Path) -> Result<Exit> {
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(&interrupted, Exit::Warned);
    let how = How {
        device: DeviceChoice::Auto,
        path,
        begin: Begin::Anew,
        asked: Asked::Gpu,
        export: None,
        interrupted: &interrupted,
        node: None,
        place: StepHost::Child,
        details: false,
        begun: Some(begun),
    };
    Session { experiment, how, left_out: None }.run()
}

/// All specs are read before the first one runs, so that a typing error in the last one is found at once.
fn read_all(args: &RunArgs) -> Result<Vec<Spec>> {
    let time = args.time.as_deref().map(|text| seconds_of(text, "time limit", "--time", "25min"));
    let smallest_jump = args.smallest_jump.as_deref().map(|text| match Share::parse(text) {
        Some(Share(jump)) if (1e-5..=1.0).contains(&jump) => Ok(jump),
        _ => Err(refused(text, "smallest jump from 0.001% to 100%", "--smallest-jump", "5%")),
    });
    let shard = args.shard.as_deref().map(|text| {
        let shard = Shard::parse(text, shards_by(args.shard_by.as_deref()));
        shard.ok_or_else(|| refused(text, "part of a plan", "--shard", "3/8, the third of eight"))
    });
    let (time, smallest_jump, shard) = (time.transpose()?, smallest_jump.transpose()?, shard.transpose()?);
    let read = |path: &PathBuf| {
        let mut spec = match own::is_step(path) {
            true => own::spec(path, &args.own)?,
            false if args.own.is_given() => {
                let what = "`--batch-size`, `--x`, `--set`, `--env` and `--try` are for a file of Python";
                return Err(Error::spec(what).at(path.display().to_string()).hint("write them into the spec: [sweep]"));
            }
            false => Spec::read(path)?,
        };
        let kind = spec.kind();
        let (training, sweep) = (kind == StudyKind::Training, kind == StudyKind::Sweep);
        for (option, is_out_of_place) in [
            ("--export-json", args.export_json.is_some() && !training),
            ("--shard", shard.is_some() && !sweep),
            ("--smallest-jump", smallest_jump.is_some() && !sweep),
        ] {
            if is_out_of_place {
                let what = format!("{option} has no meaning in a {kind}");
                return Err(Error::spec(what).at(path.display().to_string()));
            }
        }
        let (own_seed, own_time) = spec.limits();
        *own_seed = args.seed.unwrap_or(*own_seed);
        *own_time = time.unwrap_or(*own_time);
        if let Spec::Sweep(experiment) = &mut spec {
            let measure = &mut experiment.measure;
            measure.shard = shard.or(measure.shard);
            measure.smallest_jump = smallest_jump.unwrap_or(measure.smallest_jump);
        }
        Ok(spec)
    };
    args.specs.iter().map(read).collect()
}

fn run_path(args: &RunArgs, spec: &Spec, count: usize) -> PathBuf {
    let name = spec.run_name();
    match &args.out {
        Some(out) if count == 1 => out.clone(),
        Some(out) => out.join(name),
        None => Path::new("results").join(name),
    }
}

fn dry_run(experiment: &Experiment) -> Result<Exit> {
    if let Some(steps) = &experiment.own {
        own::check_without_running(steps)?;
    }
    let own = experiment.own_part()?;
    let plan = Plan::new(&own)?;
    experiment.notices.iter().for_each(notice);
    for engine in &experiment.engine.optional {
        notice(format!("the engine `{engine}` is optional: if it cannot be opened, its cells are left out"));
    }
    print(&experiment.to_toml());
    let style = report::Style::of_terminal();
    print(&format!("\n{}", report::plan_summary(&own, &plan, &style)));
    Ok(Exit::Done)
}

/// `timeout` sends its signal to the process and then to its group, and a terminal may send one beside a person's: signals that come
/// so soon after the first are the same request.
const SAME_REQUEST: Duration = Duration::from_millis(500);

/// The first Ctrl-C lets the current visit finish; a second one ends the process at once, with that exit (stored visits are kept).
pub fn stop_on_interrupt(interrupted: &Arc<AtomicBool>, at_once: Exit) {
    let flag = Arc::clone(interrupted);
    let mut first = None;
    let handler = move || {
        let since = first.get_or_insert_with(Instant::now).elapsed();
        if flag.swap(true, Ordering::Relaxed) {
            if since > SAME_REQUEST {
                child::end_all();
                std::process::exit(at_once as i32);
            }
            return;
        }
        print_aside("\n");
        notice("finishing this visit, then stopping (press Ctrl-C again to stop at once)");
    };
    // It fails only if a handler is set already, which then applies.
    let _ = ctrlc::set_handler(handler);
}

/// One experiment that is being run.
#[derive(Clone, Copy)]
struct Session<'a> {
    experiment: &'a Experiment,
    how: How<'a>,
    /// What of the spec no engine has here.
    left_out: Option<&'a Warning>,
}

/// Sentences on how engines compare that a run ends with.
const ENGINES: usize = 4;

impl Session<'_> {
    /// Opens the engines and runs the experiment with those that are available.
    fn run(&self) -> Result<Exit> {
        let Experiment { engine, notices, own, .. } = self.experiment;
        notices.iter().for_each(notice);
        let has_processors = engine.name.iter().any(|engine| *engine != EngineName::Synthetic);
        let choice = self.experiment.most_threads().filter(|_| has_processors).and_then(QuietProcessors::now);
        // Before the engines start their threads and processes.
        let _kept = choice.and_then(|choice| Some((Kept::to(&choice)?, notice(choice))));
        let mut engines = match own {
            Some(steps) => own::open(self.experiment, steps, self.how.device, self.how.place)?,
            None => {
                let truth = self.experiment.truth();
                // PyTorch's step has no settings of our kernels.
                let torch = self.experiment.grid.is_of(EngineName::Torch) && engine.fixed_from.is_none();
                let first = if torch { First::Torch } else { First::Cudnn };
                Engines::open_available(&engine.name, &engine.optional, first, self.how.device, truth.as_ref())?
            }
        };
        if let Some(begun) = self.how.begun {
            begun.check_files(&engines).map_err(|error| error.hint("measure it anew: `batchstep run`"))?;
        }
        // Printed before the settings are checked, since the choice of the engine may explain why they are refused.
        engines.notices.drain(..).for_each(notice);
        let mut experiment = self.experiment.clone();
        // `auto` may be one that is named beside it.
        let mut seen = BTreeSet::new();
        experiment.engine.name.retain(|engine| engines.has(*engine) && seen.insert(engines.resolve(*engine)));
        let names = experiment.engine.name.clone();
        // With all of them optional, the stored spec would be refused.
        let one_is_needed = names.iter().any(|engine| !experiment.engine.optional.contains(engine));
        experiment.engine.optional.retain(|engine| names.contains(engine) && one_is_needed);
        if let Some(from) = &experiment.engine.fixed_from {
            engines.fix(&sweep::fixed_algorithms(from)?);
        }
        let left_out = drop_unsupported(&mut experiment.grid, &experiment.engine.name, &mut engines)?;
        Session { experiment: &experiment, left_out: left_out.as_ref(), ..*self }.run_with(engines)
    }

    fn run_with(&self, mut engines: Engines) -> Result<Exit> {
        let own = self.experiment.own_part()?;
        let plan = Plan::new(&own)?;
        let mut notices = sweep::check(&plan, &mut engines)?;
        let qualified = match qualify(&plan, &mut engines, self.how.asked) {
            Ok(qualified) => qualified,
            Err(error) if self.experiment.engine.optional.contains(&EngineName::Cudnn) => {
                notice(format!("the optional engine `cudnn` is left out: {error}"));
                return self.without_cudnn(engines);
            }
            Err(error) => return Err(error),
        };
        let opened = RunDirectory::open(self.how.path, &self.spec_text()?, self.how.begin)?;
        notices.extend(opened.notices.iter().cloned());
        notices.iter().for_each(notice);
        if opened.complete {
            if look::is_file(&self.how.path.join(files::CELLS))? {
                notice(
                    "this run is finished and nothing is left to resume; if time ended it, `--resume` with another `--time` continues it",
                );
            } else {
                notice("this run is finished; its cells.parquet is missing, and is written again from its steps");
                // No visit begins after the time limit, so the tables are written from what is stored.
                let mut stored = own;
                stored.measure.time_limit_s = -1.0;
                let stored = Session { experiment: &stored, ..*self };
                stored.sweep(&plan, &mut engines, opened, qualified)?;
            }
            return self.conclude(None);
        }
        let part = Session { experiment: &own, ..*self };
        let outcome = part.sweep(&plan, &mut engines, opened, qualified)?;
        if outcome.complete {
            // What it says stands beside the answer, and is no part of it.
            inside::keep(self.how.path, &plan, &mut engines)
                .unwrap_or_else(|error| notice(format!("the steps beside the jumps were not profiled: {error}")));
        }
        part.conclude(Some(&outcome))
    }

    /// The same with the other engines.
    fn without_cudnn(&self, mut engines: Engines) -> Result<Exit> {
        engines.close(EngineName::Cudnn);
        let mut experiment = self.experiment.clone();
        experiment.engine.name.retain(|engine| *engine != EngineName::Cudnn);
        experiment.engine.optional.clear();
        Session { experiment: &experiment, ..*self }.run_with(engines)
    }

    /// The name of this machine: the user's choice, else a number that identifies its host, and the device.
    fn node(&self, device: Option<&str>) -> String {
        let own = || device.filter(|id| id.starts_with("cuda")).map_or_else(node, |id| format!("{}/{id}", node()));
        self.how.node.map_or_else(own, str::to_owned)
    }

    /// The resolved spec. A run that continues keeps the text of its own spec if that means the same: an earlier version knew fewer keys.
    fn spec_text(&self) -> Result<String> {
        let own = self.experiment.to_toml_in(self.how.path);
        let begun = look::text(&self.how.path.join(files::SPEC))?.filter(|_| self.how.begin != Begin::Anew);
        let origin = self.how.path.join(files::SPEC).display().to_string();
        let says_the_same =
            |begun: &String| Experiment::parse(begun, &origin).is_ok_and(|spec| spec.to_toml_in(self.how.path) == own);
        Ok(begun.filter(says_the_same).unwrap_or(own))
    }

    fn of_another_spec(&self, row: &StepRow) -> Error {
        let StepRow { cell, model, batch_size, .. } = row;
        let what =
            format!("the stored visits are of another spec: there cell {cell} is {model} at batch size {batch_size}");
        Error::new(Kind::Conflict, what)
            .at(self.how.path.display().to_string())
            .hint("put spec.toml back as it was, or choose another folder with `--out DIR`")
    }

    fn sweep(
        &self,
        plan: &Plan,
        engines: &mut Engines,
        opened: Opened,
        qualified: Vec<Option<bool>>,
    ) -> Result<Outcome> {
        let Opened { directory, environment, .. } = opened;
        let mut device = engines.open_device();
        let mut environment = match environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => {
                let begun = begun.map_err(|error| error.at(self.how.path.display().to_string()))?;
                begun.check_files(engines)?;
                begun.resumed(device.as_mut())
            }
            None => RunEnvironment::begin(&self.experiment.run_name(), plan, engines, device.as_mut()),
        }
        .with_spec(directory.spec_digest()?);
        let mut history = History::new(plan);
        let mut notices = Vec::new();
        directory.read(&mut notices, &mut |visit: Vec<StepRow>| {
            if let Some(row) = visit.iter().find(|row| plan.cell(row.cell, &row.model, row.batch_size).is_none()) {
                return Err(self.of_another_spec(row));
            }
            history.record(&visit);
            Ok(())
        })?;
        notices.iter().for_each(notice);
        // Only now, so that a run which is refused keeps its own.
        directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        if let Some(steps) = &self.experiment.own {
            own::keep_copies(steps, self.how.path)?;
        }
        if engines.gpu().is_some() {
            environment.unreadable.iter().for_each(notice);
        }
        let facts = RowContext::new(environment.run_id.clone(), plan, engines)?.with_qualified(qualified);
        let node =
            self.node(plan.cells.first().and_then(|cell| facts.device_of(cell)).map(|device| device.id.as_str()));
        let mut display = Display::new(self.experiment, plan);
        let sweep = Sweep {
            plan,
            measure: &self.experiment.measure,
            facts: facts.with_node(node).with_x(self.experiment.x()),
            engines,
            device: device.as_mut(),
            witness: Some(Witness::open(&FilesystemRoot::system())),
            sink: &directory,
            observer: &mut display,
            interrupted: self.how.interrupted,
            hung: &|error| {
                notice(format!(
                    "{error}\n  The step never ended; every visit before it is stored: continue with `--resume`"
                ));
                child::end_all();
                std::process::exit(Exit::Failed as i32);
            },
        };
        let mut outcome = sweep::run(sweep, history)?;
        display.finish();
        if outcome.lost.is_none() && !self.how.interrupted.load(Ordering::Relaxed) {
            environment.measure_peaks_again(plan, engines);
            directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        }
        // Without the device, every later experiment of this process would fail as well.
        self.how.interrupted.fetch_or(outcome.lost.is_some(), Ordering::Relaxed);
        let sealed = directory.seal(&outcome, &outcome.cells, outcome.complete)?;
        outcome.complete = is_complete(sealed);
        Ok(outcome)
    }

    /// Prints the jumps and the tables, and draws the charts, from the stored data.
    fn conclude(&self, outcome: Option<&Outcome>) -> Result<Exit> {
        let style = report::Style::of_terminal();
        let mut ended = match outcome {
            Some(outcome) => report::run_warnings(outcome, &self.experiment.measure),
            None => report::kept_warnings(self.how.path)?,
        };
        ended.extend(self.left_out.filter(|left_out| !ended.contains(left_out)).cloned());
        let found = match analyse(self.how.path, &Query::default(), None) {
            Ok(found) => found,
            // If no cell ran, there is nothing to analyse, and the warnings say why.
            Err(error) if ended.is_empty() => return Err(error),
            Err(_) => {
                print_warnings(&report::warnings(&[], ended));
                return Ok(Exit::Warned);
            }
        };
        ended.extend(outcome.and_then(|outcome| report::disagreement(outcome, &found, &self.experiment.measure)));
        let controls = control::applicable(self.how.path, &found, self.experiment.executes.is_some());
        control::keep(self.how.path, &controls)?;
        let evidence = Evidence::of(findings::of(self.how.path, found, controls, ended))?;
        let Evidence { seen, figures, crossovers, drawings, .. } = &evidence;
        let PathFindings { found, controls, warnings, explained, advices, .. } = seen;
        report::json::keep(seen)?;
        let destination = Destination::in_run(self.how.path.to_path_buf());
        let mut drawn = figures.draw(&destination)?;
        if !crossovers.steps.is_empty() {
            atomic::write_text(&self.how.path.join(files::CROSSOVER), &report::crossover_json(crossovers))?;
        }
        for drawing in drawings {
            drawn.push(destination.write(&drawing.chart, drawing.name)?);
        }
        let written = self.how.path.join(page::NAME);
        page::write(&[evidence.page()?], &written)?;
        if !evidence.pairs.is_empty() {
            let said: Vec<String> = evidence.answers().into_iter().map(|answer| answer.sentence).collect();
            keep_comparison(&qualify::cache(), &said);
        }
        print(&tables(found, controls, self.how.details));
        print(&advice_lines(found, advices, self.how.details));
        if self.how.details {
            print(&reasons(found, explained));
            let mechanisms = evidence.mechanisms().into_iter().map(|reason| reason.document);
            for document in mechanisms.chain(evidence.beside()) {
                print(&format!("\n{}", document.render(&style)));
            }
        } else {
            print(&likely(found.iter().zip(&evidence.answers)));
            let engines = evidence.engines();
            engines.iter().take(ENGINES).for_each(|answer| print(&format!("\n{}\n", answer.sentence)));
        }
        print(&switch_lines(self.how.path, found));
        print_places(self.how.path, &drawn, &written);
        if !self.how.details {
            print(&format!("Details  on that page, or `batchstep jumps {} --details`\n", self.how.path.display()));
        }
        print_warnings(warnings);
        Ok(if warnings.is_empty() { Exit::Done } else { Exit::Warned })
    }
}
