use std::collections::BTreeSet;

use super::*;
use crate::network::Family;
use crate::network::custom::OperationSpec;
use crate::settings::own::Fresh;
use crate::settings::{AXES, Axis, Value};
use crate::study::{Spec, Study};

const HEAD: &str = "version = 1\nname = \"t\"\n";

fn parse(body: &str) -> Result<Experiment> {
    Experiment::parse(&format!("{HEAD}{body}"), "t.toml")
}

fn refusal(body: &str) -> String {
    parse(body).expect_err("refused").to_string()
}

fn axis(key: &str) -> &'static Axis {
    AXES.iter().find(|axis| axis.key == key).expect("an axis")
}

#[test]
fn what_is_not_given_takes_the_documented_default() {
    let experiment = parse("[model]\nname = \"vgg16\"").expect("valid");
    assert_eq!(experiment.batch_sizes, (1..=70).collect::<Vec<_>>());
    assert_eq!(experiment.grid, Grid::default());
    assert_eq!(experiment.grid.values(axis("optimizer")), [Value::Name("rmsprop")]);
    assert_eq!(experiment.grid.values(axis("precision")), [Value::Name("tf32")]);
    assert_eq!(experiment.grid.values(axis("threads")), [Value::Unset]);
    assert_eq!(experiment.measure.blocks.max, 30);
    assert_eq!(experiment.measure.time_limit_s, 1800.0);
    assert_eq!(experiment.executes, None);
}

#[test]
fn the_resolved_spec_reads_back_equal() {
    let bodies = [
        "[model]\nname = \"mlp\"\n[engine]\nname = [\"cpu\", \"torch\"]\ncompile = [\"none\", \"max-autotune\"]",
        "[model]\nname = \"vgg16\"\ninput = [3, 224, 224]\nclasses = 1000\n[engine]\nname = \"auto\"\nlaunch = \"eager\"\n[measure]\nsteps_per_visit = 5",
        "[model]\nname = \"vgg16\"\n[engine]\nname = [\"cudnn\", \"torch\"]\noptional = \"torch\"\nwinograd = [\"any\", \"never\", \"nonfused\"]",
        "[model]\nname = [\"vgg16\", \"mlp\"]\n[sweep]\nbatch_size = [1, 2, 64]\nexecutes = 8\n[engine]\nthreads = [1, 2]\nname = [\"cpu\", \"torch\"]\n[train]\nlearning_rate = 3e-5\nprecision = [\"fp32\", \"bf16\"]\n[measure]\nsmallest_jump = \"0.3%\"\ntime_limit = \"90s\"\nblocks = { min = 2, max = 2 }\nseed = 99\nlayers = true\nphases = false",
        "[model]\nname = \"vgg16\"\n[engine]\nalgorithms = [\"heuristic\", \"fixed\"]\nworkspace_limit = [\"0B\", \"256MiB\"]\nfixed_from = { run = \"results/vgg16\", batch_size = 16 }",
        "[model]\nname = \"vgg16\"\n[engine]\nalgorithms = \"fixed\"\nfixed_from = \"results/vgg16\"",
        "[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"10ms\"\nslope = \"0.7ms\"\njumps = [{ after = 16, size = \"12ms\" }, { after = 32, size = \"-3ms\" }]\nkinks = [{ at = 5, slope = \"0.1ms\" }]\nnoise = { sd = \"0.5%\", heavy_tails = \"5%\", outliers = \"1%\", outlier_size = \"40%\" }\ndrift = { amplitude = \"3%\", steps = 2000 }",
        "[engine]\nname = \"synthetic\"\n[synthetic]\nnoise = { visits = \"1%\" }\nclock_step = { at_step = 900, size = \"3%\" }\nneighbour = { from_step = 300, steps = 200, size = \"20%\" }\nboost = { share = \"30%\", size = \"4%\", steps = 50 }\nthrottle = { after = 32, size = \"8%\" }\nfirst_visit = \"15%\"\nclock = { hz = 2e9, noise = \"0.1%\" }\nnan_loss = [12]\nfails = [13, 15]\nhangs = [{ at = 14, for = \"1h\" }]\n[measure]\nvisit_limit = \"5s\"\norder = \"ascending\"",
        "[engine]\nname = \"synthetic\"\n[synthetic]\nmachines = { sd = \"10%\", cells = \"0.5%\" }\n[measure]\nshard = \"3/8\"\nshard_by = \"cells\"",
        "[model]\ninput = [3, 32, 32]\nname = \"mine\"\n[[model.layers]]\ntype = \"conv2d\"\nout_channels = 8\nkernel = [3, 5]\npadding = \"same\"\nname = \"c\"\n[[model.layers]]\ntype = \"batch_norm\"\n[[model.layers]]\ntype = \"relu\"\nname = \"r\"\n[[model.layers]]\ntype = \"add\"\nfrom = [\"c\", \"r\"]\n[[model.layers]]\ntype = \"max_pool2d\"\nkernel = 3\nstride = 2\npadding = 1\n[[model.layers]]\ntype = \"depthwise_conv2d\"\nkernel = 1\nstride = [1, 2]\n[[model.layers]]\ntype = \"dropout\"\nrate = 0.25\n[[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"dense\"\nout_features = 10\nbias = false",
    ];
    for body in bodies {
        let experiment = parse(body).unwrap_or_else(|e| panic!("{body}\n{e}"));
        let text = experiment.to_toml();
        let again = Experiment::parse(&text, "resolved").unwrap_or_else(|e| panic!("{text}\n{e}"));
        assert_eq!(again, experiment, "{text}");
        assert_eq!(again.to_toml(), text);
    }
}

