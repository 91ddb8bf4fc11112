//! Conditional requests (RFC 9110 section 13): is the client's version of a file still current?

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that changed less than this time ago may change again without a new modification time: Last-Modified counts
/// seconds, and file systems count ticks (RFC 9110 section 8.8.2.2).
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Identifies a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag with its quotes, without `W/`.
    tag: String,
    /// Modification time, in whole seconds.
    modified: SystemTime,
    /// Whether equal validators mean equal octets.
    strong: bool,
}

/// Conditions of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// If-Match.
    pub if_match: Option<String>,
    /// If-None-Match.
    pub if_none_match: Option<String>,
    /// If-Modified-Since.
    pub if_modified_since: Option<String>,
    /// If-Unmodified-Since.
    pub if_unmodified_since: Option<String>,
    /// If-Range.
    pub if_range: Option<String>,
}

/// Consequence of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Answer as if there were no conditions.
    Answer,
    /// 304: the client has the current version.
    NotModified,
    /// 412: the client assumes another version.
    Failed,
}

impl Validators {
    /// Creates the validators of a file with this inode, length and modification time, at time `now`.
    pub fn new(inode: u64, len: u64, modified: SystemTime, now: SystemTime) -> Self {
        let nanos = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let strong = now.duration_since(modified).is_ok_and(|age| age >= SETTLED_AFTER);
        Self { tag: format!("\"{inode:x}-{len:x}-{nanos:x}\""), modified: whole_seconds(modified.min(now)), strong }
    }

    /// Returns the value of the ETag field.
    pub fn etag(&self) -> String {
        format!("{}{}", if self.strong { "" } else { "W/" }, self.tag)
    }

    /// Returns the value of the Last-Modified field.
    pub fn last_modified(&self) -> String {
        httpdate::fmt_http_date(self.modified)
    }

    /// Compares weakly with a list of tags or `*`.
    fn is_among(&self, list: &str) -> bool {
        list.trim() == "*" || tags(list).any(|(_, tag)| tag == self.tag)
    }

    /// Compares strongly: weak tags match nothing.
    fn is_strongly_among(&self, list: &str) -> bool {
        list.trim() == "*" || self.strong && tags(list).any(|(weak, tag)| !weak && tag == self.tag)
    }
}

impl Conditions {
    /// Judges the conditions in the order of RFC 9110 section 13.2.2. Ignores invalid dates, as the sections on their
    /// fields demand.
    pub fn judge(&self, validators: &Validators) -> Judgement {
        let date = |field: &Option<String>| field.as_deref().and_then(|text| httpdate::parse_http_date(text).ok());
        let fails = match (&self.if_match, date(&self.if_unmodified_since)) {
            (Some(list), _) => !validators.is_strongly_among(list),
            (None, Some(since)) => validators.modified > since,
            (None, None) => false,
        };
        if fails {
            return Judgement::Failed;
        }
        let is_there = match (&self.if_none_match, date(&self.if_modified_since)) {
            (Some(list), _) => validators.is_among(list),
            (None, Some(since)) => validators.modified <= since,
            (None, None) => false,
        };
        if is_there { Judgement::NotModified } else { Judgement::Answer }
    }

    /// Returns whether a part may be sent instead of the complete file (RFC 9110 section 13.1.5): the client would join
    /// a part of another version to what it has.
    pub fn allow_range(&self, validators: &Validators) -> bool {
        let Some(text) = self.if_range.as_deref() else { return true };
        match httpdate::parse_http_date(text) {
            // The date must match exactly: an earlier or later one belongs to another version.
            Ok(date) => validators.strong && date == validators.modified,
            Err(_) => text.trim() != "*" && validators.is_strongly_among(text),
        }
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Returns the tags of a list, each with whether it is weak. Leaves out invalid tags.
fn tags(list: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut rest = list;
    core::iter::from_fn(move || {
        let open = rest.find('"')?;
        let len = rest[open + 1..].find('"')? + 2;
        let weak = rest[..open].ends_with("W/");
        let tag = &rest[open..open + len];
        rest = &rest[open + len..];
        Some((weak, tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example date of RFC 9110: Tue, 15 Nov 1994 12:45:26 GMT.
    const CHANGED_S: u64 = 784_903_526;
    const DATE: &str = "Tue, 15 Nov 1994 12:45:26 GMT";
    const BEFORE: &str = "Tue, 15 Nov 1994 12:45:25 GMT";
    const AFTER: &str = "Tue, 15 Nov 1994 12:45:27 GMT";

    fn validators(age: Duration) -> Validators {
        let changed = UNIX_EPOCH + Duration::from_secs(CHANGED_S) + Duration::from_millis(500);
        Validators::new(0xa, 0xb, changed, changed + age)
    }

    fn old() -> Validators {
        validators(Duration::from_secs(3600))
    }

    fn some(text: &str) -> Option<String> {
        Some(text.into())
    }

    #[test]
    fn validators_say_when_they_are_weak() {
        assert_eq!((old().last_modified().as_str(), old().etag().as_str()), (DATE, "\"a-b-ae4899947fbe100\""));
        assert!(validators(Duration::from_secs(1)).etag().starts_with("W/\""));
    }

    #[test]
    fn if_range_takes_the_same_version_only() {
        let allows = |text: &str, validators: &Validators| {
            Conditions { if_range: some(text), ..Conditions::default() }.allow_range(validators)
        };
        let tag = old().etag();
        assert!(allows(&tag, &old()) && allows(DATE, &old()));
        for other in [BEFORE, AFTER, "\"other\"", &format!("W/{tag}"), "*", "nonsense", ""] {
            assert!(!allows(other, &old()), "{other}");
        }
        let young = validators(Duration::from_secs(1));
        assert!(!allows(DATE, &young) && !allows(&young.etag(), &young) && !allows(&tag, &young));
        assert!(Conditions::default().allow_range(&young));
    }

    #[test]
    fn if_none_match_goes_before_if_modified_since() {
        let judge = |tags: Option<&str>, since: Option<&str>| {
            let (if_none_match, if_modified_since) = (tags.map(Into::into), since.map(Into::into));
            Conditions { if_none_match, if_modified_since, ..Conditions::default() }.judge(&old())
        };
        let tag = old().etag();
        let weak = format!("\"a,b\", W/{tag}");
        for tags in [tag.as_str(), &weak, "*"] {
            assert_eq!(judge(Some(tags), Some(BEFORE)), Judgement::NotModified, "{tags}");
        }
        assert_eq!(judge(Some("\"other\""), Some(AFTER)), Judgement::Answer);
        for (since, judgement) in [
            (DATE, Judgement::NotModified),
            (AFTER, Judgement::NotModified),
            (BEFORE, Judgement::Answer),
            ("yesterday", Judgement::Answer),
        ] {
            assert_eq!(judge(None, Some(since)), judgement, "{since}");
        }
    }

    #[test]
    fn if_match_and_if_unmodified_since_fail() {
        let judge = |tags: Option<&str>, since: Option<&str>| {
            let (if_match, if_unmodified_since) = (tags.map(Into::into), since.map(Into::into));
            Conditions { if_match, if_unmodified_since, ..Conditions::default() }.judge(&old())
        };
        assert_eq!(judge(Some(&old().etag()), Some(BEFORE)), Judgement::Answer);
        assert_eq!(judge(Some(&format!("W/{}", old().etag())), None), Judgement::Failed);
        assert_eq!(judge(Some("\"other\""), None), Judgement::Failed);
        assert_eq!(judge(None, Some(BEFORE)), Judgement::Failed);
        assert_eq!(judge(None, Some(DATE)), Judgement::Answer);
    }
}
