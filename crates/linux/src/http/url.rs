//! `http` URLs.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::Host;

/// Default port of HTTP.
const PORT: u16 = 80;

/// An `http` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(url::Url);

impl FromStr for Url {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("{text:?} {why}: write it like \"http://10.1.0.1:8080/file\"");
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                return Err(refuse("needs TLS, which is not supported"));
            }
            Some(_) => return Err(refuse("is not an http URL")),
            None => text,
        };
        // The parser is made for browsers and would look for the host behind further slashes.
        if rest.is_empty() || rest.starts_with(['/', '\\', '?', '#', ':']) {
            return Err(refuse("names no host"));
        }
        let url = url::Url::parse(&format!("http://{rest}")).map_err(|error| refuse(&explain(error)))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("contains a user name or password, which are not supported"));
        }
        if url.port() == Some(0) {
            return Err(refuse("has port 0, on which no server can listen"));
        }
        Ok(Self(url))
    }
}

fn explain(error: url::ParseError) -> String {
    match error {
        url::ParseError::InvalidPort => {
            "has a port that is not a number up to 65535 (write IPv6 addresses in brackets, like [fd00::1])".into()
        }
        url::ParseError::IdnaError => "has an invalid host name (write names that are not ASCII as xn--...)".into(),
        error => format!("is not a URL ({error})"),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.target())
    }
}

impl Url {
    /// Returns the name or address, without brackets.
    pub fn host(&self) -> String {
        match self.0.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            host => host.map_or(String::new(), |host| host.to_string()),
        }
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.0.port().unwrap_or(PORT)
    }

    /// Returns path and query, as in a request.
    pub fn target(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// Returns host and port, as in the Host field.
    pub fn authority(&self) -> &str {
        &self.0[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// Returns the complete URL to which a Location in an answer to this one leads, if it can be read (RFC 9110 section
    /// 10.2.2).
    pub fn located(&self, location: &str) -> Option<String> {
        self.0.join(location).ok().map(String::from)
    }

    /// Returns the last part of the path, as a name for the file.
    pub fn file_name(&self) -> Option<OsString> {
        let encoded = self.0.path_segments()?.next_back().filter(|name| !name.is_empty())?;
        let name: Vec<u8> = percent_decode_str(encoded).collect();
        // A name that would lead elsewhere stays encoded, as does one that would send commands to the terminal that
        // shows it.
        let leads_elsewhere = name.contains(&b'/') || name == b"." || name == b"..";
        let commands = String::from_utf8_lossy(&name).chars().any(char::is_control);
        Some(if leads_elsewhere || commands { encoded.into() } else { OsString::from_vec(name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn parts_of_a_url() {
        let url = url("http://10.1.0.1:8080/a/b c.bin?x=%20#top");
        assert_eq!((url.host().as_str(), url.port(), url.target()), ("10.1.0.1", 8080, "/a/b%20c.bin?x=%20"));
        assert_eq!(url.file_name(), Some("b c.bin".into()));
        assert_eq!(url.to_string(), "http://10.1.0.1:8080/a/b%20c.bin?x=%20");
    }

    #[test]
    fn defaults_and_addresses() {
        assert_eq!(url("example.org").to_string(), "http://example.org/");
        assert_eq!(url("localhost:8080/x").authority(), "localhost:8080");
        let six = url("HTTP://[fd00::1]:81/");
        assert_eq!((six.host().as_str(), six.port(), six.authority()), ("fd00::1", 81, "[fd00::1]:81"));
        assert_eq!(url("http://h?q").target(), "/?q");
        assert_eq!(url("http://h:80/").authority(), "h");
        assert_eq!(url("http://h/").file_name(), None);
    }

    #[test]
    fn places_are_completed() {
        let url = url("http://h:8080/a/b?x");
        for (location, whole) in [
            ("c/d", "http://h:8080/a/c/d"),
            ("/c", "http://h:8080/c"),
            ("?y", "http://h:8080/a/b?y"),
            ("//i/c", "http://i/c"),
            ("https://i/c", "https://i/c"),
        ] {
            assert_eq!(url.located(location).as_deref(), Some(whole));
        }
        assert_eq!(url.located("http://[::1/"), None);
    }

    #[test]
    fn names_of_files_lead_nowhere_else() {
        let name = |text: &str| url(text).file_name();
        assert_eq!(name("http://h/caf%E9"), Some(OsString::from_vec(b"caf\xe9".to_vec())));
        assert_eq!(name("http://h/a/..%2f..%2fpasswd"), Some("..%2f..%2fpasswd".into()));
        assert_eq!(name("http://h/a/%2e%2e"), None);
        assert_eq!(name("http://h/%1b%5b31mx"), Some("%1b%5b31mx".into()));
        assert_eq!(name("http://h/%00"), Some("%00".into()));
    }

    #[test]
    fn refusals_say_what_to_write() {
        for (text, why) in [
            ("https://h/", "TLS"),
            ("ftp://h/", "not an http URL"),
            ("http:///x", "no host"),
            ("http://", "no host"),
            ("", "no host"),
            ("http://h:port/", "port"),
            ("http://h:0/", "port 0"),
            ("http://h:65536/", "65535"),
            ("http://[::1/", "IPv6"),
            ("http://fd00::1/", "brackets"),
            ("http://u@h/", "user name"),
            ("http://a b/", "invalid host name"),
            ("http://bücher.example/", "xn--"),
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert!(error.contains(why) && error.contains("write it like"), "{error}");
        }
    }
}
