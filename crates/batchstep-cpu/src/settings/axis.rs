//! What an axis of an experiment is: a setting that a spec may give a list of values for.

use std::fmt;

use super::arguments::in_words;
use super::{EngineName, Settings, Text};
use crate::units::Bytes;

/// A setting with a key in the spec and a column in `steps.parquet`.
pub struct Axis {
    /// In the spec.
    pub key: &'static str,
    /// The table of the spec that contains it: `train`, `engine`.
    pub table: &'static str,
    /// In `steps.parquet`. Null where the engine does not have the axis.
    pub column: &'static str,
    /// The unit of the column: SI, or empty.
    pub unit: &'static str,
    pub meaning: &'static str,
    pub domain: Domain,
    /// What a person reads in place of [`Value::Unset`].
    pub unset: &'static str,
    /// The engines that have it; empty: all. For each of the others the axis makes one cell, with the default.
    pub engines: &'static [EngineName],
    pub role: Role,
    pub get: fn(&Settings) -> Value,
    /// Does not change the settings if the value is not in the axis's domain.
    pub set: fn(&mut Settings, Value),
}

/// What an axis varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What is computed: two engines are compared where it is the same.
    Task,
    /// How it is computed: two engines are compared also where it differs.
    Method,
}

/// The values that a spec may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    Names(&'static [&'static str]),
    Count {
        low: usize,
        high: usize,
    },
    Bytes,
    /// A JSON object.
    Text,
}

/// One value of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Name(&'static str),
    Count(usize),
    Bytes(u64),
    Text(Text),
    /// Not named in the spec: the engine decides.
    Unset,
}

impl Axis {
    pub fn default_value(&self) -> Value {
        (self.get)(&Settings::default())
    }

    /// Whether `engine` has it. `auto` has what any of the engines has that it may become.
    pub fn is_of(&self, engine: EngineName) -> bool {
        let has = |engine| self.engines.contains(&engine);
        let auto = || engine == EngineName::Auto && EngineName::AUTOMATIC.into_iter().any(has);
        (self.engines.is_empty() && !engine.is_own()) || has(engine) || auto()
    }

    /// What a person calls the axis: the key without underscores.
    pub fn label(&self) -> String {
        self.key.replace('_', " ")
    }

    /// What a person calls one of its values.
    pub fn value_label(&self, value: Value) -> String {
        match value {
            Value::Unset => self.unset.to_owned(),
            Value::Text(text) => text.in_words(),
            other => other.to_string(),
        }
    }

    /// How a stored value is named beside the engine: `graph`, `2 streams`. `None` for one that says nothing there: the
    /// default of an axis that not every engine has.
    pub fn annotation(&self, stored: &str) -> Option<String> {
        let default = !self.engines.is_empty() && stored == self.default_value().to_string();
        match self.domain {
            _ if default || matches!(stored, "" | "NaN") => None,
            Domain::Names(_) if self.engines.is_empty() => Some(stored.to_owned()),
            Domain::Names(_) => Some(format!("{} {stored}", self.label())),
            Domain::Count { .. } => Some(format!("{stored} {}", self.label())),
            Domain::Bytes => Some(format!("{} {}", self.label(), bytes(stored))),
            Domain::Text => Some(in_words(stored)),
        }
    }
}

fn bytes(stored: &str) -> String {
    stored.parse().map_or_else(|_| stored.to_owned(), |bytes| Bytes(bytes).to_string())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Count(count) => count.fmt(f),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Self::Text(text) => f.write_str(text.as_str()),
            Self::Unset => Ok(()),
        }
    }
}

/// A type of setting that an axis can hold.
pub(super) trait Setting: Copy {
    fn value(self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

/// Types that are values as they are.
macro_rules! held {
    ($($type:ident: $variant:ident),+) => {$(
        impl Setting for $type {
            fn value(self) -> Value {
                Value::$variant(self)
            }

            fn from_value(value: Value) -> Option<Self> {
                if let Value::$variant(held) = value { Some(held) } else { None }
            }
        }
    )+};
}
held!(usize: Count, u64: Bytes, Text: Text);

impl<T: Setting> Setting for Option<T> {
    fn value(self) -> Value {
        self.map_or(Value::Unset, T::value)
    }

    fn from_value(value: Value) -> Option<Self> {
        if value == Value::Unset { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// Declares [`Settings`], its default and [`AXES`](super::AXES) at once: first each axis with all its properties, then the
/// settings that are not axes.
macro_rules! settings {
    (
        axes { $(
            $(#[$doc:meta])*
            $field:ident: $type:ty = $default:expr, $table:literal, $column:literal, $domain:expr, $role:ident
            $(, unit $unit:literal)? $(, unset $unset:literal)? $(, engines $engines:expr)?; $meaning:literal
        )+ }
        fixed { $($(#[$fdoc:meta])* $fixed:ident: $ftype:ty = $fdefault:expr;)+ }
    ) => {
        /// Everything about a step but its network and its batch size.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(#[doc = $meaning] $(#[$doc])* pub $field: $type,)+
            $($(#[$fdoc])* pub $fixed: $ftype,)+
        }

        /// The settings of a spec that names none of them.
        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)+ $($fixed: $fdefault,)+ }
            }
        }

        /// Every axis beside the network, the batch size and the engine, in the order in which a plan multiplies them.
        pub static AXES: [Axis; [$(stringify!($field)),+].len()] = [$(Axis {
            key: stringify!($field),
            table: $table,
            column: $column,
            unit: concat!("", $($unit)?),
            meaning: $meaning,
            domain: $domain,
            unset: concat!("", $($unset)?),
            engines: settings!(@engines $($engines)?),
            role: Role::$role,
            get: |settings| settings.$field.value(),
            set: |settings, value| {
                if let Some(value) = <$type>::from_value(value) {
                    settings.$field = value;
                }
            },
        }),+];
    };
    (@engines) => { &[] };
    (@engines $engines:expr) => { $engines };
}
pub(super) use settings;
