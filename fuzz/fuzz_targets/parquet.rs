#![no_main]

use std::sync::Once;

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a temporary folder");
}

static HOOK: Once = Once::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // polars panics over some damaged files, and the reader turns that into an error. libFuzzer's own hook would end the
    // process first; a panic that nobody catches still does.
    HOOK.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            if !batchstep::store::is_expected(panic) {
                eprintln!("{panic}");
            }
        }));
    });
    FOLDER.with(|folder| batchstep_fuzz::parquet(bytes, folder.path()));
});
