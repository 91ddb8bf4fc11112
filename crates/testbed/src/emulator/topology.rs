//! The file that describes an emulated network.
//!
//! ```toml
//! [[host]]
//! name = "server"
//!
//! [[host]]
//! name = "phone"
//!
//! [[link]]
//! between = ["server", "phone"]
//! rate = "10 Mbit/s"          # or { trace = "walk.down" }, a file in the mahimahi format; or { mean = "10 Mbit/s" }, which varies
//! delay = "20 ms"             # one way
//! loss = "1 %"                # or { mean = "1 %", burst_packets = 4 }
//! queue = "64 kB"             # or "100 packets"
//! up = { rate = "2 Mbit/s" }  # from the first host to the second; `down` is the other way
//! outages = [{ from = "5 s", until = "8 s" }]
//! ```

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use lab::run::read_text;
use lab::scenario::{Burst, Deed, Loss, Middlebox, Outage, Queue, RateModel, Reorder, value_of};
use serde::Deserialize;
use units::text::{Text, TextOr};
use units::{ByteCount, Duration, Probability, Rate};

use linux::{Error, Result};

/// An emulated network: hosts, and links between them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Seed of all randomness.
    #[serde(default)]
    pub seed: u64,
    /// The hosts; each becomes a network namespace of its name.
    #[serde(rename = "host")]
    pub hosts: Vec<Host>,
    /// The links.
    #[serde(rename = "link")]
    pub links: Vec<LinkSpec>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the host and of its namespace.
    pub name: String,
}

/// A link between two hosts. Fields outside `up` and `down` apply to both directions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The two hosts.
    pub between: Vec<String>,
    /// Rate, fixed or from a trace; without one the link has no limit.
    #[serde(default)]
    pub rate: Option<RateSpec>,
    /// Delay, one way; none by default.
    #[serde(default)]
    pub delay: Option<Text<Duration>>,
    /// Loss, at random or in bursts; none by default.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// Capacity of the queue; 100 packets by default.
    #[serde(default)]
    pub queue: Option<Queue>,
    /// Packets held back, so others overtake them; none by default.
    #[serde(default)]
    pub reorder: Option<Reorder>,
    /// Packets sent twice; none by default.
    #[serde(default)]
    pub duplicate: Option<Text<Probability>>,
    /// Packets with a bit flipped; none by default.
    #[serde(default)]
    pub corrupt: Option<Text<Probability>>,
    /// Differences from the first host to the second.
    #[serde(default)]
    pub up: Way,
    /// Differences from the second host to the first.
    #[serde(default)]
    pub down: Way,
    /// Times in which nothing passes, counted from the start.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Middleboxes on the link, in order from the first host; each sees both directions.
    #[serde(default)]
    pub middleboxes: Vec<Middlebox>,
    /// Largest IP packet in octets, 1280 or more.
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// IPv4 addresses of the two hosts, in a /23 network that no other link has; automatic by default.
    #[serde(default)]
    pub addresses: Option<[IpAddr; 2]>,
}

/// One direction of a link: the fields of [`LinkSpec`] that may differ.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Rate.
    pub rate: Option<RateSpec>,
    /// Delay.
    pub delay: Option<Text<Duration>>,
    /// Loss.
    pub loss: Option<Loss>,
    /// Queue.
    pub queue: Option<Queue>,
    /// Reordering.
    pub reorder: Option<Reorder>,
    /// Duplication.
    pub duplicate: Option<Text<Probability>>,
    /// Corruption.
    pub corrupt: Option<Text<Probability>>,
}

/// `"10 Mbit/s"`, `{ trace = "file" }`, or a table for a rate that varies as in scenarios.
pub type RateSpec = TextOr<Rate, RateModel>;

fn default_mtu() -> u16 {
    1500
}

impl Topology {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Names the line or the field, and the correct form.
    pub fn load(path: &Path) -> Result<Self> {
        let text = read_text(path).map_err(Error::file(path))?;
        let mut topology = Self::parse(&text).map_err(Error::file(path))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for rate in topology.links.iter_mut().flat_map(|link| [&mut link.rate, &mut link.up.rate, &mut link.down.rate])
        {
            if let Some(TextOr::Table(RateModel { trace: Some(trace), .. })) = rate {
                *trace = folder.join(&trace);
            }
        }
        Ok(topology)
    }

