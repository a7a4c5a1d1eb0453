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
    let mut table = Table::new([Column::left("spec"), Column::left("question"), Column::left("runs on")]);
    for (spec, question, machine) in library::in_order() {
        // The rest of it is in experiments/README.md.
        let question = question.split_inclusive('?').next().unwrap_or(question);
        table.row([spec.name, question, machine]);
    }
    print(&table.render(&Style::of_terminal()));
    print("\nRun one:       batchstep run NAME\nTo change one: batchstep specs NAME > my.toml\n");
    Ok(Exit::Done)
}
