//! `[synthetic]`: the known truth that the synthetic engine plays. All of it is optional.
//!
//! ```toml
//! [synthetic]
//! base = "10ms"                                # at batch size 0
//! slope = "0.7ms"                              # for each example more
//! jumps = [{ after = 16, size = "12ms" }]
//! kinks = [{ at = 5, slope = "0.1ms" }]        # the change of the slope
//! device_clock = true                          # play a GPU, with device times
//! clock = { hz = 2e9, noise = "0.1%" }         # a clock that can be read beside each visit
//!
//! # What hides it. `visits` is noise that all steps of a visit share.
//! noise = { sd = "0.5%", visits = "0.5%", heavy_tails = "5%", outliers = "1%", outlier_size = "40%" }
//! drift = { amplitude = "3%", steps = 2000 }   # gets slower as it gets warm; steps until 63 % of it are there
//! clock_step = { at_step = 900, size = "3%" }  # slower from that step of the run on
//! neighbour = { from_step = 300, steps = 200, size = "20%" }
//! boost = { share = "30%", size = "4%", steps = 50 }   # slower in that share of the time, `steps` at a time
//! common = { sd = "10%", steps = 150 }         # a factor that all steps share; its correlation falls to 37 % within `steps`
//! throttle = { after = 32, size = "8%" }       # its clock is held down beyond that batch size
//! first_visit = "15%"                          # each batch size is that much slower the first time
//! machines = { sd = "10%", cells = "0.5%" }     # each shard runs on a machine that differs by `sd`, and by `cells` at each batch size
//!
//! # What goes wrong, at which batch sizes.
//! nan_loss = [12]
//! fails = [13]
//! lost = [15]                                  # fails, and nothing runs after it
//! hangs = [{ at = 14, for = "1h" }]            # really sleeps that long in each step
//! ```

use super::decode::{MAX_EXTENT, share};
use super::encode::{line, quoted};
use super::section::{Field, Section};
use crate::engine::synthetic::{
    Boost, Clock, ClockStep, Common, Disturbance, Drift, Machines, Neighbour, Noise, Throttle, Truth,
};
use crate::error::Result;
use crate::units::{Seconds, Share};

/// The largest step number a spec may name.
const MAX_STEP: u64 = 1 << 60;

pub(super) fn read(mut section: Section) -> Result<Truth> {
    let mut truth = Truth::default();
    if let Some(field) = section.get("base") {
        truth.base_s = time(&field)?;
    }
    if let Some(field) = section.get("slope") {
        truth.slope_s_per_image = time(&field)?;
    }
    if let Some(field) = section.get("jumps") {
        truth.jumps = events(&field, EventKeys { place: "after", size: "size" })?;
    }
    if let Some(field) = section.get("kinks") {
        truth.kinks = events(&field, EventKeys { place: "at", size: "slope" })?;
    }
    truth.noise = section.section("noise")?.map_or(Ok(Noise::default()), noise)?;
    truth.disturbance = disturbance(&mut section)?;
    truth.machines = section.section("machines")?.map_or(Ok(Machines::default()), machines)?;
    if let Some(field) = section.get("device_clock") {
        truth.device_clock = field.boolean()?;
    }
    truth.clock = section.section("clock")?.map(clock).transpose()?;
    if let Some(field) = section.get("hangs") {
        truth.faults.hangs = events(&field, EventKeys { place: "at", size: "for" })?;
    }
    truth.faults.nan_loss = section.get("nan_loss").map_or(Ok(Vec::new()), |field| sizes(&field))?;
    truth.faults.fails = section.get("fails").map_or(Ok(Vec::new()), |field| sizes(&field))?;
    truth.faults.lost = section.get("lost").map_or(Ok(Vec::new()), |field| sizes(&field))?;
    if let Some(field) = section.get("seed") {
        truth.seed = field.integer(0, i64::MAX as u64)?;
    }
    section.finish()?;
    Ok(truth)
}

fn time(field: &Field) -> Result<f64> {
    let Seconds(seconds) = field.parsed("a time such as \"12ms\"", Seconds::parse)?;
    Ok(seconds)
}

/// The keys of an event: of its place on the batch axis, and of its time.
#[derive(Clone, Copy)]
struct EventKeys {
    place: &'static str,
    size: &'static str,
}

