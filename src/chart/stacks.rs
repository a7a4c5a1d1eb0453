//! Bars of several parts, one below the other: of what a time consists.

use super::data::{Stack, Stacks};
use super::font;
use super::frame::MARGIN;
use super::geometry::Rect;
use super::palette::{MUTED, TEXT};
use super::panel::{ROW_GAP, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene};
use crate::units::human;

const BAR: f64 = 13.0;
const BAR_STEP: f64 = 21.0;
/// The most bars of a panel; further bars are left out.
const MOST_BARS: usize = 40;

/// Draws the bars below `top`, where there are any; gives where they end.
pub fn draw(scene: &mut Scene, stacks: &Stacks, top: f64) -> f64 {
    if stacks.bars.is_empty() {
        return top - ROW_GAP + 40.0;
    }
    let shown = &stacks.bars[..stacks.bars.len().min(MOST_BARS)];
    scene.text(stacks.title, (MARGIN, top - TITLE_LIFT), Anchor::Left, Font::bold(TICK_SIZE, TEXT));
    let width = |text: &str| font::width(text, TICK_SIZE, false);
    let names = shown.iter().map(|bar| width(&bar.name)).fold(0.0, f64::max);
    let notes = shown.iter().map(|bar| width(&bar.note)).fold(0.0, f64::max);
    let left = MARGIN + names + 12.0;
    let mut legend = MARGIN + font::width(stacks.title, TICK_SIZE, true) * 1.05 + 24.0;
    for (name, color) in &stacks.parts {
        scene.rect(Rect { left: legend, right: legend + 11.0, top: top - 20.0, bottom: top - 9.0 }, *color);
        scene.text(name.as_str(), (legend + 17.0, top - TITLE_LIFT), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        legend += 17.0 + width(name) * 1.05 + 16.0;
    }
    let longest = shown.iter().map(|bar| bar.parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let unit = (scene.width - MARGIN - notes - 78.0 - left).max(50.0) / longest.max(f64::MIN_POSITIVE);
    let mut y = top + 6.0;
    for Stack { name, parts, note } in shown {
        let baseline = y + BAR - 2.0;
        scene.text(name.as_str(), (MARGIN, baseline), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        let mut x = left;
        for (part, &(_, color)) in parts.iter().zip(&stacks.parts) {
            let right = x + part.max(0.0) * unit;
            if right - x > 0.05 {
                scene.rect(Rect { left: x, right, top: y, bottom: y + BAR }, color);
            }
            x = right;
        }
        let total = human::seconds(parts.iter().sum());
        scene.text(total, (x + 6.0, baseline), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        let right = (scene.width - MARGIN, baseline);
        scene.text(note.as_str(), right, Anchor::Right, Font::regular(TICK_SIZE, MUTED));
        y += BAR_STEP;
    }
    if stacks.bars.len() > shown.len() {
        let (bar, table) = stacks.of;
        let more = human::counted((stacks.bars.len() - shown.len()) as u64, bar);
        let at = (MARGIN, y + 12.0);
        scene.text(format!("{more} more: {table}"), at, Anchor::Left, Font::regular(TICK_SIZE, MUTED));
        y += BAR_STEP;
    }
    y
}
