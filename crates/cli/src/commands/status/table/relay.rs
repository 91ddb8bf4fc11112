//! Relays, from both sides: what a relay lends to each destination, and the state of an uplink over a relay.

use lab::present::quantity;
use serde_json::Value;

use super::{Row, Sample, counted, milliseconds, span};

/// Returns each destination as text.
pub fn rows(before: &Sample, now: &Sample) -> Vec<Row> {
    let span = span(before, now);
    let count = now.0.pointer("/relay/destinations").and_then(Value::as_array).map_or(0, Vec::len);
    let row = |index: usize| {
        let at = |field: &str| format!("/relay/destinations/{index}/{field}");
        let earlier = now.0.pointer(&format!("/relay/destinations/{index}")).and_then(|now| earlier(before, now));
        let was = |field: &str| earlier.and_then(|before| before[field].as_f64()).unwrap_or(0.0);
        let rate = |field: &str| (now.number(&at(field)) - was(field)).max(0.0) / span;
        let (down_rate, up_rate) = (rate("down_bytes"), rate("up_bytes"));
        let is_up = now.0.pointer(&at("is_up")) == Some(&Value::Bool(true));
        Row {
            cells: vec![
                now.word(&at("name")),
                if is_up { format!("at {}", now.word(&at("place"))) } else { "away".into() },
                quantity(down_rate * 8.0, "bit/s"),
                quantity(up_rate * 8.0, "bit/s"),
                format!("{}", now.number(&at("lost_packets"))),
                quantity(now.number(&at("down_bytes")) + now.number(&at("up_bytes")), "B"),
            ],
            is_lost: false,
            trouble: None,
            down_rate,
        }
    };
    (0..count).map(row).collect()
}

/// Returns the same destination in the earlier sample: destinations come and go, and a slot may have passed to another.
fn earlier<'a>(before: &'a Sample, now: &Value) -> Option<&'a Value> {
    let mut all = before.0.pointer("/relay/destinations")?.as_array()?.iter();
    all.find(|known| ["slot", "name"].iter().all(|field| known[*field] == now[*field]))
}

/// Describes what is lent, in a line or two.
pub fn lent(now: &Sample) -> String {
    let at = |field: &str| format!("/relay/{field}");
    let known = |field: &str| now.0.pointer(&at(field)).and_then(Value::as_f64);
    let lost = now.0.pointer(&at("lost")).and_then(Value::as_str);
    let state = match lost {
        Some(why) => format!("lends nothing for now: {} {why}", now.word(&at("interface"))),
        None => format!("{} ({})", now.word(&at("lends_in_words")), now.word(&at("interface"))),
    };
    let lends = now.0.pointer(&at("lends")).and_then(Value::as_str);
    let carries = lost.is_none() && lends.is_none_or(|lends| ["fully", "as-backup"].contains(&lends));
    // A limit of what is not lent would read like part of the reason.
    let rate = known("rate_bps").filter(|_| carries);
    let rate = rate.map_or(String::new(), |bps| format!(", {} each way at most", quantity(bps, "bit/s")));
    let volume = known("volume_bytes").map_or(String::new(), |bytes| {
        let renews = now.0.pointer(&at("volume_renews")).and_then(Value::as_str);
        let renews = renews.map_or(String::new(), |date| format!(", renewed on {date}"));
        format!("; {} of {} used{renews}", quantity(now.number(&at("volume_used_bytes")), "B"), quantity(bytes, "B"))
    });
    let splices = || {
        let count = now.0.pointer(&at("destinations")).and_then(Value::as_array).map_or(0, Vec::len);
        (0..count).map(|index| now.number(&at(&format!("destinations/{index}/spliced_subflows")))).sum()
    };
    let acknowledges = now.0.pointer(&at("mode")).is_some_and(|mode| mode == "fast-ack");
    let mode = if acknowledges { format!(", fast ACKs for {}", counted(splices(), "subflow")) } else { String::new() };
    let battery = known("battery_percent").map_or(String::new(), |percent| format!("; battery {percent} %"));
    let cap = known("rate_bps").unwrap_or(f64::MAX);
    let unheard = known("unheard").filter(|_| lost.is_none());
    // The spare rate of a link that seems dead is unknown.
    let spare = |field: &str, way: &str| {
        let known = known(field).filter(|spare| carries && unheard.is_none() && *spare < cap);
        known.map(|bps| format!("{} {way}", quantity(bps, "bit/s")))
    };
    let spare: Vec<String> = [("spare_bps", "down"), ("spare_up_bps", "up")]
        .into_iter()
        .filter_map(|(field, way)| spare(field, way))
        .collect();
    let spare =
        if spare.is_empty() { String::new() } else { format!(", which leaves {} to lend", spare.join(" and ")) };
    let unheard = unheard.map_or(String::new(), |nanos| {
        format!("; no answer over {} for {:.0} s", now.word(&at("interface")), nanos / 1e9)
    });
    format!(
        "{} {state}{rate}{mode}{unheard}; its owner's own traffic takes {} in both directions \
         together{spare}{volume}{battery}; {} refused, from unknown devices or with old keys",
        now.word(&at("name")),
        quantity(now.number(&at("owner_bps")), "bit/s"),
        counted(now.number(&at("refused_datagrams")), "datagram"),
    )
}

/// Returns a line for each uplink over a relay that has been heard.
pub fn links(now: &Sample) -> Vec<String> {
    let line = |index: usize| {
        let at = |field: &str| format!("/uplinks/{index}/link/{field}");
        let known = |field: &str| now.0.pointer(&at(field)).and_then(Value::as_f64);
        let interface = now.word(&format!("/uplinks/{index}/interface"));
        let relay = format!("{interface}: the relay {} at {}", now.word(&at("relay")), now.word(&at("place")));
        // The relay's last statement is outdated once it is silent.
        if let Some(nanos) = known("silent") {
            let is_up = now.0.pointer(&at("is_up")) == Some(&Value::Bool(true));
            let gone = if is_up { "" } else { ", gone" };
            return Some(format!("{relay}{gone}, not heard for {:.1} s", nanos / 1e9));
        }
        let lends = now.0.pointer(&at("lends_in_words"))?.as_str()?;
        let far = known("round_trip").map_or(String::new(), |nanos| format!(", RTT {}", milliseconds(nanos)));
        let rate =
            known("spare_bps").map_or(String::new(), |bps| format!(", {} towards this device", quantity(bps, "bit/s")));
        // The rest of an exhausted volume is for packets in flight; nobody can use it.
        let is_over = now.0.pointer(&at("lends")).is_some_and(|lends| lends == "no-volume");
        let left = known("left_bytes").filter(|_| !is_over);
        let left = left.map_or(String::new(), |bytes| format!(", {} left", quantity(bytes, "B")));
        let renews = now.0.pointer(&at("volume_renews")).and_then(Value::as_str);
        let renews = renews.map_or(String::new(), |date| format!(" until {date}"));
        Some(format!("{relay}{far}, {lends}{renews}{rate}{left}"))
    };
    (0..now.uplinks()).filter_map(line).collect()
}