/// A list of tables with a place on the batch axis and a time.
fn events(field: &Field, keys: EventKeys) -> Result<Vec<(usize, f64)>> {
    let EventKeys { place, size } = keys;
    if !field.is_list() {
        return Err(field.error(format!("expected a list such as [{{ {place} = 16, {size} = \"12ms\" }}]")));
    }
    // An empty list says that there are none.
    let Ok(elements) = field.elements() else { return Ok(Vec::new()) };
    let event = |element: &Field| {
        let mut section = element.section()?;
        let at = section.get(place).map(|f| f.count(1, MAX_EXTENT)).transpose()?;
        let by = section.get(size).map(|f| time(&f)).transpose()?;
        section.finish()?;
        at.zip(by).ok_or_else(|| element.error(format!("expected {{ {place} = 16, {size} = \"12ms\" }}")))
    };
    elements.iter().map(event).collect()
}

fn sizes(field: &Field) -> Result<Vec<usize>> {
    if field.is_empty_list() {
        return Ok(Vec::new());
    }
    field.elements()?.iter().map(|field| field.count(1, MAX_EXTENT)).collect()
}

fn clock(mut section: Section) -> Result<Clock> {
    let hz = section.get("hz").map_or(Ok(2e9), |field| field.number(1.0, 1e12))?;
    let relative_sd = section.get("noise").map_or(Ok(0.0), |field| share(&field, 0.0, 1.0))?;
    section.finish()?;
    Ok(Clock { hz, relative_sd })
}

fn noise(mut section: Section) -> Result<Noise> {
    let mut noise = Noise::default();
    if let Some(field) = section.get("sd") {
        noise.relative_sd = share(&field, 0.0, 1.0)?;
    }
    if let Some(field) = section.get("visits") {
        noise.visit_sd = share(&field, 0.0, 1.0)?;
    }
    if let Some(field) = section.get("heavy_tails") {
        noise.heavy_tail_share = share(&field, 0.0, 1.0)?;
    }
    if let Some(field) = section.get("outliers") {
        noise.outlier_share = share(&field, 0.0, 1.0)?;
    }
    if let Some(field) = section.get("outlier_size") {
        noise.outlier_size = share(&field, 0.0, 1e3)?;
    }
    section.finish()?;
    Ok(noise)
}

fn disturbance(section: &mut Section) -> Result<Disturbance> {
    let mut found = Disturbance::default();
    if let Some(section) = section.section("drift")? {
        found.drift = drift(section)?;
    }
    if let Some(mut section) = section.section("clock_step")? {
        found.clock_step = ClockStep { at_step: step(&mut section, "at_step")?, relative: size(&mut section)? };
        section.finish()?;
    }
    if let Some(mut section) = section.section("neighbour")? {
        let (from_step, steps) = (step(&mut section, "from_step")?, step(&mut section, "steps")?);
        found.neighbour = Neighbour { from_step, steps, relative: size(&mut section)? };
        section.finish()?;
    }
    if let Some(mut section) = section.section("boost")? {
        let share = section.get("share").map_or(Ok(0.0), |field| share(&field, 0.0, 1.0))?;
        found.boost = Boost { share, relative: size(&mut section)?, dwell_steps: step(&mut section, "steps")? };
        section.finish()?;
    }
    if let Some(mut section) = section.section("common")? {
        let relative_sd = section.get("sd").map_or(Ok(0.0), |field| share(&field, 0.0, 1.0))?;
        let steps = section.get("steps").map_or(Ok(0.0), |field| field.number(0.0, 1e12))?;
        found.common = Common { relative_sd, steps };
        section.finish()?;
    }
    if let Some(mut section) = section.section("throttle")? {
        let after = section.get("after").map_or(Ok(0), |field| field.count(0, MAX_EXTENT))?;
        found.throttle = Throttle { after, relative: size(&mut section)? };
        section.finish()?;
    }
    if let Some(field) = section.get("first_visit") {
        found.first_visit = share(&field, -0.9, 10.0)?;
    }
    Ok(found)
}

fn machines(mut section: Section) -> Result<Machines> {
    let mut machines = Machines::default();
    if let Some(field) = section.get("sd") {
        machines.relative_sd = share(&field, 0.0, 1.0)?;
    }
    if let Some(field) = section.get("cells") {
        machines.cell_sd = share(&field, 0.0, 1.0)?;
    }
    section.finish()?;
    Ok(machines)
}

