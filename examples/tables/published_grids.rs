//! Counts the published kernel launches whose grid is exactly that of the mechanism's formula, and looks for a step of their times where
//! the second-level cache overflows.
//!
//! ```text
//! scripts/fetch-published
//! cargo run --release --example tables -- published_grids [results/published/kernels.parquet]
//! ```

use std::error::Error;
use std::path::PathBuf;

use crate::{argument, published_check as check};
use batchstep::predict::published_kernels::{PATH, Published};

pub fn run() -> Result<(), Box<dyn Error>> {
    let path = argument(1).map_or_else(|| PathBuf::from(PATH), PathBuf::from);
    let published = Published::read(&path).map_err(|error| error.to_string())?;
    println!("| kernel family | GPU | launches | exact | padded to 8 | not padded |\n|---|---|---|---|---|---|");
    let shares = check::shares(&published);
    for share in &shares {
        let check::ExactGrids { launches, exact, exact_padded_to_8, exact_unpadded, .. } = share;
        let (family, gpu) = (share.family, &share.gpu);
        println!("| {family} | {gpu} | {launches} | {exact} | {exact_padded_to_8} | {exact_unpadded} |");
    }
    for (_, family) in check::FAMILIES {
        let of = |count: fn(&check::ExactGrids) -> usize| -> usize {
            shares.iter().filter(|share| share.family == family).map(count).sum()
        };
        let [launches, exact] = [of(|s| s.launches), of(|s| s.exact)];
        println!(
            "| {} | all | {launches} | {exact} | {} | {} |",
            family,
            of(|s| s.exact_padded_to_8),
            of(|s| s.exact_unpadded)
        );
    }
    println!("\nof {} launches, {} are of other kernels", published.launches.len(), check::unknown(&published));
    println!(
        "\n| GPU | 0.8 to 1 of the cache | 1 to 1.25 | time over the model's, ratio of the medians |\n|---|---|---|---|"
    );
    for check::AtTheCache { gpu, below, above, ratio } in check::at_the_cache(&published) {
        println!("| {gpu} | {below} | {above} | {ratio:.2} |");
    }
    Ok(())
}
