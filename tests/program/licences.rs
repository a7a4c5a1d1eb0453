//! The licence notices of the packages that are linked into the program, which are distributed with it.

use crate::needs;
use crate::support::{Folder, has, read, stderr};
use std::path::Path;
use std::process::Command;

#[test]
fn the_notices_of_every_linked_package_go_with_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder::new();
    let file = folder.join("notices");
    let made = Command::new("python3").arg(root.join("scripts/third-party-licenses")).arg(&file).output();
    let Ok(made) = made else { return needs::missing("python", "python3 is not installed") };
    assert!(made.status.success(), "{}", stderr(&made));
    let notices = std::fs::read_to_string(file).expect("written");
    // Notices of a font, of C sources, of code copied from elsewhere, and of a package that leaves its licence text
    // out.
    has(&notices, &["SIL OPEN FONT LICENSE", "Daan Leijen", "Yann Collet", "Independent JPEG Group", "alloc-stdlib 0"]);
    assert!(!notices.contains("criterion"), "criterion is for benches and is not linked");
    let read = |name: &str| read(root, name);
    for (place, how) in [
        ("scripts/wheel", "scripts/third-party-licenses THIRD-PARTY-LICENSES\n"),
        ("pyproject.toml", "license-files = [\"*LICENSE*\"]"),
        ("scripts/release-archive", "dist-info/licenses/THIRD-PARTY-LICENSES"),
        ("containers/Dockerfile", "COPY --from=build /out/THIRD-PARTY-LICENSES"),
        ("containers/batchstep.def", "target/THIRD-PARTY-LICENSES /usr/local/share/doc"),
    ] {
        assert!(read(place).contains(how), "{place}");
    }
}
