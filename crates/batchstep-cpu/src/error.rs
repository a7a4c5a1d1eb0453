//! One error for the whole crate: what went wrong, where, and what to do about it.
//!
//! The design follows jiff's and ripgrep's: one opaque type, a kind to branch on, and prose that ends with a remedy.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in one of a few classes that a caller may want to treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The experiment spec, or an argument, asks for something that does not exist or is impossible.
    Spec,
    /// A data file is missing a column, damaged, or not of a known format.
    Data,
    /// The file system refused: permissions, a full disk, a folder that vanished.
    Io,
    /// The run directory is in use, or holds another experiment.
    Conflict,
    /// A training step failed.
    Engine,
    /// A cell does not fit in the device's memory.
    OutOfMemory,
    /// A device, or a library that drives it, is missing or refuses.
    Device,
}

/// An error with its kind, its place and its remedy.
///
/// ```
/// use batchstep_cpu::error::Error;
/// let error = Error::spec("unknown key `batchsize`").at("a.toml:7: sweep").hint("did you mean `batch_size`?");
/// assert_eq!(error.to_string(), "a.toml:7: sweep: unknown key `batchsize`\n  help: did you mean `batch_size`?");
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    what: String,
    place: Option<String>,
    hint: Option<String>,
    no_kernels_fault: bool,
}

impl Error {
    /// An error of `kind`; `what` says in one clause what went wrong.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, what: what.into(), place: None, hint: None, no_kernels_fault: false }))
    }

    /// See [`Kind::Spec`].
    pub fn spec(what: impl Into<String>) -> Self {
        Self::new(Kind::Spec, what)
    }

    /// See [`Kind::Data`].
    pub fn data(what: impl Into<String>) -> Self {
        Self::new(Kind::Data, what)
    }

    /// See [`Kind::Engine`].
    pub fn engine(what: impl Into<String>) -> Self {
        Self::new(Kind::Engine, what)
    }

    /// See [`Kind::Device`].
    pub fn device(what: impl Into<String>) -> Self {
        Self::new(Kind::Device, what)
    }

    /// An error of the operating system while `doing` something to `path`, with a remedy for common causes.
    pub fn io(doing: &str, path: &Path, source: &std::io::Error) -> Self {
        use std::io::ErrorKind as E;
        let error = Self::new(Kind::Io, format!("cannot {doing}: {source}")).at(path.display().to_string());
        match source.kind() {
            E::StorageFull | E::QuotaExceeded => {
                error.hint("free some space; a run kept every finished visit and goes on with `--resume`")
            }
            E::PermissionDenied | E::ReadOnlyFilesystem => match doing.split(' ').next() {
                Some("look" | "read" | "open" | "list" | "find") => {
                    error.hint("ask its owner to let you read it, or give another path")
                }
                Some("start") => error,
                _ => error.hint("choose a folder that you may write to, for example with `--out DIR`"),
            },
            E::NotFound => error.hint("check the path"),
            _ => error,
        }
    }

    /// Adds the place: a file and line, a column, a cell. Places nest from the inside out.
    pub fn at(mut self, place: impl Into<String>) -> Self {
        let outer = place.into();
        self.0.place = Some(match self.0.place.take() {
            Some(inner) => format!("{outer}: {inner}"),
            None => outer,
        });
        self
    }

    /// Adds the remedy; the first one given stays, because it was given nearest to the cause.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds what a tool said, on lines of its own after the cause.
    pub fn with(mut self, said: &str) -> Self {
        self.0.what.push('\n');
        self.0.what.push_str(said);
        self
    }

    /// Says that no kernel of our own is to blame, whatever the step runs: a library that computes for us refused, or the driver or the compiler itself.
    pub fn no_kernels_fault(mut self) -> Self {
        self.0.no_kernels_fault = true;
        self
    }

    /// See [`Error::no_kernels_fault`].
    pub fn is_no_kernels_fault(&self) -> bool {
        self.0.no_kernels_fault
    }

    /// Place and cause without the remedy, for a message that lists several reasons.
    ///
    /// ```
    /// use batchstep_cpu::error::Error;
    /// let error = Error::engine("the driver refused").at("call 3").hint("try again");
    /// assert_eq!(error.clause(), "call 3: the driver refused");
    /// ```
    pub fn clause(&self) -> String {
        match &self.0.place {
            Some(place) => format!("{place}: {}", self.0.what),
            None => self.0.what.clone(),
        }
    }

    /// The remedy, without the rest of the message.
    pub fn remedy(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The class of the error.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// True where a cell did not fit in memory; the sweep goes on without it.
    pub fn is_out_of_memory(&self) -> bool {
        self.0.kind == Kind::OutOfMemory
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.0.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.what)?;
        if let Some(hint) = &self.0.hint {
            write!(f, "\n  help: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The name that is meant, where one is near enough: few letters changed, missing, added or swapped (Damerau & Levenshtein).
pub fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let name = name.to_lowercase();
    let near = names.iter().map(|near| (strsim::damerau_levenshtein(&name, &near.to_lowercase()), *near));
    let beginning = |(distance, near): &(usize, &str)| !near.starts_with(&name) as usize + distance;
    near.filter(|(distance, near)| *distance <= 1 + near.len() / 4 || (name.len() >= 3 && near.starts_with(&name)))
        .min_by_key(beginning)
        .map(|(_, near)| near)
}

/// The file or folder beside `path` that is meant, where nothing has that name and one is near enough.
pub fn nearest_beside(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = folder.read_dir().ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = entries.filter(|name| !name.starts_with('.')).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    nearest(path.file_name()?.to_str()?, &names).map(|name| path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_what_is_not_permitted_depends_on_what_was_to_be_done() {
        let remedy = |doing: &str| {
            let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
            Error::io(doing, Path::new("a"), &refused).remedy().map(str::to_owned)
        };
        for doing in ["look at", "read the file", "open the table", "list the folder"] {
            assert!(remedy(doing).is_some_and(|said| said.contains("let you read it")), "{doing}");
        }
        for doing in ["make the folder", "write the table", "rename the finished file", "create the lock file"] {
            assert!(remedy(doing).is_some_and(|said| said.contains("that you may write to")), "{doing}");
        }
        assert_eq!(remedy("start sbatch"), None);
    }
}