/// A run leaves out optional engines that are not there and values that nothing takes, and stores the spec of what is left.
#[test]
fn what_is_left_of_a_spec_reads_back() {
    let bodies = [
        "name = [\"cpu\", \"torch\"]\noptional = \"torch\"\ncompile = [\"none\", \"default\"]\nprocesses = [1, 2]",
        "name = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"\nstreams = 2\nworkspace_limit = [\"0B\", \"64MiB\"]",
        "name = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"\nalgorithms = [\"heuristic\", \"fixed\"]\nfixed_from = \"results/vgg16\"",
    ];
    for body in bodies {
        let mut left = parse(&format!("[model]\nname = \"mlp\"\n[engine]\n{body}")).expect("valid");
        left.engine.name.retain(|engine| *engine == EngineName::Cpu);
        left.engine.optional.clear();
        left.grid.set(axis("algorithms"), vec![Value::Name("heuristic")]);
        let text = left.to_toml();
        let again = Experiment::parse(&text, "resolved").unwrap_or_else(|e| panic!("{text}\n{e}"));
        // 70 batch sizes, and the CPU's engine has none of these axes.
        assert_eq!((again.to_toml(), again.cell_count(), left.cell_count()), (text, 70, 70));
    }
    let text = format!(
        "{HEAD}kind = \"fit\"\n[engine]\nname = [\"cpu\", \"torch\"]\noptional = \"torch\"\nprocesses = [1, 2]"
    );
    let Spec::Fit(mut fit) = Spec::parse(&text, "t.toml").expect("valid") else { panic!("a fit") };
    fit.subject.engine.name.retain(|engine| *engine == EngineName::Cpu);
    fit.subject.engine.optional.clear();
    let text = fit.to_toml();
    Spec::parse(&text, "resolved").unwrap_or_else(|e| panic!("{text}\n{e}"));
}

#[test]
fn an_a_a_run_has_the_same_steps_with_and_without_a_table_of_how_it_is_measured() {
    for measure in ["", "[measure]\nseed = 1"] {
        let spec = format!("[sweep]\nexecutes = 4\n[engine]\nname = \"synthetic\"\n[synthetic]\n{measure}");
        assert_eq!(parse(&spec).expect("valid").measure.steps_per_visit, StepsPerVisit::Fixed(5));
    }
}

#[test]
fn an_optional_engine_makes_cells_like_the_others() {
    // PyTorch has no such axis: the GPU engine's three settings and one series of PyTorch's.
    let text = "[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = [16, 17]\n[engine]\nname = [\"cudnn\", \"torch\"]\noptional = [\"torch\"]\nwinograd = [\"any\", \"never\", \"nonfused\"]";
    let experiment = parse(text).expect("valid");
    assert_eq!((experiment.cell_count(), experiment.engine.optional.as_slice()), (8, &[EngineName::Torch][..]));
}

#[test]
fn all_threads_are_the_cores_that_there_are_and_no_setting_of_a_gpu() {
    let threads = |text: &str| {
        let experiment =
            parse(&format!("[model]\nname = \"mlp\"\n[engine]\nname = \"cpu\"\nthreads = {text}")).expect("valid");
        experiment.grid.values(axis("threads")).to_vec()
    };
    let all = std::thread::available_parallelism().expect("known").get();
    assert_eq!(threads("\"all\""), [Value::Count(all)]);
    let both = if all == 1 { vec![Value::Count(1)] } else { vec![Value::Count(1), Value::Count(all)] };
    assert_eq!(threads("[1, \"all\"]"), both);
    let refused = |engine: &str| refusal(&format!("[model]\nname = \"mlp\"\n[engine]\n{engine}"));
    assert!(refused("threads = [1, \"both\"]").contains("expected numbers of threads, or \"all\", got \"both\""));
    assert!(refused("threads = [\"all\", \"all\"]").contains("in the list already"));
    assert!(refused("threads = [2, 1, 2]").contains("in the list already"));
    // A GPU's engine has no threads: one series of it beside two of the processor's.
    let text = "[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [16, 17]\n[engine]\nname = [\"cudnn\", \"cpu\"]\nthreads = [1, 2]";
    assert_eq!(parse(text).expect("valid").cell_count(), 6);
    assert!(refused("name = \"cudnn\"\nthreads = 2").contains("can vary `threads`"));
}

#[test]
fn what_a_layer_does_not_say_is_written_out() {
    let experiment = parse(
        "[model]\ninput = [1, 9, 9]\n[[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernel = 3\n[[model.layers]]\ntype = \"flatten\"",
    )
    .expect("valid");
    let usual = "out_channels = 4\nkernel = [3, 3]\nstride = [1, 1]\npadding = \"valid\"\ngroups = 1\nbias = true\n";
    let text = experiment.to_toml();
    assert!(text.contains(&format!("type = \"conv2d\"\n{usual}\n[[model.layers]]\ntype = \"flatten\"\n")), "{text}");
}

/// Every line: a spec, and what its refusal must say.
#[test]
fn bad_specs_get_file_line_key_and_remedy() {
    let cases: &[(&str, &[&str])] = &[
        (
            "[model]\nname = \"vgg16\"\n[sweep]\nbatchsize = \"1..=70\"",
            &["t.toml:6: sweep.batchsize", "unknown key", "did you mean `batch_size`?"],
        ),
        ("[model]\nname = \"vgg61\"", &["t.toml:4: model.name", "`vgg61` is none of", "did you mean `vgg16`?"]),
        ("[engine]\nname = \"gpu\"", &["t.toml:4: engine.name", "`gpu` is a device", "cudnn", "`--device cuda:0`"]),
        ("[engine]\nname = [\"cpu\", \"cuda:0\"]", &["`cuda:0` is a device", "`--device cuda:0`"]),
        (
            "[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = \"1-24\"",
            &["t.toml:6: sweep.batch_size", "write \"1..=24\""],
        ),
        ("[modle]\nname = \"vgg16\"", &["t.toml:3: modle", "did you mean `model`?"]),
        ("[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = \"70..=1\"", &["t.toml:6: sweep.batch_size", "empty"]),
        (
            "[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = \"1..=4000000000\"",
            &["sweep.batch_size", "more than 100000"],
        ),
        ("[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = 0", &["t.toml:6: sweep.batch_size", "from 1 to"]),
        ("[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = [4, 2]", &["ascending"]),
        ("[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = []", &["empty list"]),
        ("[model]\nname = \"vgg16\"\n[measure]\ntime_limit = 30", &["t.toml:6: measure.time_limit", "30min", "got 30"]),
        ("[model]\nname = \"vgg16\"\n[measure]\nsmallest_jump = 0.01", &["percentage", "got 0.01"]),
        ("[model]\nname = \"vgg16\"\n[measure]\nsmallest_jump = \"500%\"", &["percentage", "500%"]),
        ("[model]\nname = \"vgg16\"\n[measure]\nblocks = { min = 5, max = 3 }", &["min = 5 is more than max = 3"]),
        ("[model]\nname = \"vgg16\"\n[measure]\nblocks = { mni = 5 }", &["did you mean `min`?"]),
        ("[model]\nname = \"vgg16\"\ninput = [3, 224]", &["[channels, height, width]"]),
        ("[model]\nname = [\"vgg16\", \"vgg16\"]", &["in the list already"]),
        ("[model]\n", &["t.toml:3: [model]", "`name`"]),
        ("", &["model.name", "missing"]),
        (
            "[model]\nname = \"vgg16\"\n[engine]\nname = \"synthetic\"",
            &["the section [synthetic], which is missing", "may be empty"],
        ),
        (
            "[model]\nname = \"vgg16\"\n[synthetic]\nbase = \"1ms\"",
            &["[synthetic]: only the engine `synthetic`", "is not named", "take [synthetic] out"],
        ),
        ("[model]\nname = \"vgg16\"\n[train]\nlearning_rate = \"a\"", &["a number", "got \"a\""]),
        ("[model]\ninput = [3, 8, 8]\n[[model.layers]]\ntype = \"conf2d\"", &["t.toml:6", "did you mean `conv2d`?"]),
        ("[model]\ninput = [3, 8, 8]\n[[model.layers]]\ntype = \"conv2d\"\nkernel = 3", &["`out_channels` is missing"]),
        (
            "[model]\ninput = [3, 8, 8]\n[[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernle = 3",
            &["t.toml:8: model.layers[0].kernle", "unknown key", "did you mean `kernel`?"],
        ),
        ("[model]\ninput = [3, 8, 8]\n[[model.layers]]\ntpye = \"relu\"", &["t.toml:6", "did you mean `type`?"]),
        ("[model]\ninput = [3, 8, 8]\n[[model.layers]]\nname = \"a\"", &["`type` is missing", "conv2d"]),
        ("[model]\n[[model.layers]]\ntype = \"flatten\"", &["needs `input`"]),
        (
            "[engine]\ncommand = [\"a\", \"{batch_size}\"]\nseconds = { patern = \"x\" }",
            &["unknown key `patern`", "did you mean `pattern`?"],
        ),
        ("[model]\nname = \"vgg16\"\n[sweep\n", &["t.toml:5", "not valid TOML"]),
        (
            "[model]\nname = \"vgg16\"\n[engine]\ncompile = \"default\"",
            &["t.toml:6: engine.compile", "only the engine `torch`", "take `compile` out"],
        ),
        ("[model]\nname = \"vgg16\"\nname = \"vgg19\"", &["t.toml:5", "not valid TOML"]),
        ("[engine]\nalgorithms = \"fixed\"", &["fixed_from", "help: fixed_from = "]),
        ("[engine]\nworkspace_limit = \"1GB\"", &["256MiB"]),
        ("[engine]\nname = [\"cpu\"]\noptional = [\"torch\"]", &["only engines that are listed in `name`"]),
        ("[engine]\nname = [\"cpu\"]\noptional = [\"cpu\"]", &["one engine at least must not be optional"]),
        (
            "[engine]\nname = \"torch\"\nwinograd = \"never\"",
            &["only the engines `cpu` and `cudnn` can vary `winograd`"],
        ),
        ("[model]\nname = \"cnn_1_0\"", &["`cnn_1_0` is none of"]),
        ("[model]\ngenerate = 50", &["expected generate = {"]),
        ("[model]\ngenerate = { family = \"rnn\", count = 1 }", &["`rnn` is none of: cnn, mlp"]),
        ("[model]\ngenerate = { family = \"cnn\" }", &["`family` and `count` are needed"]),
        ("[model]\ngenerate = { family = \"cnn\", count = 20000 }", &["from 1 to 10000"]),
        (
            "[model]\ngenerate = [{ family = \"cnn\", count = 1 }, { family = \"cnn\", count = 2 }]",
            &["`cnn_1_1` is listed twice"],
        ),
        (
            "[model]\ngenerate = { family = \"cnn\", count = 1 }\n[[model.layers]]\ntype = \"relu\"",
            &["exclude each other"],
        ),
    ];
    for (body, parts) in cases {
        let message = refusal(body);
        for part in *parts {
            assert!(message.contains(part), "{body}\nsays: {message}\nlacks: {part}");
        }
    }
}

#[test]
fn a_misspelt_key_of_the_data_is_named_before_the_one_that_it_leaves_missing() {
    let text =
        format!("{HEAD}kind = \"training\"\n[model]\nname = \"mnist_cnn\"\n[data]\nsource = \"images\"\ntrian = \"a\"");
    let message = Spec::parse(&text, "t.toml").expect_err("refused").to_string();
    assert!(message.contains("t.toml:8: data.trian") && message.contains("did you mean `train`?"), "{message}");
}

#[test]
fn head_and_name_are_checked() {
    let refusal = |text: &str| Experiment::parse(text, "t.toml").expect_err("refused").to_string();
    assert!(refusal("name = \"a\"\n[model]\nname = \"mlp\"").contains("`version` is missing"));
    assert!(refusal("version = 1\n[model]\nname = \"mlp\"").contains("`name` is missing"));
    assert!(refusal("version = 2\nname = \"a\"\n[model]\nname = \"mlp\"").contains("newer batchstep"));
    for name in ["../evil", "", ".hidden", "a b", "/tmp/x"] {
        assert!(refusal(&format!("version = 1\nname = {name:?}\n[model]\nname = \"mlp\"")).contains("run directory"));
    }
}

#[test]
fn axes_that_multiply_to_too_many_cells_are_refused() {
    let message = refusal("[model]\nname = [\"vgg16\", \"vgg19\"]\n[sweep]\nbatch_size = \"1..=60000\"");
    assert!(message.contains("120000 cells"), "{message}");
}

#[test]
fn a_spec_that_cannot_be_read_is_an_error_with_its_path() {
    let error = Experiment::read(Path::new("no/such/spec.toml")).expect_err("refused");
    assert!(error.to_string().contains("no/such/spec.toml"));
    assert_eq!(error.kind(), crate::error::Kind::Io);
}

#[test]
fn generated_networks_are_names_that_build_and_read_back() {
    let text = "[model]\nname = \"mnist_cnn\"\ngenerate = [{ family = \"cnn\", count = 2, seed = 3 }, { family = \"mlp\", count = 1 }]\n[train]\nloss = [\"binary_cross_entropy\", \"mean_squared_error\", \"categorical_cross_entropy\"]";
    let experiment = parse(text).expect("valid");
    assert_eq!(experiment.model.names, ["mnist_cnn", "cnn_3_1", "cnn_3_2", "mlp_1_1"]);
    assert_eq!(experiment.cell_count(), 4 * 3 * 70);
    assert_eq!(crate::spec::plan::networks(&experiment.model).expect("built")[2].1.name, "cnn_3_2");
    assert_eq!(Experiment::parse(&experiment.to_toml(), "t.toml").expect("valid"), experiment);
}

/// Every spec of the repository, and what none of them has.
fn many_specs() -> Vec<(String, String)> {
    let mut specs = Vec::new();
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")];
    folders.push(folders[0].with_file_name("examples").join("own"));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "runs") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(&path).expect("a spec");
                specs.push((text, path.to_string_lossy().into_owned()));
            }
        }
    }
    let further = [
        "[model]\nname = \"vgg16\"\n[engine]\nname = \"cudnn\"\nalgorithms = \"fixed\"\nfixed_from = { run = \"a\" }\n\
         [measure]\nshard = \"1/2\"\ncounters = [\"cycles\"]\nblocks = { min = 3 }",
        "[engine]\ncommand = [\"true\", \"{batch_size}\"]\nseconds = { pattern = '(.*)', unit = \"ns\" }",
    ];
    specs.extend(further.map(|body| (format!("{HEAD}{body}"), "t.toml".to_owned())));
    specs
}

