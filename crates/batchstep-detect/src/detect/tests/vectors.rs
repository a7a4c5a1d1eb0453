//! The test vectors of docs/detector.md: inputs and outputs of each part of the detector, so that another can write it.

use serde_json::{Value, json};

use super::*;
use crate::detect::input::Settings;
use crate::detect::interpret::period;
use crate::detect::model::candidates::{CandidateTerms, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood;
use crate::detect::model::problem::Problem;
use crate::detect::prepare::reduce;
use crate::detect::prepare::scaled::Scaled;
use crate::detect::search;
use crate::detect::search::{cliffs, segment};
use crate::detect::verify::{autoregressive, threshold};

const VECTORS: &str = include_str!("../../../vectors.json");

#[test]
fn every_part_gives_what_its_vectors_say() {
    let vectors: Value = serde_json::from_str(VECTORS).expect("JSON");
    let mut wrong = Vec::new();
    for vector in vectors.as_array().expect("a list") {
        let [part, given] = [&vector["part"], &vector["given"]];
        let found = of_part(part.as_str().expect("a name"), given);
        if !alike(&found, &vector["gives"]) {
            wrong.push(format!("{}: {found}", vector["name"]));
        }
    }
    assert!(wrong.is_empty(), "these parts give\n{}", wrong.join("\n"));
}

/// Whether two values agree, numbers within what processors and their libraries differ by.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(_), Value::Number(_)) => {
            let [a, b] = [one, other].map(|value| value.as_f64().expect("a number"));
            (a - b).abs() <= 1e-8 * (a.abs() + b.abs()) + 1e-12
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(a, b)))
        }
        _ => one == other,
    }
}

