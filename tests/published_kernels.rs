//! The mechanisms' formulas against the launches that others published, all of them. Needs `scripts/fetch-published`.

use std::path::{Path, PathBuf};

use batchstep::mechanism::Family;
use batchstep::published::{Published, check};

mod needs;

#[test]
fn every_published_grid_is_that_of_its_formula() {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join(batchstep::published::PATH);
    let path = std::env::var_os("BATCHSTEP_PUBLISHED").map_or(usual, PathBuf::from);
    if !path.is_file() {
        return needs::missing("published", format!("{}: fetch it with scripts/fetch-published", path.display()));
    }
    let published = Published::read(&path).expect("the published data");
    let shares = check::shares(&published);
    for (family, launches) in [
        (Family::NonFusedWinograd, 9_848),
        (Family::FusedWinograd, 8_170),
        (Family::ImplicitProduct, 5_897),
        (Family::Dense, 32_224),
    ] {
        let own = || shares.iter().filter(|share| share.family == family);
        assert_eq!(own().map(|share| share.launches).sum::<usize>(), launches, "{family:?}");
        assert_eq!(own().map(|share| share.exact).sum::<usize>(), launches, "{family:?}");
        // No other padding fits.
        let other = own().map(|share| share.exact_padded_to_8.max(share.exact_unpadded)).sum::<usize>();
        assert!(family != Family::NonFusedWinograd || other < launches * 3 / 4, "{other} of {launches}");
    }
    assert_eq!((published.launches.len(), check::unknown(&published)), (56_886, 747));
}
