//! Checks the headers of a Parquet file's pages before polars reads them: polars reserves memory for as many values as a
//! header claims, and a damaged header that claims 2^61 would end the process.
//!
//! A header is a struct of Thrift's compact protocol; the format is that of
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::io::{Read, Seek, SeekFrom};

use super::footer::Flaw;
use super::thrift::Compact;

/// Where the pages of one column lie in one row group.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// The first byte of the first page's header.
    pub start: u64,
    pub length: u64,
    /// The values that the file's footer says are there, nulls included.
    pub values: u64,
}

/// What a header says that a reader trusts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    /// Bytes of the header itself.
    length: usize,
    uncompressed: i64,
    compressed: i64,
    values: i64,
}

/// The largest header that is looked at: its statistics may hold long texts.
const MOST_HEADER: u64 = 1 << 20;

/// The bytes of all pages when they are unpacked. Fails, with a sentence that says why, if a page claims more than its column contains.
///
/// # Errors
/// That sentence; [`Flaw::Unread`] where the file cannot be read.
pub fn check(file: &mut (impl Read + Seek), chunk: Chunk) -> Result<u64, Flaw> {
    let beyond = || Flaw::Damaged("a column that begins beyond the file's end".to_owned());
    let end = chunk.start.checked_add(chunk.length).ok_or_else(beyond)?;
    let (mut at, mut unpacked) = (chunk.start, 0u64);
    while at < end {
        let header = header_at(file, at, end)?;
        let first = at;
        let claims = |what: &str, number: i64| format!("a page at byte {first} claims {number} {what}");
        for (what, number) in [("bytes", header.compressed), ("bytes when unpacked", header.uncompressed)] {
            if number < 0 {
                return Err(Flaw::Damaged(claims(what, number)));
            }
        }
        if header.values < 0 || header.values.unsigned_abs() > chunk.values {
            let what = format!("{}, in a column of {}", claims("values", header.values), chunk.values);
            return Err(Flaw::Damaged(what));
        }
        unpacked = unpacked.saturating_add(header.uncompressed.unsigned_abs());
        // A page that claims to go on beyond its column is refused by polars.
        at = at.saturating_add(header.length as u64).saturating_add(header.compressed.unsigned_abs());
    }
    Ok(unpacked)
}

fn header_at(file: &mut (impl Read + Seek), at: u64, end: u64) -> Result<Header, Flaw> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    // Nearly all headers are short; only a long one is read whole.
    for most in [1 << 10, MOST_HEADER] {
        let wanted = (end - at).min(most) - bytes.len() as u64;
        file.by_ref().take(wanted).read_to_end(&mut bytes)?;
        if let Some(header) = header(&bytes) {
            return Ok(header);
        }
    }
    Err(Flaw::Damaged(format!("a page at byte {at} has no header that can be read")))
}

/// The header at the beginning of `bytes`; `None` if it is cut short or not a header.
fn header(bytes: &[u8]) -> Option<Header> {
    let mut reader = Compact::new(bytes);
    let mut header = Header::default();
    let mut seen = (false, false);
    let mut field = 0;
    while let Some(kind) = reader.field(&mut field)? {
        match (field, kind) {
            (2, 5) => (header.uncompressed, seen.0) = (reader.zigzag()?, true),
            (3, 5) => (header.compressed, seen.1) = (reader.zigzag()?, true),
            // Data, dictionary and second data page: their first field is the number of values.
            (5 | 7 | 8, 12) => header.values = first_number(&mut reader)?,
            _ => reader.skip(kind)?,
        }
    }
    header.length = reader.at();
    (seen == (true, true)).then_some(header)
}

/// Reads a struct for its field 1, a number; 0 where it has none.
fn first_number(reader: &mut Compact) -> Option<i64> {
    let (mut number, mut field) = (0, 0);
    while let Some(kind) = reader.field(&mut field)? {
        match (field, kind) {
            (1, 4..=6) => number = reader.zigzag()?,
            _ => reader.skip(kind)?,
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// By hand: type 0, 20 bytes unpacked, 10 bytes, and a data page of `values` values (zigzag: doubled), then 10 bytes.
    fn page(values: u8) -> Vec<u8> {
        let mut page = vec![0x15, 0x00, 0x15, 40, 0x15, 20, 0x2C, 0x15, values, 0x00, 0x00];
        page.extend([0xAA; 10]);
        page
    }

    fn chunk(bytes: &[u8], values: u64) -> Chunk {
        Chunk { start: 0, length: bytes.len() as u64, values }
    }

    #[test]
    fn a_header_is_read_as_the_format_says() {
        let header = header(&page(6)).unwrap();
        assert_eq!(header, Header { length: 11, uncompressed: 20, compressed: 10, values: 3 });
    }

    #[test]
    fn pages_follow_one_another_to_the_end_of_their_column() {
        let bytes = [page(6), page(4)].concat();
        assert_eq!(check(&mut Cursor::new(&bytes), chunk(&bytes, 5)).unwrap(), 40);
    }

    #[test]
    fn claims_beyond_the_column_are_refused() {
        let refused = |bytes: &[u8], values| match check(&mut Cursor::new(bytes), chunk(bytes, values)) {
            Err(Flaw::Damaged(what)) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(&page(6), 2), "a page at byte 0 claims 3 values, in a column of 2");
        // Zigzag 1 is -1.
        assert_eq!(refused(&page(1), 2), "a page at byte 0 claims -1 values, in a column of 2");
        // Zigzag 3 is -2: the bytes of the page.
        let backwards = [&[0x15, 0x00, 0x15, 40, 0x15, 3], &page(6)[6..]].concat();
        assert_eq!(refused(&backwards, 3), "a page at byte 0 claims -2 bytes");
        assert_eq!(refused(&[0xFF; 30], 3), "a page at byte 0 has no header that can be read");
    }
}
