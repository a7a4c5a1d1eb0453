//! `batchstep specs`: the experiments that come with the program.

use batchstep::error::{Error, Result};
use batchstep::report::{Column, Style, Table};
use batchstep::spec::library::{self, Included};

use super::{Exit, print};
use crate::cli::SpecsArgs;

pub fn specs(args: &SpecsArgs) -> Result<Exit> {
    if let Some(name) = &args.name {
        let missing = || {
            let near = Included::nearest(name).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Error::spec(format!("the program has no spec `{name}`"))
                .hint(format!("{near}`batchstep specs` lists those that it has"))
        };
        print(Included::named(name).ok_or_else(missing)?.text);
        return Ok(Exit::Done);
    }
    for (title, specs) in library::folders() {
        if let Some(title) = title {
            print(&format!("\n{title}\n"));
        }
        let columns = ["spec", "question", "runs on", "time"].map(Column::left);
        let mut table = Table::new(columns);
        for spec in specs {
            // The rest of the question is in experiments/README.md.
            let row = spec.row().expect("a test finds a row for each");
            let question = row.question.split_inclusive('?').next().unwrap_or(row.question);
            table.row([spec.name, question, row.machine, row.time]);
        }
        print(&table.render(&Style::of_terminal()));
    }
    print("\nRun one:       batchstep run NAME\nTo change one: batchstep specs NAME > my.toml\n");
    Ok(Exit::Done)
}
