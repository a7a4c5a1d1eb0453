//! The keys of a table of a spec: each stands once, with the field that holds it and its form in TOML.
//!
//! From that follow the reader, which knows the nearest key, and the writer; of a [`keys!`] also the struct and its default.

use std::fmt::Display;
use std::path::PathBuf;

use super::decode::distinct;
use super::encode::{self, line, quoted};
use super::section::{Field, Section};
use crate::error::Result;
use crate::units::{Seconds, Share};

type Read<T> = Box<dyn Fn(&Field) -> Result<T>>;
/// `None`: the key is left out.
type Write<T> = Box<dyn Fn(&T) -> Option<String>>;

/// How the value of a key is read and written.
pub(crate) struct KeyForm<T> {
    read: Read<T>,
    write: Write<T>,
}

impl<T: 'static> KeyForm<T> {
    pub fn new(read: impl Fn(&Field) -> Result<T> + 'static, write: impl Fn(&T) -> Option<String> + 'static) -> Self {
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

    /// One that may have no value, and is left out then.
    pub fn optional(self) -> KeyForm<Option<T>> {
        let Self { read, write } = self;
        KeyForm::new(move |field| read(field).map(Some), move |value| write(value.as_ref()?))
    }

    /// One that is left out where it is the default.
    pub fn unless_default(self) -> Self
    where
        T: Default + PartialEq,
    {
        let Self { read, write } = self;
        Self::new(read, move |value| if *value == T::default() { None } else { write(value) })
    }
}

/// A whole number in `low..=high`.
pub(crate) fn count(low: usize, high: usize) -> KeyForm<usize> {
    KeyForm::displayed(move |field| field.count(low, high))
}

/// The same, of 64 bits.
pub(crate) fn integer(low: u64, high: u64) -> KeyForm<u64> {
    KeyForm::displayed(move |field| field.integer(low, high))
}

pub(crate) fn seed() -> KeyForm<u64> {
    integer(0, i64::MAX as u64)
}

pub(crate) fn number(low: f64, high: f64) -> KeyForm<f64> {
    KeyForm::new(move |field| field.number(low, high), |value| Some(format!("{value:?}")))
}

pub(crate) fn flag() -> KeyForm<bool> {
    KeyForm::displayed(|field| field.boolean())
}

/// One of a few names.
pub(crate) fn name<T: Display + 'static>(
    names: &'static [&'static str],
    read: impl Fn(&str) -> Option<T> + 'static,
) -> KeyForm<T> {
    KeyForm::new(move |field| field.choice(names, &read), |value| Some(quoted(value)))
}

/// A share in `low..=high`, written as a percentage.
pub(crate) fn share(low: f64, high: f64) -> KeyForm<f64> {
    let read = move |field: &Field| {
        let what = format!("a percentage from \"{}\" to \"{}\"", Share(low), Share(high));
        let Share(value) = field.parsed(&what, Share::parse)?;
        if value < low || value > high {
            return Err(field.error(format!("expected {what}, got {}", Share(value))));
        }
        Ok(value)
    };
    KeyForm::new(read, |&value| Some(quoted(Share(value))))
}

/// Seconds, of either sign.
pub(crate) fn any_time() -> KeyForm<f64> {
    time(f64::MIN, f64::MAX, "a time such as \"12ms\"")
}

/// Seconds in `low..=high`; `what` says so in words, with an example.
pub(crate) fn time(low: f64, high: f64, what: &'static str) -> KeyForm<f64> {
    let right =
        move |text: &str| Seconds::parse(text).map(|Seconds(time)| time).filter(|time| (low..=high).contains(time));
    KeyForm::new(move |field| field.parsed(what, right), |&seconds| Some(quoted(Seconds(seconds))))
}

/// Seconds, longer than 0.
pub(crate) fn time_limit() -> KeyForm<f64> {
    let KeyForm { read, write } = time(f64::MIN, f64::MAX, "a time such as \"90s\", \"30min\" or \"2h\"");
    let positive = move |field: &Field| match read(field)? {
        limit if limit <= 0.0 => Err(field.error("a time limit must be longer than 0")),
        limit => Ok(limit),
    };
    KeyForm::new(positive, write)
}

