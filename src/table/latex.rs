//! Tables of LaTeX: cells between `&`, rules behind the rows, and type faces and formulas around the numbers.

/// Commands that may stand behind the end of a row.
const BEHIND: &[&str] = &[
    "hline",
    "toprule",
    "midrule",
    "bottomrule",
    "cline",
    "cmidrule",
    "addlinespace",
    "specialrule",
    "hdashline",
    "end{",
];
/// Commands of which only the last argument is shown.
const LAST_ARGUMENT: &[&str] = &["\\multirow", "\\multicolumn", "\\textcolor"];
/// Commands with one argument that is not shown, before a cell.
const COLOURS: &[&str] = &["\\cellcolor", "\\rowcolor"];
/// What signs mean, and what is left of commands that only change how a cell looks. A longer command stands before its beginning.
const MEANINGS: &[(&str, &str)] = &[
    ("\\pm", "±"),
    ("\\times", "x"),
    ("\\textmu", "µ"),
    ("\\mu", "µ"),
    // Blanks that do not break a line, as between thousands or before a unit.
    ("\\,", "\u{202f}"),
    ("\\;", " "),
    ("\\ ", " "),
    ("~", "\u{a0}"),
    ("\\_", "_"),
    ("\\%", "%"),
    ("\\#", "#"),
    ("\\$", ""),
    ("$", ""),
    ("\\hline", ""),
    ("\\toprule", ""),
    ("\\midrule", ""),
    ("\\textbf", ""),
    ("\\textit", ""),
    ("\\textrm", ""),
    ("\\textsf", ""),
    ("\\texttt", ""),
    ("\\text", ""),
    ("\\mathbf", ""),
    ("\\mathrm", ""),
    ("\\boldsymbol", ""),
    ("\\bfseries", ""),
    ("\\bf", ""),
    ("\\bm", ""),
    ("\\emph", ""),
    ("\\underline", ""),
    ("\\numprint", ""),
    ("\\num", ""),
    ("\\SI", ""),
    ("\\qty", ""),
    // A number and its unit.
    ("}{", " "),
    ("{", ""),
    ("}", ""),
];

/// Whether a text holds such a table.
pub(super) fn is_table(text: &str) -> bool {
    text.lines().filter(|line| row(line).is_some_and(|row| row.contains('&'))).nth(1).is_some()
}

/// The cells of a line of such a text; empty where it is no row. The last row needs no end.
pub(super) fn fields(line: &str) -> Vec<String> {
    let row = row(line).unwrap_or(line).replace("\\&", "\0");
    if !row.contains('&') {
        return Vec::new();
    }
    row.split('&').map(|cell| plain(&cell.replace('\0', "&"))).collect()
}

/// What stands before the end of a row: `\\`, `\\[2pt]`, `\\ \hline`.
fn row(line: &str) -> Option<&str> {
    let (row, behind) = line.rsplit_once("\\\\").or_else(|| line.rsplit_once("\\tabularnewline"))?;
    let length = behind.strip_prefix('[').and_then(|length| length.split_once(']'));
    let behind = length.map_or(behind, |(_, behind)| behind);
    let mut commands = behind.split('%').next()?.split('\\').map(str::trim);
    let is_known = |command: &str| BEHIND.iter().any(|known| command.starts_with(known));
    (commands.next() == Some("") && commands.all(is_known)).then_some(row)
}

/// A cell as text. A command that is not known stays, so that the cell is not taken for a number.
fn plain(cell: &str) -> String {
    let mut text = cell.trim();
    if let Some(rest) = COLOURS.iter().find_map(|colour| text.strip_prefix(colour)) {
        text = rest.split_once('}').map_or(rest, |(_, cell)| cell);
    }
    if LAST_ARGUMENT.iter().any(|command| text.starts_with(command)) {
        text = text.rsplit("}{").next().unwrap_or(text);
    }
    let read = MEANINGS.iter().fold(text.to_string(), |text, (sign, meaning)| text.replace(sign, meaning));
    read.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::text::{Fields, recognise, records};
    use super::*;

    #[test]
    fn a_cell_is_what_a_reader_of_the_printed_table_sees() {
        for (cell, seen) in [
            ("$5.389 \\pm 0.02$", "5.389 ± 0.02"),
            (" $5.24\\pm0.02$ ", "5.24±0.02"),
            ("\\textbf{5.80}", "5.80"),
            ("{\\bf 5.80}", "5.80"),
            ("\\bfseries 5.80", "5.80"),
            ("\\num{5.3}", "5.3"),
            ("\\SI{5.3}{ms}", "5.3 ms"),
            ("5.3\\,ms", "5.3\u{202f}ms"),
            ("1{,}024", "1,024"),
            ("$2^{10}$", "2^10"),
            ("time\\_ms", "time_ms"),
            ("\\textbf{Time ($\\mu$s)}", "Time (µs)"),
            ("\\multirow{2}{*}{\\textbf{vgg16}}", "vgg16"),
            ("\\multicolumn{1}{c}{5.3}", "5.3"),
            ("\\cellcolor{gray!25} 5.3", "5.3"),
            ("\\hline 16", "16"),
            ("5.3 \\milli\\second", "5.3 \\milli\\second"),
        ] {
            assert_eq!(plain(cell), seen, "{cell}");
        }
    }

    #[test]
    fn a_row_ends_with_rules_or_at_the_end_of_the_table() {
        for end in [
            "\\\\",
            " \\\\ \\hline",
            "\\\\[2pt]",
            " \\\\ \\cline{1-2} \\midrule",
            " \\\\ % the fastest",
            "\\tabularnewline",
        ] {
            let text = format!(
                "\\begin{{tabular}}{{|c|c|c|}}\n\\hline\nBatch & Time (ms) & R\\&D{end}\n8 & $1.5$ & a{end}\n16 & 2.5 & b{end}\n\
                 24 & \\textbf{{3.5}} & c\n\\end{{tabular}}\n"
            );
            let (way, layout) = recognise(&text).expect("a table");
            assert_eq!(
                (way, layout.names.join(","), layout.rows),
                (Fields::Bars, "Batch,Time (ms),R&D".into(), 3),
                "{end}"
            );
            let rows: Vec<String> = records(&text, way).records.iter().map(|row| row.fields.join(",")).collect();
            assert_eq!(rows[1..], ["8,1.5,a", "16,2.5,b", "24,3.5,c"], "{end}");
        }
        // The index that pandas writes has no name.
        let text = " & batch & time\\_ms \\\\\n\\midrule\n0 & 8 & 1.5 \\\\\n1 & 16 & 2.5 \\\\\n";
        assert_eq!(recognise(text).expect("a table").1.names, ["column 1", "batch", "time_ms"]);
        assert!(!is_table("a & b\nC:\\\\x & y\n") && !is_table("1 & 2 \\\\\n"));
    }
}
