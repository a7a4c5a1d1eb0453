//! A table of texts: the only place that knows comfy-table.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::Style;
use super::style::Look;
use crate::foreign;

/// A column's heading, and to which side its texts go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    heading: String,
    alignment: CellAlignment,
}

impl Column {
    /// Texts begin at the left.
    pub fn left(heading: &str) -> Self {
        Self { heading: foreign::name(heading), alignment: CellAlignment::Left }
    }

    /// Texts end at the right, as numbers do.
    pub fn right(heading: &str) -> Self {
        Self { heading: foreign::name(heading), alignment: CellAlignment::Right }
    }
}

/// What stands above a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading<'a> {
    pub text: &'a str,
    /// Its texts end at the right, as numbers do.
    pub right: bool,
}

/// A table with a heading for each column.
///
/// ```
/// use batchstep::report::{Column, Style, Table};
/// let mut table = Table::new([Column::right("after"), Column::left("verdict")]);
/// table.row(["16", "work"]);
/// assert_eq!(table.render(&Style::PLAIN), "  after    verdict\n ───────────────────\n     16    work\n");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// For each column its heading, and whether its texts end at the right.
    pub fn headings(&self) -> impl Iterator<Item = Heading<'_>> {
        self.columns
            .iter()
            .map(|column| Heading { text: &column.heading, right: column.alignment == CellAlignment::Right })
    }

    /// The rows, a text for each column.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row, a text for each column. What the names in it hold is harmless from here on.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| foreign::line(&cell.into()).into_owned()).collect());
    }

    /// The table as lines, each with its line end; texts wrap in their column where the width does not suffice.
    pub fn render(&self, style: &Style) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─').left(' ')))
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(style.width).unwrap_or(u16::MAX))
            .set_header(self.columns.iter().map(|column| &column.heading));
        for row in &self.rows {
            table.add_row(row);
        }
        for (drawn, column) in table.column_iter_mut().zip(&self.columns) {
            drawn.set_padding((1, 2));
            drawn.set_cell_alignment(column.alignment);
        }
        let mut text = String::new();
        for (i, line) in table.lines().enumerate() {
            let line = line.trim_end();
            let faint = i < 2;
            text.push_str(&if faint { style.paint(line, Look::Faint) } else { line.to_string() });
            text.push('\n');
        }
        text
    }
}
