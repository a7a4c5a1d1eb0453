//! The messages to the PyTorch process: a workload as JSON. The network is sent layer by layer, so that networks described
//! in a spec work like those of the catalogue.

use serde_json::{Value, json};

use crate::engine::Workload;
use crate::engine::train::{Feed, RawExamples};
use crate::network::data::batch_dims;
use crate::network::{Extent, Network, Operation, Padding, Shape};

/// The request to prepare step `id`.
pub fn prepare(id: u64, workload: &Workload) -> Value {
    let settings = &workload.settings;
    json!({
        "do": "prepare",
        "id": id,
        "batch_size": workload.batch_size,
        "network": network(&workload.network),
        "settings": {
            "optimizer": settings.optimizer.name(),
            "learning_rate": settings.learning_rate,
            "loss": settings.loss.name(),
            "precision": settings.precision.name(),
            "layout": settings.layout.name(),
            "data": settings.data.name(),
            "algorithms": settings.algorithms.name(),
            "launch": settings.launch.name(),
            "compile": settings.compile.name(),
            "threads": settings.threads,
            "seed": settings.seed,
            "examples": settings.examples.name(),
        },
    })
}

/// The request to prepare training `id`, which feeds itself from files.
pub fn train(id: u64, workload: &Workload, feed: &Feed) -> Value {
    let examples = |examples: &RawExamples| {
        json!({
            "pixels": examples.pixels.display().to_string(),
            "labels": examples.labels.display().to_string(),
            "count": examples.count,
        })
    };
    let mut request = prepare(id, workload);
    request["do"] = json!("train");
    request["feed"] = json!({
        "train": examples(&feed.train),
        "test": feed.test.as_ref().map(examples),
        "shape": dims(feed.shape),
        "mean": feed.mean,
        "sd": feed.sd,
        "workers": feed.workers,
        "prefetch": feed.prefetch,
        "shuffle": feed.shuffle,
        "drop_last": feed.drop_last,
    });
    request
}

/// The first request: where to run.
pub fn open(device: &str) -> Value {
    json!({"do": "open", "device": device})
}

fn network(network: &Network) -> Value {
    let layers: Vec<Value> = (0..network.layers.len()).map(|index| layer(network, index)).collect();
    json!({"input": dims(network.input()), "output": dims(network.output()), "layers": layers})
}

fn layer(network: &Network, index: usize) -> Value {
    let layer = &network.layers[index];
    let parameter = |p: crate::network::Parameter| json!({"name": p.name, "dims": p.dims, "trainable": p.trainable});
    let parameters: Vec<Value> = network.parameters_of(index).into_iter().map(parameter).collect();
    let mut object = operation(&layer.operation);
    object["type"] = json!(layer.operation.name());
    object["sources"] = json!(layer.sources);
    object["parameters"] = json!(parameters);
    object
}

/// The operation's numbers; all pairs are (height, width), padding is top, bottom, left, right.
fn operation(operation: &Operation) -> Value {
    match operation {
        Operation::Conv2d(conv) => {
            json!({"stride": extent(conv.stride), "padding": sides(conv.padding), "groups": conv.groups})
        }
        Operation::BatchNorm(norm) => json!({"epsilon": norm.epsilon, "momentum": norm.momentum}),
        Operation::MaxPool2d(pool) => {
            json!({"kernel": extent(pool.kernel), "stride": extent(pool.stride), "padding": sides(pool.padding)})
        }
        Operation::Dropout { rate } => json!({"rate": rate}),
        _ => json!({}),
    }
}

fn extent(Extent { height, width }: Extent) -> [usize; 2] {
    [height, width]
}

fn sides(padding: Padding) -> [usize; 4] {
    [padding.top, padding.bottom, padding.left, padding.right]
}

fn dims(shape: Shape) -> Vec<usize> {
    batch_dims(1, shape).split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_its_operation_its_sources_and_its_tensors() {
        let input = Shape::Maps { channels: 3, height: 64, width: 64 };
        let mobilenet = network(&Network::by_name("mobilenet", input, 5).unwrap());
        let expected = json!({
            "stride": [2, 2],
            "padding": [0, 1, 0, 1],
            "groups": 1,
            "type": "conv2d",
            "sources": [0],
            "parameters": [{"name": "weight", "dims": [32, 3, 3, 3], "trainable": true}],
        });
        assert_eq!(mobilenet["layers"][1], expected);
        assert_eq!((&mobilenet["input"], &mobilenet["output"]), (&json!([3, 64, 64]), &json!([5])));
        let add = network(&Network::by_name("resnet50", input, 5).unwrap());
        let add = add["layers"].as_array().unwrap().iter().find(|layer| layer["type"] == "add").unwrap();
        assert_eq!(add["sources"].as_array().unwrap().len(), 2);
    }
}
