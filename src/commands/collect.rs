//! `batchstep collect`: runs into a database.

use batchstep::error::Result;
use batchstep::predict::database::{self, Outcome};
use batchstep::units::human;

use super::{Exit, notice, print};
use crate::cli::CollectArgs;

pub fn collect(args: &CollectArgs) -> Result<Exit> {
    let (mut taken, mut unchanged, mut refused) = (0, 0, Vec::new());
    database::collect(&args.paths, &args.into, &mut |path, outcome| {
        let path = path.display();
        match outcome {
            Outcome::Added { cells } => print(&format!("{path}: {}\n", human::counted(cells as u64, "cell"))),
            Outcome::Replaced { cells } => print(&format!(
                "{path}: {}, in place of those of an earlier state\n",
                human::counted(cells as u64, "cell")
            )),
            Outcome::Published { count, what } => print(&format!("{path}: {count} published {what}\n")),
            Outcome::Unchanged => unchanged += 1,
            Outcome::Refused(error) => return refused.push(error),
        }
        taken += 1;
    })?;
    if taken == 0 {
        return refused.into_iter().next().map_or(Ok(Exit::Done), Err);
    }
    let before = if unchanged > 0 { format!(", {unchanged} of them already there") } else { String::new() };
    print(&format!("{}: {taken} collected{before}\n", args.into.display()));
    refused.iter().for_each(|error| notice(format!("not collected: {error}")));
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Warned })
}
