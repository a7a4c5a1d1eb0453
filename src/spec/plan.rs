//! The plan: which cells there are, and in which order each block visits them. It is a pure function of the spec, so a
//! resumed run continues with exactly the same plan.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::network::custom::{LayerSpec, OperationSpec};
use crate::network::{Layer, Network, Operation, Shape, Workload};
use crate::random::{GOLDEN, Rng};
use crate::settings::{EngineName, Settings};
use crate::spec::{Experiment, Model, Order, Shard, ShardBy};

/// One point of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Its number: models outermost, batch sizes innermost.
    pub index: usize,
    pub engine: EngineName,
    pub model: String,
    /// The batch size it is named after.
    pub batch_size: usize,
    /// The workload that it executes; in an A/A run, one batch size under every name.
    pub workload: Workload,
}

/// All cells, and the order of every block; for a shard, only its own cells and blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub cells: Vec<Cell>,
    pub seed: u64,
    pub order: Order,
    part: ShardCells,
}

/// The part of the whole plan that belongs to a shard.
#[derive(Clone, Debug, PartialEq)]
struct ShardCells {
    /// The number of the first block in the whole plan, and the distance to the next block there.
    first_block: usize,
    stride: usize,
    /// The numbers of the cells in the whole plan, ascending, and the number of cells of the whole plan.
    cells: Vec<usize>,
    of: usize,
}

impl Plan {
    /// Multiplies out the axes of the experiment. If shards divide the cells, shard i of n keeps series i, i + n, i +
    /// 2n, and so on.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] if a network can't be built from the spec, or a shard by cells has no cells.
    pub fn new(experiment: &Experiment) -> Result<Self> {
        let plays_truth = experiment.synthetic.is_some() && experiment.model.names == ["synthetic"];
        let networks = match plays_truth || experiment.own.is_some() {
            true => experiment.model.names.iter().map(|name| (name.clone(), Arc::new(no_network(name)))).collect(),
            false => networks(&experiment.model)?,
        };
        let common = Settings {
            learning_rate: experiment.learning_rate,
            examples: experiment.examples,
            phases: experiment.measure.phases,
            seed: experiment.measure.seed,
            ..Settings::default()
        };
        let shard = experiment.measure.shard;
        let (mut cells, mut numbers) = (Vec::with_capacity(experiment.cell_count()), Vec::new());
        let (mut series, mut number) = (0, 0);
        for (model, network) in &networks {
            for engine in &experiment.engine.name {
                for settings in experiment.grid.settings(*engine, &common) {
                    Workload::check(network, &settings)?;
                    let first = number;
                    (series, number) = (series + 1, number + experiment.batch_sizes.len());
                    if shard.is_some_and(|shard| !has_series(shard, series - 1)) {
                        continue;
                    }
                    for (place, &batch_size) in experiment.batch_sizes.iter().enumerate() {
                        numbers.push(first + place);
                        let workload = Workload {
                            network: Arc::clone(network),
                            batch_size: experiment.executes.unwrap_or(batch_size),
                            settings: settings.clone(),
                        };
                        let (index, engine) = (cells.len(), *engine);
                        cells.push(Cell { index, engine, model: model.clone(), batch_size, workload });
                    }
                }
            }
        }
        if let Some(shard) = shard.filter(|_| cells.is_empty()) {
            let what = format!("the plan has {series} series, and shard {shard} is left with none");
            let hint = format!("use at most {series} shards, or `--shard-by blocks`");
            return Err(Error::spec(what).at("measure.shard").hint(hint));
        }
        let by_blocks = shard.filter(|shard| shard.by == ShardBy::Blocks);
        let (first_block, stride) = by_blocks.map_or((0, 1), |shard| (shard.place(), shard.count));
        let part = ShardCells { first_block, stride, cells: numbers, of: number };
        Ok(Self { cells, seed: experiment.measure.seed, order: experiment.measure.order, part })
    }

    /// A plan with only these cells.
    pub fn of_cells(cells: Vec<Cell>, seed: u64, order: Order) -> Self {
        let part = ShardCells { first_block: 0, stride: 1, cells: (0..cells.len()).collect(), of: cells.len() };
        Self { cells, seed, order, part }
    }

    /// The cell of that number, if it has this network and this batch size: rows of another plan have other cells under its numbers.
    pub fn cell(&self, number: i64, model: &str, batch_size: i64) -> Option<&Cell> {
        let cell = self.cells.get(usize::try_from(number).ok()?)?;
        (cell.model == model && cell.batch_size as i64 == batch_size).then_some(cell)
    }

