//! The state of a daemon as text, from two samples that are a moment apart.

mod relay;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table, TableComponent};
use lab::present::quantity;
use serde_json::Value;

/// Column headings for uplinks.
const UPLINKS: [&str; 8] = ["uplink", "tier", "down", "up", "RTT", "queue", "sent again", "carried"];
/// Column headings for a relay's destinations.
const DESTINATIONS: [&str; 6] = ["lent to", "state", "down", "up", "packets lost", "carried"];
/// Columns in the order in which they are left out if there is not enough room.
const UPLINKS_LESS: [usize; 7] = [6, 5, 3, 4, 1, 7, 2];
/// The same for destinations.
const DESTINATIONS_LESS: [usize; 5] = [4, 3, 5, 1, 2];
/// Number of columns with words; the others contain figures.
pub const WORDS: usize = 2;

/// The status of a daemon at one time.
pub struct Sample(Value);

/// One uplink, or one destination of a relay, as text.
pub struct Row {
    /// In the order of [`columns`].
    pub cells: Vec<String>,
    /// Whether it cannot be used now.
    pub is_lost: bool,
    /// What does not work, phrased to follow its name in a sentence.
    pub trouble: Option<String>,
    /// Octets received over it per second, between the samples.
    pub down_rate: f64,
}

impl Sample {
    /// Creates a sample from an answer.
    pub fn new(status: Value) -> Self {
        Self(status)
    }

    fn number(&self, pointer: &str) -> f64 {
        self.0.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0)
    }

    fn word(&self, pointer: &str) -> String {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or("?").to_owned()
    }

    fn uplinks(&self) -> usize {
        self.0["uplinks"].as_array().map_or(0, Vec::len)
    }

    fn is_relay(&self) -> bool {
        self.0.get("relay").is_some()
    }

    /// Returns the engine's device, or a relay's.
    pub fn device(&self) -> String {
        self.word("/device")
    }
}

/// Returns the column headings.
pub fn columns(now: &Sample) -> &'static [&'static str] {
    if now.is_relay() { &DESTINATIONS } else { &UPLINKS }
}

/// Returns the columns in the order in which they are left out if there is not enough room.
pub fn dispensable(now: &Sample) -> &'static [usize] {
    if now.is_relay() { &DESTINATIONS_LESS } else { &UPLINKS_LESS }
}

/// Returns the columns that fit into `room`, given their widths and the `spacing` between them.
pub fn fitting(widths: &[usize], spacing: usize, room: usize, dispensable: &[usize]) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..widths.len()).collect();
    for least in dispensable {
        let wanted: usize = kept.iter().map(|column| widths[*column] + spacing).sum();
        if wanted <= room + spacing {
            break;
        }
        kept.retain(|column| column != least);
    }
    kept
}

/// Returns the seconds between two samples.
fn span(before: &Sample, now: &Sample) -> f64 {
    ((now.number("/at") - before.number("/at")) / 1e9).max(1e-3)
}

/// Returns each uplink or destination as text.
pub fn rows(before: &Sample, now: &Sample) -> Vec<Row> {
    if now.is_relay() {
        return relay::rows(before, now);
    }
    let span = span(before, now);
    let row = |index: usize| {
        let at = |field: &str| format!("/uplinks/{index}/{field}");
        let rate = |field: &str| (now.number(&at(field)) - before.number(&at(field))).max(0.0) / span;
        let down_rate = rate("meter/down_bytes");
        let rtt = now.0.pointer(&at("base_rtt")).and_then(Value::as_f64);
        let (sent, again) = (now.number(&at("meter/sent_segments")), now.number(&at("meter/retransmitted_segments")));
        let carried = now.number(&at("meter/down_bytes")) + now.number(&at("meter/up_bytes"));
        let lost = now.0.pointer(&at("lost")).and_then(Value::as_str).map(str::to_owned);
        let unheard = now.0.pointer(&at("unheard")).and_then(Value::as_f64);
        // The round-trip time from before the silence is outdated.
        let rtt = rtt.filter(|_| unheard.is_none());
        Row {
            cells: vec![
                now.word(&at("interface")),
                use_of(now, &at, lost.is_some()),
                quantity(down_rate * 8.0, "bit/s"),
                quantity(rate("meter/up_bytes") * 8.0, "bit/s"),
                rtt.map_or_else(|| "–".into(), milliseconds),
                milliseconds(now.number(&at("queue"))),
                if sent > 0.0 { format!("{:.1} %", again / sent * 100.0) } else { "–".into() },
                quantity(carried, "B"),
            ],
            is_lost: lost.is_some() || unheard.is_some(),
            trouble: lost.or_else(|| silence(now, &at)).or_else(|| lacking_family(now, index)),
            down_rate,
        }
    };
    (0..now.uplinks()).map(row).collect()
}

