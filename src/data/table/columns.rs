//! Which columns of a table hold the images and their classes.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::spec::data::Data;
use crate::store::{Content, ImageTable, TableColumn};

/// The columns that examples are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub image: String,
    pub label: String,
    /// Whether the classes are texts.
    pub texts: bool,
    /// The names of the numbered classes, where the file declares them.
    pub classes: Option<Vec<String>>,
}

/// The key of the file's metadata under which Hugging Face's `datasets` writes what the columns mean.
const FEATURES: &str = "huggingface";
/// If several columns contain images, the first of these names chooses one.
const IMAGES: &[&str] = &["image", "img", "images", "picture", "jpg", "png"];
const LABELS: &[&str] = &["label", "labels", "class", "target"];

impl Columns {
    /// The columns that the spec names, or else those that the file's description or the column names indicate.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`], with the columns that are there.
    pub fn choose(table: &ImageTable, stated: &Data) -> Result<Self> {
        let image = match &stated.image {
            Some(name) => column(table, name)?,
            None => image_column(table)?,
        };
        if image.content != Content::Files {
            let what = format!("the column `{}` is {}, and contains no encoded images", image.name, image.kind);
            return Err(refusal(table, what).hint("images are binary, or struct{bytes: binary, path: string}"));
        }
        let label = match &stated.label {
            Some(name) => column(table, name)?,
            None => label_column(table)?,
        };
        if !matches!(label.content, Content::Integers | Content::Texts) {
            let what = format!("the column `{}` is {}, and contains no classes", label.name, label.kind);
            return Err(refusal(table, what).hint("classes are integers of 32 or 64 bits, counted from 0, or texts"));
        }
        Ok(Self {
            image: image.name.clone(),
            label: label.name.clone(),
            texts: label.content == Content::Texts,
            classes: classes(table, &label.name),
        })
    }

    /// Refuses a table that lacks one of these columns.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`], with the columns that are there.
    pub fn check(&self, table: &ImageTable) -> Result<()> {
        let label = if self.texts { Content::Texts } else { Content::Integers };
        for (name, content) in [(&self.image, Content::Files), (&self.label, label)] {
            let own = column(table, name)?;
            if own.content != content {
                return Err(refusal(table, format!("the column `{name}` is {}, unlike in the other files", own.kind)));
            }
        }
        Ok(())
    }
}

fn column<'t>(table: &'t ImageTable, name: &str) -> Result<&'t TableColumn> {
    let found = table.columns().iter().find(|column| column.name == name);
    found.ok_or_else(|| refusal(table, format!("there is no column `{name}`")))
}

fn image_column(table: &ImageTable) -> Result<&TableColumn> {
    let found: Vec<&TableColumn> = table.columns().iter().filter(|column| column.content == Content::Files).collect();
    let named = || IMAGES.iter().find_map(|name| found.iter().copied().find(|column| column.name == *name));
    match found.as_slice() {
        [] => Err(refusal(table, "no column contains encoded images".to_owned()).hint(
            "images are binary, or struct{bytes: binary, path: string}; with only paths, use `source = \"images\"`",
        )),
        [only] => Ok(only),
        _ => named().ok_or_else(|| {
            let hint = "name the one to use: image = \"COLUMN\" in [data]";
            refusal(table, "several columns contain encoded images".to_owned()).hint(hint)
        }),
    }
}

fn label_column(table: &ImageTable) -> Result<&TableColumn> {
    let columns = table.columns();
    let declared: Vec<&TableColumn> = columns.iter().filter(|column| classes(table, &column.name).is_some()).collect();
    let named = LABELS.iter().find_map(|name| columns.iter().find(|column| column.name == *name));
    match (declared.as_slice(), named) {
        ([only], _) => Ok(only),
        (_, Some(named)) => Ok(named),
        _ => Err(refusal(table, "the column of the classes is not clear".to_owned())
            .hint("name it: label = \"COLUMN\" in [data]")),
    }
}

fn refusal(table: &ImageTable, what: String) -> Error {
    let columns: Vec<String> =
        table.columns().iter().map(|column| format!("`{}` ({})", column.name, column.kind)).collect();
    Error::data(format!("{what}; the columns are {}", columns.join(", "))).at(table.path().display().to_string())
}

/// The names of the classes of a column of type `ClassLabel`, from the description of the columns by `datasets`.
fn classes(table: &ImageTable, column: &str) -> Option<Vec<String>> {
    let document: Value = serde_json::from_str(table.metadata().get(FEATURES)?).ok()?;
    let feature = document.pointer("/info/features")?.get(column)?;
    let names = feature.get("names")?.as_array().filter(|_| feature["_type"] == "ClassLabel")?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}
