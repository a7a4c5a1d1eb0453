//! Whole charts, from demonstration data with a fixed seed.

use std::path::Path;

use super::data::*;
use super::geometry::Rect;
use super::scene::Scene;
use super::{Chart, Paper, write};
use crate::detect::{Candidate, Findings, Jump, Kink, Note, Period, Point, Rejection};

/// A small generator (Marsaglia's xorshift64), so that the demonstration is the same everywhere.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, with deviation 1: the sum of twelve uniforms less six.
    fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Step times of batch sizes `x` on a line of `slope` seconds per image, with a jump of `size` seconds after each of
/// `jumps`.
fn findings(x: &[f64], slope: f64, jumps: &[f64], size: f64) -> Findings {
    let mut random = Random(7);
    let truth = |x: f64| 0.012 + slope * x + size * jumps.iter().filter(|&&j| x > j).count() as f64;
    let point = |&x: &f64| {
        let center = truth(x) * (1.0 + 0.0015 * random.noise());
        let half = center * (0.002 + 0.002 * random.uniform());
        Point { x, count: 20, center, low: center - half, high: center + half, fit: truth(x), off: false }
    };
    let points = x.iter().map(point).collect();
    let jump = |&after: &f64| Jump {
        low: size * 0.96,
        high: size * 1.05,
        p_value: 0.0002,
        ..Jump::planted(after, size, size / truth(after))
    };
    let jumps = jumps.iter().map(jump).collect();
    Findings { points, jumps, false_positive_rate: 0.01, detectable: Some(0.005), ..Findings::default() }
}

fn counted(n: u32) -> Vec<f64> {
    (1..=n).map(f64::from).collect()
}

fn caption() -> Vec<String> {
    ["PCIe 5.0 x16", "Made by: batchstep plot results/vgg16/"].map(String::from).into()
}

fn named(name: &str, findings: Findings) -> ChartSeries {
    ChartSeries { name: name.into(), findings, ..ChartSeries::default() }
}

fn chart(series: Vec<(&str, Findings)>) -> StepTime {
    let series = series.into_iter().map(|(name, findings)| named(name, findings));
    StepTime {
        title: "VGG16, batch sizes 1 to 70".into(),
        x: Quantity::new("Batch size", ""),
        y: Quantity::new("Step time", "s"),
        item: Some("image".into()),
        series: series.collect(),
        forecast: false,
        caption: caption(),
    }
}

/// Changes the time at each size, its interval and its fit.
fn change(found: &mut Findings, by: impl Fn(f64, &mut f64)) {
    for point in &mut found.points {
        for value in [&mut point.center, &mut point.low, &mut point.high, &mut point.fit] {
            by(point.x, value);
        }
    }
}

/// A jump after 201 on a staircase of 150 members.
fn many_members() -> Findings {
    let every: Vec<f64> = (1..150).map(|k| f64::from(2 * k)).collect();
    let mut found = findings(&counted(301), 0.0, &every, 0.0008);
    let mut other = findings(&counted(301), 0.0, &[201.0], 0.05).jumps;
    change(&mut found, |x, value| *value += if x > 201.0 { 0.05 } else { 0.0 });
    found.jumps.append(&mut other);
    found.jumps.sort_by(|a, b| a.after.total_cmp(&b.after));
    found.period = Some(Period { value: 2.0, p_value: 1e-5, explains: every, unconfirmed: vec![300.0] });
    found
}

/// Bandwidth against the number of elements, which falls after 2048.
fn rate() -> StepTime {
    let sizes: Vec<f64> = (1..=64).map(|i| 64.0 * f64::from(i)).collect();
    let mut found = findings(&sizes, 0.0, &[2048.0], -0.002);
    change(&mut found, |_, value| *value *= 1e13);
    found.jumps[0].size *= 1e13;
    let y = Quantity::new("Bandwidth", "B/s");
    StepTime { x: Quantity::new("N", ""), y, item: None, ..chart(vec![("copy", found)]) }
}

fn vgg16() -> StepTime {
    let mut findings = findings(&counted(70), 0.0021, &[16.0, 32.0, 48.0, 64.0], 0.0058);
    findings.kinks.push(Kink { at: 5.0, slope_before: 0.001, slope_after: 0.0021, p_value: 0.001 });
    findings.period =
        Some(Period { value: 16.0, p_value: 0.0004, explains: vec![16.0, 32.0, 48.0, 64.0], unconfirmed: vec![] });
    let reason = Rejection::CorrelatedErrors;
    findings.rejected.push(Candidate { after: 40.0, size: 0.001, p_value: 0.2, reason });
    findings.points[26].center *= 1.05;
    (findings.points[26].high, findings.points[26].off) = (findings.points[26].center, true);
    chart(vec![("vgg16", findings)])
}

