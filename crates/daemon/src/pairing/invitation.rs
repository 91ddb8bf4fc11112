//! What a relay shows while it pairs: a code for people, and a URI for cameras.

use std::fmt;
use std::str::FromStr;

use cooperation::link::PORT;
use cooperation::link::pairing::{Code, NoCode};

use crate::scoped::ScopedAddress;

/// Scheme of the URI.
pub const SCHEME: &str = "anabranch:";
/// Kind of the URI.
const KIND: &str = "pair";
/// Maximum number of addresses: a camera must be able to read the QR code.
const ADDRESSES_MAX: usize = 4;

/// The addresses at which a relay pairs, and the code that it shows. Its text is a URI:
/// `anabranch:pair?address=192.168.43.1&port=8684&code=042117`, with one `address` for each of the relay's addresses,
/// four at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Its addresses, likeliest first. A relay that shows a code before its networks have any has none, and no URI.
    pub addresses: Vec<ScopedAddress>,
    /// The TCP port.
    pub port: u16,
    /// The code, good for one try.
    pub code: Code,
}

impl Invitation {
    /// Creates an invitation to this device with `code`.
    pub fn new(mut addresses: Vec<ScopedAddress>, code: Code) -> Self {
        addresses.truncate(ADDRESSES_MAX);
        Self { addresses, port: PORT, code }
    }
}

impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{KIND}?")?;
        for address in &self.addresses {
            // A `%` starts a percent-encoded octet (RFC 3986 section 2.1).
            write!(f, "address={}&", address.to_string().replace('%', "%25"))?;
        }
        write!(f, "port={}&code={}", self.port, self.code.to_string().replace(' ', ""))
    }
}

impl FromStr for Invitation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "this is not an invitation: write it like {SCHEME}{KIND}?address=192.168.43.1&port=8684&code=042117"
            )
        };
        let query = text.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix(KIND)?.strip_prefix('?'));
        let (mut addresses, mut port, mut code, mut unknown) = (Vec::new(), PORT, None, Vec::new());
        for part in query.ok_or_else(wrong)?.split('&') {
            match part.split_once('=').ok_or_else(wrong)? {
                ("address", value) => addresses.push(value.replace("%25", "%").parse()?),
                ("port", value) => {
                    port = value
                        .parse()
                        .ok()
                        .filter(|port| *port > 0)
                        .ok_or_else(|| format!("{value:?} is not a port"))?;
                }
                ("code", value) => code = Some(value.parse().map_err(|error: NoCode| error.to_string())?),
                // Probably an addition of a later release.
                (name, _) => unknown.push(name),
            }
        }
        // A missing field may be misspelt.
        let lacks = |name: &str| match &unknown[..] {
            [] => wrong(),
            unknown => format!("it has no {name}, but an unknown {}", unknown.join(" and ")),
        };
        if addresses.is_empty() {
            return Err(lacks("address"));
        }
        if addresses.len() > ADDRESSES_MAX {
            return Err(format!("it has {} addresses: at most {ADDRESSES_MAX} are allowed", addresses.len()));
        }
        Ok(Self { addresses, port, code: code.ok_or_else(|| lacks("code"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Invitation, String> {
        text.parse()
    }

    #[test]
    fn an_invitation_is_a_uri() {
        let addresses = ["192.168.43.1", "fd00::1", "fe80::1%wlan0"].map(|text| text.parse().unwrap());
        let invitation = Invitation::new(addresses.into(), "042 117".parse().unwrap());
        let text = "anabranch:pair?address=192.168.43.1&address=fd00::1&address=fe80::1%25wlan0&port=8684&code=042117";
        assert_eq!(invitation.to_string(), text);
        assert_eq!(read(text).unwrap(), invitation);
        assert_eq!(read("anabranch:pair?code=042117&more=x&address=10.0.0.1").unwrap().port, PORT);
        assert!(!format!("{invitation:?}").contains("042"), "codes stay out of logs");
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, why) in [
            ("", "this is not an invitation"),
            ("anabranch:pair", "not an invitation"),
            ("anabranch:pair?", "not an invitation"),
            ("anabranch:share?code=042117&address=10.0.0.1", "not an invitation"),
            ("anabranch:pair?code=042117", "not an invitation"),
            ("anabranch:pair?address=10.0.0.1", "not an invitation"),
            ("anabranch:pair?adress=10.0.0.1&code=042117", "it has no address, but an unknown adress"),
            ("anabranch:pair?address=10.0.0.1&cod=042117", "it has no code, but an unknown cod"),
            (
                "anabranch:pair?address=::1&address=::2&address=::3&address=::4&address=::5&code=042117",
                "it has 5 addresses: at most 4",
            ),
            ("anabranch:pair?address=x&code=042117", "not an IP address"),
            ("anabranch:pair?address=10.0.0.1&code=42", "six digits"),
            ("anabranch:pair?address=10.0.0.1&code=042117&port=0", "not a port"),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}: {}", read(text).unwrap_err());
        }
    }
}
