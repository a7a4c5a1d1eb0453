//! Parquet files with a column of encoded images, as the hubs of data sets store them: a struct of the bytes of an image's file and of its
//! path, and a class in another column.
//!
//! Source of the layout: the feature `Image` of Hugging Face's `datasets`, whose storage is `struct<bytes: binary, path: string>`. A plain
//! binary column is read as well.

use std::path::Path;

use polars::prelude::{ArrowDataType, BinaryChunked, DataFrame, DataType, Int64Chunked, PolarsResult, StringChunked};

use super::parquet::{self, Checked, Metadata};
use crate::error::Result;

/// The fields of the struct.
const BYTES: &str = "bytes";
const PATH: &str = "path";

/// Bytes of images that are decoded from Parquet at once, about.
const PIECE: u64 = 64 << 20;

/// One file; only its footer has been read.
#[derive(Debug)]
pub struct ImageTable {
    table: Checked,
    columns: Vec<TableColumn>,
}

/// A column as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    pub name: String,
    pub content: Content,
    /// For messages: `int64`, `struct{bytes: binary, path: string}`.
    pub kind: String,
}

/// What examples can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes of image files, perhaps with their paths.
    Files,
    Integers,
    Texts,
    Other,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedImage<'a> {
    /// Counted from 0 in its file.
    pub row: usize,
    /// `None` where the row holds no bytes, as where only a path was stored.
    pub bytes: Option<&'a [u8]>,
    /// The path that the image had where the file was written.
    pub path: Option<&'a str>,
    pub label: Label<'a>,
}

/// A class as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label<'a> {
    Integer(i64),
    Text(&'a str),
    Missing,
}

impl ImageTable {
    /// Reads the file's description of itself.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the file is not Parquet or damaged, [`crate::error::Kind::Io`] where it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let table = Checked::open(path)?;
        let columns = table.schema.iter_values().map(|field| TableColumn {
            name: field.name.to_string(),
            content: content(&field.dtype),
            kind: kind(&field.dtype),
        });
        Ok(Self { columns: columns.collect(), table })
    }

    pub fn path(&self) -> &Path {
        &self.table.path
    }

    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// The key-value metadata of the file.
    pub fn metadata(&self) -> Metadata {
        parquet::metadata(&self.table.footer)
    }

    pub fn rows(&self) -> usize {
        self.table.groups().sum()
    }

    /// The bytes of a column when it is unpacked, as the footer states them.
    pub fn unpacked_bytes(&self, column: &str) -> u64 {
        let groups = self.table.footer.row_groups.iter();
        let parts = groups.flat_map(|group| group.columns_under_root_iter(column).into_iter().flatten());
        parts.map(|part| part.uncompressed_size().max(0) as u64).fold(0, u64::saturating_add)
    }

    /// Gives all rows to `each`, one after the other; some 64 MiB of images are in memory at once, or one row group's smallest
    /// piece.
    ///
    /// # Errors
    /// As [`ImageTable::open`]; what `each` refuses.
    pub fn scan(&self, image: &str, label: &str, each: &mut dyn FnMut(EncodedImage<'_>) -> Result<()>) -> Result<()> {
        let of_a_row = self.unpacked_bytes(image) / self.rows().max(1) as u64;
        let most = (PIECE / of_a_row.max(1)).clamp(1, parquet::DECODED as u64) as usize;
        let columns = [image.to_owned(), label.to_owned()];
        for (start, length) in parquet::pieces(self.table.groups(), most) {
            let frame = self.table.decode(Some(&columns), start, length)?;
            let parts = || ImageColumns::of(&frame, image, label);
            parquet::unless_it_panics("read the images", self.path(), parts)?.each(start, each)?;
        }
        Ok(())
    }
}

/// The columns of some rows.
struct ImageColumns {
    bytes: BinaryChunked,
    paths: Option<StringChunked>,
    labels: Labels,
}

enum Labels {
    Integers(Int64Chunked),
    Texts(StringChunked),
}

impl ImageColumns {
    fn of(frame: &DataFrame, image: &str, label: &str) -> PolarsResult<Self> {
        let image = frame.column(image)?.as_materialized_series();
        let (bytes, paths) = match image.dtype() {
            DataType::Struct(_) => {
                let fields = image.struct_()?;
                (fields.field_by_name(BYTES)?, fields.field_by_name(PATH).ok())
            }
            _ => (image.clone(), None),
        };
        let label = frame.column(label)?.as_materialized_series();
        let labels = match label.dtype() {
            DataType::String => Labels::Texts(label.str()?.clone()),
            _ => Labels::Integers(label.strict_cast(&DataType::Int64)?.i64()?.clone()),
        };
        // A path of another type says nothing.
        let paths = paths.and_then(|paths| paths.str().ok().cloned());
        Ok(Self { bytes: bytes.binary()?.clone(), paths, labels })
    }

