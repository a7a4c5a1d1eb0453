//! Checks the footer of a Parquet file before polars reads it: polars reserves memory for as many entries as a list claims, and
//! interprets a field by its number whatever its type, so a damaged footer can request any amount of memory.
//!
//! The format: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::io::{ErrorKind, Read, Seek, SeekFrom};

use super::thrift::{Compact, kind};

/// What the format says a field is.
#[derive(Clone, Copy)]
enum FieldType {
    Boolean,
    Byte,
    /// 16, 32 and 64 bits are written alike.
    Integer,
    /// Text, or other bytes.
    Text,
    List(&'static FieldType),
    Struct(&'static [(i64, FieldType)]),
    /// One entry of the schema, which is a tree written from its root on, each group saying how many children follow.
    Element,
}

use FieldType::{Boolean, Byte, Element, Integer, List, Struct, Text};

const EMPTY: FieldType = Struct(&[]);
const KEY_VALUE: FieldType = Struct(&[(1, Text), (2, Text)]);
const TIME_UNIT: FieldType = Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const TIME: FieldType = Struct(&[(1, Boolean), (2, TIME_UNIT)]);
const LOGICAL_TYPE: FieldType = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, Integer), (2, Integer)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Boolean)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
]);
/// The field of a schema's entry that holds the number of its children.
const CHILDREN: i64 = 5;
const SCHEMA_ELEMENT: &[(i64, FieldType)] = &[
    (1, Integer),
    (2, Integer),
    (3, Integer),
    (4, Text),
    (CHILDREN, Integer),
    (6, Integer),
    (7, Integer),
    (8, Integer),
    (9, Integer),
    (10, LOGICAL_TYPE),
];
const STATISTICS: FieldType =
    Struct(&[(1, Text), (2, Text), (3, Integer), (4, Integer), (5, Text), (6, Text), (7, Boolean), (8, Boolean)]);
const COLUMN: FieldType = Struct(&[
    (1, Integer),
    (2, List(&Integer)),
    (3, List(&Text)),
    (4, Integer),
    (5, Integer),
    (6, Integer),
    (7, Integer),
    (8, List(&KEY_VALUE)),
    (9, Integer),
    (10, Integer),
    (11, Integer),
    (12, STATISTICS),
    (14, Integer),
    (15, Integer),
]);
const CHUNK: FieldType =
    Struct(&[(1, Text), (2, Integer), (3, COLUMN), (4, Integer), (5, Integer), (6, Integer), (7, Integer)]);
const SORTING: FieldType = Struct(&[(1, Integer), (2, Boolean), (3, Boolean)]);
const ROW_GROUP: FieldType = Struct(&[
    (1, List(&CHUNK)),
    (2, Integer),
    (3, Integer),
    (4, List(&SORTING)),
    (5, Integer),
    (6, Integer),
    (7, Integer),
]);
const FOOTER: &[(i64, FieldType)] = &[
    (1, Integer),
    (2, List(&Element)),
    (3, Integer),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Text),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY)]))),
];

/// Groups within groups of the schema: polars calls itself for each.
const MOST_GROUPS: usize = 64;
/// Bytes of a footer. Read, its names take up to eighty times as many; a run of a hundred million steps has a tenth of this.
const MOST_BYTES: u64 = 32 << 20;
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

/// The footer as a Parquet file of its own, which has no rows. It is looked at first, and read once: polars takes a file that fails to
/// be read for a damaged one.
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
    let mut whole = MAGIC.to_vec();
    file.take(length + TRAILER).read_to_end(&mut whole)?;
    let footer = whole.get(MAGIC.len()..MAGIC.len() + length as usize).ok_or_else(cut_short)?;
    let mut walk = Walk { reader: Compact::new(footer), claim: None, groups: Vec::new() };
    if walk.fields(FOOTER).is_none() {
        let what = walk.claim.unwrap_or_else(|| format!("the footer cannot be read at its byte {}", walk.reader.at()));
        return Err(Flaw::Damaged(what));
    }
    Ok(whole)
}

struct Walk<'a> {
    reader: Compact<'a>,
    /// What was wrong, where there is more to say than the place.
    claim: Option<String>,
    /// The children that each open group of the schema still waits for.
    groups: Vec<i64>,
}