    /// Reads and checks the text of a file.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let topology: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        topology.check()?;
        Ok(topology)
    }

    /// Returns the position of the host of that name.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    fn check(&self) -> Result<(), String> {
        for (index, host) in self.hosts.iter().enumerate() {
            if self.host(&host.name) != Some(index) {
                return Err(format!("two hosts have the name {:?}: rename one of them", host.name));
            }
        }
        if self.links.len() > 254 {
            return Err(format!("{} links are too many: keep at most 254", self.links.len()));
        }
        self.links.iter().enumerate().try_for_each(|(index, link)| {
            self.check_link(link)
                .map_err(|problem| format!("link {} ({}): {problem}", index + 1, link.between.join(" - ")))
        })?;
        self.check_networks()
    }

    /// Checks that no two links have the same network: hosts route by network, so the second link would carry nothing.
    fn check_networks(&self) -> Result<(), String> {
        let mut known = BTreeMap::new();
        for (index, plan) in super::plan::links(self).iter().enumerate() {
            let [network, _] = plan.networks();
            if let Some(other) = known.insert(network.clone(), index) {
                let [one, two] =
                    [other, index].map(|index| format!("{} ({})", index + 1, self.links[index].between.join(" - ")));
                return Err(format!(
                    "links {one} and {two} share the network {network}: give one of them other `addresses`"
                ));
            }
        }
        Ok(())
    }

    fn check_link(&self, link: &LinkSpec) -> Result<(), String> {
        if link.between.len() != 2 {
            let (count, noun) = (link.between.len(), if link.between.len() == 1 { "host" } else { "hosts" });
            return Err(format!("`between` names {count} {noun}: name two"));
        }
        for name in &link.between {
            if self.host(name).is_none() {
                return Err(format!("there is no host {name:?}: add `[[host]]` with `name = {name:?}`"));
            }
        }
        if link.between[0] == link.between[1] {
            return Err("both ends are the same host: `between` needs two different hosts".into());
        }
        if link.mtu < 1280 {
            return Err(format!("an MTU of {} is too small for IPv6: use 1280 or more (RFC 8200 section 5)", link.mtu));
        }
        if link.addresses.is_some_and(|addresses| addresses.iter().any(IpAddr::is_ipv6)) {
            return Err("`addresses` must be IPv4; IPv6 addresses are automatic".into());
        }
        if link.addresses.is_some_and(|[first, second]| first == second) {
            return Err("both ends have the same address: `addresses` needs two different ones".into());
        }
        link.addresses.map_or(Ok(()), |given| check_network(given, &link.middleboxes))?;
        let outages = link.outages.iter().filter_map(Outage::problem);
        if let Some((problem, remedy)) = link.middleboxes.iter().filter_map(Middlebox::problem).chain(outages).next() {
            return Err(format!("{problem}: {remedy}"));
        }
        let packet = ByteCount(link.mtu.into());
        [link.way_up(), link.way_down()].iter().try_for_each(|way| way.check(packet))
    }
}

/// Checks that both addresses are in one network, and neither is the one that the first host has behind a NAT.
fn check_network(given: [IpAddr; 2], middleboxes: &[Middlebox]) -> Result<(), String> {
    let [first, second] = given.map(super::plan::v4_of);
    for ip in [first, second] {
        let is_special = ip.is_loopback() || ip.is_multicast() || ip.octets()[0] == 0 || ip.octets()[0] >= 240;
        let of_host = ip.to_bits() & (u32::MAX >> super::plan::V4_LINK_BITS);
        let is_all = of_host == 0 || of_host == u32::MAX >> super::plan::V4_LINK_BITS;
        if is_special || is_all {
            let bits = super::plan::V4_LINK_BITS;
            return Err(format!(
                "{ip} cannot be a host's address, or is the first or last one of its /{bits} network: use addresses \
                 like 10.9.0.1 and 10.9.0.9"
            ));
        }
    }
    if (first.to_bits() ^ second.to_bits()) >> (32 - super::plan::V4_LINK_BITS) != 0 {
        let bits = super::plan::V4_LINK_BITS;
        return Err(format!("{first} and {second} are not in the same /{bits} network: use addresses that are"));
    }
    let has_nat = middleboxes.iter().any(|middlebox| matches!(middlebox.deed(), Some(Deed::Nat(_))));
    let external = super::plan::external(first);
    if has_nat && external == first {
        return Err(format!("{first} is the NAT's own address: give the first host another one"));
    }
    if has_nat && external == second {
        return Err(format!("{second} is the address of {first} behind its NAT: give the second host another one"));
    }
    Ok(())
}

