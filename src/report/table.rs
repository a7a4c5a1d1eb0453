//! A table of texts: the only place that knows comfy-table.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::Style;
use super::style::Look;

/// To which side a column's texts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table with a heading for each column.
///
/// ```
/// use batchstep::report::{Align, Style, Table};
/// let mut table = Table::new(&[("after", Align::Right), ("verdict", Align::Left)]);
/// table.row(["16", "work"]);
/// assert_eq!(table.render(&Style::PLAIN), "  after    verdict\n ───────────────────\n     16    work\n");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|(name, align)| (name.to_string(), *align)).collect(), rows: Vec::new() }
    }

    /// Adds a row, a text for each column.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table as lines, each with its line end; texts wrap in their column where the width does not suffice.
    pub fn render(&self, style: &Style) -> String {
        let mut table = comfy_table::Table::new();
        table
            .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─').left(' ')))
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(style.width).unwrap_or(u16::MAX))
            .set_header(self.columns.iter().map(|(name, _)| name));
        for row in &self.rows {
            table.add_row(row);
        }
        for (column, (_, align)) in table.column_iter_mut().zip(&self.columns) {
            column.set_padding((1, 2));
            column.set_cell_alignment(match align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
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