    /// The number of a block in the whole plan.
    pub fn whole_block(&self, block: usize) -> usize {
        self.part.first_block + self.part.stride * block
    }

    /// The number of a cell in the whole plan; `None` where this plan has no such cell.
    pub fn whole_cell(&self, cell: usize) -> Option<usize> {
        self.part.cells.get(cell).copied()
    }

    /// The cells in the order of block `block`: a fresh random order for each, which depends only on the seed, unless
    /// the spec asks for an ascending order. A shard by blocks has the order of that block in the whole plan; a shard
    /// by cells has the whole plan's order without the cells of other shards.
    ///
    /// The shuffle is written out here, with our own generator, because its result is part of the run directory's
    /// contract: a library's shuffle might change in its next version, and `--resume` would then continue with another
    /// plan.
    pub fn order(&self, block: usize) -> Vec<usize> {
        if self.order == Order::Ascending {
            return (0..self.cells.len()).collect();
        }
        let block = self.whole_block(block) as u64;
        let mut random = Rng::new(self.seed ^ block.wrapping_mul(GOLDEN).wrapping_add(1));
        let mut order: Vec<usize> = (0..self.part.of).collect();
        // Fisher and Yates, as in Knuth, The Art of Computer Programming, vol. 2, 3.4.2, algorithm P.
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        if self.part.of > self.cells.len() {
            order = order.iter().filter_map(|number| self.part.cells.binary_search(number).ok()).collect();
        }
        order
    }
}

/// Whether a series, counted from 0, is measured by a shard.
fn has_series(shard: Shard, series: usize) -> bool {
    shard.by == ShardBy::Blocks || series % shard.count == shard.place()
}

/// The networks of a spec by name, in its order.
///
/// # Errors
/// [`crate::error::Kind::Spec`] if a network can't be built from the spec.
pub fn networks(model: &Model) -> Result<Vec<(String, Arc<Network>)>> {
    if let Some(layers) = &model.layers {
        let input = model.input.unwrap_or(Shape::Flat(1));
        let classes = model.classes.unwrap_or_else(|| outputs(layers));
        let network = Network::from_layers(&model.names[0], input, classes, layers)?;
        return Ok(vec![(model.names[0].clone(), Arc::new(network))]);
    }
    model.names.iter().map(|name| Ok((name.clone(), Arc::new(network(name, model)?)))).collect()
}

/// The outputs of the last dense layer: the classes of a custom network that does not state them.
fn outputs(layers: &[LayerSpec]) -> usize {
    let dense = layers.iter().rev().find_map(|layer| match layer.operation {
        OperationSpec::Dense(dense) => Some(dense.out_features),
        _ => None,
    });
    dense.unwrap_or(1)
}

/// The network of an engine whose real network is unknown.
fn no_network(name: &str) -> Network {
    let layers =
        vec![Layer { name: "input".into(), operation: Operation::Input, sources: vec![], output: Shape::Flat(1) }];
    Network { name: name.to_owned(), layers }
}

