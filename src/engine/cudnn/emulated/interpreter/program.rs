//! Parses the text of a module into instructions: the part of NVIDIA's "PTX ISA" that NVRTC emits for batchstep's
//! kernels.

use std::collections::HashMap;

use super::arithmetic::{Comparison, Operation, Type};

/// A kernel.
#[derive(Debug)]
pub struct Program {
    pub code: Vec<Instruction>,
    pub registers: usize,
    /// The number of its parameters.
    pub parameters: usize,
    /// Bytes of its own shared memory; memory that a launch adds follows it.
    pub shared_bytes: usize,
}

/// An instruction, and its predicate: a register, and the value that it must have.
#[derive(Debug)]
pub struct Instruction {
    pub guard: Option<(usize, bool)>,
    pub does: Does,
    /// The instruction's text, for messages.
    pub text: String,
}

/// A register by its number, or a value.
#[derive(Clone, Copy, Debug)]
pub enum Operand {
    Register(usize),
    Value(u64),
    Special(Special),
}

/// A number that depends on the thread: along x, y, z.
#[derive(Clone, Copy, Debug)]
pub enum Special {
    Thread(usize),
    ThreadCount(usize),
    Block(usize),
    BlockCount(usize),
}

/// The memory that an access uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
}

/// The effect of an instruction.
#[derive(Debug)]
pub enum Does {
    Compute {
        operation: Operation,
        to: usize,
        from: [Operand; 4],
    },
    Compare {
        comparison: Comparison,
        kind: Type,
        to: usize,
        from: [Operand; 2],
    },
    Select {
        to: usize,
        from: [Operand; 2],
        by: Operand,
    },
    /// Words of `bits` bits, the lowest first, to one register.
    Pack {
        to: usize,
        from: Vec<Operand>,
        bits: u32,
    },
    Unpack {
        to: Vec<usize>,
        from: Operand,
        bits: u32,
    },
    Parameter {
        kind: Type,
        to: usize,
        number: usize,
    },
    Load {
        space: Space,
        kind: Type,
        to: Vec<usize>,
        at: Operand,
        offset: i64,
    },
    Store {
        space: Space,
        kind: Type,
        from: Vec<Operand>,
        at: Operand,
        offset: i64,
    },
    /// `shfl.sync.bfly`.
    Exchange {
        to: usize,
        value: Operand,
        mask: Operand,
    },
    Branch(usize),
    Barrier,
    Return,
}

/// The kernels of a module, by name.
///
/// # Errors
/// With the first line that is not understood.
pub fn parse(module: &str) -> Result<HashMap<String, Program>, String> {
    let mut programs = HashMap::new();
    for text in module.split(".visible .entry ").skip(1) {
        let (name, rest) = text.split_once('(').ok_or("an entry without parameters")?;
        let (parameters, body) = rest.split_once(')').ok_or("parameters without an end")?;
        programs.insert(name.trim().to_owned(), PlanBuilder::of(name.trim(), parameters).program(body)?);
    }
    Ok(programs)
}

/// A program under construction.
struct PlanBuilder {
    name: String,
    parameters: usize,
    registers: HashMap<String, usize>,
    shared: HashMap<String, usize>,
    shared_bytes: usize,
    labels: HashMap<String, usize>,
}

impl PlanBuilder {
    fn of(name: &str, parameters: &str) -> Self {
        Self {
            name: name.to_owned(),
            parameters: parameters.matches(".param").count(),
            registers: HashMap::new(),
            shared: HashMap::new(),
            shared_bytes: 0,
            labels: HashMap::new(),
        }
    }