fn of_part(part: &str, given: &Value) -> Value {
    match part {
        "prepare" => prepared(given),
        "reduce" => reduced(given),
        "terms" => terms(given),
        "cliffs" => {
            let (candidates, y) = (CandidateTerms::new(&numbers(&given["x"])), numbers(&given["y"]));
            json!(cliffs::cliffs(&candidates, &y, &y, |_| number(&given["least"])))
        }
        "threshold" => {
            let [looks, df, rate] = ["looks", "df", "rate"].map(|name| number(&given[name]));
            json!(threshold::threshold(looks as usize, df, rate))
        }
        "p" => {
            let [z, df, looks] = ["z", "df", "looks"].map(|name| number(&given[name]));
            json!(threshold::p_value(z, df, looks as usize))
        }
        "period" => of_period(given),
        "detect" => detected(given),
        _ => of_fit(part, given),
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn places(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|place| place as usize).collect()
}

/// The values at each x, which are 1, 2, ... unless they are given; a value may stand for a list of one.
fn observations(given: &Value) -> Vec<Observation> {
    let each: Vec<Vec<f64>> = given["y"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|y| if y.is_array() { numbers(y) } else { vec![number(y)] })
        .collect();
    let x = if given["x"].is_array() { numbers(&given["x"]) } else { (1..=each.len()).map(|x| x as f64).collect() };
    x.iter().zip(each).flat_map(|(&x, own)| own.into_iter().map(move |y| Observation::new(x, y))).collect()
}

fn prepared(given: &Value) -> Value {
    let prepared = Prepared::new(&observations(given));
    let left_out = prepared.notes.iter().find_map(|note| match note {
        Note::OneLeftOut { times } => Some(*times),
        _ => None,
    });
    let kept: Vec<f64> = prepared.log.iter().map(|log| log.exp()).collect();
    json!({"left_out_times": left_out, "kept": kept})
}

fn reduced(given: &Value) -> Value {
    let prepared = Prepared::new(&observations(given));
    let reduced = reduce::reduce(&prepared.groups, &prepared.log, None);
    let tick: Vec<f64> = reduced.center.iter().zip(&reduced.tick).map(|(log, share)| share * log.exp()).collect();
    let fitted = Scaled::new(&reduced).error;
    json!({"center": reduced.center, "error": reduced.error, "tick": tick, "spikes": reduced.spikes, "error_of_fit": fitted})
}

/// A term by its name and numbers; a shape by its place among all shapes.
fn term(value: &Value) -> Term {
    let at = |place: usize| number(&value[place]) as usize;
    match value[0].as_str().expect("a name") {
        "step" => Term::Step(at(1)),
        "hinge" => Term::Hinge(at(1)),
        "off" => Term::Off { at: at(1), length: at(2) },
        "shape" => Term::Shape(at(1)),
        "staircase" => Term::Staircase(at(1)),
        other => panic!("no term is called {other}"),
    }
}

fn named(term: Term) -> Value {
    match term {
        Term::Step(k) => json!(["step", k]),
        Term::Hinge(k) => json!(["hinge", k]),
        Term::Off { at, length } => json!(["off", at, length]),
        Term::Shape(s) => json!(["shape", s]),
        Term::Staircase(s) => json!(["staircase", s]),
    }
}

fn indices(candidates: &CandidateTerms, terms: &Value) -> Vec<usize> {
    terms.as_array().expect("a list").iter().map(|value| candidates.index(term(value))).collect()
}

fn terms(given: &Value) -> Value {
    let candidates = CandidateTerms::new(&numbers(&given["x"]));
    let chosen = indices(&candidates, &given["terms"]);
    let [columns, costs]: [Vec<Value>; 2] = [
        chosen.iter().map(|&j| json!(candidates.column(j))).collect(),
        chosen.iter().map(|&j| json!(candidates.cost(j))).collect(),
    ];
    json!({"number": candidates.len, "shapes": candidates.shapes.len(), "columns": columns, "costs": costs})
}

/// What follows from a problem, and mostly from given terms.
fn of_fit(part: &str, given: &Value) -> Value {
    let (x, y) = (numbers(&given["x"]), numbers(&given["y"]));
    let candidates = CandidateTerms::new(&x);
    let error = vec![number(&given["error"]); x.len()];
    let problem = Problem::new(&candidates, &y, &error, number(&given["floor"]));
    match part {
        "starts" => return json!(segment::starts(&problem, &y)),
        "search" => {
            let model = search::search(&problem, &y);
            let mut terms = model.terms.clone();
            terms.sort_unstable();
            let terms: Vec<Value> = terms.into_iter().map(|j| named(candidates.term(j))).collect();
            return json!({"terms": terms, "length": model.length()});
        }
        _ => {}
    }
    let model = Model::new(&problem, &indices(&candidates, &given["terms"]));
    match part {
        "fit" => {
            let z: Vec<f64> = (0..model.terms.len()).map(|place| model.z(place)).collect();
            json!({"coefficients": model.coefficients(), "rss": model.rss, "length": model.length(), "spread": model.spread(), "z": z})
        }
        "autoregressive" => json!(autoregressive::explained_below(&model)),
        "local" => {
            let k = places(&json!([given["k"]]))[0];
            let local = neighbourhood::local_size(&model, &y, k).expect("lines");
            let share = neighbourhood::bend(&model, &y, k, 2.5).map(|bend| bend.share);
            let step = neighbourhood::step(&model, &y, k, local.size).expect("points");
            json!({
                "gap": local.size, "error": local.error, "df": local.freedom, "bend": share,
                "step": [step.beyond_mean, step.beyond_slopes, step.bend, step.error]
            })
        }
        other => panic!("no part is called {other}"),
    }
}

fn of_period(given: &Value) -> Value {
    let x: Vec<f64> = (1..=number(&given["last"]) as usize).map(|x| x as f64).collect();
    let jumps: Vec<Jump> = numbers(&given["jumps"]).into_iter().map(|after| Jump::planted(after, 1.0, 0.1)).collect();
    let found = period::of_jumps(&x, &jumps, &Settings::default());
    json!(found.map(|period| json!({"period": period.value, "p": period.p_value})))
}

fn detected(given: &Value) -> Value {
    let settings = Settings { is_rate: given["is_rate"] == json!(true), ..Settings::default() };
    let found = detect(&observations(given), &settings);
    let jump = |jump: &Jump| {
        json!({
            "after": jump.after, "places": [jump.after_low, jump.after_high], "size": jump.size, "interval": [jump.low, jump.high],
            "relative": jump.relative, "p": jump.p_value, "p_nearby": jump.nearby_p_value
        })
    };
    let of = |one: &Multiples| json!([one.of, one.relative]);
    json!({
        "jumps": found.jumps.iter().map(jump).collect::<Vec<_>>(),
        "kinks": found.kinks.iter().map(|kink| [kink.at, kink.slope_before, kink.slope_after]).collect::<Vec<_>>(),
        "multiples": found.multiples.iter().map(of).collect::<Vec<_>>(),
        "rejected": found.rejected.iter().map(|one| one.after).collect::<Vec<_>>(),
        "unexplained": unexplained(&found).iter().map(|one| [one.from, one.to, one.relative]).collect::<Vec<_>>(),
        "period": found.period.as_ref().map(|period| period.value),
        "series_p": found.p_value,
        "would_be_seen": found.detectable
    })
}