fn honesty(n: usize) -> Timeline {
    let mut random = Random(11);
    let steps = (0..n).map(|i| StepRecord {
        block: Some((i * 6 / n.max(1)) as u32 + 1),
        residual: 0.004 * random.noise() + if i % 97 == 5 { 0.06 } else { 0.0 } + if i % 25 == 0 { 0.03 } else { 0.0 },
        warmup: i % 25 == 0,
        outlier: i % 97 == 5,
    });
    let steps: Vec<StepRecord> = steps.collect();
    let clock = (0..n).map(|i| (i * 8 / n.max(1) != 5).then_some(1.98e9 - if i % 400 < 60 { 4.5e7 } else { 0.0 }));
    let heat = (0..n).map(|i| Some((52.0 + 14.0 * (1.0 - (-6.0 * i as f64 / n as f64).exp())).round()));
    Timeline {
        title: "VGG16, every step".into(),
        covariates: vec![
            Covariate { quantity: Quantity::new("SM clock", "Hz"), values: clock.collect() },
            Covariate { quantity: Quantity::new("GPU temperature", "\u{b0}C"), values: heat.collect() },
        ],
        steps,
        factors: vec![],
        caption: caption(),
    }
}

/// All shapes have finite places, and every text lies on the figure.
fn assert_sound(scene: &Scene) {
    let figure = Rect { left: 0.0, top: 0.0, right: scene.width, bottom: scene.height };
    assert!(scene.height > 200.0 && scene.height < 4000.0, "{}", scene.height);
    assert!(!format!("{:?}", scene.primitives).contains("NaN") && !format!("{:?}", scene.primitives).contains("inf"));
    for text in scene.texts() {
        assert!(figure.contains(&text.area()), "{text:?}");
        assert!(!text.text.contains("NaN"), "{text:?}");
    }
}

/// Some text of the figure contains each of these, and the figure is sound.
pub(super) fn assert_says(scene: &Scene, wanted: &[&str]) {
    let texts: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
    wanted.iter().for_each(|wanted| assert!(texts.iter().any(|text| text.contains(wanted)), "{wanted}: {texts:?}"));
    assert_sound(scene);
}

fn assert_texts_apart(scene: &Scene) {
    let texts: Vec<_> = scene.texts().collect();
    for (i, text) in texts.iter().enumerate() {
        for other in &texts[i + 1..] {
            assert!(!text.area().overlaps(&other.area()), "{text:?} covers {other:?}");
        }
    }
}

