//! A table of texts: the only place that knows comfy-table.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};

use super::Style;
use super::style::Look;
use crate::foreign;

/// A column's heading, and to which side its texts go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub heading: String,
    /// Whether its texts end at the right, as numbers do.
    pub right: bool,
}

impl Column {
    /// Texts begin at the left.
    pub fn left(heading: &str) -> Self {
        Self { heading: foreign::name(heading), right: false }
    }

    /// Texts end at the right, as numbers do.
    pub fn right(heading: &str) -> Self {
        Self { heading: foreign::name(heading), right: true }
    }
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
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// A table without rows: columns of words with these headings, and to the right of them columns of numbers.
    pub fn of(words: &[&str], numbers: &[&str]) -> Self {
        Self::new(words.iter().map(|name| Column::left(name)).chain(numbers.iter().map(|name| Column::right(name))))
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows, a text for each column.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Adds a row, a text for each column. What the names in it hold is harmless from here on.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| foreign::line(&cell.into()).into_owned()).collect());
    }

    /// Only the columns with such headings.
    pub fn keep(&mut self, is_shown: impl Fn(&str) -> bool) {
        self.keep_those(|column, _| is_shown(&column.heading));
    }

    /// Without those of these columns in which no row says anything.
    pub fn keep_filled(&mut self, optional: &[&str]) {
        self.keep_those(|column, filled| filled || !optional.contains(&column.heading.as_str()));
    }

    fn keep_those(&mut self, is_shown: impl Fn(&Column, bool) -> bool) {
        let filled = |at: usize| self.rows.iter().any(|row| !row[at].is_empty());
        let shown = self.columns.iter().enumerate().map(|(at, column)| is_shown(column, filled(at)));
        let shown: Vec<bool> = shown.collect();
        retain(&mut self.columns, &shown);
        self.rows.iter_mut().for_each(|row| retain(row, &shown));
    }

    /// The table as lines, each with its line end. If the width does not suffice, texts wrap in their column at spaces, numbers stay whole, and
    /// where not even the longest words fit, each row becomes a sentence.
    pub fn render(&self, style: &Style) -> String {
        let least: Vec<usize> = (0..self.columns.len()).map(|at| self.least_width(at) + PADDING).collect();
        // A blank stands before each column.
        if least.iter().map(|width| width + 1).sum::<usize>() > style.width {
            return self.sentences(style);
        }
        let mut table = comfy_table::Table::new();
        table
            .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─').left(' ')))
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(u16::try_from(style.width).unwrap_or(u16::MAX))
            .set_header(self.columns.iter().map(|column| &column.heading));
        for row in &self.rows {
            table.add_row(row);
        }
        for ((drawn, column), least) in table.column_iter_mut().zip(&self.columns).zip(least) {
            drawn.set_padding((1, 2));
            drawn.set_cell_alignment(if column.right { CellAlignment::Right } else { CellAlignment::Left });
            drawn.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(
                u16::try_from(least).unwrap_or(u16::MAX),
            )));
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

    /// The width below which a word, or a cell of a column of numbers, would break.
    fn least_width(&self, at: usize) -> usize {
        let column = &self.columns[at];
        let longest_word = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let width = |cell: &String| if column.right { cell.chars().count() } else { longest_word(cell) };
        let cells = self.rows.iter().filter_map(|row| row.get(at)).map(width);
        cells.fold(longest_word(&column.heading), usize::max)
    }

    /// `  after 16: size +1.50 ms; interval 1.48 to 1.52 ms`.
    fn sentences(&self, style: &Style) -> String {
        // A number does not break where it has a blank.
        const BLANK: char = '\u{a0}';
        let named = |(column, cell): (&Column, &String)| {
            let cell = if column.right { cell.replace(' ', &BLANK.to_string()) } else { cell.clone() };
            format!("{} {cell}", column.heading)
        };
        let sentence = |row: &Vec<String>| {
            let filled = self.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let parts: Vec<String> = filled.map(named).collect();
            style.wrap(&format!("  {}", parts.join("; ")), 4).replace(BLANK, " ") + "\n"
        };
        self.rows.iter().map(sentence).collect()
    }
}

fn retain<T>(all: &mut Vec<T>, shown: &[bool]) {
    let mut shown = shown.iter();
    all.retain(|_| shown.next().is_some_and(|shown| *shown));
}

/// Blanks beside the text of each column.
const PADDING: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([Column::right("batch size"), Column::left("mechanism"), Column::right("interval")]);
        table.row(["16", "dense products compute whole vectors of examples", "1.48 to 1.52 ms"]);
        table.row(["4,096", "none", ""]);
        table
    }

    #[test]
    fn numbers_stay_whole_at_any_width() {
        for width in 40..=100 {
            let text = table().render(&Style { color: false, width });
            assert!(text.contains("1.48 to 1.52 ms") && text.contains("4,096"), "{width}\n{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
    }

    #[test]
    fn a_table_that_is_too_wide_becomes_sentences() {
        let mut table = table();
        table.columns[2] = Column::right("95 % interval");
        table.rows[0][2] = "1.4800000000 to 1.5200000000 ms".into();
        assert_eq!(
            table.render(&Style { color: false, width: 40 }),
            "  batch size 16; mechanism dense\n    products compute whole vectors of\n    examples; 95 % interval\n    1.4800000000 to 1.5200000000 ms\n  batch size 4,096; mechanism none\n"
        );
    }
}
