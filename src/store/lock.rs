//! One run at a time in a run directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::names::files;
use crate::error::{Error, Kind, Result};
use crate::os::look;

/// How long a process may take to end its visit once it is asked to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// An advisory lock on a run directory; the operating system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until another process, which was asked to stop, releases the lock, and takes it. `None` if the other process does not release
    /// it: its machine may be lost.
    ///
    /// # Errors
    /// [`Kind::Io`] if a lock file cannot be created.
    pub fn wait(directory: &Path) -> Result<Option<Self>> {
        let begun = Instant::now();
        loop {
            match Self::take(directory) {
                Err(error) if error.kind() != Kind::Conflict => return Err(error),
                Err(_) if begun.elapsed() > PATIENCE => return Ok(None),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(lock) => return Ok(Some(lock)),
            }
        }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// [`Kind::Conflict`] naming the process that holds it.
    pub fn take(directory: &Path) -> Result<Self> {
        let path = directory.join(files::LOCK);
        look::refuse_link(&path)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(|e| Error::io("create the lock file", &path, &e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(directory, &mut file)),
            // Some network file systems know no locks; a run there is better than none.
            Err(TryLockError::Error(_)) => return Ok(Self { _file: file }),
        }
        let mut note = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "{}", std::process::id())
        };
        note().map_err(|e| Error::io("write the lock file", &path, &e))?;
        Ok(Self { _file: file })
    }
}

fn held(directory: &Path, file: &mut File) -> Error {
    let mut holder = String::new();
    let _ = file.read_to_string(&mut holder);
    let holder = match holder.trim() {
        "" => "another process".to_string(),
        pid => format!("process {pid}"),
    };
    Error::new(Kind::Conflict, format!("{holder} is running an experiment into this folder"))
        .at(directory.display().to_string())
        .hint("wait for it, or choose another folder with `--out DIR`")
}
