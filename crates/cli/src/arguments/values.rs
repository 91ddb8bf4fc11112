//! Values of options, from text.

use std::net::{IpAddr, SocketAddr};

use cooperation::link::Name;
use daemon::links::RelayChoice;
use daemon::pairing::{Invitation, SCHEME};
use daemon::proxy::choice::Tier;
use daemon::relay::{Limit, Period};
use daemon::scoped::ScopedAddress;
use lab::scenario::SEED_MAX;
use linux::uplink::lent;
use tracing_subscriber::filter::{LevelFilter, Targets};
use units::{ByteCount, Duration, Rate};

use crate::rate::target;

/// A shorter time limit would end connections between two round trips of a slow link.
const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// Parts of the program besides [`daemon::LOG_PARTS`] that log events.
const OWN_PARTS: [&str; 3] = ["anabranch", "anabranch::commands::device", "daemon"];

pub(super) fn filter(text: &str) -> Result<Targets, String> {
    let wrong = || {
        format!("write off, error, warn, info, debug or trace, or PART=LEVEL for a part of the program, not {text:?}")
    };
    let is_level = |level: &str| level.parse::<LevelFilter>().is_ok();
    // A single word would be parsed as a target, and all other targets would be off.
    for item in text.split(',') {
        let (part, level) = item.split_once('=').map_or((None, item), |(part, level)| (Some(part), level));
        if !is_level(level) {
            return Err(wrong());
        }
        // It would be accepted, and nothing would be logged.
        if let Some(unknown) = part.filter(|part| !is_part(part)) {
            let all: Vec<&str> = OWN_PARTS.into_iter().chain(daemon::LOG_PARTS).collect();
            return Err(format!("there is no part {unknown:?} that logs: write one of {}", all.join(", ")));
        }
    }
    text.parse().map_err(|_| wrong())
}

/// Whether something logs events under this name, or under one within it.
fn is_part(name: &str) -> bool {
    let is_in = |part: &str| part == name || part.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"));
    OWN_PARTS.into_iter().chain(daemon::LOG_PARTS).any(is_in)
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let known = text.parse().ok().filter(|seed| *seed <= SEED_MAX);
    known.ok_or_else(|| format!("write a whole number from 0 to {SEED_MAX}"))
}

pub(super) fn jobs(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|jobs| *jobs > 0).ok_or_else(|| "write a whole number above 0".into())
}

pub(super) fn patience(text: &str) -> Result<Duration, String> {
    let span = text.parse::<Duration>().map_err(|error| error.to_string())?;
    if span >= PATIENCE_MIN { Ok(span) } else { Err(format!("write {PATIENCE_MIN} or more")) }
}

/// Parses the name of an interface, with its tier or without one.
pub(super) fn tiered(text: &str) -> Result<(String, Tier), String> {
    check_single(text)?;
    tiered_name(text)
}

fn tiered_name(text: &str) -> Result<(String, Tier), String> {
    if text.contains('=') { with_tier(text) } else { Ok((uplink(text)?, Tier::Primary)) }
}

/// Parses the name of an interface.
pub(super) fn interface(text: &str) -> Result<String, String> {
    check_single(text)?;
    uplink(text)
}

/// Refuses a list of interfaces. An interface whose own name looks like a list is refused later, with the way to rename
/// it.
fn check_single(text: &str) -> Result<(), String> {
    let is_separator = |c: char| c == ',' || c == ';' || c.is_ascii_whitespace();
    let names: Vec<&str> = text.split(is_separator).filter(|name| !name.is_empty()).collect();
    if names.len() < 2 || lent::exists(text) {
        return Ok(());
    }
    let each: Vec<String> = names.iter().map(|name| format!("--interface {name}")).collect();
    Err(format!("these are {} names: repeat the option for each, like {}", names.len(), each.join(" ")))
}