impl LinkSpec {
    /// Returns the direction from the first host to the second, with defaults of the link filled in.
    pub fn way_up(&self) -> Way {
        self.way(&self.up)
    }

    /// Returns the direction from the second host to the first, with defaults of the link filled in.
    pub fn way_down(&self) -> Way {
        self.way(&self.down)
    }

    fn way(&self, own: &Way) -> Way {
        Way {
            rate: own.rate.as_ref().or(self.rate.as_ref()).cloned(),
            delay: own.delay.or(self.delay),
            loss: own.loss.or(self.loss),
            queue: own.queue.or(self.queue),
            reorder: own.reorder.or(self.reorder),
            duplicate: own.duplicate.or(self.duplicate),
            corrupt: own.corrupt.or(self.corrupt),
        }
    }
}

impl Way {
    /// `packet` is the largest packet.
    fn check(&self, packet: ByteCount) -> Result<(), String> {
        if let Some(queue) = self.queue.filter(|queue| !queue.holds(packet)) {
            return Err(format!(
                "a queue of {queue} holds no packet of {packet}: write \"1 packet\" or more, or the octets of one"
            ));
        }
        if self.rate == Some(TextOr::Text(Rate::ZERO)) {
            return Err("at a rate of zero nothing gets through: use `outages` for a link that is down".into());
        }
        if let Some(TextOr::Table(model)) = &self.rate {
            if let Some((field, problem, remedy)) = model.problems().into_iter().next() {
                return Err(format!("rate.{field}: {problem}: {remedy}"));
            }
        }
        if let Some(TextOr::Table(Burst { mean: TextOr::Table(_), .. })) = self.loss {
            return Err("bounds work only in scenarios: write a single mean of the loss".into());
        }
        if let Some(TextOr::Table(Burst { mean, burst_packets: Some(packets) })) = self.loss {
            // A chain that loses `mean` in bursts of this length leaves its good state with a certain probability.
            let (mean, mean_max) = (value_of(&mean), packets / (packets + 1.0));
            if !(packets >= 1.0 && mean.value() <= mean_max) {
                return Err(format!(
                    "losing {mean} of the packets in bursts of {packets} is impossible: burst_packets must be 1 or \
                     more, and mean at most burst_packets / (burst_packets + 1)"
                ));
            }
        }
        Ok(())
    }
}

