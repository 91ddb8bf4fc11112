//! Converts the target of a request to a path, and the name of a file to a media type.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Characters that are encoded in a path: all except those removed here.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the target of the same folder with a slash at its end, unless it has one. The query stays.
///
/// The answer is safe as a Location: it names no other host, whatever number of slashes the target begins with, and has
/// only printable octets.
pub fn with_slash(target: &str) -> Option<String> {
    let decoded = decode_path(target)?;
    let target = target.split('#').next()?;
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if path.ends_with('/') || decoded.as_os_str().is_empty() {
        return None;
    }
    let path = encode_path(decoded.as_os_str().as_bytes());
    let query = query.filter(|query| query.bytes().all(|octet| octet.is_ascii_graphic()));
    Some(format!("/{path}/{}", query.map_or(String::new(), |query| format!("?{query}"))))
}

/// Returns the path within the served folder, or `None` for a target that leads elsewhere or nowhere. A complete URL,
/// as proxies send it, is accepted (RFC 9112 section 3.2.2).
pub fn decode_path(target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?;
    let path = match path.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => path,
    };
    let path = path.strip_prefix('/')?;
    let octets: Vec<u8> = percent_decode_str(path).collect();
    if octets.contains(&0) {
        return None;
    }
    let mut decoded = PathBuf::new();
    for part in octets.split(|octet| *octet == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return None,
            name => decoded.push(OsString::from_vec(name.to_vec())),
        }
    }
    Some(decoded)
}

/// Encodes a path for a link. Names of files need not be UTF-8.
pub fn encode_path(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// Returns the media type of a file, by its name.
pub fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" | "toml" | "log" => "text/plain; charset=utf-8",
        "css" => "text/css",
        "js" => "text/javascript",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn targets_become_paths() {
        assert_eq!(decode_path("/a%20b/c.txt?x=/../y").as_deref(), Some(Path::new("a b/c.txt")));
        assert_eq!(decode_path("/").as_deref(), Some(Path::new("")));
        assert_eq!(decode_path("//a/./b/").as_deref(), Some(Path::new("a/b")));
        assert_eq!(decode_path("http://h:8080/a?x").as_deref(), Some(Path::new("a")));
        assert_eq!(decode_path("http://h").as_deref(), Some(Path::new("")));
        assert_eq!(decode_path("/%C3%A4").as_deref(), Some(Path::new("ä")));
    }

    #[test]
    fn nothing_leads_out() {
        for target in
            ["/../etc/passwd", "/a/%2e%2e/%2E./b", "/..%2fetc", "etc", "*", "http:/x", "http://h/../x", "/a%00b", ""]
        {
            assert_eq!(decode_path(target), None, "{target}");
        }
    }

    #[test]
    fn folders_get_a_slash() {
        for (target, slashed) in [
            ("/a%20b?x=/y&z", Some("/a%20b/?x=/y&z")),
            ("/a/b#c", Some("/a/b/")),
            ("http://h:8080/a?", Some("/a/?")),
            // This would name a host.
            ("//host", Some("/host/")),
            ("/a%0d%0aSet-Cookie:x", Some("/a%0D%0ASet-Cookie%3Ax/")),
            ("/a?\u{e4}", Some("/a/")),
            ("/a/", None),
            ("/a/?x", None),
            ("/", None),
            ("/.", None),
            ("/?x", None),
            ("http://h", None),
            ("*", None),
        ] {
            assert_eq!(with_slash(target).as_deref(), slashed, "{target}");
        }
    }

    #[test]
    fn links_are_encoded() {
        assert_eq!(encode_path("/a b/<ä>&.txt".as_bytes()), "/a%20b/%3C%C3%A4%3E%26.txt");
        assert_eq!(encode_path(b"caf\xe9"), "caf%E9");
    }
}
