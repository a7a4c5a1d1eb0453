//! A section of a spec as one table: each key stands once, with its type, its default and its form in TOML.
//!
//! From the table follow the struct, its default, its reader, which knows the nearest key, and its writer.

use std::fmt::Display;
use std::path::PathBuf;

use super::decode::{distinct, time_limit as read_time_limit};
use super::encode;
use super::section::Field;
use crate::error::Result;
use crate::units::Seconds;

type Read<T> = Box<dyn Fn(&Field) -> Result<T>>;
/// `None`: the key is left out.
type Write<T> = Box<dyn Fn(&T) -> Option<String>>;

/// How the value of a key is read and written.
pub(crate) struct KeyForm<T> {
    read: Read<T>,
    write: Write<T>,
}

impl<T: 'static> KeyForm<T> {
    fn new(read: impl Fn(&Field) -> Result<T> + 'static, write: impl Fn(&T) -> Option<String> + 'static) -> Self {
        Self { read: Box::new(read), write: Box::new(write) }
    }

    /// One that is written as it is displayed.
    fn displayed(read: impl Fn(&Field) -> Result<T> + 'static) -> Self
    where
        T: Display,
    {
        Self::new(read, |value| Some(value.to_string()))
    }

    pub fn read(&self, field: &Field) -> Result<T> {
        (self.read)(field)
    }

    pub fn write(&self, value: &T) -> Option<String> {
        (self.write)(value)
    }
}

/// A whole number in `low..=high`.
pub(crate) fn count(low: usize, high: usize) -> KeyForm<usize> {
    KeyForm::displayed(move |field| field.count(low, high))
}

pub(crate) fn seed() -> KeyForm<u64> {
    KeyForm::displayed(|field| field.integer(0, i64::MAX as u64))
}

pub(crate) fn flag() -> KeyForm<bool> {
    KeyForm::displayed(|field| field.boolean())
}

/// One of a few names.
pub(crate) fn name<T: Display + 'static>(
    names: &'static [&'static str],
    read: impl Fn(&str) -> Option<T> + 'static,
) -> KeyForm<T> {
    KeyForm::new(move |field| field.choice(names, &read), |value| Some(encode::quoted(value)))
}

/// Seconds, longer than 0.
pub(crate) fn time_limit() -> KeyForm<f64> {
    KeyForm::new(read_time_limit, |&seconds| Some(encode::quoted(Seconds(seconds))))
}

/// Seconds in `low..=high`; `what` says so in words, with an example.
pub(crate) fn time(low: f64, high: f64, what: &'static str) -> KeyForm<f64> {
    let within =
        move |text: &str| Seconds::parse(text).map(|Seconds(time)| time).filter(|time| (low..=high).contains(time));
    KeyForm::new(move |field| field.parsed(what, within), |&seconds| Some(encode::quoted(Seconds(seconds))))
}

pub(crate) fn folder() -> KeyForm<Option<PathBuf>> {
    let written =
        |folder: &Option<PathBuf>| folder.as_ref().map(|folder| format!("{:?}", folder.display().to_string()));
    KeyForm::new(|field| field.text().map(|text| Some(text.into())), written)
}

/// An axis: a list, each value once, or one value.
pub(crate) fn list<T: PartialEq + 'static>(element: fn() -> KeyForm<T>) -> KeyForm<Vec<T>> {
    let written = move |values: &Vec<T>| Some(encode::list(values.iter().filter_map(|value| element().write(value))));
    KeyForm::new(move |field| distinct(field, |field| element().read(field)), written)
}

/// Defines such a section.
macro_rules! keys {
    ($(#[$doc:meta])* $name:ident in $section:literal {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr, $key:literal, $form:expr;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type),+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default),+ }
            }
        }

        impl $name {
            fn read(section: Option<crate::spec::Section>) -> crate::error::Result<Self> {
                let mut read = Self::default();
                let Some(mut section) = section else { return Ok(read) };
                $(if let Some(field) = section.get($key) {
                    read.$field = $form.read(&field)?;
                })+
                section.finish()?;
                Ok(read)
            }

            fn write(&self, out: &mut String) {
                crate::spec::encode::section(out, $section);
                $(if let Some(text) = $form.write(&self.$field) {
                    crate::spec::encode::line(out, $key, text);
                })+
            }
        }
    };
}
pub(crate) use keys;