    fn program(mut self, body: &str) -> Result<Program, String> {
        let mut lines = Vec::new();
        for line in body.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
            if let Some(label) = line.strip_suffix(':') {
                self.labels.insert(label.to_owned(), lines.len());
            } else if let Some(variable) = line.strip_prefix(".shared ") {
                self.place(variable)?;
            } else if line.ends_with(';') && !line.starts_with('.') {
                lines.push(line.trim_end_matches(';'));
            }
        }
        let code =
            lines.iter().map(|line| self.instruction(line).map_err(|why| format!("{}: {why}: `{line}`", self.name)));
        let code = code.collect::<Result<Vec<_>, String>>()?;
        let Self { parameters, registers, shared_bytes, .. } = self;
        Ok(Program { code, registers: registers.len(), parameters, shared_bytes: shared_bytes.next_multiple_of(16) })
    }

    /// `.align 4 .b8 name[128];`
    fn place(&mut self, variable: &str) -> Result<(), String> {
        let words: Vec<&str> = variable.trim_end_matches(';').split_whitespace().collect();
        let (Some(align), Some(last)) = (words.get(1).and_then(|word| word.parse::<usize>().ok()), words.last()) else {
            return Err(format!("shared memory is not understood: {variable}"));
        };
        let (name, size) = last.split_once('[').ok_or_else(|| format!("no array: {variable}"))?;
        let bytes: usize = size.trim_end_matches(']').parse().map_err(|_| format!("no size: {variable}"))?;
        let at = self.shared_bytes.next_multiple_of(align);
        self.shared.insert(name.to_owned(), at);
        self.shared_bytes = at + bytes;
        Ok(())
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn operand(&mut self, text: &str) -> Result<Operand, String> {
        let axis = |name: &str| "xyz".find(name).ok_or_else(|| format!("no axis {name}"));
        if let Some((name, along)) = text.strip_prefix('%').and_then(|name| name.split_once('.')) {
            return Ok(Operand::Special(match name {
                "tid" => Special::Thread(axis(along)?),
                "ntid" => Special::ThreadCount(axis(along)?),
                "ctaid" => Special::Block(axis(along)?),
                "nctaid" => Special::BlockCount(axis(along)?),
                _ => return Err(format!("no register %{name}")),
            }));
        }
        if text.starts_with('%') {
            return Ok(Operand::Register(self.register(text)));
        }
        if let Some(hex) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0d")) {
            return u64::from_str_radix(hex, 16).map(Operand::Value).map_err(|_| format!("no number {text}"));
        }
        if let Ok(value) = text.parse::<i128>() {
            return Ok(Operand::Value(value as u64));
        }
        // Memory that a launch adds follows the kernel's own.
        let own = self.shared.get(text).copied();
        Ok(Operand::Value(own.unwrap_or_else(|| self.shared_bytes.next_multiple_of(16)) as u64))
    }

    fn operands<const N: usize>(&mut self, texts: &[String]) -> Result<[Operand; N], String> {
        let mut operands = [Operand::Value(0); N];
        for (operand, text) in operands.iter_mut().zip(texts) {
            *operand = self.operand(text)?;
        }
        Ok(operands)
    }

    fn instruction(&mut self, line: &str) -> Result<Instruction, String> {
        let text = line.to_owned();
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => {
                let (predicate, rest) = rest.split_once(char::is_whitespace).ok_or("a predicate and nothing else")?;
                let name = predicate.trim_start_matches('!');
                (Some((self.register(name), name.len() == predicate.len())), rest.trim())
            }
            None => (None, line),
        };
        let (opcode, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let parts: Vec<&str> = opcode.split('.').collect();
        let arguments = arguments(rest);
        let does = self.does(&parts, &arguments)?;
        Ok(Instruction { guard, does, text })
    }

    fn does(&mut self, parts: &[&str], arguments: &[String]) -> Result<Does, String> {
        let kind = || Type::of(parts[parts.len() - 1]);
        let first = arguments.first().map_or("", String::as_str);
        Ok(match parts[0] {
            "ret" => Does::Return,
            "bar" => Does::Barrier,
            "bra" => Does::Branch(*self.labels.get(first).ok_or("no such label")?),
            "shfl" if parts == ["shfl", "sync", "bfly", "b32"] => {
                let to = first.split('|').next().unwrap_or_default();
                let [value, mask] = self.operands(&arguments[1..3])?;
                Does::Exchange { to: self.register(to), value, mask }
            }
            "ld" if parts[1] == "param" => {
                let number = first_after(arguments, "_param_").ok_or("no parameter")?;
                Does::Parameter { kind: kind()?, to: self.register(first), number }
            }
            "ld" => {
                let (at, offset) = self.address(&arguments[1])?;
                let to = members(first).map(|name| self.register(name)).collect();
                Does::Load { space: space(parts[1])?, kind: kind()?, to, at, offset }
            }
            "st" => {
                let (at, offset) = self.address(first)?;
                let from = members(&arguments[1]).map(|one| self.operand(one)).collect::<Result<_, _>>()?;
                Does::Store { space: space(parts[1])?, kind: kind()?, from, at, offset }
            }
            "mov" if first.starts_with('{') => {
                let to: Vec<usize> = members(first).map(|name| self.register(name)).collect();
                let bits = kind()?.bits / to.len() as u32;
                Does::Unpack { to, from: self.operand(&arguments[1])?, bits }
            }
            "mov" if arguments[1].starts_with('{') => {
                let from: Vec<Operand> =
                    members(&arguments[1]).map(|one| self.operand(one)).collect::<Result<_, _>>()?;
                let bits = kind()?.bits / from.len() as u32;
                Does::Pack { to: self.register(first), from, bits }
            }
            "setp" => {
                let comparison = Comparison::of(parts[1])?;
                let from = self.operands(&arguments[1..3])?;
                Does::Compare { comparison, kind: kind()?, to: self.register(first), from }
            }
            "selp" => {
                let [a, b, by] = self.operands(&arguments[1..4])?;
                Does::Select { to: self.register(first), from: [a, b], by }
            }
            _ => {
                let operation = Operation::of(parts)?;
                Does::Compute { operation, to: self.register(first), from: self.operands(&arguments[1..])? }
            }
        })
    }

    /// `[%rd1+48]`.
    fn address(&mut self, text: &str) -> Result<(Operand, i64), String> {
        let inner = text.trim_start_matches('[').trim_end_matches(']');
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        let offset = offset.parse().map_err(|_| format!("no offset {offset}"))?;
        Ok((self.operand(base)?, offset))
    }
}

fn space(name: &str) -> Result<Space, String> {
    match name {
        "global" => Ok(Space::Global),
        "shared" => Ok(Space::Shared),
        other => Err(format!("no memory {other}")),
    }
}

/// The number after `what` in one of the arguments.
fn first_after(arguments: &[String], what: &str) -> Option<usize> {
    arguments.iter().find_map(|text| text.trim_end_matches(']').rsplit_once(what)?.1.parse().ok())
}

/// `{a, b}` as a and b; anything else as itself.
fn members(text: &str) -> impl Iterator<Item = &str> {
    text.trim_start_matches('{').trim_end_matches('}').split(',').map(str::trim)
}

/// Split at commas, but not within braces.
fn arguments(text: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0);
    for letter in text.trim().chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        all.last_mut().expect("one at least").push(letter);
    }
    all.into_iter().map(|one| one.trim().to_owned()).collect()
}
