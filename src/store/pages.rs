//! Checks the headers of a Parquet file's pages before polars reads them: polars reserves memory for as many values as a
//! header claims, and a damaged header that claims 2^61 would end the process.
//!
//! They are read as polars reads them, by the same code.

use std::io::{Read, Seek, SeekFrom};

use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;

use super::footer::Flaw;

/// Where the pages of one column lie in one row group.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// The first byte of the first page's header.
    pub start: u64,
    pub length: u64,
    /// The values that the file's footer says are there, nulls included.
    pub values: u64,
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
        let (header, length) = header_at(file, at, end)?;
        let first = at;
        let claims = |what: &str, number: i32| format!("a page at byte {first} claims {number} {what}");
        let (compressed, uncompressed) = (header.compressed_page_size, header.uncompressed_page_size);
        for (what, number) in [("bytes", compressed), ("bytes when unpacked", uncompressed)] {
            if number < 0 {
                return Err(Flaw::Damaged(claims(what, number)));
            }
        }
        let values = [
            header.data_page_header.map(|page| page.num_values),
            header.dictionary_page_header.map(|page| page.num_values),
            header.data_page_header_v2.map(|page| page.num_values),
        ];
        let too_many = |values: &i32| u64::try_from(*values).map_or(true, |values| values > chunk.values);
        if let Some(values) = values.into_iter().flatten().find(too_many) {
            return Err(Flaw::Damaged(format!("{}, in a column of {}", claims("values", values), chunk.values)));
        }
        unpacked = unpacked.saturating_add(uncompressed.unsigned_abs().into());
        // A page that claims to go on beyond its column is refused by polars.
        at = at.saturating_add(length).saturating_add(compressed.unsigned_abs().into());
    }
    Ok(unpacked)
}

/// The header there, and its bytes.
fn header_at(file: &mut (impl Read + Seek), at: u64, end: u64) -> Result<(PageHeader, u64), Flaw> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    // Nearly all headers are short; only a long one is read whole.
    for most in [1 << 10, MOST_HEADER] {
        let wanted = (end - at).min(most) - bytes.len() as u64;
        file.by_ref().take(wanted).read_to_end(&mut bytes)?;
        let mut rest = &bytes[..];
        let mut thrift = TCompactInputProtocol::new(&mut rest, MOST_HEADER as usize);
        if let Ok(header) = PageHeader::read_from_in_protocol(&mut thrift) {
            return Ok((header, (bytes.len() - rest.len()) as u64));
        }
    }
    Err(Flaw::Damaged(format!("a page at byte {at} has no header that can be read")))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// By hand: type 0, 20 bytes unpacked, 10 bytes, and a data page of `values` values (zigzag: doubled) in three encodings 0, then 10 bytes.
    fn page(values: u8) -> Vec<u8> {
        let mut page = vec![0x15, 0, 0x15, 40, 0x15, 20, 0x2C, 0x15, values, 0x15, 0, 0x15, 0, 0x15, 0, 0, 0];
        page.extend([0xAA; 10]);
        page
    }

    fn chunk(bytes: &[u8], values: u64) -> Chunk {
        Chunk { start: 0, length: bytes.len() as u64, values }
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
        // The same of a dictionary (field 7) of 3 values in the encoding 0, and of a page of the second version (field 8) of 3 values, none of them null,
        // in 3 rows, the encoding 0 and no levels.
        let sizes = [0x15, 0, 0x15, 40, 0x15, 20];
        for page in
            [&[0x4C, 0x15, 6, 0x15, 0, 0, 0][..], &[0x5C, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 0, 0x15, 0, 0x15, 0, 0, 0]]
        {
            let bytes = [&sizes, page, &[0xAA; 10]].concat();
            assert_eq!(check(&mut Cursor::new(&bytes), chunk(&bytes, 3)).unwrap(), 20);
            assert_eq!(refused(&bytes, 2), "a page at byte 0 claims 3 values, in a column of 2");
        }
        // Zigzag 3 is -2: the bytes of the page.
        let backwards = [&[0x15, 0x00, 0x15, 40, 0x15, 3], &page(6)[6..]].concat();
        assert_eq!(refused(&backwards, 3), "a page at byte 0 claims -2 bytes");
        assert_eq!(refused(&[0xFF; 30], 3), "a page at byte 0 has no header that can be read");
    }
}
