//! What is told of a path.

use std::time::Duration;

use transport::congestion::Competition;

use crate::{Error, Result};

/// What is told holds a day at most: who tells of what changes tells again.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A path of a connection, as agents know it: by the connection's token and the identifier of the other end's address
/// (RFC 8684 section 3.2), which several subflows may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId {
    /// Of the connection, at this end.
    pub token: u32,
    /// Of the other end's address.
    pub address_id: u8,
}

/// What the relay of a path tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Of the flows that end there, for controllers that yield to them. The rules take numbers out of the range that they believe for the nearest
    /// inside it, as the engine does.
    pub competition: Option<Competition>,
    /// How long data take from it to the destination: a part of the path's delay that no round trip shows, for adaptive congestion control.
    pub way: Option<Duration>,
}

impl Told {
    /// Refuses what no relay could mean.
    pub(crate) fn check(&self) -> Result<()> {
        let told = self.competition.unwrap_or(Competition::NONE);
        for (what, value) in [("rho", told.ratio), ("alpha'", told.increase), ("beta'", told.decrease)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Absurd { what, value: value.to_string(), range: "a number above zero" });
            }
        }
        self.way.map_or(Ok(()), |way| check_time("the way", way))
    }
}

/// Refuses a time that cannot be meant.
pub(crate) fn check_time(what: &'static str, time: Duration) -> Result<()> {
    if time.is_zero() || time > TIME_MAX {
        let value = format!("{} s", time.as_secs_f64());
        return Err(Error::Absurd { what, value, range: "above zero, and a day at most" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_could_mean_is_refused() {
        let told = |competition| Told { competition: Some(competition), way: None };
        assert!(told(Competition { ratio: 5.0, ..Competition::NONE }).check().is_ok());
        for number in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let message = told(Competition { ratio: number, ..Competition::NONE }).check().unwrap_err().to_string();
            assert!(message.starts_with("rho"), "{message}");
            assert!(told(Competition { increase: number, ..Competition::NONE }).check().is_err());
            assert!(told(Competition { decrease: number, ..Competition::NONE }).check().is_err());
        }
        assert!(Told { way: Some(Duration::MAX), ..Told::default() }.check().is_err());
        assert!(check_time("it", Duration::from_secs(6)).is_ok());
        assert!(check_time("it", Duration::ZERO).is_err());
    }
}
