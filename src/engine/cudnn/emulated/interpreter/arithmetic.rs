//! The results of instructions, by the definitions of NVIDIA's "PTX ISA". A register holds its bits in the low part of
//! 64.

use half::{bf16, f16};

/// A type: a letter as in PTX (`p`, `b`, `u`, `s`, `f`), and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub letter: char,
    pub bits: u32,
}

impl Type {
    /// # Errors
    /// If there is none of that name.
    pub fn of(name: &str) -> Result<Self, String> {
        if name == "pred" {
            return Ok(Self { letter: 'p', bits: 1 });
        }
        if name == "bf16" {
            return Ok(Self { letter: 'h', bits: 16 });
        }
        let letter = name.chars().next().unwrap_or_default();
        match (letter, name.get(1..).and_then(|bits| bits.parse().ok())) {
            ('b' | 'u' | 's' | 'f', Some(bits @ (8 | 16 | 32 | 64))) => Ok(Self { letter, bits }),
            _ => Err(format!("no type {name}")),
        }
    }

    pub fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    fn mask(self) -> u64 {
        if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 }
    }

    fn is_float(self) -> bool {
        matches!(self.letter, 'f' | 'h')
    }

    /// The low bits, with the sign in front of them where the type has one.
    pub fn widened(self, value: u64) -> u64 {
        if self.letter == 's' { self.signed(value) as u64 } else { value & self.mask() }
    }

    fn signed(self, value: u64) -> i64 {
        let shift = 64 - self.bits;
        ((value << shift) as i64) >> shift
    }

    fn unsigned(self, value: u64) -> u64 {
        value & self.mask()
    }

    fn float(self, value: u64) -> f64 {
        match (self.letter, self.bits) {
            ('f', 64) => f64::from_bits(value),
            ('f', 32) => f32::from_bits(value as u32).into(),
            ('f', _) => f16::from_bits(value as u16).into(),
            _ => bf16::from_bits(value as u16).into(),
        }
    }

    /// To the nearest, ties to even.
    fn rounded(self, value: f64) -> u64 {
        match (self.letter, self.bits) {
            ('f', 64) => value.to_bits(),
            ('f', 32) => (value as f32).to_bits().into(),
            ('f', _) => f16::from_f32(value as f32).to_bits().into(),
            _ => bf16::from_f32(value as f32).to_bits().into(),
        }
    }
}

/// `setp`'s.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    order: &'static str,
    /// Also true if one of the numbers is NaN.
    unordered: bool,
}

impl Comparison {
    /// # Errors
    /// If there is none of that name.
    pub fn of(name: &str) -> Result<Self, String> {
        const ORDERS: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "num", "nan"];
        let unordered = name.len() == 3 && name.ends_with('u');
        let wanted = if unordered { &name[..2] } else { name };
        let order = ORDERS.into_iter().find(|order| *order == wanted).ok_or(format!("no comparison {name}"))?;
        Ok(Self { order, unordered })
    }

    pub fn holds(self, kind: Type, a: u64, b: u64) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let ordering = match kind.letter {
            'f' | 'h' => kind.float(a).partial_cmp(&kind.float(b)),
            's' => Some(kind.signed(a).cmp(&kind.signed(b))),
            _ => Some(kind.unsigned(a).cmp(&kind.unsigned(b))),
        };
        let Some(ordering) = ordering else { return self.unordered || self.order == "nan" };
        match self.order {
            "eq" => ordering == Equal,
            "ne" => ordering != Equal,
            "lt" => ordering == Less,
            "le" => ordering != Greater,
            "gt" => ordering == Greater,
            "ge" => ordering != Less,
            order => order == "num",
        }
    }
}