/// Parses the name of an interface or a relay, and refuses an empty one, such as an unset variable of a script.
pub(super) fn uplink(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("the name is missing: write the name of an uplink, like usb0".into()),
        false => Ok(text.into()),
    }
}

/// Parses the name of an interface for a command that uses all interfaces alike.
pub(super) fn untiered(text: &str) -> Result<String, String> {
    match with_tier(text) {
        Ok((name, tier)) => Err(format!(
            "tiers such as {} belong to `anabranch join`; a download uses all uplinks alike: write {name}",
            tier.name()
        )),
        Err(_) => interface(text),
    }
}

/// Parses the day of the month on which a volume is renewed.
pub(super) fn reset_day(text: &str) -> Result<i8, String> {
    let day = text.parse().ok().filter(|day| (1..=31).contains(day));
    day.ok_or_else(|| "write a day of the month from 1 to 31".into())
}

/// One change of a running daemon.
#[derive(Clone, Debug)]
pub enum Change {
    /// An interface gets another tier.
    Tier(String, Tier),
    /// An interface gets another price per octet.
    Price(String, u32),
    /// The target bit rate changes; `None`: all uplinks carry data.
    Target(Option<Rate>),
}

pub(super) fn change(text: &str) -> Result<Change, String> {
    match text.strip_prefix("target=") {
        Some("all") => Ok(Change::Target(None)),
        Some(rate) => target(rate).map(|rate| Change::Target(Some(rate))),
        None if text.starts_with("price.") => {
            priced(text.trim_start_matches("price.")).map(|(name, price)| Change::Price(name, price))
        }
        None => match with_tier(text) {
            Ok((name, tier)) => Ok(Change::Tier(name, tier)),
            Err(why) => Err(in_lower_case(text).map_or(why, |meant| format!("write it in lower case: {meant}"))),
        },
    }
}

/// Returns the correct spelling of a change that parses as no tier but names a setting in the wrong case.
fn in_lower_case(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=')?;
    let lower = name.to_ascii_lowercase();
    match lower.strip_prefix("price.") {
        Some(_) => Some(format!("price.{}={value}", &name["price.".len()..])),
        None if lower == "target" => Some(format!("target={value}")),
        None => None,
    }
}

pub(super) fn priced(text: &str) -> Result<(String, u32), String> {
    let (name, price) = pair(text, "NAME=PRICE, like usb1=3")?;
    let price = price.parse().map_err(|_| format!("a price is a whole number from 0 to {}, like usb1=3", u32::MAX))?;
    Ok((uplink(name)?, price))
}

/// The device to pair with.
#[derive(Clone, Debug)]
pub enum PairTarget {
    /// The device at an address.
    At(ScopedAddress),
    /// The device that shows an invitation.
    Invited(Invitation),
}

pub(super) fn pair_target(text: &str) -> Result<PairTarget, String> {
    match text.starts_with(SCHEME) {
        true => text.parse().map(PairTarget::Invited),
        false => text.parse().map(PairTarget::At),
    }
}

/// A maximum rate, or no limit.
#[derive(Clone, Copy, Debug)]
pub struct Cap(pub Option<Rate>);

/// The lowest rate limit: one packet of 1500 octets per second is 12 kbit/s.
const RATE_MIN: Rate = Rate::from_bps(16_000);

pub(super) fn cap(text: &str) -> Result<Cap, String> {
    if text == "all" {
        return Ok(Cap(None));
    }
    let rate = target(text)?;
    if rate < RATE_MIN {
        return Err(format!("{text} is hardly a packet per second: write 16k or more, like 4M, or all"));
    }
    Ok(Cap(Some(rate)))
}

/// The smallest volume that can be lent.
const VOLUME_BYTES_MIN: u64 = 1000;