    fn each(&self, start: usize, each: &mut dyn FnMut(EncodedImage<'_>) -> Result<()>) -> Result<()> {
        let mut paths = self.paths.as_ref().map(|paths| paths.iter());
        let mut labels: Box<dyn Iterator<Item = Label<'_>> + '_> = match &self.labels {
            Labels::Integers(numbers) => Box::new(numbers.iter().map(|n| n.map_or(Label::Missing, Label::Integer))),
            Labels::Texts(texts) => Box::new(texts.iter().map(|text| text.map_or(Label::Missing, Label::Text))),
        };
        for (at, bytes) in self.bytes.iter().enumerate() {
            let path = paths.as_mut().and_then(|paths| paths.next().flatten());
            let label = labels.next().unwrap_or(Label::Missing);
            each(EncodedImage { row: start + at, bytes, path, label })?;
        }
        Ok(())
    }
}

fn content(kind: &ArrowDataType) -> Content {
    match kind {
        ArrowDataType::BinaryView => Content::Files,
        ArrowDataType::Struct(fields) => {
            let bytes = fields.iter().find(|field| field.name.as_str() == BYTES);
            match bytes.is_some_and(|bytes| bytes.dtype == ArrowDataType::BinaryView) {
                true => Content::Files,
                false => Content::Other,
            }
        }
        ArrowDataType::Int8
        | ArrowDataType::Int16
        | ArrowDataType::Int32
        | ArrowDataType::Int64
        | ArrowDataType::UInt8
        | ArrowDataType::UInt16
        | ArrowDataType::UInt32
        | ArrowDataType::UInt64 => Content::Integers,
        ArrowDataType::Utf8View => Content::Texts,
        _ => Content::Other,
    }
}

/// The type in the words of Arrow's own schemas.
pub(super) fn kind(of: &ArrowDataType) -> String {
    match of {
        ArrowDataType::BinaryView => "binary".to_owned(),
        ArrowDataType::Utf8View => "string".to_owned(),
        ArrowDataType::LargeList(inner) => format!("list of {}", kind(&inner.dtype)),
        ArrowDataType::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{}: {}", field.name, kind(&field.dtype))).collect();
            format!("struct{{{}}}", fields.join(", "))
        }
        ArrowDataType::Dictionary(_, values, _) => format!("dictionary of {}", kind(values)),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use polars::prelude::{Column, IntoColumn, NamedFrom, ParquetWriter, Series, StructChunked};

    use super::*;
    use crate::error::Error;

    /// The layout of `datasets`, in row groups of two rows.
    fn table(path: &Path) {
        let bytes: [Option<&[u8]>; 5] = [Some(b"a"), Some(b""), None, Some(b"dddd"), Some(b"e")];
        let paths = [Some("a.png"), None, Some("c.png"), Some("d.png"), Some("e.png")];
        let fields = [Series::new(BYTES.into(), bytes), Series::new(PATH.into(), paths)];
        let image = StructChunked::from_series("image".into(), 5, fields.iter()).expect("a struct");
        let label = Series::new("label".into(), [Some(3i64), Some(-1), Some(0), None, Some(7)]);
        let name = Series::new("name".into(), ["x", "y", "x", "z", "z"]);
        // As some data sets store the classes 0 to 9.
        let digit = Series::new("digit".into(), vec![9u8, 0, 1, 2, 3]);
        let columns: Vec<Column> = vec![image.into_column(), label.into(), name.into(), digit.into()];
        let mut frame = DataFrame::new(5, columns).expect("a table");
        let file = std::fs::File::create(path).expect("a file");
        ParquetWriter::new(file).with_row_group_size(Some(2)).finish(&mut frame).expect("written");
    }

    #[test]
    fn rows_come_in_order_with_their_bytes_paths_and_labels() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.parquet");
        table(&path);
        let table = ImageTable::open(&path).expect("a table");
        let kinds: Vec<(&str, Content, &str)> =
            table.columns().iter().map(|c| (c.name.as_str(), c.content, c.kind.as_str())).collect();
        assert_eq!(
            kinds,
            [
                ("image", Content::Files, "struct{bytes: binary, path: string}"),
                ("label", Content::Integers, "int64"),
                ("name", Content::Texts, "string"),
                ("digit", Content::Integers, "uint8")
            ]
        );
        assert_eq!(table.rows(), 5);
        assert!(table.unpacked_bytes("image") >= 6 + 20 && table.unpacked_bytes("none") == 0);
        let mut seen = Vec::new();
        let mut keep = |row: EncodedImage| {
            let label = format!("{:?}", row.label);
            seen.push((row.row, row.bytes.map(<[u8]>::to_vec), row.path.map(str::to_owned), label));
            Ok(())
        };
        table.scan("image", "label", &mut keep).expect("read");
        let row = |row, bytes: Option<&[u8]>, path: Option<&str>, label: &str| {
            (row, bytes.map(<[u8]>::to_vec), path.map(str::to_owned), label.to_owned())
        };
        let expected = [
            row(0, Some(b"a"), Some("a.png"), "Integer(3)"),
            row(1, Some(b""), None, "Integer(-1)"),
            row(2, None, Some("c.png"), "Integer(0)"),
            row(3, Some(b"dddd"), Some("d.png"), "Missing"),
            row(4, Some(b"e"), Some("e.png"), "Integer(7)"),
        ];
        assert_eq!(seen, expected);
        for (column, expected) in [
            ("name", ["x", "y", "x", "z", "z"].map(|name| format!("Text({name:?})"))),
            ("digit", [9, 0, 1, 2, 3].map(|digit| format!("Integer({digit})"))),
        ] {
            let mut labels = Vec::new();
            let mut label = |row: EncodedImage| {
                labels.push(format!("{:?}", row.label));
                Ok(())
            };
            table.scan("image", column, &mut label).expect("read");
            assert_eq!(labels, expected);
        }
        let stop = |row: EncodedImage| if row.row < 2 { Ok(()) } else { Err(Error::data("stop")) };
        assert!(table.scan("image", "label", &mut { stop }).expect_err("refused").to_string().contains("stop"));
    }
}
