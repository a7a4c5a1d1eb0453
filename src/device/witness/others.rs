//! Which other programs run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::device::root::{FilesystemRoot, name_of};

/// How often it is looked at most: a look reads a file for each process of the machine.
const PACE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Others {
    root: FilesystemRoot,
    own: u32,
    looked_at: Option<Instant>,
}

impl Others {
    pub(super) fn open(root: &FilesystemRoot) -> Self {
        Self { root: root.clone(), own: std::process::id(), looked_at: None }
    }

    /// How many processes of each program run now, by the kernel's names of the programs; `None` where the last look was a moment ago.
    /// Processes that this one started are its own.
    pub fn look(&mut self) -> Option<BTreeMap<String, usize>> {
        if self.looked_at.is_some_and(|at| at.elapsed() < PACE) {
            return None;
        }
        self.looked_at = Some(Instant::now());
        let entries = self.root.entries("/proc");
        let numbers = entries.iter().filter_map(|path| name_of(path).parse::<u32>().ok());
        let all: BTreeMap<u32, (String, bool, u32)> =
            numbers.filter_map(|number| Some((number, self.process(number)?))).collect();
        let is_own = |number: u32| {
            let mut line = std::iter::successors(Some(number), |own| all.get(own).map(|(.., parent)| *parent));
            // A process that ended and was followed by one of its number could close a circle.
            line.by_ref().take(all.len() + 1).any(|number| number == self.own)
        };
        let mut running = BTreeMap::new();
        for (_, (name, ..)) in all.iter().filter(|(number, (_, runs, _))| *runs && !is_own(**number)) {
            *running.entry(name.clone()).or_default() += 1;
        }
        Some(running)
    }

    /// The name of a process, whether it runs, and its parent: `17 (step 1) R 1 ...`; a name may hold brackets and blanks.
    fn process(&self, number: u32) -> Option<(String, bool, u32)> {
        let text = self.root.text(format!("/proc/{number}/stat"))?;
        let (head, rest) = text.rsplit_once(") ")?;
        let (_, name) = head.split_once('(')?;
        let mut rest = rest.split(' ');
        let (state, parent) = (rest.next()?, rest.next()?.parse().ok()?);
        Some((name.to_owned(), state == "R", parent))
    }
}