pub(super) fn volume(text: &str) -> Result<Limit, String> {
    let wrong = || format!("write an amount and a period, like 5GB/month or 500MB/day, not {text:?}");
    let (bytes, period) = text.rsplit_once('/').ok_or_else(wrong)?;
    let period = match period.trim() {
        "day" => Period::Day,
        "month" => Period::Month { reset_day: 1 },
        other => return Err(format!("the period must be day or month, as in 5GB/month, not {other:?}")),
    };
    let bytes = bytes.parse::<ByteCount>().map_err(|why| format!("{why}, as in 5GB/month"))?.0;
    // A smaller volume holds no packet, and fractions of an octet are rounded.
    if bytes < VOLUME_BYTES_MIN {
        return Err(format!("{text} is less than a packet: write 1kB or more, like 5GB/month"));
    }
    Ok(Limit { bytes, period })
}

pub(super) fn percent(text: &str) -> Result<u8, String> {
    let percent = text.parse().ok().filter(|percent| *percent <= 100);
    percent.ok_or_else(|| "write a whole number of percent from 0 to 100, like 20".into())
}

pub(super) fn relay(text: &str) -> Result<RelayChoice, String> {
    let (rest, tier) = tiered_name(text)?;
    let (name, place) = rest.split_once('@').map_or((rest.as_str(), None), |(name, place)| (name, Some(place)));
    Ok(RelayChoice { name: uplink(name)?, address: place.map(str::parse).transpose()?, tier })
}

pub(super) fn device_name(text: &str) -> Result<Name, String> {
    text.parse().map_err(|error: cooperation::link::NoName| error.to_string())
}

fn with_tier(text: &str) -> Result<(String, Tier), String> {
    let (name, tier) = pair(text, "NAME=TIER, like usb1=backup")?;
    Ok((uplink(name)?, tier.parse()?))
}

/// Splits a name from its value. `form`: how to write them.
fn pair<'a>(text: &'a str, form: &str) -> Result<(&'a str, &'a str), String> {
    match text.split_once('=') {
        Some((name, value)) if !value.contains('=') => Ok((name, value)),
        Some(_) => Err(format!("there is more than one = in it: write {form}")),
        None => Err(format!("write it like {}", form.rsplit(' ').next().unwrap_or(form))),
    }
}

pub(super) fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "not an IP address: write it like 10.1.0.3 or fd00::3".into())
}

pub(super) fn place(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, like 127.0.0.1:1080 or [::1]:1080".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_value() {
        let refused = |text: &str| change(text).unwrap_err();
        let form = "there is more than one = in it: write NAME=TIER, like usb1=backup";
        assert_eq!(refused("usb1=primary=backup"), form);
        assert_eq!(tiered("usb1=primary=backup"), Err(form.into()));
        assert!(refused("price.usb1=3=4").ends_with("write NAME=PRICE, like usb1=3"));
        assert_eq!(refused("usb1"), "write it like usb1=backup");
        assert!(matches!(change("usb1=backup"), Ok(Change::Tier(name, Tier::Backup)) if name == "usb1"));
        assert!(matches!(change("price.usb1=3"), Ok(Change::Price(name, 3)) if name == "usb1"));
    }

    #[test]
    fn a_list_of_interfaces_is_told_to_be_several_options() {
        for list in ["usb0,usb1", "usb0 usb1", "usb0, usb1", "usb0;usb1"] {
            let why = "these are 2 names: repeat the option for each, like --interface usb0 --interface usb1";
            assert_eq!(tiered(list), Err(why.into()));
            assert_eq!((interface(list), untiered(list)), (Err(why.into()), Err(why.into())));
        }
        let why = tiered("usb0=backup,usb1=never").unwrap_err();
        assert!(why.ends_with("like --interface usb0=backup --interface usb1=never"), "{why}");
        assert_eq!(tiered("usb0=backup"), Ok(("usb0".into(), Tier::Backup)));
        assert_eq!((interface("usb0"), untiered("usb0")), (Ok("usb0".into()), Ok("usb0".into())));
    }
}