/// The demonstration charts, each with its name.
fn demonstration() -> Vec<(&'static str, Chart)> {
    let x = counted(70);
    let many: Vec<f64> = (1..=15).map(|k| f64::from(4 * k)).collect();
    let line = |slope: f64, jumps: &[f64]| findings(&x, slope, jumps, 0.05 * 40.0 * slope);
    let four = || {
        vec![
            ("fp32", line(0.0041, &[16.0, 32.0, 48.0, 64.0])),
            ("tf32", line(0.0023, &[16.0, 48.0])),
            ("bf16", line(0.0017, &[32.0])),
            ("fp16", line(0.0015, &[])),
        ]
    };
    let models = vec![
        ("vgg16", line(0.0041, &[16.0, 32.0, 48.0, 64.0])),
        ("vgg19", line(0.0061, &[16.0, 32.0])),
        ("mobilenet", line(0.0003, &[])),
        ("resnet50", line(0.0011, &[33.0])),
    ];
    let doubling = [64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0];
    let mut down = findings(&counted(512), 0.0004, &[], 0.0);
    down.jumps = findings(&counted(512), 0.0004, &[256.0], -0.02).jumps;
    down.points = findings(&counted(512), 0.0004, &[256.0], -0.02).points;
    let flat = findings(&x, 0.0, &[], 0.0);
    let mut places = findings(&x, 0.0021, &[16.0, 40.0], 0.0058);
    (places.jumps[1].after_low, places.jumps[1].after_high) = (38.0, 42.0);
    let no_clock = Timeline { covariates: vec![], ..honesty(400) };
    let charts = vec![
        ("vgg16", vgg16()),
        ("fifteen", chart(vec![("vgg16", findings(&x, 0.0021, &many, 0.004))])),
        ("four-series", chart(four())),
        ("facets", chart(models.clone())),
        ("facets-two", chart(models[1..3].to_vec())),
        ("facets-five", chart(models.iter().cloned().chain([("mnist_cnn", line(0.00002, &[]))]).collect())),
        ("log", chart(vec![("vgg16", findings(&doubling, 0.0021, &[256.0], 0.1))])),
        ("point", chart(vec![("vgg16", findings(&[8.0], 0.0021, &[], 0.0))])),
        ("512-points", chart(vec![("vgg16", down)])),
        ("flat", chart(vec![("A/A", flat)])),
        ("places", chart(vec![("vgg16", places)])),
        ("many-members", chart(vec![("vgg16", many_members())])),
        ("rate", rate()),
        ("no-item", StepTime { item: None, ..vgg16() }),
        ("nothing", chart(vec![("vgg16", findings(&[], 0.0021, &[], 0.0))])),
        ("no-series", chart(vec![])),
    ];
    let charts = charts.into_iter().map(|(name, chart)| (name, Chart::StepTime(chart)));
    let runs = [
        ("runs", devices([0.004, 0.0035, 0.003, 0.0025])),
        ("runs-far-apart", devices([0.008, 0.004, 0.003, 0.002])),
        ("runs-networks", devices_and_networks()),
        ("runs-none", Runs { panels: vec![], names: vec![], ..devices([0.004; 4]) }),
    ];
    let charts = charts.chain(runs.into_iter().map(|(name, chart)| (name, Chart::Runs(chart))));
    let steps = [("honesty", honesty(7000)), ("honesty-no-clock", no_clock), ("honesty-nothing", honesty(0))];
    charts.chain(steps.into_iter().map(|(name, chart)| (name, Chart::Timeline(chart)))).collect()
}

#[test]
fn every_chart_is_sound_and_its_texts_do_not_overlap() {
    for (_, chart) in demonstration() {
        let scene = chart.scene();
        assert_sound(&scene);
        assert_texts_apart(&scene);
    }
}

/// Set `BATCHSTEP_DEMONSTRATION` to a folder to keep them, and look at them after every change.
#[test]
#[ignore = "slow"]
fn every_chart_is_painted() {
    let folder = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("BATCHSTEP_DEMONSTRATION").map(std::path::PathBuf::from);
    for (name, chart) in demonstration() {
        let path = kept.as_deref().unwrap_or(folder.path()).join(format!("{name}.png"));
        write(&Paper::default(), &chart, &path).unwrap();
        write(&Paper::default(), &chart, &path.with_extension("svg")).unwrap();
    }
}

fn texts(chart: Chart) -> Vec<String> {
    chart.scene().texts().map(|text| text.text.clone()).collect()
}

/// Each chart with texts that begin so, and with words that it does not say.
#[test]
fn a_chart_says_what_was_found_and_nothing_else() {
    let certain = findings(&counted(70), 0.0021, &[40.0], 0.0058);
    let mut places = certain.clone();
    (places.jumps[0].after_low, places.jumps[0].after_high) = (38.0, 42.0);
    let searched = findings(&counted(12), 0.0021, &[], 0.0);
    let wide = Findings { notes: vec![Note::TooWide { sizes: true }], ..searched.clone() };
    // The line of a curve that cannot be judged lies anywhere between its sizes.
    let mut unfitted = searched.clone();
    unfitted.points.iter_mut().for_each(|point| point.fit = f64::NAN);
    let one = |found: &Findings| chart(vec![("mlp", found.clone())]);
    let cases: [(StepTime, &[&str], &[&str]); 9] = [
        (
            vgg16(),
            &[
                // 0.0058 s over 0.012 + 0.0021 * 16 = 0.0456 s is 12.7 %, with two digits 13 %.
                "after 16: +5.80 ms (+13 %)",
                "4 jumps after 16, 32, 48 and 64; period 16 (p = 0.0004)",
                "Step time (ms)",
                "Time per image (ms)",
                "Batch size",
                "48",
                "Made by: batchstep plot results/vgg16/",
            ],
            &["places that a jump may have"],
        ),
        (rate(), &["Bandwidth (GB/s)", "N", "2048", "after 2048: \u{2212}20.0 GB/s (\u{2212}17 %)"], &["Time per"]),
        (one(&many_members()), &["1 jump after 201, and one every 2, 149 times"], &["without a label"]),
        (one(&certain), &["after 40:"], &["places that a jump may have"]),
        (one(&places), &["after 40 (38 to 42)", "places that a jump may have"], &[]),
        (one(&searched), &["fitted line"], &[]),
        (one(&unfitted), &["median"], &["fitted line"]),
        (one(&wide), &["No jump was looked for: the sizes span"], &["fitted line"]),
        (chart(vec![("mlp", wide), ("cnn", searched)]), &["2 series. mlp: not searched; cnn: no jump"], &[]),
    ];
    for (chart, wanted, unwanted) in cases {
        let chart = Chart::StepTime(chart);
        assert_sound(&chart.scene());
        let said = texts(chart);
        wanted.iter().for_each(|text| assert!(said.iter().any(|one| one.starts_with(text)), "{text}: {said:?}"));
        unwanted.iter().for_each(|text| assert!(!said.iter().any(|one| one.contains(text)), "{text}: {said:?}"));
    }
    let lines = |found: &Findings| Chart::StepTime(one(found)).scene().primitives.len();
    // Three lines in the panel, three and a text in the legend.
    assert_eq!(lines(&places), lines(&certain) + 7);
    let said = texts(Chart::StepTime(one(&many_members())));
    assert_eq!(said.iter().filter(|text| text.starts_with("after ")).count(), 1, "members have no label: {said:?}");
}

