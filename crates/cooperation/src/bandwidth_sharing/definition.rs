//! Two definitions of competition as a number.

use core::str::FromStr;

/// The quantity whose ratio to the available bandwidth is rho_r.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// Mean demand of the competing flows: a subflow that is weaker by this factor leaves all of them their demand. It
    /// gives the numbers in section 7.3.1 of the thesis.
    #[default]
    Protect,
    /// The fair share, as printed in equation (7.3).
    FairShare,
}

/// The error for a name that no definition has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown definition of competition \"{0}\": there are protect and eq7.3")]
pub struct UnknownDefinition(String);

impl FromStr for Definition {
    type Err = UnknownDefinition;

    fn from_str(name: &str) -> Result<Self, UnknownDefinition> {
        match name {
            "protect" => Ok(Self::Protect),
            "eq7.3" => Ok(Self::FairShare),
            _ => Err(UnknownDefinition(name.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_go_by_name() {
        assert_eq!(["protect", "eq7.3"].map(|name| name.parse()), [Ok(Definition::Protect), Ok(Definition::FairShare)]);
        assert_eq!(
            "fair".parse::<Definition>().unwrap_err().to_string(),
            "unknown definition of competition \"fair\": there are protect and eq7.3"
        );
    }
}
