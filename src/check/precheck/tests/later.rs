//! An engine that computes a layer by another algorithm below a batch size, and there wrongly or not.

use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::part::{Fault, Fused, Numbers, Part, Quantity, See, Task};

/// The CPU's engine, whose first dense layer is another algorithm's work below batch size 6.
struct Changing {
    cpu: CpuEngine,
    /// What that algorithm adds to every output.
    off_by: f32,
    /// The parts that were shown: batch size and layer.
    shown: Arc<Mutex<Vec<(usize, usize)>>>,
}

const BELOW: usize = 6;
const FIRST: usize = 1;
const SECOND: usize = 3;

impl Engine for Changing {
    fn device(&self) -> &DeviceName {
        self.cpu.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.cpu.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        self.cpu.prepare(workload)
    }

    fn algorithms(&mut self, workload: &Workload) -> Result<Vec<(usize, String)>> {
        let first = if workload.batch_size < BELOW { "narrow" } else { "wide" };
        Ok(vec![(FIRST, first.to_owned()), (SECOND, "narrow".to_owned())])
    }

    /// Forward through dense layers whose inputs are 1 and whose weights are 0.5: by hand, each output is half the number of inputs.
    fn take_apart(&mut self, workload: &Workload, see: &mut dyn See) -> std::result::Result<(), Fault> {
        for layer in [FIRST, SECOND] {
            if !see.wants(Some(layer)) {
                continue;
            }
            self.shown.lock().unwrap().push((workload.batch_size, layer));
            let count = |layer: usize| workload.network.layers[layer].output.count();
            let (batch, given, made) = (workload.batch_size, count(layer - 1), count(layer));
            let off_by = if layer == FIRST && batch < BELOW { self.off_by } else { 0.0 };
            let of = |[rows, columns]: [usize; 2], value: f32| Numbers {
                dims: vec![rows, columns],
                values: vec![value; rows * columns],
            };
            let fused = Fused {
                layer,
                input: of([batch, given], 1.0),
                parameters: vec![("weight", of([made, given], 0.5))],
                bias: None,
                summand: None,
                rectifier: None,
                step: 0,
            };
            let output = of([batch, made], 0.5 * given as f32 + off_by);
            see.see(Part { workload, task: Task::Forward(fused), found: vec![(Quantity::Output, output)] })?;
        }
        Ok(())
    }
}

/// What was checked, what the user reads, and the parts that were shown.
type Answered = (Result<Vec<Option<bool>>, String>, Vec<String>, Vec<(usize, usize)>);

const MLP: &str = "[model]\nname = \"mlp\"\n";
const WIDE: &str = "[model]\nname = \"wide\"\ninput = [2]\nclasses = 1\n[[model.layers]]\ntype = \"dense\"\nout_features = 250000\n\
                    [[model.layers]]\ntype = \"relu\"\n[[model.layers]]\ntype = \"dense\"\nout_features = 1\n";

fn answered(model: &str, sizes: &str, off_by: f32, cache: &Cache) -> Answered {
    let spec = format!(
        "version = 1\nname = \"a\"\n{model}[sweep]\nbatch_size = {sizes}\n[train]\nloss = \"mean_squared_error\"\n\
         [engine]\nname = \"candle\""
    );
    let shown = Arc::default();
    let engine = Changing { cpu: CpuEngine::cpu(None), off_by, shown: Arc::clone(&shown) };
    let mut engines = Engines::of(EngineName::Candle, Box::new(engine));
    let (cells, said) = asked_of(&plan(&spec), &mut engines, Asked::Every, cache);
    let shown = shown.lock().unwrap().clone();
    (cells, said, shown)
}

#[test]
fn a_layer_is_checked_again_where_another_algorithm_computes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (cells, said, shown) = answered(MLP, "[2, 3, 5, 6, 7, 9]", 0.0, &cache(&folder));
    assert_eq!(cells, Ok(vec![Some(true); 6]), "{said:?}");
    // Everything at 8 and 9, then the other algorithm at the first size that has it.
    assert_eq!(shown, [(8, FIRST), (8, SECOND), (9, FIRST), (9, SECOND), (2, FIRST)]);
    assert!(said[1].ends_with("at batch size 2, where other algorithms compute 1 of its layers"), "{said:?}");
    let again = answered(MLP, "[2, 3, 5, 6, 7, 9]", 0.0, &cache(&folder));
    assert_eq!(again, (Ok(vec![Some(true); 6]), Vec::new(), Vec::new()));
}

#[test]
fn an_algorithm_that_is_wrong_only_at_other_batch_sizes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (cells, _, shown) = answered(MLP, "[2, 9]", 0.25, &cache(&folder));
    let error = cells.unwrap_err();
    // By hand: 1.25 in place of 1.
    assert!(error.contains("candle computes mlp") && error.contains("the output is off by 2.5e-1"), "{error}");
    assert_eq!(shown.last(), Some(&(2, FIRST)));
}

/// By hand: the first dense layer has 500,000 weights, so that 10 million examples take 1e13 FLOP forward, and as much again for the weights' gradients.
#[test]
fn what_takes_too_long_to_check_is_not_called_qualified() {
    let folder = tempfile::tempdir().unwrap();
    let (cells, said, shown) = answered(WIDE, "[2, 3, 10000000]", 0.0, &cache(&folder));
    assert_eq!(cells, Ok(vec![Some(true), Some(true), Some(false)]));
    let last = said.last().unwrap();
    assert!(last.starts_with("at batch size 10000000 candle's step of wide is computed by algorithms"), "{last}");
    assert!(shown.iter().all(|(batch, _)| *batch <= 3), "{shown:?}");
}