/// An instruction that computes one register from up to four.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    does: What,
    kind: Type,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Move,
    Add,
    Subtract,
    /// The product's low half, its high half, or all of it.
    Multiply,
    MultiplyHigh,
    MultiplyWide,
    /// a b + c; for integers, the low half.
    MultiplyAdd,
    /// The same, rounded down.
    MultiplyAddDown,
    Divide,
    Remainder,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    Not,
    Negate,
    Absolute,
    ShiftLeft,
    ShiftRight,
    Reciprocal,
    SquareRoot,
    PowerOfTwo,
    /// Selects bytes; see [`permuted`].
    Permute,
    /// Inserts bits; see [`inserted`].
    Insert,
    Convert {
        from: Type,
        saturates: bool,
    },
}

impl Operation {
    /// From the parts of an opcode, `fma`, `rn`, `f32`.
    ///
    /// # Errors
    /// If it is not known.
    pub fn of(parts: &[&str]) -> Result<Self, String> {
        use What as W;
        let unknown = || format!("`{}` is not known", parts.join("."));
        let kind = Type::of(parts[parts.len() - 1])?;
        let middle = &parts[1..parts.len() - 1];
        let plain = |allowed: &[&str]| middle.iter().all(|part| allowed.contains(part));
        let does = match parts[0] {
            "cvt" if !middle.is_empty() => {
                let (to, from) = (Type::of(middle[middle.len() - 1])?, kind);
                if !middle[..middle.len() - 1].iter().all(|part| ["rn", "sat", "rzi"].contains(part)) {
                    return Err(unknown());
                }
                return Ok(Self { does: W::Convert { from, saturates: middle.contains(&"sat") }, kind: to });
            }
            // All addresses are already addresses in the whole memory.
            "cvta" => W::Move,
            "fma" if middle.contains(&"rm") => W::MultiplyAddDown,
            "mul" if middle == ["wide"] => W::MultiplyWide,
            "mul" if middle == ["hi"] => W::MultiplyHigh,
            "ex2" if plain(&["approx", "ftz"]) => W::PowerOfTwo,
            _ if !plain(&["rn", "lo"]) => return Err(unknown()),
            "mov" => W::Move,
            "add" => W::Add,
            "sub" => W::Subtract,
            "mul" => W::Multiply,
            "mad" | "fma" => W::MultiplyAdd,
            "div" => W::Divide,
            "rem" => W::Remainder,
            "min" => W::Minimum,
            "max" => W::Maximum,
            "and" => W::And,
            "or" => W::Or,
            "xor" => W::Xor,
            "not" => W::Not,
            "neg" => W::Negate,
            "abs" => W::Absolute,
            "shl" => W::ShiftLeft,
            "shr" => W::ShiftRight,
            "rcp" => W::Reciprocal,
            "sqrt" => W::SquareRoot,
            "prmt" => W::Permute,
            "bfi" => W::Insert,
            _ => return Err(unknown()),
        };
        Ok(Self { does, kind })
    }

    /// The result for operands as registers hold them.
    ///
    /// # Errors
    /// If PTX leaves the result undefined.
    pub fn apply(self, operands: [u64; 4]) -> Result<u64, String> {
        let Self { does, kind } = self;
        let [a, b, c, d] = operands;
        match does {
            What::Move => Ok(kind.unsigned(a)),
            What::Convert { from, saturates } => Ok(converted(from, kind, saturates, a)),
            What::Insert => Ok(inserted(a as u32, b as u32, c as u32, d as u32).into()),
            What::Permute => Ok(permuted(a as u32, b as u32, c as u32).into()),
            _ if kind.is_float() => real(does, kind, [a, b, c]),
            _ => whole(does, kind, [a, b, c]),
        }
    }
}

