//! The colours: Okabe and Ito's set, which people with any common colour blindness can distinguish, and greys.
//!
//! Source: M. Okabe, K. Ito, "Color Universal Design", 2008, <https://jfly.uni-koeln.de/color/>.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color {
    pub rgb: (u8, u8, u8),
    pub opacity: f64,
}

impl Color {
    const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { rgb: (red, green, blue), opacity: 1.0 }
    }

    /// The same colour, translucent.
    pub fn opacity(self, opacity: f64) -> Self {
        Self { opacity, ..self }
    }

    /// As style sheets write it: `#0072b2`.
    pub fn hexadecimal(self) -> String {
        let (red, green, blue) = self.rgb;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// The opaque colour that a share of `self` over white gives: lines that cross do not darken each other.
    pub fn tint(self, share: f64) -> Self {
        let mix = |c: u8| (255.0 - (255.0 - f64::from(c)) * share).round() as u8;
        let (red, green, blue) = self.rgb;
        Self { rgb: (mix(red), mix(green), mix(blue)), opacity: self.opacity }
    }
}

pub const WHITE: Color = Color::new(255, 255, 255);
/// Titles.
pub const INK: Color = Color::new(26, 26, 26);
/// Axis labels.
pub const TEXT: Color = Color::new(72, 72, 72);
/// Captions and rejected candidates.
pub const MUTED: Color = Color::new(122, 122, 122);
/// Axis lines.
pub const AXIS: Color = Color::new(150, 150, 150);
pub const GRID: Color = Color::new(232, 232, 232);
/// Every other block of a run.
pub const STRIPE: Color = Color::new(246, 246, 246);

pub const BLUE: Color = Color::new(0, 114, 178);
pub const VERMILLION: Color = Color::new(213, 94, 0);
pub const GREEN: Color = Color::new(0, 158, 115);
pub const PURPLE: Color = Color::new(170, 82, 134);
pub const ORANGE: Color = Color::new(230, 159, 0);
pub const SKY: Color = Color::new(86, 180, 233);

/// The colours of several series in one panel, in their order. The purple is Okabe and Ito's, darkened until it can be
/// read as text on white.
pub const SERIES: [Color; 4] = [BLUE, VERMILLION, GREEN, PURPLE];

/// The colours of several runs in one picture: the same, then three more. The bright ones are for marks and lines, not for text.
pub const RUNS: [Color; 7] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK];

/// The same series on a dark ground: the lighter members of Okabe and Ito's set, and its green and purple, lightened.
pub const SERIES_ON_DARK: [Color; 4] = [SKY, ORANGE, Color::new(46, 196, 150), Color::new(216, 140, 184)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_goes_towards_white() {
        assert_eq!(BLUE.tint(1.0), BLUE);
        assert_eq!(BLUE.tint(0.0), WHITE);
        // 255 - 255 * 0.5 = 127.5; 255 - 141 * 0.5 = 184.5; 255 - 77 * 0.5 = 216.5; halves round up.
        assert_eq!(BLUE.tint(0.5).rgb, (128, 185, 217));
        assert_eq!(BLUE.hexadecimal(), "#0072b2");
    }
}