/// Eighty letters without a space, and a command with a file that is called like a unit.
#[test]
fn a_long_name_stays_on_the_figure_and_a_command_can_be_copied() {
    let name = "resnet50_imagenet_batch_size_sweep_a100_80gb_pcie_fp16_channels_last_2024_05_06_r3";
    let mut long = vgg16();
    long.title = name.into();
    long.caption[1] = format!("Made by: batchstep plot {name}/{name}.csv 5 us us.csv --x -1");
    let scene = Chart::StepTime(long).scene();
    assert_sound(&scene);
    assert_texts_apart(&scene);
    let said: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
    let all = said.concat();
    assert!(all.contains(name) && all.contains("5 us us.csv --x -1"), "{said:?}");
}

#[test]
fn broken_values_are_left_out_and_not_drawn() {
    let mut broken = vgg16();
    let points = &mut broken.series[0].findings.points;
    points[3].center = f64::NAN;
    points[4].low = f64::NEG_INFINITY;
    points[5].fit = f64::NAN;
    points[6].x = f64::INFINITY;
    broken.series[0].findings.period.as_mut().unwrap().value = 0.0;
    assert_sound(&Chart::StepTime(broken).scene());
    let mut steps = honesty(50);
    steps.steps[3].residual = f64::NAN;
    steps.covariates[0].values[2] = Some(f64::NAN);
    assert_sound(&Chart::Timeline(steps).scene());
}

#[test]
fn a_file_has_the_size_and_the_texts_of_its_figure_and_the_same_bytes_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let chart = Chart::StepTime(StepTime { title: "VGG16 & <others>".into(), ..vgg16() });
    let [png, svg] = ["png", "svg"].map(|extension| {
        let bytes = |name: &str| {
            let path = folder.path().join(name).with_extension(extension);
            write(&Paper::default(), &chart, &path).unwrap();
            std::fs::read(&path).unwrap()
        };
        let first = bytes("a");
        assert!(first == bytes("b"), "{extension}");
        first
    });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no part is left behind");
    assert_eq!((&png[..8], &png[png.len() - 8..png.len() - 4]), (&b"\x89PNG\r\n\x1a\n"[..], &b"IEND"[..]));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (2000, chart.scene().height as u32 * 2));
    let svg = String::from_utf8(svg).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for label in ["VGG16 &amp; &lt;others&gt;", "after 64: +5.80 ms", "PCIe 5.0 x16", "sans-serif"] {
        assert!(svg.contains(label), "{label}");
    }
    for tag in ["svg", "text", "title"] {
        let count = |what: String| svg.matches(&what).count();
        assert_eq!(count(format!("<{tag}")), count(format!("</{tag}>")), "{tag}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf\""));
}

#[test]
fn a_refused_path_is_named_with_a_remedy() {
    let chart = Chart::Timeline(honesty(0));
    let error = write(&Paper::default(), &chart, Path::new("chart.gif")).unwrap_err().to_string();
    assert!(error.starts_with("chart.gif: ") && error.contains("`.png`, `.svg` or `.pdf`"), "{error}");
    for name in ["/nowhere/at/all/chart.png", "/nowhere/at/all/chart.svg", "/nowhere/at/all/chart.pdf"] {
        let error = write(&Paper::default(), &chart, Path::new(name)).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Io);
        assert!(error.to_string().starts_with(name), "{error}");
    }
}