pub(crate) fn text() -> KeyForm<String> {
    KeyForm::new(|field| field.text(), |text| Some(format!("{text:?}")))
}

pub(crate) fn path() -> KeyForm<PathBuf> {
    KeyForm::new(|field| field.text().map(PathBuf::from), |path| Some(format!("{:?}", path.display().to_string())))
}

/// An axis: a list, each value once, or one value.
pub(crate) fn list<T: PartialEq + 'static>(element: KeyForm<T>) -> KeyForm<Vec<T>> {
    let KeyForm { read, write } = element;
    let written = move |values: &Vec<T>| Some(encode::list(values.iter().filter_map(&write)));
    KeyForm::new(move |field| distinct(field, &read), written)
}

/// Reads a key into a struct.
type ReadInto<S> = Box<dyn Fn(&Field, &mut S) -> Result<()>>;

/// A key, and the field of the struct that holds its value.
struct Key<S> {
    name: &'static str,
    read: ReadInto<S>,
    write: Write<S>,
}

/// The keys of a table whose values a struct holds, in the order in which they are written.
pub(crate) struct Keys<S>(Vec<Key<S>>);

impl<S: 'static> Keys<S> {
    pub fn none() -> Self {
        Self(Vec::new())
    }

    pub fn with<T: 'static>(
        mut self,
        name: &'static str,
        form: KeyForm<T>,
        field: fn(&S) -> &T,
        field_mut: fn(&mut S) -> &mut T,
    ) -> Self {
        let KeyForm { read, write } = form;
        let read = Box::new(move |given: &Field, to: &mut S| read(given).map(|value| *field_mut(to) = value));
        self.0.push(Key { name, read, write: Box::new(move |from| write(field(from))) });
        self
    }

    /// Reads the keys that are given; `to` keeps its other values.
    pub fn read(&self, section: &mut Section, to: &mut S) -> Result<()> {
        self.0.iter().try_for_each(|key| section.get(key.name).map_or(Ok(()), |field| (key.read)(&field, to)))
    }

    fn texts(&self, from: &S) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().filter_map(|key| Some((key.name, (key.write)(from)?)))
    }

    /// A table as the value of a key: `{ min = 3, max = 30 }`. What it does not say is that of `usual`.
    pub fn inline(self, usual: S) -> KeyForm<S>
    where
        S: Clone,
    {
        let keys = std::rc::Rc::new(self);
        let reader = std::rc::Rc::clone(&keys);
        let read = move |field: &Field| {
            let (mut section, mut read) = (field.section()?, usual.clone());
            reader.read(&mut section, &mut read)?;
            section.finish().map(|()| read)
        };
        let text = |(name, text): (&str, String)| format!("{name} = {text}");
        let written = move |from: &S| format!("{{ {} }}", keys.texts(from).map(text).collect::<Vec<_>>().join(", "));
        KeyForm::new(read, move |from| Some(written(from)))
    }
}

/// A struct that holds a section of a spec.
pub(crate) trait Table: Default + 'static {
    /// The name of the section.
    const NAME: &'static str;

    fn keys() -> Keys<Self>;

    fn read(section: Option<Section>) -> Result<Self> {
        let mut read = Self::default();
        let Some(mut section) = section else { return Ok(read) };
        Self::keys().read(&mut section, &mut read)?;
        section.finish().map(|()| read)
    }

    fn write(&self, out: &mut String) {
        encode::section(out, Self::NAME);
        Self::keys().texts(self).for_each(|(name, text)| line(out, name, text));
    }
}

/// The keys of a struct that is defined elsewhere.
macro_rules! table {
    ($type:ty { $($key:literal: $($field:ident).+ = $form:expr;)+ }) => {
        $crate::spec::keys::Keys::<$type>::none()
            $(.with($key, $form, |own| &own.$($field).+, |own| &mut own.$($field).+))+
    };
}
pub(crate) use table;

/// Defines a section, its struct and its default.
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

        impl $crate::spec::keys::Table for $name {
            const NAME: &'static str = $section;

            fn keys() -> $crate::spec::keys::Keys<Self> {
                $crate::spec::keys::table!(Self { $($key: $field = $form;)+ })
            }
        }
    };
}
pub(crate) use keys;
