//! The text about a result, before it is laid out: for the terminal here, for a page elsewhere.

use super::style::Look;
use super::{Style, Table};

#[derive(Clone, Debug)]
pub enum Block {
    /// The heading of what follows.
    Heading(String),
    Table(Table),
    /// A remark below a table, its subject in a word and its text: `  Kink     at 5: ...`.
    Remark {
        subject: &'static str,
        text: String,
    },
    /// A sentence; spaces at its beginning indent it in a terminal.
    Text(String),
    /// What follows is another matter.
    Break,
}

/// Headings, tables and sentences in their order; empty where there is nothing to say.
#[derive(Clone, Debug, Default)]
pub struct Document {
    blocks: Vec<Block>,
}

impl From<Block> for Document {
    fn from(block: Block) -> Self {
        Self { blocks: vec![block] }
    }
}

impl Document {
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn of_table(heading: impl Into<String>, table: Table) -> Self {
        Self { blocks: vec![Block::Heading(heading.into()), Block::Table(table)] }
    }

    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// A remark, where there is one to make.
    pub(crate) fn remark(&mut self, subject: &'static str, text: impl Into<Option<String>>) {
        self.blocks.extend(text.into().map(|text| Block::Remark { subject, text }));
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub(crate) fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text(text);
        self
    }

    /// Adds another document, after a blank line.
    pub(crate) fn append(&mut self, other: Self) {
        if !self.is_empty() && !other.is_empty() {
            self.blocks.push(Block::Break);
        }
        self.blocks.extend(other.blocks);
    }

    /// The document as lines, each with its end.
    pub fn render(&self, style: &Style) -> String {
        self.blocks.iter().map(|block| block.render(style)).collect()
    }
}

impl Block {
    fn render(&self, style: &Style) -> String {
        match self {
            Self::Heading(text) => format!("{}\n", style.paint(&style.wrap(text, 2), Look::Bold)),
            Self::Table(table) => table.render(style),
            Self::Remark { subject, text } => {
                let full = style.wrap(&format!("  {subject:<9}{text}"), 11);
                format!("{}\n", full.replacen(subject, &style.paint(subject, Look::Faint), 1))
            }
            Self::Text(text) => {
                let indent = text.len() - text.trim_start().len();
                format!("{}\n", style.wrap(text, if indent == 0 { 0 } else { indent + 2 }))
            }
            Self::Break => "\n".to_owned(),
        }
    }
}