/// Describes the silence of an uplink: of one family, or of everything that is unanswered. `None` if it is heard.
fn silence(now: &Sample, at: &impl Fn(&str) -> String) -> Option<String> {
    let span = |field: &str| now.0.pointer(&at(field)).and_then(Value::as_f64).map(|nanos| nanos / 1e9);
    let over = |field: &str| now.0.pointer(&at(field)).and_then(Value::as_str).map(|family| format!(" over {family}"));
    let family = over("unheard_family/family").unwrap_or_default();
    match (span("unheard"), span("unheard_family/span")) {
        (Some(seconds), _) => {
            Some(format!("is silent: nothing received for {seconds:.0} s, although answers are due{family}"))
        }
        (None, Some(seconds)) => {
            Some(format!("is silent{family}: nothing received for {seconds:.0} s, although answers are due"))
        }
        (None, None) => None,
    }
}

/// Returns the only family of an uplink if another uplink has the missing one: servers without that family cannot be
/// reached over this uplink.
fn lacking_family(now: &Sample, index: usize) -> Option<String> {
    let has = |index: usize, is_v6: bool| {
        let ways = now.0.pointer(&format!("/uplinks/{index}/ways")).and_then(Value::as_array);
        // An address, perhaps followed by its gateway.
        let address = |way: &Value| way.as_str().and_then(|way| way.split(' ').next()).map(|ip| ip.contains(':'));
        ways.into_iter().flatten().any(|way| address(way) == Some(is_v6))
    };
    let lives = |index: usize| now.0.pointer(&format!("/uplinks/{index}/lost")).is_none_or(Value::is_null);
    let lacks = |is_v6: bool| has(index, !is_v6) && !has(index, is_v6);
    let is_elsewhere = |is_v6: bool| (0..now.uplinks()).any(|other| lives(other) && has(other, is_v6));
    let only = [(true, "IPv4"), (false, "IPv6")].into_iter().find(|(other, _)| lacks(*other) && is_elsewhere(*other));
    only.map(|(_, family)| format!("has {family} only"))
}

