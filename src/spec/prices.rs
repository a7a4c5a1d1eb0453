//! The prices of devices: a TOML file of one's own, with the day on which each was read and where.
//!
//! ```toml
//! version = 1
//! read = "2026-11-22"
//!
//! [[offer]]
//! name = "n1 with one T4"
//! device = "t4"             # a device of the database, or a word of its name
//! usd_per_hour = 0.35
//! source = "https://cloud.google.com/compute/gpus-pricing"
//! ```

use std::path::Path;

use toml::de::DeTable;

use super::decode::needed;
use super::section::{Document, Section};
use crate::error::{Error, Result};

/// Prices, and when they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    pub read: String,
    pub offers: Vec<Offer>,
}

/// What an hour of a device costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub name: String,
    /// A device, or a part of its name.
    pub device: String,
    pub usd_per_hour: f64,
    pub source: String,
}

impl Prices {
    /// Reads and checks the prices in `path`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where the file can't be read, [`crate::error::Kind::Spec`] where its contents are refused.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read the prices", path, &e))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads and checks their text; `origin` names it in messages.
    ///
    /// # Errors
    /// As [`Prices::read`].
    pub fn parse(text: &str, origin: &str) -> Result<Self> {
        let document = Document { origin, text };
        let root = DeTable::parse(text).map_err(|e| document.syntax_error(&e))?;
        let mut prices = Section::root(document, &root);
        let [version, read, offers] = ["version", "read", "offer"].map(|key| prices.get(key));
        // A misspelt key is refused before the needed one that it leaves missing.
        prices.finish()?;
        let version = needed(version, origin, "version", "version = 1")?;
        if version.integer(1, u64::from(u32::MAX))? != 1 {
            return Err(version.error("this batchstep reads version 1 of prices").hint("install a newer batchstep"));
        }
        let read = needed(read, origin, "read", "read = \"2026-11-22\", the day they were read")?.text()?;
        let offers = needed(offers, origin, "offer", "[[offer]], with name, device and price")?;
        let offers = offers.elements()?.iter().map(|field| offer(field.section()?, origin)).collect::<Result<_>>()?;
        Ok(Self { read, offers })
    }

    /// The cheapest offer of a device.
    pub fn of(&self, device: &str) -> Option<&Offer> {
        let name = device.to_lowercase();
        let offers = self.offers.iter().filter(|offer| {
            let wanted = offer.device.to_lowercase();
            name == wanted || name.split([' ', '-', '(', ')']).any(|word| word == wanted) || name.starts_with(&wanted)
        });
        offers.min_by(|a, b| a.usd_per_hour.total_cmp(&b.usd_per_hour))
    }
}

fn offer(mut section: Section, origin: &str) -> Result<Offer> {
    let [name, device, price, source] = ["name", "device", "usd_per_hour", "source"].map(|key| section.get(key));
    section.finish()?;
    let text = |key: &str, field| needed(field, origin, &format!("offer.{key}"), &format!("{key} = \"...\""))?.text();
    let (name, device, source) = (text("name", name)?, text("device", device)?, text("source", source)?);
    let price = needed(price, origin, "offer.usd_per_hour", "usd_per_hour = 0.35")?;
    let usd_per_hour = price.number(0.0, 1e6)?;
    Ok(Offer { name, device, usd_per_hour, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version = 1\nread = \"2026-11-22\"\n[[offer]]\nname = \"a\"\ndevice = \"t4\"\nusd_per_hour = 0.5\nsource = \"s\"\n[[offer]]\nname = \"b\"\ndevice = \"Tesla T4\"\nusd_per_hour = 0.35\nsource = \"s\"\n";

    #[test]
    fn a_device_has_its_cheapest_offer_by_name_or_by_a_word_of_it() {
        let prices = Prices::parse(TEXT, "prices.toml").unwrap();
        assert_eq!(prices.of("Tesla T4").unwrap().name, "b");
        assert!(prices.of("Tesla T40").is_none_or(|offer| offer.name != "a"));
        assert!(prices.of("Tesla P4").is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let refused = |text: &str| Prices::parse(text, "prices.toml").unwrap_err().to_string();
        assert!(refused("version = 1\n").contains("the key `read` is missing"));
        assert!(refused(&TEXT.replace("0.5", "\"half\"")).starts_with("prices.toml:6: offer[0].usd_per_hour"));
        assert!(refused(&TEXT.replace("source = \"s\"\n[[", "[[")).contains("`offer.source` is missing"));
        let misspelt = refused(&TEXT.replace("usd_per_hour = 0.35", "usd_per_huor = 0.35"));
        assert!(misspelt.contains("offer[1].usd_per_huor") && misspelt.contains("`usd_per_hour`?"), "{misspelt}");
    }

    #[test]
    fn the_example_in_the_repository_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/predict/prices.toml");
        assert!(Prices::read(&path).unwrap().of("Tesla T4").is_some());
    }
}
