//! Conditional requests (RFC 9110 section 13): is what the client has still what is there?

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was changed this short a time ago may change again without a new time: Last-Modified counts seconds, and
/// file systems count ticks (RFC 9110 section 8.8.2.2).
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// What tells one version of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag with its quotes, without `W/`.
    tag: String,
    /// When it was changed, in whole seconds.
    modified: SystemTime,
    /// Whether equal validators mean equal octets.
    strong: bool,
}

/// What a request makes its answer depend on.
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

/// What follows from the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Answer as if there were none.
    Answer,
    /// 304: the client has it.
    NotModified,
    /// 412: it is not what the client thinks.
    Failed,
}

impl Validators {
    /// Those of a file with an inode, a length, and a time of change, `now`.
    pub fn new(inode: u64, len: u64, modified: SystemTime, now: SystemTime) -> Self {
        let nanos = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let strong = now.duration_since(modified).is_ok_and(|age| age >= SETTLED_AFTER);
        Self { tag: format!("\"{inode:x}-{len:x}-{nanos:x}\""), modified: whole_seconds(modified.min(now)), strong }
    }

    /// The value of the ETag field.
    pub fn etag(&self) -> String {
        format!("{}{}", if self.strong { "" } else { "W/" }, self.tag)
    }

    /// The value of the Last-Modified field.
    pub fn last_modified(&self) -> String {
        httpdate::fmt_http_date(self.modified)
    }

    /// Weak comparison with a list of tags or `*`.
    fn is_among(&self, list: &str) -> bool {
        list.trim() == "*" || tags(list).any(|(_, tag)| tag == self.tag)
    }

    /// Strong comparison: weak tags match nothing.
    fn is_strongly_among(&self, list: &str) -> bool {
        list.trim() == "*" || self.strong && tags(list).any(|(weak, tag)| !weak && tag == self.tag)
    }
}

impl Conditions {
    /// In the order of RFC 9110 section 13.2.2. Dates that are none are ignored, as the sections of their fields say.
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

    /// Whether a part may be sent, or only the whole (RFC 9110 section 13.1.5): a part of another version would be
    /// joined to what the client has.
    pub fn allow_range(&self, validators: &Validators) -> bool {
        let Some(text) = self.if_range.as_deref() else { return true };
        match httpdate::parse_http_date(text) {
            // The exact date: an earlier or a later one is another version's.
            Ok(date) => validators.strong && date == validators.modified,
            Err(_) => text.trim() != "*" && validators.is_strongly_among(text),
        }
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// The tags of a list, each with whether it is weak. What is no tag is left out.
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

    /// RFC 9110's own date: Tue, 15 Nov 1994 12:45:26 GMT.
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