/// Messages of serde, and plainer ones.
const PLAIN: [(&str, &str); 10] = [
    ("missing field `host`", "there is no host: add `[[host]]` with a `name`, for each host"),
    ("missing field `link`", "there is no link: add `[[link]]` with `between = [\"a\", \"b\"]`"),
    ("expected u16", "expected a number without quotes, at most 65535"),
    ("expected u64", "expected a number without quotes"),
    ("expected path string", "expected a string"),
    ("invalid type: map, expected a string", "expected a string, not a table: values vary only in scenarios"),
    ("expected a string", "expected a string"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("expected struct", "expected a table, that of"),
];

/// "line 3 (delay = 5): ..." instead of several lines with a picture.
fn located(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let line = text[..at].matches('\n').count();
    let shown = text.lines().nth(line).map(str::trim).filter(|shown| !shown.is_empty());
    let shown = shown.map(|shown| format!(" ({shown})")).unwrap_or_default();
    let message = PLAIN.iter().fold(error.message().to_owned(), |told, (kind, plain)| told.replace(kind, plain));
    format!("line {}{shown}: {message}", line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n";

    fn link(fields: &str) -> Result<LinkSpec, String> {
        let text = format!("{HOSTS}[[link]]\nbetween = [\"a\", \"b\"]\n{fields}");
        Topology::parse(&text).map(|mut topology| topology.links.remove(0))
    }

    #[test]
    fn directions_override_the_link() {
        let link = link("rate = '10 Mbit/s'\ndelay = '20 ms'\nup = { rate = '2 Mbit/s', loss = '1 %' }").unwrap();
        let (up, down) = (link.way_up(), link.way_down());
        assert_eq!(up.rate, Some(TextOr::Text(Rate::from_mbps(2))));
        assert_eq!(down.rate, Some(TextOr::Text(Rate::from_mbps(10))));
        assert_eq!(
            (up.delay, down.delay),
            (Some(Text(Duration::from_millis(20))), Some(Text(Duration::from_millis(20))))
        );
        assert!(up.loss.is_some() && down.loss.is_none());
    }

    #[test]
    fn mistakes_name_place_and_remedy() {
        let mistakes = [
            ("rate = '10'", ["line 7 (rate = '10'): ", "10 Mbit/s"]),
            ("rate = 10", ["line 7", "10 Mbit/s"]),
            ("delay = 5", ["line 7 (delay = 5): \"5\" is not a duration", "20 ms"]),
            ("rate = { trace = 3 }", ["line 7", "expected a string"]),
            ("rate = { trace = 'walk.down', offset = 'half' }", ["line 7", "\"random\""]),
            ("up = { rate = { mean = '3 Mbit/s', offset = '1 s' } }", ["rate.offset", "only for a recorded trace"]),
            ("rate = { variation = '10 %' }", ["link 1 (a - b): rate.mean: is missing", "trace"]),
            ("rate = { trace = 'walk.down', mean = '3 Mbit/s' }", ["rate.trace", "contradicts a generated rate"]),
            ("down = { rate = { mean = '0 bit/s' } }", ["rate.mean", "0 bit/s is out of range"]),
            ("rate = { mean = '3 Mbit/s', period = '100 h' }", ["rate.period", "from \"1 s\" to \"600 s\""]),
            ("rate = { mean = '3 Mbit/s', outage_interval = '0 s' }", ["rate.outage_interval", "above zero"]),
            ("outages = 3", ["line 7", "expected a list"]),
            ("mtu = '1400 B'", ["line 7", "a number without quotes"]),
            ("up = 3", ["line 7", "expected a table"]),
            ("speed = '10 Mbit/s'", ["line 7", "unknown field"]),
            ("rate = '0 bit/s'", ["link 1 (a - b)", "outages"]),
            ("mtu = 1000", ["link 1", "1280"]),
            ("loss = { mean = '60 %', burst_packets = 1.0 }", ["link 1", "burst_packets"]),
            ("addresses = ['10.9.0.1', '10.9.0.1']", ["link 1", "same address"]),
            ("addresses = ['127.0.0.1', '127.0.0.2']", ["link 1", "127.0.0.1 cannot be a host's address"]),
            ("addresses = ['192.168.0.1', '192.168.1.255']", ["link 1", "192.168.1.255 cannot be a host's address"]),
            ("queue = '0 packets'", ["link 1", "holds no packet"]),
            ("down = { queue = '1 kB' }", ["link 1", "holds no packet of 1.5 kB"]),
            ("addresses = ['10.9.0.1', '10.9.2.1']", ["link 1", "the same /23 network"]),
            (
                "addresses = ['10.9.0.1', '10.9.0.254']\nmiddleboxes = [{ nat = { idle_timeout = '60 s' } }]",
                ["link 1", "behind its NAT"],
            ),
            (
                "addresses = ['10.9.0.254', '10.9.0.9']\nmiddleboxes = [{ nat = { idle_timeout = '60 s' } }]",
                ["link 1", "give the first host another one"],
            ),
            ("outages = [{ from = '2 s', until = '1 s' }]", ["link 1", "no duration"]),
            ("middleboxes = [{ toaster = {} }]", ["line 7", "strip"]),
            ("middleboxes = [{ narrow = { size = '67 B' } }]", ["link 1", "68"]),
        ];
        for (fields, expected) in mistakes {
            let error = link(fields).unwrap_err();
            assert!(expected.iter().all(|part| error.contains(part)), "{fields}: {error}");
        }
        let lacking = ["", HOSTS].map(|text| Topology::parse(text).unwrap_err());
        assert!(lacking[0].starts_with("line 1: there is no host") && lacking[1].contains("no link"), "{lacking:?}");
        let between = "[[link]]\nbetween = ['a', 'b']\n";
        let same = format!("{HOSTS}{between}{between}addresses = ['10.1.0.5', '10.1.1.5']");
        let error = Topology::parse(&same).unwrap_err();
        assert_eq!(
            error,
            "links 1 (a - b) and 2 (a - b) share the network 10.1.0.0/23: give one of them other `addresses`"
        );
        let error = Topology::parse(&format!("{HOSTS}[[link]]\nbetween = ['a', 'c']")).unwrap_err();
        assert!(error.contains("no host \"c\""), "{error}");
        let error = Topology::parse(&format!("{HOSTS}[[link]]\nbetween = ['a', 'b', 'a']")).unwrap_err();
        assert!(error.contains("3 hosts") && error.contains("two"), "{error}");
    }
}