fn network(name: &str, model: &Model) -> Result<Network> {
    let (input, classes) = Network::default_input(name)?;
    Network::by_name(name, model.input.unwrap_or(input), model.classes.unwrap_or(classes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Compile;

    fn plan(text: &str) -> Plan {
        let experiment = Experiment::parse(&format!("version = 1\nname = \"t\"\n{text}"), "t.toml").expect("valid");
        Plan::new(&experiment).expect("plans")
    }

    #[test]
    fn the_axes_multiply() {
        let plan = plan(
            "[model]\nname = [\"vgg16\", \"mlp\"]\n[sweep]\nbatch_size = \"1..=3\"\n[train]\nloss = \"mean_squared_error\"\noptimizer = [\"sgd\", \"adam\"]",
        );
        assert_eq!(plan.cells.len(), 2 * 3 * 2);
        assert!(plan.cells.iter().enumerate().all(|(i, cell)| cell.index == i));
        assert_eq!(plan.cells[1].batch_size, 2);
        assert_eq!(plan.cells[11].model, "mlp");
    }

    #[test]
    fn an_axis_makes_cells_only_of_the_engines_that_have_it() {
        let ways = |engine: &str| {
            let plan = plan(&format!("[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [1]\n[engine]\n{engine}"));
            let way =
                |cell: &Cell| (cell.engine, cell.workload.settings.workspace_limit, cell.workload.settings.compile);
            plan.cells.iter().map(way).collect::<Vec<_>>()
        };
        let (cpu, torch) = ((EngineName::Cpu, None, Compile::None), (EngineName::Torch, None, Compile::None));
        let limits = ways("name = [\"cudnn\", \"cpu\"]\nworkspace_limit = [\"0B\", \"1GiB\"]");
        let [none, gibibyte] = [0, 1 << 30].map(|limit| (EngineName::Cudnn, Some(limit), Compile::None));
        assert_eq!(limits, [none, gibibyte, cpu]);
        let compiled = ways("name = [\"cpu\", \"torch\"]\ncompile = [\"none\", \"default\"]");
        assert_eq!(compiled, [cpu, torch, (EngineName::Torch, None, Compile::Default)]);
    }

    /// Resuming relies on it: these orders must never change. SplitMix64 and the shuffle redone in Python 3.
    #[test]
    fn the_order_of_a_seed_is_fixed_for_ever() {
        let plan = plan("[model]\nname = \"mlp\"\n[sweep]\nbatch_size = \"1..=8\"\n[measure]\nseed = 7");
        assert_eq!([plan.order(0), plan.order(1)], [[1, 4, 6, 2, 7, 0, 3, 5], [3, 7, 5, 1, 4, 0, 2, 6]]);
    }

    #[test]
    fn a_random_order_has_every_cell_once_and_favours_no_place() {
        let plan = plan("[model]\nname = \"mlp\"\n[sweep]\nbatch_size = \"1..=4\"");
        let mut counts = [[0u32; 4]; 4];
        for block in 0..4000 {
            let mut order = plan.order(block);
            order.iter().enumerate().for_each(|(place, &cell)| counts[place][cell] += 1);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3]);
        }
        // Each count is binomial(4000, 1/4): mean 1000, sd 27.4; five standard deviations either way.
        assert!(counts.iter().flatten().all(|&n| (863..=1137).contains(&n)), "{counts:?}");
    }

    fn shard(text: &str, shard: &str) -> Plan {
        plan(&format!("{text}\n[measure]\nseed = 7\nblocks = {{ max = 40 }}\n{shard}"))
    }

    #[test]
    fn the_shards_of_a_plan_visit_its_blocks_in_its_order() {
        let text = "[model]\nname = \"mlp\"\n[sweep]\nbatch_size = \"1..=8\"";
        let whole = shard(text, "");
        for number in 1..=3 {
            let part = shard(text, &format!("shard = \"{number}/3\""));
            let blocks: Vec<usize> = (0..3).map(|block| part.whole_block(block)).collect();
            assert_eq!(blocks, [number - 1, number + 2, number + 5]);
            assert!((0..3).all(|block| part.order(block) == whole.order(blocks[block])));
        }
    }

    #[test]
    fn shards_by_cells_share_out_whole_series_and_keep_the_order_of_the_plan() {
        let text = "[model]\nname = [\"mlp\", \"vgg16\"]\n[sweep]\nbatch_size = \"1..=3\"\n[train]\noptimizer = [\"sgd\", \"adam\"]\nloss = \"mean_squared_error\"";
        let whole = shard(text, "");
        let parts = [1, 2, 3].map(|number| shard(text, &format!("shard = \"{number}/3\"\nshard_by = \"cells\"")));
        let cells = |part: &Plan| (0..part.cells.len()).filter_map(|cell| part.whole_cell(cell)).collect::<Vec<_>>();
        assert_eq!(parts.each_ref().map(cells), [vec![0, 1, 2, 9, 10, 11], vec![3, 4, 5], vec![6, 7, 8]]);
        for part in &parts {
            let own: Vec<Option<usize>> = part.order(2).into_iter().map(|cell| part.whole_cell(cell)).collect();
            let of_whole = whole.order(2).into_iter().map(Some).filter(|cell| own.contains(cell));
            assert!(own.iter().copied().eq(of_whole));
            let same = |(cell, own): (&Cell, usize)| cell.workload == whole.cells[own].workload;
            assert!(part.cells.iter().zip(cells(part)).all(same));
        }
        let text = format!("version = 1\nname = \"t\"\n{text}\n[measure]\nshard = \"5/5\"\nshard_by = \"cells\"");
        let error = Plan::new(&Experiment::parse(&text, "t.toml").expect("valid")).expect_err("refused").to_string();
        assert!(error.contains("has 4 series, and shard 5/5 is left with none"), "{error}");
    }

    #[test]
    fn an_a_a_run_executes_one_batch_size_under_every_name() {
        let plan = plan("[model]\nname = \"mlp\"\n[sweep]\nbatch_size = \"1..=5\"\nexecutes = 3");
        assert!(plan.cells.iter().all(|cell| cell.workload.batch_size == 3));
        assert_eq!(plan.cells.iter().map(|cell| cell.batch_size).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }
}