/// The rows of docs/spec.md begin with a key; those of a layer and of a price are on pages of their own.
#[test]
fn the_page_of_keys_has_every_key_that_is_read_and_no_other() {
    for (text, origin) in many_specs() {
        let _ = Spec::parse(&text, &origin);
    }
    let asked: BTreeSet<String> = section::asked::all()
        .into_iter()
        .map(|path| path.replace(|c: char| c.is_ascii_digit(), "").replace("[]", ""))
        .filter(|path| !path.starts_with("model.layers."))
        .collect();
    let page = include_str!("../../docs/spec.md");
    // Those of a known truth are in an example.
    let (synthetic, asked): (BTreeSet<_>, BTreeSet<_>) =
        asked.into_iter().partition(|path| path.starts_with("synthetic."));
    let unnamed = |path: &&String| !page.contains(&format!("{} = ", path.rsplit('.').next().unwrap_or_default()));
    assert_eq!(synthetic.iter().find(unnamed), None, "not in docs/spec.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<String> = rows.map(|(key, _)| key.to_owned()).collect();
    let missing: Vec<_> = asked.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&asked).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not in docs/spec.md: {missing:#?}; not read: {unknown:#?}");
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The row of `key` in a page, by its cells.
fn row<'a>(page: &'a str, key: &str) -> Vec<&'a str> {
    let start = format!("| `{key}` |");
    let row = page.lines().find(|line| line.starts_with(&start));
    row.unwrap_or_else(|| panic!("no row of {key}")).trim_matches('|').split('|').collect()
}

