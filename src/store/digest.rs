//! Digests that are the same in every version of the program, as Rust's own hashes are not.

/// FNV-1a with 64 bits, by the description of Fowler, Noll and Vo (www.isthe.com/chongo/tech/comp/fnv); over several
/// pieces in a row.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let state = pieces.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{state:016x}")
}