fn size(section: &mut Section) -> Result<f64> {
    section.get("size").map_or(Ok(0.0), |field| share(&field, -0.9, 10.0))
}

fn step(section: &mut Section, key: &'static str) -> Result<u64> {
    section.get(key).map_or(Ok(0), |field| field.integer(0, MAX_STEP))
}

fn drift(mut section: Section) -> Result<Drift> {
    let mut drift = Drift::default();
    if let Some(field) = section.get("amplitude") {
        drift.relative_amplitude = share(&field, -0.9, 10.0)?;
    }
    if let Some(field) = section.get("steps") {
        drift.time_constant_steps = field.number(0.0, 1e12)?;
    }
    section.finish()?;
    Ok(drift)
}

pub(super) fn write(out: &mut String, truth: &Truth) {
    let events = |list: &[(usize, f64)], place: &str, size: &str| {
        let entry = |&(at, by): &(usize, f64)| format!("{{ {place} = {at}, {size} = \"{}\" }}", Seconds(by));
        format!("[{}]", list.iter().map(entry).collect::<Vec<_>>().join(", "))
    };
    line(out, "base", quoted(Seconds(truth.base_s)));
    line(out, "slope", quoted(Seconds(truth.slope_s_per_image)));
    line(out, "jumps", events(&truth.jumps, "after", "size"));
    line(out, "kinks", events(&truth.kinks, "at", "slope"));
    let Noise { relative_sd, visit_sd, heavy_tail_share, outlier_share, outlier_size } = truth.noise;
    let noise = format!(
        "{{ sd = \"{}\", visits = \"{}\", heavy_tails = \"{}\", outliers = \"{}\", outlier_size = \"{}\" }}",
        Share(relative_sd),
        Share(visit_sd),
        Share(heavy_tail_share),
        Share(outlier_share),
        Share(outlier_size),
    );
    line(out, "noise", noise);
    write_disturbance(out, &truth.disturbance);
    // A single machine has no differences.
    if truth.machines != Machines::default() {
        let Machines { relative_sd, cell_sd } = truth.machines;
        line(out, "machines", format!("{{ sd = \"{}\", cells = \"{}\" }}", Share(relative_sd), Share(cell_sd)));
    }
    line(out, "device_clock", truth.device_clock);
    if let Some(Clock { hz, relative_sd }) = truth.clock {
        line(out, "clock", format!("{{ hz = {hz:?}, noise = \"{}\" }}", Share(relative_sd)));
    }
    // Faults are for tests: a spec without faults does not list them.
    let faults = &truth.faults;
    let named = [("nan_loss", &faults.nan_loss), ("fails", &faults.fails), ("lost", &faults.lost)];
    named
        .into_iter()
        .filter(|(_, sizes)| !sizes.is_empty())
        .for_each(|(key, sizes)| line(out, key, format!("{sizes:?}")));
    if !faults.hangs.is_empty() {
        line(out, "hangs", events(&faults.hangs, "at", "for"));
    }
    line(out, "seed", truth.seed);
}

fn write_disturbance(out: &mut String, disturbance: &Disturbance) {
    let Disturbance { drift, clock_step, neighbour, boost, common, throttle, first_visit } = disturbance;
    let size = |relative: f64| format!("size = \"{}\"", Share(relative));
    let steps = format!("{:?}", drift.time_constant_steps);
    line(out, "drift", format!("{{ amplitude = \"{}\", steps = {steps} }}", Share(drift.relative_amplitude)));
    line(out, "clock_step", format!("{{ at_step = {}, {} }}", clock_step.at_step, size(clock_step.relative)));
    let (from, steps) = (neighbour.from_step, neighbour.steps);
    line(out, "neighbour", format!("{{ from_step = {from}, steps = {steps}, {} }}", size(neighbour.relative)));
    let (share, steps) = (Share(boost.share), boost.dwell_steps);
    line(out, "boost", format!("{{ share = \"{share}\", {}, steps = {steps} }}", size(boost.relative)));
    let (sd, steps) = (Share(common.relative_sd), common.steps);
    line(out, "common", format!("{{ sd = \"{sd}\", steps = {steps:?} }}"));
    line(out, "throttle", format!("{{ after = {}, {} }}", throttle.after, size(throttle.relative)));
    line(out, "first_visit", quoted(Share(*first_visit)));
}
