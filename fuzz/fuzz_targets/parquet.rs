#![no_main]

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a temporary folder");
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| FOLDER.with(|folder| batchstep_fuzz::parquet(bytes, folder.path())));
