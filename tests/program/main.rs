//! The program as its users see it: arguments in, files, tables and exit codes out.

mod bad_runs;
mod clock;
mod control;
mod faults;
mod foreign;
mod kill;
mod pipeline;
mod support;
mod twice;
