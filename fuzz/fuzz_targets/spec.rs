#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| batchstep_fuzz::spec(bytes));
