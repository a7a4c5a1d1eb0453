//! `[synthetic]`: the known truth that the synthetic engine plays.
//!
//! ```toml
//! [synthetic]
//! base = "10ms"                                # at batch size 0
//! slope = "0.7ms"                              # for each example more
//! jumps = [{ after = 16, size = "12ms" }]
//! kinks = [{ at = 5, slope = "0.1ms" }]        # the change of the slope
//! noise = { sd = "0.5%", heavy_tails = "5%", outliers = "1%", outlier_size = "40%" }
//! drift = { amplitude = "3%", steps = 2000 }   # steps until 63 % of it are there
//! device_clock = true
//! ```

use super::decode::{MAX_EXTENT, share};
use super::encode::{line, quoted};
use super::section::{Field, Section};
use crate::engine::synthetic::{Drift, Noise, Truth};
use crate::error::Result;
use crate::units::{Seconds, Share};

pub(super) fn read(mut section: Section) -> Result<Truth> {
    let mut truth = Truth::default();
    if let Some(field) = section.get("base") {
        truth.base_s = time(&field)?;
    }
    if let Some(field) = section.get("slope") {
        truth.slope_s_per_image = time(&field)?;
    }
    if let Some(field) = section.get("jumps") {
        truth.jumps = events(&field, ("after", "size"))?;
    }
    if let Some(field) = section.get("kinks") {
        truth.kinks = events(&field, ("at", "slope"))?;
    }
    truth.noise = section.section("noise")?.map_or(Ok(Noise::default()), noise)?;
    truth.drift = section.section("drift")?.map_or(Ok(Drift::default()), drift)?;
    if let Some(field) = section.get("device_clock") {
        truth.device_clock = field.boolean()?;
    }
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

/// A list of tables with a place on the batch axis and a time.
fn events(field: &Field, (place, size): (&'static str, &'static str)) -> Result<Vec<(usize, f64)>> {
    if !field.is_list() {
        return Err(field.error(format!("expected a list such as [{{ {place} = 16, {size} = \"12ms\" }}]")));
    }
    // An empty list is a fine way to say that there are none.
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

fn noise(mut section: Section) -> Result<Noise> {
    let mut noise = Noise::default();
    if let Some(field) = section.get("sd") {
        noise.relative_sd = share(&field, 0.0, 1.0)?;
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
    let noise = &truth.noise;
    let noise = format!(
        "{{ sd = \"{}\", heavy_tails = \"{}\", outliers = \"{}\", outlier_size = \"{}\" }}",
        Share(noise.relative_sd),
        Share(noise.heavy_tail_share),
        Share(noise.outlier_share),
        Share(noise.outlier_size),
    );
    line(out, "noise", noise);
    let drift = &truth.drift;
    let steps = format!("{:?}", drift.time_constant_steps);
    line(out, "drift", format!("{{ amplitude = \"{}\", steps = {steps} }}", Share(drift.relative_amplitude)));
    line(out, "device_clock", truth.device_clock);
    line(out, "seed", truth.seed);
}