/// The study's figure: one network on four devices, each on a line of its own slope (seconds per image), times the slope over 4 ms.
fn devices(slopes: [f64; 4]) -> Runs {
    let jumps: [&[f64]; 4] = [&[16.0, 32.0, 48.0, 64.0], &[16.0, 32.0], &[], &[32.0, 41.0]];
    let names = ["NVIDIA T4", "NVIDIA V100", "NVIDIA A100", "NVIDIA H200"];
    let curve = |run: usize| {
        let mut found = findings(&counted(70), slopes[run], jumps[run], 4.0 * slopes[run]);
        change(&mut found, |_, value| *value *= slopes[run] / 0.004);
        RunCurve { run, series: named(names[run], found) }
    };
    let like = chart(vec![]);
    Runs {
        title: "vgg16 on 4 devices".into(),
        x: like.x,
        y: like.y,
        item: like.item,
        names: names.map(String::from).into(),
        panels: vec![RunsPanel { name: "vgg16".into(), curves: (0..4).map(curve).collect() }],
        caption: vec!["t4: NVIDIA T4".into(), "Made by: batchstep plot t4 v100 a100 h200".into()],
    }
}

fn of_runs(all: &Runs, name: &str, runs: &[usize]) -> RunsPanel {
    RunsPanel { name: name.into(), curves: runs.iter().map(|&run| all.panels[0].curves[run].clone()).collect() }
}

/// Several networks; one of them was measured on only two of the devices.
fn devices_and_networks() -> Runs {
    let all = devices([0.004, 0.003, 0.002, 0.001]);
    let panels = [("vgg16", &[0, 1, 2, 3][..]), ("resnet50", &[1, 3]), ("mobilenet", &[2])];
    let panels = panels.map(|(name, runs)| of_runs(&all, name, runs)).into();
    Runs { title: "4 devices side by side".into(), panels, ..all }
}

#[test]
fn several_runs_share_a_picture_with_a_row_of_jumps_each() {
    let said = texts(Chart::Runs(devices([0.004, 0.0035, 0.003, 0.0025])));
    for name in ["NVIDIA T4", "NVIDIA V100", "NVIDIA A100", "NVIDIA H200"] {
        // In the legend, at its curve, at its row.
        assert_eq!(said.iter().filter(|text| **text == name).count(), 3, "{name}: {said:?}");
    }
    // 4 * 0.004 s over 0.012 + 0.004 * 16 = 0.076 s is 21 %.
    for text in [
        "16: +21 %",
        "No jump; one of 0.5 % or more between 23 and 48 would have been seen.",
        "No jump is common to all 4.",
        "Step time (ms)",
        "Time per image (ms)",
    ] {
        assert!(said.iter().any(|one| one == text), "{text}: {said:?}");
    }
}

#[test]
fn a_result_of_all_runs_is_reported() {
    let all = devices([0.004, 0.003, 0.002, 0.001]);
    let of = |runs: &[usize]| {
        let panels = vec![of_runs(&all, "vgg16", runs)];
        texts(Chart::Runs(Runs { panels, ..all.clone() })).swap_remove(1)
    };
    assert_eq!(of(&[0, 1]), "Both jump after 16 and 32.");
    assert_eq!(of(&[0, 1, 3]), "All 3 jump after 32.");
    assert_eq!(of(&[2, 2]), "Neither jumps.");
}

#[test]
fn runs_whose_times_lie_far_apart_share_a_logarithmic_axis() {
    let logarithmic = |chart: Runs| {
        let scene = Chart::Runs(chart).scene();
        let ticks = scene.texts().filter(|text| text.anchor == super::scene::Anchor::Right);
        let values: Vec<f64> = ticks.filter_map(|text| text.text.parse().ok()).collect();
        // 1, 2, 5, 10 or 1, 10, 100: no equal distances.
        let mut ratios = values.windows(2).map(|pair| pair[1] / pair[0]);
        let spread = ratios.any(|ratio| (ratio - 2.5).abs() < 1e-9 || (ratio - 10.0).abs() < 1e-9);
        let said = scene.texts().any(|text| text.text.starts_with("Step time, logarithmic"));
        assert_eq!(spread, said);
        said
    };
    assert!(logarithmic(devices([0.008, 0.004, 0.003, 0.002])));
    assert!(!logarithmic(devices([0.004, 0.0035, 0.003, 0.0025])));
}