fn real(does: What, kind: Type, bits: [u64; 3]) -> Result<u64, String> {
    let [a, b, c] = bits.map(|bits| kind.float(bits));
    let exact = match does {
        // Sums, products and quotients of two float32, and roots of one, are rounded correctly if computed in float64
        // (Figueroa 1995).
        What::Add => a + b,
        What::Subtract => a - b,
        What::Multiply => a * b,
        What::Divide => a / b,
        What::Reciprocal => 1.0 / a,
        What::SquareRoot => a.sqrt(),
        What::MultiplyAdd if kind.bits == 32 => {
            let [a, b, c] = [a, b, c].map(|value| value as f32);
            return Ok(a.mul_add(b, c).to_bits().into());
        }
        What::MultiplyAdd => a.mul_add(b, c),
        What::MultiplyAddDown if kind.bits == 32 => {
            let sum = a * b + c;
            let nearest = sum as f32;
            let down = if f64::from(nearest) > sum { nearest.next_down() } else { nearest };
            return Ok(down.to_bits().into());
        }
        // If one of the two is NaN, the other one.
        What::Minimum => a.min(b),
        What::Maximum => a.max(b),
        What::Negate => -a,
        What::Absolute => a.abs(),
        // The instruction's own error is at most 2 units in the last place.
        What::PowerOfTwo => a.exp2(),
        other => return Err(format!("{other:?} of real numbers")),
    };
    Ok(kind.rounded(exact))
}

fn whole(does: What, kind: Type, [a, b, c]: [u64; 3]) -> Result<u64, String> {
    let is_signed = kind.letter == 's';
    let wide = |value: u64| if is_signed { i128::from(kind.signed(value)) } else { i128::from(kind.unsigned(value)) };
    let (x, y) = (wide(a), wide(b));
    // The count of a shift has 32 bits; a shift by more than the width gives the same as a shift by the width.
    let count = (b as u32).min(kind.bits);
    let result = match does {
        What::Add => x + y,
        What::Subtract => x - y,
        What::Multiply => x.wrapping_mul(y),
        What::MultiplyWide => {
            let product = x * y;
            return Ok(Type { bits: 2 * kind.bits, ..kind }.unsigned(product as u64));
        }
        What::MultiplyHigh if kind.bits == 64 && !is_signed => ((a as u128 * b as u128) >> 64) as i128,
        What::MultiplyHigh => (x * y) >> kind.bits,
        What::MultiplyAdd => x.wrapping_mul(y).wrapping_add(wide(c)),
        What::Divide if y != 0 => x / y,
        What::Remainder if y != 0 => x % y,
        What::Minimum => x.min(y),
        What::Maximum => x.max(y),
        What::And => return Ok(kind.unsigned(a & b)),
        What::Or => return Ok(kind.unsigned(a | b)),
        What::Xor => return Ok(kind.unsigned(a ^ b)),
        What::Not => return Ok(kind.unsigned(!a)),
        What::Negate => -x,
        What::Absolute => x.abs(),
        What::ShiftLeft => return Ok(kind.unsigned(((kind.unsigned(a) as u128) << count) as u64)),
        What::ShiftRight => x >> count,
        other => return Err(format!("{other:?} of {x} and {y}")),
    };
    Ok(kind.unsigned(result as u64))
}

fn converted(from: Type, to: Type, saturates: bool, value: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        (true, true) => {
            let value = from.float(value);
            // NaN becomes 0.
            let value = match saturates {
                true if value.is_nan() => 0.0,
                true => value.clamp(0.0, 1.0),
                false => value,
            };
            to.rounded(value)
        }
        (false, true) if from.letter == 's' => match to.bits {
            32 => (from.signed(value) as f32).to_bits().into(),
            _ => to.rounded(from.signed(value) as f64),
        },
        (false, true) => match to.bits {
            32 => (from.unsigned(value) as f32).to_bits().into(),
            _ => to.rounded(from.unsigned(value) as f64),
        },
        (true, false) if to.letter == 's' => to.unsigned(from.float(value) as i64 as u64),
        (true, false) => to.unsigned(from.float(value) as u64),
        (false, false) => to.unsigned(from.widened(value)),
    }
}

