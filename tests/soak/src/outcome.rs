//! How a case went, and what was wrong with it.

use std::panic::PanicHookInfo;

use units::Instant;

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that must hold holds.
    Passed(Numbers),
    /// It took too many events to see its end.
    CutShort,
    /// Something is wrong.
    Failed(Fault),
}

/// How much a case did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Virtual time, s.
    pub seconds: u64,
    /// Events.
    pub events: u64,
    /// Octets that applications received.
    pub received_bytes: u64,
    /// Connections, of both hosts.
    pub connections: u64,
}

impl core::ops::Add for Numbers {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            events: self.events + other.events,
            received_bytes: self.received_bytes + other.received_bytes,
            connections: self.connections + other.connections,
        }
    }
}

/// What a panic said, and where.
pub fn words_of(panic: &PanicHookInfo<'_>) -> (String, String) {
    let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
    let said = panic.payload();
    let text = said.downcast_ref::<&str>().map(|text| (*text).to_string());
    let message = text.or_else(|| said.downcast_ref::<String>().cloned());
    (message.unwrap_or_default(), place.unwrap_or_default())
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The same for all runs in which the same thing goes wrong: no numbers, no times.
    pub kind: String,
    /// What exactly, with all that is known.
    pub detail: String,
}

impl Fault {
    /// A fault of that kind.
    pub fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into() }
    }

    /// Too much happens.
    pub fn storm(at: Instant, detail: String) -> Self {
        Self::new("storm: too much happens within a second", format!("{at:?}: {detail}"))
    }

    /// A panic.
    pub fn panic(message: &str, place: &str) -> Self {
        Self::new(format!("panic at {place}: {}", without_numbers(message)), message)
    }
}

/// The text with every number as `N`.
pub fn without_numbers(text: &str) -> String {
    let mut kind = String::new();
    for character in text.chars() {
        match character.is_ascii_digit() {
            true if kind.ends_with('N') => {}
            true => kind.push('N'),
            false => kind.push(character),
        }
    }
    kind
}

/// What a fault of the simulation's own checkers says, without the time and the addresses before it.
pub fn kind_of_checker(text: &str) -> String {
    let rule = text.split_once("->").and_then(|(_, rest)| rest.split_once(": ")).map_or(text, |(_, rule)| rule);
    without_numbers(rule)
}
