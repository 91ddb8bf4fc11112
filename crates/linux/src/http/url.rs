//! `http` URLs.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use super::encode_path;

/// Where a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, as they go into a request.
    pub target: String,
}

impl FromStr for Url {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("{text:?} {why}: write it like \"http://10.1.0.1:8080/file\"");
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(("https", _)) => return Err(refuse("needs TLS, which is not spoken here")),
            Some(_) => return Err(refuse("is not an http URL")),
            None => text,
        };
        let path_at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path_at);
        let (host, port) = split_port(authority).ok_or_else(|| refuse("names no host and port"))?;
        let path = path.split('#').next().unwrap_or_default();
        let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // Spaces and such would end the request line; what is encoded already stays as it is.
        let target = target.split('%').map(encode_visible).collect::<Vec<_>>().join("%");
        Ok(Self { host: host.into(), port, target })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.target)
    }
}

impl Url {
    /// Host and port as they stand in the Host field.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.clone() };
        if *port == 80 { host } else { format!("{host}:{port}") }
    }

    /// The last part of the path: a name for the file.
    pub fn file_name(&self) -> Option<&str> {
        let path = self.target.split('?').next()?;
        path.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

/// Host and port; the port of HTTP is 80.
fn split_port(authority: &str) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("80"))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "80")),
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let is_name = !host.is_empty() && !host.contains(['@', ' ', '[', ']']);
    is_name.then_some((host, port))
}

/// Encodes what may not stand in a request line and leaves delimiters alone.
fn encode_visible(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_graphic() { c.to_string() } else { encode_path(c.to_string().as_bytes()) })
        .collect()
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
        assert_eq!((url.host.as_str(), url.port, url.target.as_str()), ("10.1.0.1", 8080, "/a/b%20c.bin?x=%20"));
        assert_eq!(url.file_name(), Some("b%20c.bin"));
        assert_eq!(url.to_string(), "http://10.1.0.1:8080/a/b%20c.bin?x=%20");
    }

    #[test]
    fn defaults_and_addresses() {
        assert_eq!(url("example.org").to_string(), "http://example.org/");
        let six = url("http://[fd00::1]:81/");
        assert_eq!((six.host.as_str(), six.port, six.authority().as_str()), ("fd00::1", 81, "[fd00::1]:81"));
        assert_eq!(url("http://h?q").target, "/?q");
        assert_eq!(url("http://h/").file_name(), None);
    }

    #[test]
    fn refusals() {
        for text in [
            "https://h/",
            "ftp://h/",
            "http:///x",
            "http://h:port/",
            "http://h:0/",
            "http://[::1/",
            "http://fd00::1/",
            "",
        ] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
        assert!("http://u@h/".parse::<Url>().is_err());
    }
}
