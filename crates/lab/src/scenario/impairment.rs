//! Effects of links on packets besides delay, queueing and loss.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::text::Text;
use units::{ByteCount, Duration, Probability};

use super::link::Narrow;
use super::schema::Written;

/// Packets held back, which lets others overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets to hold back.
    #[serde(with = "units::text::probability")]
    #[schemars(with = "Written<Probability>")]
    pub probability: Probability,
    /// Longest time to hold them.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub delay: Duration,
}

/// Effects of one direction of a link on packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Packets held back.
    pub reorder: Option<Reorder>,
    /// Packets that are duplicated before the link.
    pub duplicate: Option<Text<Probability>>,
    /// Packets with a bit flipped, which checksums notice.
    pub corrupt: Option<Text<Probability>>,
}

/// A time without connectivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub from: Duration,
    /// When it ends.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub until: Duration,
}

impl Outage {
    /// What is wrong with it, and the remedy.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        let Self { from, until } = self;
        (from >= until).then(|| {
            (
                format!("an outage from {from} until {until} has no duration"),
                "write a later `until`, or remove the outage",
            )
        })
    }
}

/// A middlebox on a link: exactly one of these, by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Middlebox {
    /// Removes TCP options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strip: Option<Strip>,
    /// Cuts segments into smaller ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Joins segments into larger ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Adds a number to data sequence numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_dsn: Option<ShiftDsn>,
    /// Overwrites octets of the streams from the first host, or in scenarios from the source, and corrects TCP's
    /// checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<Overwrite>,
    /// A hop that takes no packet beyond a size, which the hosts' devices do not know about. In scenarios, use the
    /// link's `mtu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrow: Option<NarrowBox>,
    /// Translates the first host's addresses and ports to one external address. IPv4 only; not in scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<Nat>,
}

/// The action of a middlebox.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed<'a> {
    /// See [`Middlebox::strip`].
    Strip(&'a Strip),
    /// See [`Middlebox::split`].
    Split(&'a Split),
    /// See [`Middlebox::merge`].
    Merge(&'a Merge),
    /// See [`Middlebox::shift_dsn`].
    ShiftDsn(&'a ShiftDsn),
    /// See [`Middlebox::overwrite`].
    Overwrite(&'a Overwrite),
    /// See [`Middlebox::narrow`].
    Narrow(&'a NarrowBox),
    /// See [`Middlebox::nat`].
    Nat(&'a Nat),
}

impl Middlebox {
    /// The action; `None` unless there is exactly one.
    pub fn deed(&self) -> Option<Deed<'_>> {
        let all = [
            self.strip.as_ref().map(Deed::Strip),
            self.split.as_ref().map(Deed::Split),
            self.merge.as_ref().map(Deed::Merge),
            self.shift_dsn.as_ref().map(Deed::ShiftDsn),
            self.overwrite.as_ref().map(Deed::Overwrite),
            self.narrow.as_ref().map(Deed::Narrow),
            self.nat.as_ref().map(Deed::Nat),
        ];
        let mut named = all.into_iter().flatten();
        named.next().filter(|_| named.next().is_none())
    }

    /// What is wrong with it, and the remedy.
    pub fn problem(&self) -> Option<(String, &'static str)> {
        match self.deed() {
            None => Some((
                "a middlebox has exactly one action".into(),
                "write one of strip, split, merge, shift_dsn, overwrite, narrow and nat, like { split = { payload = \"500 B\" } }",
            )),
            Some(Deed::Strip(strip)) if strip.options.is_empty() => {
                Some(("a middlebox that strips no `options` does nothing".into(), "name one, like \"mptcp\""))
            }
            Some(Deed::ShiftDsn(ShiftDsn { by: 0, .. })) => {
                Some(("a middlebox that shifts numbers by 0 does nothing".into(), "write `by = 1`, or remove it"))
            }
            Some(Deed::Overwrite(overwrite)) if overwrite.text.is_empty() => {
                Some(("a middlebox that overwrites with no text does nothing".into(), "write a `text`, or remove it"))
            }
            Some(Deed::Split(Split { payload }) | Deed::Merge(Merge { payload, .. })) if payload.0 == 0 => {
                Some(("a segment without payload carries nothing".into(), "write a larger `payload`"))
            }
            Some(Deed::Narrow(narrow)) if narrow.size.0 < 68 => {
                Some(("every IPv4 path carries packets of 68 octets (RFC 791)".into(), "write a larger `size`"))
            }
            Some(Deed::Nat(nat)) if nat.idle_timeout.is_zero() => {
                Some(("a NAT that forgets at once lets no answer in".into(), "write a longer `idle_timeout`"))
            }
            Some(_) => None,
        }
    }
}

/// Removes TCP options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strip {
    /// The options to remove.
    pub options: Vec<OptionKind>,
    /// The segments from which to remove them.
    #[serde(default)]
    pub on: StripFrom,
    /// Number of segments in each direction, of any kind, that pass unchanged before that.
    #[serde(default)]
    pub after: u64,
}

/// Cuts segments into smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Maximum octets of data in a piece.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub payload: ByteCount,
}

/// Joins segments into larger ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Maximum octets of data in a joined segment.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub payload: ByteCount,
    /// Longest time that a segment waits for the next one.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub hold: Duration,
}

/// Adds a number to data sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShiftDsn {
    /// The number to add.
    pub by: u64,
    /// Number of mappings in each direction that pass unchanged before that.
    #[serde(default)]
    pub after: u64,
}

/// Overwrites octets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overwrite {
    /// Position in the stream of each subflow.
    pub at: u32,
    /// The new octets.
    pub text: String,
}