impl Walk<'_> {
    /// Walks a struct; the number in its field [`CHILDREN`] is given, where that is a number.
    fn fields(&mut self, fields: &[(i64, FieldType)]) -> Option<i64> {
        let (mut field, mut children) = (0, 0);
        while let Some(kind) = self.reader.field(&mut field)? {
            match fields.iter().find(|(number, _)| *number == field) {
                Some((CHILDREN, Integer)) if is(kind, Integer) => children = self.reader.zigzag()?,
                Some((_, shape)) if is(kind, *shape) => self.value(*shape)?,
                Some(_) => return None,
                None => self.reader.skip(kind)?,
            }
        }
        Some(children)
    }

    fn value(&mut self, shape: FieldType) -> Option<()> {
        match shape {
            Boolean => self.reader.skip(kind::TRUE),
            Byte => self.reader.skip(kind::BYTE),
            Integer => self.reader.skip(kind::I64),
            Text => self.reader.skip(kind::TEXT),
            Struct(fields) => self.fields(fields).map(drop),
            List(of) => self.list(*of),
            Element => {
                let children = self.fields(SCHEMA_ELEMENT)?;
                self.nest(children)
            }
        }
    }

    fn list(&mut self, of: FieldType) -> Option<()> {
        let (count, kind) = self.reader.list()?;
        // No entry is shorter than a byte.
        let left = self.reader.left();
        if count > left as u64 {
            self.claim = Some(format!("the footer claims a list of {count} entries in {left} bytes"));
            return None;
        }
        if count > 0 && !is(kind, of) {
            return None;
        }
        self.groups.clear();
        (0..count).try_for_each(|_| self.value(of))
    }

    /// Puts an entry of the schema below the groups that are open.
    fn nest(&mut self, children: i64) -> Option<()> {
        if let Some(waits) = self.groups.last_mut() {
            *waits -= 1;
        }
        if children > 0 {
            self.groups.push(children);
        }
        if self.groups.len() > MOST_GROUPS {
            self.claim = Some(format!("the footer's schema has more than {MOST_GROUPS} nested groups"));
            return None;
        }
        while self.groups.last() == Some(&0) {
            self.groups.pop();
        }
        Some(())
    }
}

/// Whether a field or a list that says it is of type `kind` is of that shape.
fn is(kind: u8, shape: FieldType) -> bool {
    match shape {
        Boolean => matches!(kind, kind::TRUE | kind::FALSE),
        Byte => kind == kind::BYTE,
        Integer => (kind::I16..=kind::I64).contains(&kind),
        Text => kind == kind::TEXT,
        List(_) => kind == kind::LIST,
        Struct(_) | Element => kind == kind::STRUCT,
    }
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
                assert_eq!(&footer, file.get_ref(), "such a file is all footer");
                Ok(())
            }
            Err(Flaw::Damaged(what) | Flaw::TooLarge(what)) => Err(what),
            Err(Flaw::Unread(error)) => panic!("{error}"),
        }
    }

    /// By hand: version 1, and a list (type 9, field 2) of `elements`.
    fn schema(elements: &[&[u8]]) -> Cursor<Vec<u8>> {
        let count = u8::try_from(elements.len()).unwrap();
        file(&[&[0x15, 2, 0x19, 0xFC, count], elements.concat().as_slice(), &[0]].concat())
    }

    /// A group named "g" of `children` groups or columns (zigzag: doubled).
    fn group(children: u8) -> [u8; 6] {
        [0x48, 1, b'g', 0x15, 2 * children, 0]
    }

    #[test]
    fn a_footer_is_walked_as_the_format_says() {
        let column: &[u8] = &[0x15, 4, 0x25, 0, 0x18, 1, b'x', 0];
        assert_eq!(check(&mut schema(&[&group(2), &group(1), column, column])), Ok(()));
    }

    /// A footer like that of a file with two million columns; nothing of it is read.
    #[test]
    fn a_footer_beyond_the_limit_is_refused_unread() {
        let what = check(&mut file(&vec![0; 33 << 20])).expect_err("too large");
        assert_eq!(what, "its footer takes 33 MiB, and at most 32 MiB are read");
    }

    #[test]
    fn a_list_longer_than_the_footer_is_refused() {
        // Row groups (field 4), 2^31 - 1 of them.
        let mut footer = file(&[0x49, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0, 0]);
        assert_eq!(check(&mut footer).unwrap_err(), "the footer claims a list of 2147483647 entries in 2 bytes");
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        // The number of rows (field 3) as a text.
        assert_eq!(check(&mut file(&[0x38, 1, b'x', 0])).unwrap_err(), "the footer cannot be read at its byte 1");
        // A schema (field 2) of numbers.
        assert!(check(&mut file(&[0x29, 0x15, 2, 0])).is_err());
    }

    #[test]
    fn groups_within_groups_without_end_are_refused() {
        let groups = |count: usize| schema(&vec![group(1).as_slice(); count]);
        assert_eq!(check(&mut groups(64)), Ok(()));
        assert!(check(&mut groups(65)).unwrap_err().contains("more than 64 nested groups"));
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
        let column: &[u8] = &[0x15, 4, 0x25, 0, 0x18, 1, b'x', 0];
        let error = read(&mut Failing(schema(&[&group(1), column]))).unwrap_err();
        assert!(matches!(&error, Flaw::Unread(error) if error.to_string() == "the disk is gone"), "{error:?}");
    }
}