/// The i-th four bits of the selector give the number of byte i of the result among the eight bytes of b and a. If the
/// highest of the four bits is set, all bits of the byte are that byte's sign.
fn permuted(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let byte = |at: usize| {
        let choice = selector >> (4 * at) & 15;
        let byte = bytes[choice as usize & 7];
        if choice & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    };
    u32::from_le_bytes(std::array::from_fn(byte))
}

/// `b` with its `length` bits from `place` on replaced by the lowest of `a`.
fn inserted(a: u32, b: u32, place: u32, length: u32) -> u32 {
    let ones = (1_u64 << length.min(32)) - 1;
    let mask = (ones << place.min(32)) as u32;
    let moved = (u64::from(a) << place.min(32)) as u32;
    b & !mask | moved & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(opcode: &str, [a, b, c]: [u64; 3]) -> u64 {
        Operation::of(&opcode.split('.').collect::<Vec<_>>()).unwrap().apply([a, b, c, 0]).unwrap()
    }

    fn f(value: f32) -> u64 {
        value.to_bits().into()
    }

    /// By hand.
    #[test]
    fn instructions_compute_as_their_names_say() {
        assert_eq!(applied("add.s32", [u32::MAX.into(), 1, 0]), 0);
        assert_eq!(applied("shr.s32", [0x8000_0000, 31, 0]), 0xFFFF_FFFF);
        assert_eq!(applied("shr.u32", [0x8000_0000, 40, 0]), 0);
        assert_eq!(applied("shl.b64", [1, 64, 0]), 0);
        assert_eq!(applied("mul.wide.s32", [0xFFFF_FFFF, 3, 0]), -3_i64 as u64);
        assert_eq!(applied("mul.hi.s32", [0x4000_0000, 8, 0]), 2);
        assert_eq!(applied("div.s32", [-7_i64 as u64, 2, 0]), 0xFFFF_FFFD);
        assert_eq!(applied("rem.s64", [-7_i64 as u64, 2, 0]), -1_i64 as u64);
        assert_eq!(applied("cvt.s64.s32", [0xFFFF_FFFE, 0, 0]), -2_i64 as u64);
        assert_eq!(applied("cvt.u16.u32", [0x12345, 0, 0]), 0x2345);
        assert_eq!(applied("fma.rn.f32", [f(2.0), f(3.0), f(0.5)]), f(6.5));
        // 1 + 2^-30 lies between 1 and the next float32.
        assert_eq!(applied("fma.rm.f32", [f(1.0), f(1.0), f(-(2.0_f32.powi(-30)))]), f(1.0_f32.next_down()));
        assert_eq!(applied("max.f32", [f(f32::NAN), f(-1.0), 0]), f(-1.0));
        assert_eq!(applied("cvt.sat.f32.f32", [f(1.5), 0, 0]), f(1.0));
        // 1.5 in float16 and in bfloat16.
        assert_eq!(applied("cvt.rn.f16.f32", [f(1.5), 0, 0]), 0x3E00);
        assert_eq!(applied("cvt.rn.bf16.f32", [f(1.5), 0, 0]), 0x3FC0);
        assert_eq!(applied("prmt.b32", [0x4433_2211, 0x8877_6655, 0x7604]), 0x8877_1155);
        assert_eq!(inserted(0b101, 0xFFFF_FFFF, 4, 3), 0xFFFF_FFDF);
        assert_eq!(applied("not.pred", [1, 0, 0]), 0);
        assert!(Operation::of(&["tex", "f32"]).is_err());
        let kind = Type::of("f32").unwrap();
        let holds = |name: &str, a: f32, b: f32| Comparison::of(name).unwrap().holds(kind, f(a), f(b));
        assert!(holds("lt", 1.0, 2.0) && !holds("lt", f32::NAN, 2.0) && holds("ltu", f32::NAN, 2.0));
        assert!(holds("num", 1.0, 2.0) && !holds("num", 1.0, f32::NAN) && holds("neu", 1.0, f32::NAN));
    }
}