/// A hop that takes no packet beyond a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NarrowBox {
    /// Largest packet, headers included.
    #[serde(with = "units::text::bytes")]
    #[schemars(with = "Written<ByteCount>")]
    pub size: ByteCount,
    /// Whether larger packets vanish; by default, ICMP informs their senders.
    #[serde(default)]
    pub silent: bool,
    /// In which direction it is narrow.
    #[serde(default)]
    pub on: NarrowOn,
}

impl NarrowBox {
    /// Its size, and whether it drops silently.
    pub fn narrow(&self) -> Narrow {
        Narrow { size: self.size, silent: self.silent }
    }
}

/// Translates addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nat {
    /// Idle time after which it forgets a mapping.
    #[serde(with = "units::text::duration")]
    #[schemars(with = "Written<Duration>")]
    pub idle_timeout: Duration,
}

/// A TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptionKind {
    /// All options of MPTCP.
    Mptcp,
    /// Maximum segment size.
    Mss,
    /// Window scale.
    WindowScale,
    /// SACK permitted and SACK blocks.
    Sack,
    /// Timestamps.
    Timestamps,
}

/// Segments that lose options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StripFrom {
    /// All segments.
    #[default]
    All,
    /// SYNs without ACK.
    Syn,
    /// SYN/ACKs.
    SynAck,
}

/// The directions in which a hop is narrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NarrowOn {
    /// Both directions.
    #[default]
    Both,
    /// From the first host to the second.
    Up,
    /// From the second host to the first.
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middlebox(text: &str) -> Middlebox {
        toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_middlebox_does_one_thing() {
        let split = middlebox("split = { payload = '500 B' }");
        assert_eq!(split.deed(), Some(Deed::Split(&Split { payload: ByteCount(500) })));
        assert!(split.problem().is_none());
        let both = middlebox("split = { payload = '500 B' }\nnat = { idle_timeout = '1 s' }");
        assert!(both.deed().is_none() && both.problem().is_some());
        assert!(middlebox("").problem().is_some());
    }

    #[test]
    fn what_would_do_nothing_or_too_much_is_found() {
        for text in [
            "strip = { options = [] }",
            "shift_dsn = { by = 0 }",
            "shift_dsn = { by = 0, after = 3 }",
            "overwrite = { at = 1000, text = '' }",
            "split = { payload = '0 B' }",
            "merge = { payload = '0 B', hold = '1 ms' }",
            "narrow = { size = '67 B' }",
            "nat = { idle_timeout = '0 s' }",
        ] {
            assert!(middlebox(text).problem().is_some(), "{text}");
        }
    }
}
