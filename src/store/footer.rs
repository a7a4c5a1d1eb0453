//! Reads the footer of a Parquet file before polars does, and writes it anew: polars reserves memory for as many entries as a list claims, and
//! interprets a field by its number whatever its type, so a damaged footer can request any amount of memory. What is written anew claims what it holds.
//!
//! The format: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use polars_parquet_format::thrift::protocol::{TCompactInputProtocol, TCompactOutputProtocol};
use polars_parquet_format::{FileMetaData, SchemaElement};

/// Groups within groups of the schema: polars calls itself for each.
const MOST_GROUPS: usize = 64;
/// Bytes of a footer. Read, its names take up to eighty times as many; a run of a hundred million steps has a tenth of this.
const MOST_BYTES: u64 = 32 << 20;
/// What the reader of the format may count for each byte of a footer: 8 for an entry of a list, 2 for a struct, 1 for a letter. Those of a sound one have
/// some two.
const COUNTED: usize = 4;
/// The length of the footer and `PAR1`, at the end of each file.
const TRAILER: u64 = 8;
const MAGIC: &[u8; 4] = b"PAR1";

/// Why the inside of a file cannot be used.
#[derive(Debug)]
pub enum Flaw {
    /// It could not be read, so its contents are not known.
    Unread(std::io::Error),
    /// Its contents violate the format; the sentence says where.
    Damaged(String),
    /// It may be valid, but is too large to be read.
    TooLarge(String),
}

impl From<std::io::Error> for Flaw {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::Damaged(CUT_SHORT.to_owned()),
            _ => Self::Unread(error),
        }
    }
}

const CUT_SHORT: &str = "the file does not end with a footer";

/// The footer as a Parquet file of its own, which has no rows. It is read here, and once: polars takes a file that fails to be read for a damaged
/// one.
///
/// # Errors
/// [`Flaw::Damaged`] where the footer is not what the format says; [`Flaw::Unread`].
pub fn read(file: &mut (impl Read + Seek)) -> Result<Vec<u8>, Flaw> {
    let size = file.seek(SeekFrom::End(0))?;
    let cut_short = || Flaw::Damaged(CUT_SHORT.to_owned());
    let end = size.checked_sub(TRAILER).ok_or_else(cut_short)?;
    file.seek(SeekFrom::Start(end))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer)?;
    let [a, b, c, d, magic @ ..] = trailer;
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = end.checked_sub(length).filter(|_| &magic == MAGIC).ok_or_else(cut_short)?;
    if length > MOST_BYTES {
        let [takes, most] = [length, MOST_BYTES].map(|bytes| bytes >> 20);
        return Err(Flaw::TooLarge(format!("its footer takes {takes} MiB, and at most {most} MiB are read")));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer)?;
    let mut thrift = TCompactInputProtocol::new(&footer[..], COUNTED * footer.len());
    let unreadable = |_| Flaw::Damaged("the footer cannot be read".to_owned());
    let metadata = FileMetaData::read_from_in_protocol(&mut thrift).map_err(unreadable)?;
    check_nesting(&metadata.schema)?;
    let mut whole = MAGIC.to_vec();
    metadata.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut whole)).map_err(unreadable)?;
    let length = (whole.len() - MAGIC.len()) as u32;
    whole.extend(length.to_le_bytes());
    whole.extend(MAGIC);
    Ok(whole)
}

