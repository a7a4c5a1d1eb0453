//! The first use of a GPU, in a process of its own: a driver or a library that crashes or hangs there takes neither the run nor its PyTorch with it.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::cudnn::engine::CudnnEngine;
use super::{Engine, Workload};
use crate::device::cuda::driver;
use crate::device::cuda::libraries::{Library, Search};
use crate::device::nvml;
use crate::error::{Error, Result};
use crate::foreign;
use crate::network::{Network, Shape};
use crate::os::cache::{self, Cache};
use crate::os::child::{self, Ended, Failure};
use crate::settings::Settings;

/// What this program is called with to try a GPU; then comes its number.
pub const ARGUMENTS: [&str; 2] = ["doctor", "--first-contact"];

/// Libraries of several hundred megabytes from a cold disk, and the first compilation of the kernels.
const PATIENCE: Duration = Duration::from_secs(180);
/// Bytes of the trial's output.
const MOST: usize = 1 << 20;

/// Before each part of a trial, among what the libraries print.
const BEGINS: &str = "batchstep begins ";
/// The parts of a trial, in order.
const DRIVER: &str = "the driver";
const LIBRARIES: &str = "NVIDIA's libraries";
const STEP: &str = "a step";
const DONE: &str = "done";

/// A trial that died or hung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Died {
    /// The part that it had begun.
    in_part: String,
    /// How it ended, and the last line that it wrote.
    how: String,
}

impl Died {
    /// Whether it was the driver, without which PyTorch cannot use the GPU either.
    pub fn in_driver(&self) -> bool {
        self.in_part == DRIVER
    }

    pub fn error(&self) -> Error {
        let Self { in_part, how } = self;
        let remedy = if self.in_driver() {
            "`nvidia-smi` says whether the driver works; reboot, or install the driver anew; to run on the CPU, say so: `--device cpu`"
        } else {
            "PyTorch may work: `[engine] name = \"torch\"`; `batchstep doctor --bundle` gathers what a report needs"
        };
        Error::device(format!("the first use of {in_part} on the GPU, in a process of its own, {how}")).hint(remedy)
    }
}

/// Whether this process may use the GPU of that number: tried once in another process, and remembered for this machine, its libraries and this program.
/// `None` where it may, and where there is no driver to try.
pub fn died(ordinal: u32) -> Option<&'static Died> {
    static TRIED: OnceLock<Option<Died>> = OnceLock::new();
    TRIED.get_or_init(|| tried(ordinal)).as_ref()
}

fn tried(ordinal: u32) -> Option<Died> {
    driver::driver()?;
    let cache = Cache::of_user("contact", &|name| std::env::var_os(name));
    let facts = facts(ordinal);
    if cache.get(&facts).is_some() {
        return None;
    }
    // Without the program's own file there is nothing to try it with.
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(ARGUMENTS).arg(ordinal.to_string());
    let died = by(&mut command, PATIENCE);
    if died.is_none() {
        cache.put(&facts, DONE.as_bytes());
    }
    died
}

/// What a trial depends on: this program, the driver, the libraries and the GPU.
fn facts(ordinal: u32) -> Vec<String> {
    let search = Search::system();
    let libraries = [Library::Cudnn, Library::CublasLt, Library::Nvrtc].into_iter().flat_map(|library| {
        let candidate = search.candidates(library).next()?;
        Some(format!("{} {}", candidate.path.display(), cache::version_of_file(&candidate.path).unwrap_or_default()))
    });
    let mut facts = vec![cache::program(), nvml::driver().version.unwrap_or_default(), ordinal.to_string()];
    facts.extend(libraries);
    facts
}

/// A command that tries a GPU as [`try_here`] does. Only a death counts: what a trial finds missing this process finds too, with its remedy.
fn by(command: &mut Command, patience: Duration) -> Option<Died> {
    let (how, stdout, stderr) = match child::run(command.stderr(Stdio::piped()), Some(patience), MOST) {
        Ok(Ended { status, stdout, stderr, .. }) => {
            status.signal()?;
            // It is written as `signal: 11 (SIGSEGV) (core dumped)`.
            let how = status.to_string().replacen(':', "", 1).replace(" (core dumped)", "");
            (format!("was ended by {how}"), stdout, stderr)
        }
        Err(Failure::Late(stdout)) => {
            (format!("did not end within {} s and was ended", patience.as_secs()), stdout, String::new())
        }
        // It could not be tried.
        Err(Failure::NotStarted(_) | Failure::TooLong) => return None,
    };
    let in_part = stdout.lines().rev().find_map(|line| line.strip_prefix(BEGINS)).unwrap_or(DRIVER).to_owned();
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    let words = last.map_or_else(String::new, |line| format!(": {}", foreign::line(line.trim())));
    Some(Died { in_part, how: format!("{how}{words}") })
}

/// Opens a GPU and runs a step on it, saying before each part that it begins.
pub fn try_here(ordinal: u32, begins: &mut dyn FnMut(&str)) -> Result<()> {
    begins(&format!("{BEGINS}{DRIVER}"));
    driver::devices()?;
    begins(&format!("{BEGINS}{LIBRARIES}"));
    let mut engine = CudnnEngine::open(ordinal)?;
    begins(&format!("{BEGINS}{STEP}"));
    let network = Network::by_name("mnist_cnn", Shape::Maps { channels: 1, height: 28, width: 28 }, 10)?;
    let settings = engine.in_force(&Settings::default())?;
    engine.prepare(&Workload { network: Arc::new(network), batch_size: 2, settings })?.run()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(script: &str, patience: Duration) -> Option<Died> {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        by(&mut shell, patience)
    }

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn a_trial_that_crashes_or_hangs_names_its_part_and_its_last_words() {
        let died = trial("echo 'batchstep begins the driver'; kill -SEGV $$", SOON).expect("it died");
        assert!(died.in_driver(), "{died:?}");
        let error = died.error();
        assert!(
            error.to_string().contains("first use of the driver") && error.to_string().contains("signal 11 (SIGSEGV)"),
            "{error}"
        );
        assert!(error.to_string().contains("--device cpu"), "{error}");

        let script = "echo 'batchstep begins the driver'; echo 'batchstep begins a step'; echo a library; echo 'no engine found' >&2; kill -ABRT $$";
        let died = trial(script, SOON).expect("it died");
        let text = died.error().to_string();
        assert!(!died.in_driver() && text.contains("first use of a step"), "{text}");
        assert!(text.contains("signal 6 (SIGABRT): no engine found") && text.contains("name = \"torch\""), "{text}");

        let died = trial("echo \"batchstep begins NVIDIA's libraries\"; exec sleep 60", Duration::from_millis(300))
            .expect("it hung");
        assert!(!died.in_driver() && died.how.contains("did not end within"), "{died:?}");
    }

    #[test]
    fn what_a_trial_refuses_or_cannot_begin_is_left_to_this_process() {
        assert_eq!(trial("exit 0", SOON), None);
        assert_eq!(trial("echo 'no cuDNN' >&2; exit 2", SOON), None);
        assert_eq!(by(&mut Command::new("/nonexistent/batchstep"), SOON), None);
    }
}