#[test]
fn the_page_of_keys_has_the_names_as_the_code_has_them() {
    let page = include_str!("../../docs/spec.md");
    let named = [
        ("kind", StudyKind::NAMES),
        ("engine.fresh", Fresh::NAMES),
        ("measure.shard_by", ShardBy::NAMES),
        ("train.examples", Examples::NAMES),
        ("model.generate.family", Family::NAMES),
    ];
    for (key, names) in named {
        assert_eq!(quoted(row(page, key)[2]), names, "{key}");
    }
}

/// The keys of each type of layer, in the order of the code.
#[test]
fn the_page_of_own_networks_has_every_type_of_layer_with_its_keys() {
    let page = include_str!("../../docs/own-network.md");
    for (name, keys) in OperationSpec::TYPES {
        assert_eq!(quoted(row(page, name)[1]), *keys, "{name}");
    }
}

/// The table of the axes is made from theirs. A column may be null, and a key of TOML cannot.
#[test]
fn the_page_of_keys_has_the_axes_as_the_code_has_them() {
    let page = include_str!("../../docs/spec.md");
    let fit = Spec::parse(&format!("{HEAD}kind = \"fit\""), "t.toml").expect("valid");
    let Spec::Fit(fit) = fit else { panic!("a fit") };
    for axis in AXES.iter().filter(|axis| !matches!(axis.domain, crate::settings::Domain::Text)) {
        let engines: Vec<&str> = axis.engines.iter().map(|engine| engine.name()).collect();
        let engines = if engines.is_empty() { "all".to_owned() } else { engines.join(", ") };
        let meaning = axis.meaning.split_once("; null").map_or(axis.meaning, |(meaning, _)| meaning);
        let row = format!(
            "| `{}.{}` | {} | {engines} | {meaning}",
            axis.table,
            axis.key,
            axis.value_label(axis.default_value())
        );
        let found = page.lines().find(|line| line.starts_with(&row));
        let found = found.unwrap_or_else(|| panic!("docs/spec.md lacks this row:\n{row}"));
        let of_fit = fit.subject.grid.values(axis)[0];
        let says_so = found.contains(&format!("A fit: {}.", axis.value_label(of_fit)));
        assert_eq!(says_so, of_fit != axis.default_value(), "{found}");
    }
}
