//! The name that a person gives a device.

use core::fmt;
use core::str::FromStr;

/// Maximum octets of a name.
pub const NAME_BYTES_MAX: usize = 32;

/// A device name: ASCII letters and digits, with `-`, `_` and `.` between them. Safe for command lines, files and
/// terminals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// The error for a text that is not a device name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a device's name has 1 to {NAME_BYTES_MAX} letters (a-z), digits, '-', '_' and '.', and begins with a letter or digit"
)]
pub struct NoName;

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_fit);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if fits && begins { Ok(Self(text.into())) } else { Err(NoName) }
    }
}

impl Name {
    /// Maximum octets of a name.
    pub const BYTES_MAX: usize = NAME_BYTES_MAX;

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_everywhere() {
        for name in ["anna", "Annas-Phone.2", "7"] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        for name in ["", "-rf", ".", "a b", "a/b", "ä", "a\n", "a\u{1b}[2J", &"a".repeat(33)] {
            assert_eq!(name.parse::<Name>(), Err(NoName), "{name:?}");
        }
    }
}
