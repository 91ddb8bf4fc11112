//! The result of a case, and its faults.

use std::panic::PanicHookInfo;

use units::Instant;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that must hold holds.
    Passed(Numbers),
    /// The case was abandoned after too many events.
    CutShort,
    /// Something is wrong.
    Failed(Fault),
}

/// Amount of work of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Virtual time, s.
    pub seconds: u64,
    /// Events.
    pub events: u64,
    /// Octets that applications received.
    pub received_bytes: u64,
    /// Connections of both hosts.
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

/// Returns the message and the place of a panic.
pub fn words_of(panic: &PanicHookInfo<'_>) -> (String, String) {
    let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
    let said = panic.payload();
    let text = said.downcast_ref::<&str>().map(|text| (*text).to_string());
    let message = text.or_else(|| said.downcast_ref::<String>().cloned());
    (message.unwrap_or_default(), place.unwrap_or_default())
}

/// A fault of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Equal for all runs with the same problem: contains no numbers and no times.
    pub kind: String,
    /// The details.
    pub detail: String,
}

impl Fault {
    /// Creates a fault of a kind.
    pub fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into() }
    }

    /// Creates a fault for excessive activity.
    pub fn storm(at: Instant, detail: String) -> Self {
        Self::new("storm: too much happens within a second", format!("{at:?}: {detail}"))
    }

    /// Creates a fault for a panic.
    pub fn panic(message: &str, place: &str) -> Self {
        Self::new(format!("panic at {place}: {}", without_numbers(message)), message)
    }
}

/// Returns the text with every number replaced by `N`.
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

/// Returns the message of a fault of the simulation's own checkers, without the time and addresses before it.
pub fn kind_of_checker(text: &str) -> String {
    let rule = text.split_once("->").and_then(|(_, rest)| rest.split_once(": ")).map_or(text, |(_, rule)| rule);
    without_numbers(rule)
}
