//! On launches that follow the model exactly, on GPUs that do not exist; the real ones are in `tests/program/published_kernels.rs`.

use super::forecast::forecast;
use super::model::{Assumptions, KernelModel};
use super::validation::{Errors, Prediction, convolutions, of_layers_left_out, predictions};
use super::*;
use crate::analysis::mechanisms::formulas::{Family, Tile};
use crate::network::{Network, Shape};
use crate::random::Rng;

const TILE: Tile = Tile { first: 128, second: 64 };
const KERNELS: [Kernel; 3] = [
    Kernel::NonFusedWinograd(TILE),
    Kernel::FusedWinograd { images: 1, rows: 4, columns: 8 },
    Kernel::ImplicitProduct(TILE),
];

fn gpu(name: &str, multiprocessors: usize) -> GpuFigures {
    GpuFigures { name: name.into(), multiprocessors, flops_per_s: 8e12, bytes_per_s: 3e11, l2_bytes: 4 << 20 }
}

/// A time with a launch of 50 us, and arithmetic at half of the nominal rate; non-fused Winograd has an eighth of the arithmetic of
/// the others for each block here, so that it wins for layers of many channels.
fn time(kernel: Kernel, layer: &LayerSizes, batch: usize, gpu: &GpuFigures) -> f64 {
    let block = match kernel {
        Kernel::NonFusedWinograd(_) | Kernel::Dense(_) => (TILE.first * TILE.second) as f64,
        Kernel::FusedWinograd { .. } => 32.0 * 32.0 * 16.0,
        Kernel::ImplicitProduct(_) => (TILE.first * TILE.second * 9) as f64,
    };
    let rounds = kernel.blocks(layer, batch).div_ceil(gpu.multiprocessors) as f64;
    let rate = gpu.flops_per_s / gpu.multiprocessors as f64;
    5e-5 + rounds * 2.0 * block * layer.inputs as f64 / (0.5 * rate)
}

/// Random layers, each computed by its fastest kernel.
fn planted(gpus: Vec<GpuFigures>) -> Published {
    let mut random = Rng::new(3);
    let mut published = Published { gpus, launches: Vec::new() };
    for place in 0..published.gpus.len() {
        for _ in 0..600 {
            let mut size = |low: usize, high: usize| low + random.below(high - low);
            let (inputs, outputs, side, batch) = (size(8, 512), size(8, 512), size(5, 60), size(1, 65));
            let layer =
                LayerSizes { product: KnownOperation::Convolution3x3, inputs, outputs, height: side, width: side };
            let of = |kernel: &Kernel| time(*kernel, &layer, batch, &published.gpus[place]);
            let Some(kernel) = KERNELS.into_iter().min_by(|a, b| of(a).total_cmp(&of(b))) else { continue };
            let (grid, time_s) = (kernel.grid(&layer, batch), of(&kernel));
            published.launches.push(LayerLaunch { gpu: place, layer, batch, kernel: Some(kernel), grid, time_s });
        }
    }
    published
}

#[test]
fn a_model_finds_times_that_follow_it_and_misses_them_without_padding() {
    let published = planted(vec![gpu("Test T4", 40), gpu("Test V100", 80)]);
    let without_padding = Assumptions { padding: false, ..Assumptions::BOTH };
    let of_other_gpus = |gpu: usize, assumed| {
        let others = published.launches.iter().filter(|launch| launch.gpu != gpu);
        predictions(&published, convolutions(&published, gpu), &KernelModel::fit(&published, others, assumed))
    };
    let of_other_layers = |gpu: usize, assumed| of_layers_left_out(&published, gpu, assumed);
    for left_out in [&of_other_gpus as &dyn Fn(usize, Assumptions) -> Vec<Prediction>, &of_other_layers] {
        let all = |assumed| [0, 1].map(|gpu| left_out(gpu, assumed)).concat();
        let found = all(Assumptions::BOTH);
        let errors = Errors::of(found.iter().map(|prediction| prediction.error));
        // Near-ties may go to another family.
        let right = found.iter().filter(|prediction| prediction.family_is_right).count() as f64 / found.len() as f64;
        assert!(errors.count > 1000 && errors.percentile_90 < 0.01 && right > 0.97, "{errors:?} {right}");
        let non_fused = all(without_padding).into_iter().filter(|p| p.family == Family::NonFusedWinograd);
        assert!(Errors::of(non_fused.map(|p| p.error)).median > 0.03);
    }
}

