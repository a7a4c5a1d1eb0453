//! A part of an experiment, for one of several machines.

use std::fmt;

use super::{Blocks, Experiment};
use crate::error::{Error, Result};
use crate::settings::named;

/// One of several parts of an experiment, each measured on its own machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    pub count: usize,
    pub by: ShardBy,
}

named! {
    /// What is divided among the shards.
    ShardBy {
        /// Every shard measures all cells, in blocks of its own.
        Blocks = "blocks",
        /// Every shard measures whole series of its own: all batch sizes of one network under one setting.
        Cells = "cells",
    }
}

/// The most shards of one experiment.
pub const MAX_SHARDS: usize = 100_000;

impl Shard {
    /// Reads `3/8`: the third of eight.
    ///
    /// ```
    /// use batchstep::spec::{Shard, ShardBy};
    /// assert_eq!(Shard::parse("3/8", ShardBy::Blocks), Some(Shard { number: 3, count: 8, by: ShardBy::Blocks }));
    /// assert_eq!(Shard::parse("9/8", ShardBy::Blocks), None);
    /// ```
    pub fn parse(text: &str, by: ShardBy) -> Option<Self> {
        let (number, count) = text.split_once('/')?;
        let (number, count) = (number.trim().parse().ok()?, count.trim().parse().ok()?);
        (1 <= number && number <= count && count <= MAX_SHARDS).then_some(Self { number, count, by })
    }

    /// Its place among the shards, from 0.
    pub fn place(self) -> usize {
        self.number - 1
    }

    /// How many of `blocks` numbers 0, 1, 2, ... belong to this shard, if they are given to the shards in turn.
    fn own(self, blocks: usize) -> usize {
        blocks.saturating_sub(self.place()).div_ceil(self.count)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl Experiment {
    /// What this shard measures: an experiment with its share of the blocks, or the experiment itself where it is not one of
    /// several shards, or where cells are divided.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where there are fewer blocks than shards, and this one is left with none.
    pub fn own_part(&self) -> Result<Self> {
        let mut own = self.clone();
        let Some(shard) = self.measure.shard.filter(|shard| shard.by == ShardBy::Blocks) else { return Ok(own) };
        let Blocks { min, max: most } = self.measure.blocks;
        own.measure.blocks = Blocks { min: shard.own(min).max(1), max: shard.own(most) };
        if own.measure.blocks.max == 0 {
            let what = format!("the spec has {most} blocks at most, and shard {shard} is left with none");
            return Err(Error::spec(what)
                .at("measure.blocks")
                .hint(format!("raise `max` to {} or more, or use {most} shards", shard.count)));
        }
        Ok(own)
    }

    /// The same experiment, undivided.
    pub fn whole(&self) -> Self {
        let mut whole = self.clone();
        whole.measure.shard = None;
        whole
    }

    /// Names a run of it: `vgg16`, or `vgg16.shard-3-of-8`, so that the shards of an experiment have folders of their own.
    pub fn run_name(&self) -> String {
        match self.measure.shard {
            Some(Shard { number, count, .. }) => format!("{}.shard-{number}-of-{count}", self.name),
            None => self.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(blocks: &str, shard: &str) -> Experiment {
        let text = format!(
            "version = 1\nname = \"t\"\n[model]\nname = \"mlp\"\n[measure]\nblocks = {blocks}\nshard = \"{shard}\""
        );
        Experiment::parse(&text, "t.toml").expect("valid")
    }

    #[test]
    fn the_shards_together_have_the_blocks_of_the_spec() {
        let blocks = |number| {
            let own = experiment("{ min = 30, max = 30 }", &format!("{number}/8")).own_part().expect("blocks");
            (own.measure.blocks.min, own.measure.blocks.max)
        };
        // 30 = 6 x 4 + 2 x 3
        let expected = [(4, 4), (4, 4), (4, 4), (4, 4), (4, 4), (4, 4), (3, 3), (3, 3)];
        assert_eq!((1..=8).map(blocks).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_shard_without_a_block_is_refused_with_the_remedy() {
        let error = experiment("{ min = 2, max = 4 }", "5/8").own_part().expect_err("refused").to_string();
        assert!(error.contains("shard 5/8 is left with none") && error.contains("raise `max` to 8"), "{error}");
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["0/8", "9/8", "3", "3/8/2", "-1/4", "1/1000001", "a/b"] {
            assert_eq!(Shard::parse(text, ShardBy::Blocks), None, "{text}");
        }
    }
}
