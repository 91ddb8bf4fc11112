//! Reports on a path.

use std::time::Duration;

use transport::congestion::Competition;

use crate::{Error, Result};

/// Maximum time for which a report is valid, a day: changing values are reported again.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A path of a connection, as agents know it: the connection's token and the identifier of the remote address (RFC 8684
/// section 3.2), which several subflows may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathId {
    /// Token of the connection, at this end.
    pub token: u32,
    /// Identifier of the remote address.
    pub address_id: u8,
}

/// Report from the relay of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Competition by the flows that end at the relay, for controllers that yield to them. The rules replace numbers
    /// outside the range that they trust by the nearest ones inside it, as the engine does.
    pub competition: Option<Competition>,
    /// Delay from the relay to the destination, for adaptive congestion control: this part of the path's delay does not
    /// appear in any round-trip time.
    pub way: Option<Duration>,
}

impl Told {
    /// Refuses values that no relay could mean.
    pub(crate) fn check(&self) -> Result<()> {
        let told = self.competition.unwrap_or(Competition::NONE);
        for (what, value) in [("rho", told.ratio), ("alpha'", told.increase), ("beta'", told.decrease)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Absurd { what, value: value.to_string(), range: "a number above zero" });
            }
        }
        self.way.map_or(Ok(()), |way| check_time("the delay", way))
    }
}

/// Refuses a time that makes no sense.
pub(crate) fn check_time(what: &'static str, time: Duration) -> Result<()> {
    if time.is_zero() || time > TIME_MAX {
        let value = format!("{} s", time.as_secs_f64());
        return Err(Error::Absurd { what, value, range: "above zero and at most a day" });
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