#[test]
fn too_few_launches_of_a_kernel_are_not_fitted() {
    let published = planted(vec![gpu("Test T4", 40)]);
    let few = published.launches.iter().filter(|l| l.kernel == Some(KERNELS[0])).take(model::FEWEST - 1);
    let model = KernelModel::fit(&published, few, Assumptions::BOTH);
    assert_eq!(model.kernels().count(), 0);
    let layer = published.launches[0].layer;
    assert_eq!(model.time(KERNELS[0], &layer, 1, &published.gpus[0]), None);
    assert_eq!(model.fastest(&layer, 1, &published.gpus[0]), None);
}

#[test]
fn the_forecast_steps_where_the_batch_is_padded_and_names_what_it_leaves_out() {
    let published = planted(vec![gpu("Test T4", 40)]);
    let vgg = Network::by_name("vgg16", Shape::Maps { channels: 3, height: 64, width: 64 }, 10).unwrap();
    let found = forecast(&published, 0, &vgg, 70, Assumptions::BOTH).unwrap();
    assert_eq!((found.layers.len(), found.left_out.len(), found.largest()), (13, 3, 70));
    assert_eq!(found.left_out, ["fc1", "fc2", "predictions"]);
    let mut steps = found.steps(0.05);
    steps.sort_by(|a, b| b.size_s.total_cmp(&a.size_s));
    let mut largest: Vec<usize> = steps.iter().take(4).map(|step| step.after).collect();
    largest.sort_unstable();
    assert_eq!(largest, [16, 32, 48, 64]);
    assert!(steps[0].layers.iter().all(|layer| layer.reason == "batch padded to 16"), "{steps:?}");
    // Without a layer of that kind there is no forecast.
    let mlp = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
    let refused = forecast(&published, 0, &mlp, 70, Assumptions::BOTH).unwrap_err().to_string();
    assert!(refused.contains("no layer of `mlp`") && refused.contains("batchstep run"), "{refused}");
}

#[test]
fn a_gpu_is_found_by_a_word_of_its_name() {
    let published = planted(vec![gpu("Test T4", 40), gpu("Test V100-32GB", 80)]);
    assert_eq!(published.find("t4").unwrap(), 0);
    assert_eq!(published.find("V100").unwrap(), 1);
    assert_eq!(published.find("test v100-32gb").unwrap(), 1);
    let error = |asked: &str| published.find(asked).unwrap_err().to_string();
    assert!(
        error("test").contains("more than one GPU") && error("h100").contains("there are: Test T4, Test V100-32GB")
    );
    assert!(error("h100").contains("did you mean `v100`?"), "{}", error("h100"));
}

#[test]
fn the_table_is_read_and_missing_values_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.csv");
    let header = COLUMNS.concat().join(",");
    // 17 images of 8x8 with 24 channels in and 65 out: 4 tiles an image, 32 * 4 = 128 tiles of one block, and 2 blocks of channels.
    let row = "Test T4,conv2d,volta_sgemm_128x64_nn,winograd_nonfused;volta_sgemm_128x64_nn,40,8e12,3e11,17,24,65,8,8,3,1,1,1,2,36,1e-4,4194304";
    let dense = "Test T4,dense,volta_sgemm_32x32_tn,,40,8e12,3e11,33,512,1000,1,1,1,1,0,32,2,4,1e-5,4194304";
    let strided = row.replace(",3,1,1,", ",3,2,1,");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Published::read(&path)
    };
    let published = read(&format!("{header}\n{row}\n{dense}\n{strided}\n")).unwrap();
    assert_eq!((published.gpus.len(), published.launches.len()), (1, 2));
    for launch in &published.launches {
        let grid = launch.kernel.expect("a known one").grid(&launch.layer, launch.batch);
        // The parts into which a dense layer's sum is split are not in its formula.
        assert_eq!(grid[..2], launch.grid[..2]);
    }
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert!(error(&format!("{header}\n{}\n", row.replace(",17,", ",0,"))).contains("`batch_size` of row 1 is 0"));
    assert!(error(&format!("{header}\n{}\n", row.replace("1e-4", "0"))).contains("row 1 has no time"));
    let lacking = format!("{}\n{}\n", header.replace("grid_z,", ""), row.replace(",36,", ","));
    assert!(error(&lacking).contains("`grid_z` is missing"), "{}", error(&lacking));
    assert!(error(&format!("{header}\n{strided}\n")).contains("no row is a 3x3 convolution"));
    let missing = Published::read(&folder.path().join("absent")).unwrap_err().to_string();
    assert!(missing.contains("scripts/fetch-published"), "{missing}");
}
