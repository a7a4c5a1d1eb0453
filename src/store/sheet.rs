//! Parquet files of other programs as columns of texts, so that they are read like every other table.

use std::fmt::Write;
use std::path::Path;

use polars::prelude::{ArrowDataType, Column, DataFrame, DataType, PolarsError, PolarsResult};

use super::images::kind;
use super::names::keys;
use super::parquet::{self, Checked, is_read};
use crate::error::{Error, Result};
use crate::table::{Cells, Sheet};

/// Letters of a text that are kept: the file holds a text once, and its rows may be millions.
const LONGEST: usize = 1000;

/// The table that another program wrote into a file; `None` where batchstep wrote it.
///
/// # Errors
/// As [`parquet::read`], and as [`Sheet::of_columns`].
pub(super) fn sheet(path: &Path) -> Result<Option<Sheet>> {
    if parquet::describe(path)?.1.contains_key(keys::VERSION) {
        return Ok(None);
    }
    let table = Checked::open(path)?;
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    for field in table.schema.iter_values() {
        match is_cell(&field.dtype) {
            true => names.push(field.name.to_string()),
            false => left_out.push(format!("{} ({})", field.name, kind(&field.dtype))),
        }
    }
    let (columns, place) = (names.clone(), path.display().to_string());
    Sheet::of_columns(path, names, &left_out, move |wanted, each| {
        let chosen: Vec<String> = wanted.iter().map(|&at| columns[at].clone()).collect();
        table.batches(Some(&chosen), |frame| {
            let refuse = |e: PolarsError| Error::data(format!("a column can't be used: {e}")).at(place.clone());
            each(cells(&frame, &chosen).map_err(refuse)?)
        })
    })
    .map(Some)
}

/// Whether a column of that type holds one number or one text in each row.
fn is_cell(of: &ArrowDataType) -> bool {
    use ArrowDataType as Type;
    let is_other = matches!(of, Type::LargeList(_) | Type::Struct(_) | Type::BinaryView | Type::FixedSizeBinary(_));
    is_read(of) && !is_other
}

fn cells(frame: &DataFrame, names: &[String]) -> PolarsResult<Vec<Cells>> {
    names.iter().map(|name| of_column(frame.column(name)?)).collect()
}

/// The cells as CSV would have them; a null is an empty one.
fn of_column(column: &Column) -> PolarsResult<Cells> {
    let mut cells = Cells::default();
    if column.dtype().is_primitive_numeric() {
        let numbers = column.cast(&DataType::Float64)?;
        let mut text = String::new();
        for number in numbers.f64()?.iter() {
            text.clear();
            if let Some(number) = number {
                let _ = write!(text, "{number}");
            }
            cells.push(&text);
        }
        return Ok(cells);
    }
    let texts = column.cast(&DataType::String)?;
    for text in texts.str()?.iter() {
        let text = text.unwrap_or("");
        cells.push(text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end]));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use polars::prelude::{NamedFrom, ParquetWriter, Series};

    use super::*;
    use crate::store::Table;
    use crate::table::Query;

    fn write(path: &Path, columns: Vec<Series>) {
        let rows = columns[0].len();
        let mut frame = DataFrame::new(rows, columns.into_iter().map(Column::from).collect()).expect("a table");
        let file = std::fs::File::create(path).expect("a file");
        ParquetWriter::new(file).with_row_group_size(Some(40_000)).finish(&mut frame).expect("written");
    }

    /// With texts of 150 letters, 100,000 rows are more than is kept as a whole.
    #[test]
    fn a_large_file_is_read_a_stretch_at_a_time_with_every_row_in_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.parquet");
        let rows = 0..100_000i64;
        let label = |row: i64| if row % 2 == 0 { "even".repeat(40) } else { "odd".repeat(50) };
        write(
            &path,
            vec![
                Series::new("batch".into(), rows.clone().map(|row| row % 64 + 1).collect::<Vec<i64>>()),
                Series::new("time_ms".into(), rows.clone().map(|row| row as f64 + 0.5).collect::<Vec<f64>>()),
                Series::new("label".into(), rows.map(label).collect::<Vec<String>>()),
            ],
        );
        let sheet = sheet(&path).expect("read").expect("of another program");
        let choice = sheet.choose(&Query::default()).expect("chosen");
        assert_eq!(
            (choice.x.as_str(), choice.ys, choice.keys),
            ("batch", vec!["time_ms".into()], vec!["label".into()])
        );
        let (mut next, mut batches) = (0, 0);
        Table::scan_sheet(&sheet, &path, &["time_ms", "label"], &mut |batch| {
            let labels = batch.texts("label")?;
            for (row, time) in batch.numbers("time_ms")?.into_iter().enumerate() {
                let expected = (next as f64 + 0.5, next as usize + 2, label(next));
                assert_eq!((time, batch.line(row), labels[row].clone()), expected);
                next += 1;
            }
            batches += 1;
            Ok(())
        })
        .expect("read");
        assert_eq!((next, batches), (100_000, 4));
    }

    #[test]
    fn numbers_of_every_width_truths_and_nulls_are_cells() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.parquet");
        write(
            &path,
            vec![
                Series::new("batch".into(), vec![1i8, 2, 3]),
                Series::new("depth".into(), vec![Some(7i16), None, Some(-7)]),
                Series::new("heads".into(), vec![8u8, 16, 32]),
                Series::new("tokens".into(), vec![80u16, 160, 65_535]),
                Series::new("time_ms".into(), vec![1.5f32, 2.5, 0.25]),
                Series::new("fused".into(), vec![true, false, true]),
                Series::new("label".into(), vec!["a".repeat(9), "b".to_string(), "é".repeat(LONGEST + 1)]),
            ],
        );
        let sheet = sheet(&path).expect("read").expect("of another program");
        let names = ["batch", "depth", "heads", "tokens", "time_ms", "fused", "label"];
        let mut found = Vec::new();
        Table::scan_sheet(&sheet, &path, &names, &mut |batch| {
            if batch.rows() > 0 {
                found.extend(names.map(|name| batch.texts(name).expect("texts").join(",")));
            }
            Ok(())
        })
        .expect("read");
        let label = format!("aaaaaaaaa,b,{}", "é".repeat(LONGEST));
        let expected = ["1,2,3", "7,,-7", "8,16,32", "80,160,65535", "1.5,2.5,0.25", "true,false,true", label.as_str()];
        assert_eq!(found, expected);
    }

    /// The file's `price` is a decimal; what the program says of it is in `tests/program/foreign.rs`.
    #[test]
    fn a_column_of_another_type_is_refused_where_it_is_asked_for() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/parquet/types.parquet");
        let error = Table::read(&path, &["batch", "price"]).expect_err("refused").to_string();
        assert!(error.contains("the column `price` is of a type that cannot be used here"), "{error}");
        assert!(error.contains("int64 or float64") && !error.contains("damaged"), "{error}");
    }
}
