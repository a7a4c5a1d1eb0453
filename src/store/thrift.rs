//! The compact protocol of Thrift, in which Parquet writes its footer and the headers of its pages. Only as much is read as the checks
//! before polars need.
//!
//! The format: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

/// The deepest nesting of structs and lists; a footer has six levels.
const MOST_DEPTH: usize = 16;

/// The types, as a field's or a list's head numbers them.
pub(super) mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const TEXT: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

/// A reader of Thrift's compact protocol. What it reads is `None` where the bytes end or say what the protocol does not know.
pub(super) struct Compact<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Compact<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The type of the next field, whose number is written to `field`; the inner `None` ends the struct.
    pub fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        let number = match byte >> 4 {
            0 => self.zigzag()?,
            delta => field.checked_add(i64::from(delta))?,
        };
        *field = i64::from(i16::try_from(number).ok()?);
        Some(Some(byte & 0x0F))
    }

    /// The head of a list or a set: how many elements, and their type.
    pub fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Some((count, head & 0x0F))
    }

    /// Skips the value of a field of that type.
    pub fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, 0)
    }

    fn skip_within(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MOST_DEPTH {
            return None;
        }
        match kind {
            // In a field a boolean's value is its type.
            kind::TRUE | kind::FALSE => {}
            kind::BYTE => self.at += 1,
            kind::I16..=kind::I64 => drop(self.varint()?),
            kind::DOUBLE => self.at += 8,
            kind::TEXT => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.at = self.at.checked_add(length)?;
            }
            kind::LIST | kind::SET => {
                let (count, of) = self.list()?;
                self.skip_all(count, &[of], depth)?;
            }
            kind::MAP => {
                let count = self.varint()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                self.skip_all(count, &[kinds >> 4, kinds & 0x0F], depth)?;
            }
            kind::STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip_within(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        (self.at <= self.bytes.len()).then_some(())
    }

    /// Skips the elements of a list or a map. Parquet has no list of booleans, and polars would skip one as if it had no bytes.
    fn skip_all(&mut self, count: u64, kinds: &[u8], depth: usize) -> Option<()> {
        if kinds.iter().any(|kind| matches!(*kind, kind::TRUE | kind::FALSE)) {
            return None;
        }
        for _ in 0..count {
            for &kind in kinds {
                self.skip_within(kind, depth + 1)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_ends_where_the_protocol_says() {
        // A text of 3 bytes, a list of 2 i32, a map of one i32 to a text of 1 byte, a struct with a boolean.
        let fields: [(u8, &[u8]); 4] =
            [(8, &[3, 1, 2, 3]), (9, &[0x25, 2, 4]), (11, &[1, 0x58, 2, 1, 9]), (12, &[0x11, 0x00])];
        for (kind, bytes) in fields {
            let mut reader = Compact::new(bytes);
            assert_eq!(reader.skip(kind), Some(()), "{kind}");
            assert_eq!(reader.at, bytes.len(), "{kind}");
            let mut cut = Compact::new(&bytes[..bytes.len() - 1]);
            assert_eq!(cut.skip(kind), None, "{kind} cut short");
        }
    }
}