/// The schema is a tree written from its root on, each group saying how many children follow.
fn check_nesting(schema: &[SchemaElement]) -> Result<(), Flaw> {
    // The children that each open group still waits for.
    let mut groups: Vec<i32> = Vec::new();
    for element in schema {
        if let Some(waits) = groups.last_mut() {
            *waits -= 1;
        }
        groups.extend(element.num_children.filter(|children| *children > 0));
        if groups.len() > MOST_GROUPS {
            return Err(Flaw::Damaged(format!("the footer's schema has more than {MOST_GROUPS} nested groups")));
        }
        while groups.last() == Some(&0) {
            groups.pop();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn file(footer: &[u8]) -> Cursor<Vec<u8>> {
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        Cursor::new([b"PAR1", footer, &length, b"PAR1"].concat())
    }

    fn check(file: &mut Cursor<Vec<u8>>) -> Result<(), String> {
        match read(file) {
            Ok(footer) => {
                assert_eq!(read(&mut Cursor::new(&footer)).expect("such a file is all footer"), footer);
                Ok(())
            }
            Err(Flaw::Damaged(what) | Flaw::TooLarge(what)) => Err(what),
            Err(Flaw::Unread(error)) => panic!("{error}"),
        }
    }

    /// By hand: version 1, a list (type 9, field 2) of `elements`, no rows and no row groups.
    fn schema(elements: &[&[u8]]) -> Cursor<Vec<u8>> {
        let count = u8::try_from(elements.len()).unwrap();
        file(&[&[0x15, 2, 0x19, 0xFC, count], elements.concat().as_slice(), &[0x16, 0, 0x19, 0x0C, 0]].concat())
    }

    const COLUMN: &[u8] = &[0x15, 4, 0x25, 0, 0x18, 1, b'x', 0];

    /// A group named "g" of `children` groups or columns (zigzag: doubled).
    fn group(children: u8) -> [u8; 6] {
        [0x48, 1, b'g', 0x15, 2 * children, 0]
    }

    /// A footer like that of a file with two million columns; nothing of it is read.
    #[test]
    fn a_footer_beyond_the_limit_is_refused_unread() {
        let what = check(&mut file(&vec![0; 33 << 20])).expect_err("too large");
        assert_eq!(what, "its footer takes 33 MiB, and at most 32 MiB are read");
    }

    #[test]
    fn a_list_longer_than_the_footer_and_a_field_of_another_type_are_refused() {
        // 2^31 - 1 row groups (field 4); the number of rows (field 3) as a text; a schema (field 2) of numbers.
        for footer in [&[0x49, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0, 0][..], &[0x38, 1, b'x', 0], &[0x29, 0x15, 2, 0]]
        {
            assert_eq!(check(&mut file(footer)).unwrap_err(), "the footer cannot be read", "{footer:?}");
        }
    }

    /// Each would take the stack, an overflow or gigabytes of a reader that trusts it: fields that the format does not know are skipped, not ignored.
    #[test]
    fn a_footer_that_is_made_to_harm_is_refused() {
        // What claims 2^32 - 1 letters or entries, as a field that is known (the program's name, field 6) and as one that is not (field 15).
        let claims = |field: &[u8]| [field, &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x55, 0, 0, 0]].concat();
        let endless = |first: u8, next: u8| [&[first][..], &vec![next; 200_000]].concat();
        for footer in [
            claims(&[0x68]),
            claims(&[0xF8]),
            claims(&[0xF9, 0xF5]),
            claims(&[0xFA, 0xF5]),
            claims(&[0xFB]),
            // Structs within structs and lists within lists without end.
            endless(0xFC, 0x1C),
            endless(0xF9, 0x19),
            // Field numbers beyond 16 bits, a number of more than 64 bits, and a field of no type.
            endless(0xF1, 0xF1),
            endless(0x15, 0xFF),
            vec![0x1D, 0],
        ] {
            let what = check(&mut file(&footer)).unwrap_err();
            assert_eq!(what, "the footer cannot be read", "{:?}", &footer[..footer.len().min(9)]);
        }
    }

    /// What is still read is written anew as what it says: `check` reads it twice.
    #[test]
    fn whatever_one_byte_of_a_footer_says_it_is_read_or_refused() {
        let sound = schema(&[&group(2), &group(1), COLUMN, COLUMN]).into_inner();
        let mut refused = 0;
        for (at, byte) in (0..sound.len()).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
            let mut damaged = sound.clone();
            damaged[at] = byte;
            refused += usize::from(check(&mut Cursor::new(damaged)).is_err());
        }
        // Of most bytes of the structure nearly any other is refused.
        assert!(refused > sound.len() * 64, "{refused}");
    }

    #[test]
    fn groups_within_groups_without_end_are_refused() {
        let groups = |count: usize| schema(&vec![group(1).as_slice(); count]);
        assert_eq!(check(&mut groups(64)), Ok(()));
        assert!(check(&mut groups(65)).unwrap_err().contains("more than 64 nested groups"));
        assert_eq!(check(&mut schema(&[&group(2), &group(1), COLUMN, COLUMN])), Ok(()));
        // Many groups in a row are not nested.
        let mut row = vec![group(60)];
        row.resize(61, group(0));
        assert_eq!(check(&mut schema(&row.iter().map(<[u8; 6]>::as_slice).collect::<Vec<_>>())), Ok(()));
    }

    #[test]
    fn a_file_without_a_footer_is_damaged_and_one_that_fails_is_unread() {
        for bytes in [&b""[..], b"PAR1", b"not a parquet file", b"PAR1\xFF\xFF\xFF\x7FPAR1"] {
            assert_eq!(check(&mut Cursor::new(bytes.to_vec())), Err(CUT_SHORT.to_owned()), "{bytes:?}");
        }
        struct Failing(Cursor<Vec<u8>>);
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("the disk is gone"))
            }
        }
        impl Seek for Failing {
            fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
                self.0.seek(to)
            }
        }
        let error = read(&mut Failing(schema(&[&group(1), COLUMN]))).unwrap_err();
        assert!(matches!(&error, Flaw::Unread(error) if error.to_string() == "the disk is gone"), "{error:?}");
    }
}
