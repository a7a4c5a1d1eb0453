//! `[synthetic]`: the known truth that the synthetic engine plays. All of it is optional; docs/spec.md has an example with every key.

use super::decode::MAX_EXTENT;
use super::keys::{KeyForm, Keys, Table, any_time, count, flag, integer, number, seed, share, table};
use super::section::Field;
use crate::engine::synthetic::{Boost, Clock, ClockStep, Common, Drift, Machines, Neighbour, Noise, Throttle, Truth};
use crate::units::Seconds;

impl Table for Truth {
    const NAME: &'static str = "synthetic";

    /// A single machine has no differences; faults are for tests: a spec without either does not list them.
    fn keys() -> Keys<Self> {
        table!(Self {
            "base": base_s = any_time();
            "slope": slope_s_per_image = any_time();
            "jumps": jumps = events("after", "size");
            "kinks": kinks = events("at", "slope");
            "noise": noise = table!(Noise {
                "sd": relative_sd = part();
                "visits": visit_sd = part();
                "heavy_tails": heavy_tail_share = part();
                "outliers": outlier_share = part();
                "outlier_size": outlier_size = share(0.0, 1e3);
            }).inline(Noise::default());
            "drift": disturbance.drift = table!(Drift {
                "amplitude": relative_amplitude = size();
                "steps": time_constant_steps = number(0.0, 1e12);
            }).inline(Drift::default());
            "clock_step": disturbance.clock_step = table!(ClockStep {
                "at_step": at_step = step();
                "size": relative = size();
            }).inline(ClockStep::default());
            "neighbour": disturbance.neighbour = table!(Neighbour {
                "from_step": from_step = step();
                "steps": steps = step();
                "size": relative = size();
            }).inline(Neighbour::default());
            "boost": disturbance.boost = table!(Boost {
                "share": share = part();
                "size": relative = size();
                "steps": dwell_steps = step();
            }).inline(Boost::default());
            "common": disturbance.common = table!(Common {
                "sd": relative_sd = part();
                "steps": steps = number(0.0, 1e12);
            }).inline(Common::default());
            "throttle": disturbance.throttle = table!(Throttle {
                "after": after = count(0, MAX_EXTENT);
                "size": relative = size();
            }).inline(Throttle::default());
            "first_visit": disturbance.first_visit = size();
            "machines": machines = table!(Machines {
                "sd": relative_sd = part();
                "cells": cell_sd = part();
            }).inline(Machines::default()).unless_default();
            "device_clock": device_clock = flag();
            "clock": clock = table!(Clock {
                "hz": hz = number(1.0, 1e12);
                "noise": relative_sd = part();
            }).inline(Clock { hz: 2e9, relative_sd: 0.0 }).optional();
            "nan_loss": faults.nan_loss = sizes().unless_default();
            "fails": faults.fails = sizes().unless_default();
            "lost": faults.lost = sizes().unless_default();
            "hangs": faults.hangs = events("at", "for").unless_default();
            "seed": seed = seed();
        })
    }
}

/// A share of a whole.
fn part() -> KeyForm<f64> {
    share(0.0, 1.0)
}

/// By how much a step takes longer.
fn size() -> KeyForm<f64> {
    share(-0.9, 10.0)
}

/// The number of a step.
fn step() -> KeyForm<u64> {
    integer(0, 1 << 60)
}

/// A list of tables with a place on the batch axis and a time, under these keys.
fn events(place: &'static str, size: &'static str) -> KeyForm<Vec<(usize, f64)>> {
    let event = move |element: &Field| {
        let mut section = element.section()?;
        let at = section.read(place, |field| field.count(1, MAX_EXTENT))?;
        let by = section.read(size, |field| any_time().read(field))?;
        section.finish()?;
        at.zip(by).ok_or_else(|| element.error(format!("expected {{ {place} = 16, {size} = \"12ms\" }}")))
    };
    let read = move |field: &Field| match field.is_list() {
        true => field.each(event),
        false => Err(field.error(format!("expected a list such as [{{ {place} = 16, {size} = \"12ms\" }}]"))),
    };
    let text = move |&(at, by): &(usize, f64)| format!("{{ {place} = {at}, {size} = \"{}\" }}", Seconds(by));
    KeyForm::new(read, move |list| Some(format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(", "))))
}

/// Batch sizes; there may be none.
fn sizes() -> KeyForm<Vec<usize>> {
    let read = |field: &Field| field.each(|field| field.count(1, MAX_EXTENT));
    KeyForm::new(read, |sizes| Some(format!("{sizes:?}")))
}
