//! The program as its users see it: arguments in, files, tables and exit codes out. With it the book whose commands run it, the files of strangers
//! that it reads, and the order of its sources: in one binary, since linking each one takes as long as most of these tests.

mod advise;
mod answers;
mod architecture;
mod bad_runs;
mod book;
mod broken_driver;
mod clock;
mod command;
mod control;
mod corpus;
mod costs;
mod counters;
mod crossover;
mod early;
mod explain;
mod faults;
mod fit;
mod foreign;
mod gpu_check;
mod job_array;
mod kill;
mod licences;
mod mounts;
#[path = "../needs/mod.rs"]
mod needs;
mod nvml;
mod optional_engine;
mod output;
mod own;
mod paper;
mod pictures;
mod pipeline;
mod processes;
mod published;
mod published_kernels;
mod qualify;
#[cfg(target_os = "linux")]
mod reads;
mod report;
mod several;
mod shards;
mod side_by_side;
mod skips;
mod skypilot;
mod specs;
mod support;
mod sweep;
mod tables;
mod topology;
mod training;
mod turns;
mod twice;