/// Returns an uplink's tier, its price if it has one, and what prevents its use.
fn use_of(now: &Sample, at: &impl Fn(&str) -> String, is_lost: bool) -> String {
    let is = |field: &str, value: bool| now.0.pointer(&at(field)) == Some(&Value::Bool(value));
    let price = now.0.pointer(&at("price")).and_then(Value::as_u64).filter(|price| *price > 0);
    let price = price.map(|price| format!("price {price}"));
    let state = match () {
        () if is_lost => Some("lost"),
        () if now.0.pointer(&at("unheard")).is_some_and(Value::is_number) => Some("silent"),
        () if is("carries", false) => Some("waits"),
        () if is("portal", true) => Some("wants a login"),
        () if is("held_back", true) => Some("held back"),
        () if now.word(&at("link/lends")) == "as-backup" => Some("little left"),
        () => None,
    };
    let parts = [Some(now.word(&at("tier"))), price, state.map(str::to_owned)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Formats a count with singular or plural.
fn counted(count: f64, what: &str) -> String {
    // The sum of no numbers is -0.
    format!("{} {what}{}", count + 0.0, if count == 1.0 { "" } else { "s" })
}

fn milliseconds(nanos: f64) -> String {
    let ms = nanos / 1e6;
    if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// Describes the traffic of programs in a line or two.
pub fn clients(now: &Sample) -> String {
    if now.is_relay() {
        return relay::lent(now);
    }
    if now.0.get("kernel").is_some() {
        return kernel(now);
    }
    let count = now.0.pointer("/proxy/clients").and_then(Value::as_array).map_or(0, Vec::len);
    let total = |name: &str| now.number(&format!("/proxy/totals/{name}"));
    format!(
        "proxy on {}: {count} client{} now, {} since the start; {}, {} of them over MPTCP; {} refused, {} not resolved, \
         {} not reached",
        now.word("/proxy/listen"),
        if count == 1 { "" } else { "s" },
        total("accepted"),
        counted(total("connected"), "connection"),
        total("mptcp"),
        total("refused"),
        total("unresolved"),
        total("unreached"),
    )
}

/// Returns the target, if there is one, phrased to follow the name of the device.
pub fn target(now: &Sample) -> String {
    match now.number("/target_bps") {
        bps if bps > 0.0 => format!(", as few uplinks as {} needs", quantity(bps, "bit/s")),
        _ => String::new(),
    }
}

/// Describes the kernel's connections.
fn kernel(now: &Sample) -> String {
    let number = |name: &str| now.number(&format!("/kernel/{name}"));
    let subflows: f64 = (0..now.uplinks()).map(|index| now.number(&format!("/uplinks/{index}/subflows"))).sum();
    let connections = number("connections");
    let others = match number("unmanaged_subflows") {
        0.0 => String::new(),
        count => format!(", {count} of them of earlier connections, which are not managed"),
    };
    format!(
        "the kernel's Multipath TCP: {} now, {} since the start; {} over the uplinks now{}; {} requested, {} of them \
         to replace a dead one; {} not established",
        counted(connections, "connection"),
        number("totals/connections"),
        counted(subflows, "subflow"),
        others,
        counted(number("totals/created"), "subflow"),
        number("totals/remade"),
        number("totals/failed"),
    )
}

/// Returns a line for each uplink over a relay that has been heard.
pub fn links(now: &Sample) -> Vec<String> {
    relay::links(now)
}

/// Returns everything as a table, followed by what is wrong with uplinks.
pub fn describe(before: &Sample, now: &Sample) -> String {
    let rows = rows(before, now);
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(columns(now));
    for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(component, '─');
    }
    for row in &rows {
        table.add_row(&row.cells);
    }
    for column in table.column_iter_mut().skip(WORDS) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let troubles = rows.iter().filter_map(|row| Some(format!("{} {}\n", row.cells[0], row.trouble.as_ref()?)));
    let links: String = links(now).iter().map(|line| format!("{line}\n")).collect();
    format!("{}{}\n{table}\n{}{links}{}\n", now.device(), target(now), troubles.collect::<String>(), clients(now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(at_s: u64, down_bytes: u64) -> Sample {
        Sample::new(json!({
            "device": "anabranch0",
            "at": at_s * 1_000_000_000,
            "target_bps": 4_000_000,
            "uplinks": [
                { "interface": "usb0", "tier": "primary", "price": 3, "carries": false, "lost": null, "base_rtt": 21_000_000, "queue": 3_000_000,
                  "meter": { "down_bytes": down_bytes, "up_bytes": 0, "sent_segments": 200, "retransmitted_segments": 3 } },
                { "interface": "usb1", "tier": "backup", "lost": "does not exist", "base_rtt": null, "queue": 0, "meter": {} },
                { "interface": "usb2", "tier": "primary", "lost": null, "unheard": 34_000_000_000_u64, "base_rtt": 77_000_000, "queue": 0, "meter": {} },
                { "interface": "usb4", "tier": "primary", "lost": null, "ways": ["10.0.0.2 via 10.0.0.1", "fd00::2 via fe80::1"], "meter": {} },
                { "interface": "usb5", "tier": "primary", "lost": null, "ways": ["fd01::2"], "meter": {} },
                { "interface": "via-anna", "tier": "primary", "carries": true, "lost": null, "link": { "lends": "as-backup" }, "meter": {} },
                { "interface": "via-ben", "tier": "secondary", "held_back": true, "lost": null, "link": { "lends": "as-backup" }, "meter": {} },
                { "interface": "usb3", "tier": "primary", "lost": null, "unheard_family": { "family": "IPv6", "span": 9_000_000_000_u64 }, "meter": {} },
            ],
            "proxy": { "listen": "127.0.0.1:1080", "clients": [{}], "totals": { "accepted": 3, "connected": 2, "mptcp": 1 } },
        }))
    }

    #[test]
    fn rates_are_those_between_the_looks() {
        let text = describe(&sample(1, 1_000_000), &sample(3, 2_000_000));
        for wanted in [
            "usb0",
            "primary, price 3, waits",
            "as few uplinks as 4.00 Mbit/s needs",
            "4.00 Mbit/s",
            "21 ms",
            "3.0 ms",
            "1.5 %",
            "2.00 MB",
            "usb1 does not exist",
            "usb2 is silent: nothing received for 34 s",
            "primary, silent",
            "primary, little left",
            "secondary, held back",
            "usb3 is silent over IPv6: nothing received for 9 s",
            "usb5 has IPv6 only",
            "1 client now",
        ] {
            assert!(text.contains(wanted), "{wanted:?} in\n{text}");
        }
        assert_eq!(text.matches(" only").count(), 1, "{text}");
    }

    #[test]
    fn what_has_no_room_is_left_out_whole() {
        let widths = [8, 7, 11, 11, 5, 6, 10, 7];
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(fitting(&widths, 2, 79, &UPLINKS_LESS), all);
        assert_eq!(fitting(&widths, 2, 78, &UPLINKS_LESS), [0, 1, 2, 3, 4, 5, 7]);
        assert_eq!(fitting(&widths, 2, 58, &UPLINKS_LESS), [0, 1, 2, 4, 7]);
        assert_eq!(fitting(&widths, 2, 3, &UPLINKS_LESS), [0]);
        assert_eq!(UPLINKS_LESS.len(), UPLINKS.len() - 1);
        assert_eq!(DESTINATIONS_LESS.len(), DESTINATIONS.len() - 1);
    }

    #[test]
    fn the_kernel_has_connections_instead_of_clients() {
        let status = json!({
            "device": "anabranch-kernel",
            "uplinks": [{ "interface": "usb0", "tier": "primary", "subflows": 2, "meter": {} }],
            "kernel": { "connections": 1, "totals": { "connections": 5, "created": 7, "remade": 2, "failed": 1 } },
        });
        let text = describe(&Sample::new(status.clone()), &Sample::new(status));
        assert!(
            text.contains(
                "1 connection now, 5 since the start; 2 subflows over the uplinks now; 7 subflows requested, 2 of"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_relay_has_destinations_instead_of_uplinks() {
        let status = |bytes: u64| {
            json!({
                "device": "anabranch98",
                "at": bytes * 1000,
                "relay": {
                    "name": "anna", "interface": "wwan0", "lends_in_words": "lends its link", "rate_bps": 10_000_000, "owner_bps": 1_200_000,
                    "volume_bytes": 5_000_000_000_u64, "volume_used_bytes": 100_000_000, "battery_percent": 80, "refused_datagrams": 3,
                    "destinations": [{ "name": "laptop", "is_up": true, "place": "192.168.43.7", "down_bytes": bytes, "up_bytes": 0,
                        "lost_packets": 7, "spliced_subflows": 2 }], "mode": "fast-ack",
                },
            })
        };
        let text = describe(&Sample::new(status(1_000_000)), &Sample::new(status(2_000_000)));
        for wanted in [
            "laptop",
            "at 192.168.43.7",
            "8.00 Mbit/s",
            "7",
            "2.00 MB",
            "anna lends its link",
            "fast ACKs for 2 subflows",
            "10.0 Mbit/s",
            "1.20 Mbit/s",
            "100 MB of 5.00 GB",
            "80 %",
            "3 datagrams",
        ] {
            assert!(text.contains(wanted), "{wanted:?} in\n{text}");
        }
    }

    #[test]
    fn a_relay_over_whose_link_nothing_comes_back_offers_nothing() {
        let status = |unheard: Option<u64>| {
            let relay = json!({ "name": "anna", "interface": "wwan0", "lends_in_words": "lends its link", "rate_bps": 10_000_000,
                "spare_bps": 8_580_000, "spare_up_bps": 250_000, "unheard": unheard });
            Sample::new(json!({ "relay": relay }))
        };
        let text = |unheard: Option<u64>| describe(&status(unheard), &status(unheard));
        assert!(
            text(None).contains("which leaves 8.58 Mbit/s down and 250 kbit/s up to lend")
                && !text(None).contains("no answer")
        );
        let silent = text(Some(12_000_000_000));
        assert!(silent.contains("no answer over wwan0 for 12 s") && !silent.contains("8.58"), "{silent}");
    }

    #[test]
    fn a_relay_without_volume_offers_nothing_and_says_until_when() {
        let relay = json!({ "name": "anna", "interface": "wwan0", "lends": "no-volume", "lends_in_words": "has no volume left",
            "rate_bps": 10_000_000, "spare_bps": 7_810_000, "volume_bytes": 2_000_000, "volume_used_bytes": 1_990_000,
            "volume_renews": "2026-12-01" });
        let status = json!({ "relay": relay });
        let text = describe(&Sample::new(status.clone()), &Sample::new(status));
        assert!(
            text.contains("has no volume left") && text.contains("1.99 MB of 2.00 MB used, renewed on 2026-12-01"),
            "{text}"
        );
        assert!(!text.contains("to lend") && !text.contains("at most"), "{text}");
    }

    #[test]
    fn a_destination_is_compared_with_itself() {
        let status = |at: u64, destinations: &[(u64, &str, u64)]| {
            let destination =
                |(slot, name, bytes): &(u64, &str, u64)| json!({ "slot": slot, "name": name, "down_bytes": bytes });
            let all: Vec<Value> = destinations.iter().map(destination).collect();
            Sample::new(json!({ "at": at * 1_000_000_000, "relay": { "destinations": all } }))
        };
        let before = status(1, &[(1, "phone", 9_000), (2, "laptop", 5_000)]);
        // The phone was removed, and its slot now belongs to a tablet.
        let now = status(2, &[(1, "tablet", 300), (2, "laptop", 5_200)]);
        let rates: Vec<f64> = rows(&before, &now).iter().map(|row| row.down_rate).collect();
        assert_eq!(rates, [300.0, 200.0]);
        let now = status(2, &[(2, "laptop", 5_200)]);
        assert_eq!(rows(&before, &now)[0].down_rate, 200.0, "it has moved up");
    }

    #[test]
    fn relays_are_described_below_their_uplinks() {
        let status = json!({ "uplinks": [{ "interface": "via-anna", "tier": "primary", "meter": {}, "link": {
            "relay": "anna", "place": "192.168.43.1", "round_trip": 4_000_000, "lends_in_words": "has little volume left",
            "spare_bps": 4_000_000, "left_bytes": 2_000_000 } }] });
        let text = describe(&Sample::new(status.clone()), &Sample::new(status));
        let wanted = "via-anna: the relay anna at 192.168.43.1, RTT 4.0 ms, has little volume left, 4.00 Mbit/s towards this \
            device, 2.00 MB left";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn a_relay_without_volume_says_when_it_begins_anew() {
        let link = json!({ "relay": "anna", "place": "192.168.43.1", "lends": "no-volume", "lends_in_words": "has no volume left",
            "left_bytes": 9, "volume_renews": "2026-12-01" });
        let status = json!({ "uplinks": [{ "interface": "via-anna", "meter": {}, "link": link }] });
        let text = describe(&Sample::new(status.clone()), &Sample::new(status));
        assert!(text.contains("the relay anna at 192.168.43.1, has no volume left until 2026-12-01\n"), "{text}");
    }

    #[test]
    fn whatever_is_answered_is_shown_somehow() {
        for odd in [
            json!(null),
            json!({ "uplinks": [1, {}, null], "at": "x" }),
            json!({ "uplinks": {} }),
            json!({ "relay": [] }),
            json!({ "relay": { "destinations": [7, {}] } }),
            json!({ "uplinks": [{ "link": 7 }] }),
        ] {
            describe(&Sample::new(odd.clone()), &Sample::new(odd));
        }
    }
}
