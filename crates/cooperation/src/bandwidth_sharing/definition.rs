//! The two ways to put competition into a number.

use core::str::FromStr;

/// What rho_r is the ratio of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Definition {
    /// The mean demand of the competing flows to what is available: a subflow that is so much weaker leaves them all they
    /// want. It gives the numbers of the thesis's section 7.3.1.
    #[default]
    Protect,
    /// The fair share to what is available, as printed in equation (7.3).
    FairShare,
}

/// A name that no definition has.
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
