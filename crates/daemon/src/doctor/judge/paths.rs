//! Servers over uplinks: whether they answer, and which packet sizes pass.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::super::facts::{Facts, GatewayState, Inquiry, Rate, Reached, SMALL_MTU, ServerFacts, UplinkFacts, WayFacts};
use super::interference::{self, look_here_first};
use super::machine::look_at_output_first;
use super::{Finding, Level, MACHINE, amount, answered, has_reached, list, unique};

/// Octets that every link of IPv6 carries (RFC 8200 section 5).
const IPV6_MTU_MIN: u16 = 1280;
/// Hooks at which rules of this device may drop packets of the engine or of its own programs.
const EVERYWHERE: [&str; 4] = ["prerouting", "forward", "output", "postrouting"];
/// Loss threshold for unanswered packets, as 1 in N. A single loss may be chance.
const LOSSY_ONE_IN: usize = 5;

pub(super) fn judge(facts: &Facts, blocked: bool) -> Vec<Finding> {
    let mut findings = names(facts);
    findings.extend(facts.servers.iter().filter_map(|server| without_family(server, facts)));
    findings.extend(facts.servers.iter().filter_map(|server| missed_by(server, facts)));
    findings.extend(reached(facts, blocked));
    findings.extend(black_holes(facts));
    findings.extend(facts.inquiries.iter().filter_map(lossy));
    findings.extend(facts.rates.iter().filter_map(|rate| measured(rate, facts)));
    findings
}

/// Reports a failed transfer. Only a transfer shows that large packets vanish on the way from a server.
fn measured(rate: &Rate, facts: &Facts) -> Option<Finding> {
    let why = rate.failed.as_ref()?;
    let fetched = facts.rates.iter().filter(|other| other.failed.is_none() && other.bytes > 0);
    let fetched: Vec<&str> = fetched.map(|other| other.uplink.as_str()).collect();
    let is_alone = fetched.is_empty();
    if rate.bytes_small > 0 {
        let text = format!(
            "the transfer of --measure failed ({why}), but {} arrived with packets of at most {SMALL_MTU} octets: \
             larger ones vanish silently on their way from the server (a black hole). Downloads over it stall",
            amount(rate.bytes_small)
        );
        let remedy = smaller_packets(&rate.uplink, SMALL_MTU, facts);
        let remedy = match is_alone {
            true => format!("{remedy}; or the server is the cause, since no uplink fetched the URL: try another one"),
            false => remedy,
        };
        return Some(Finding::warning("mtu-black-hole-back", &rate.uplink, text).remedy(remedy));
    }
    let text = format!("the transfer of --measure failed: {why}");
    let remedy = match is_alone {
        true => "name an http:// URL of a large file that every uplink can fetch".to_owned(),
        false => format!(
            "the URL is right, since {} fetched it: something behind {} blocks it or lets too little through; name \
             its server as well",
            list(&fetched),
            rate.uplink
        ),
    };
    Some(Finding::warning("measure", &rate.uplink, text).remedy(remedy))
}

/// Reports names without addresses.
fn names(facts: &Facts) -> Vec<Finding> {
    let (own, failed): (Vec<&ServerFacts>, Vec<_>) =
        facts.servers.iter().filter(|server| server.lookup_failed.is_some()).partition(|server| server.is_own());
    let own = own.iter().map(|server| {
        let text = "its only address is one of this device's loopback, which no uplink reaches: it was not asked";
        Finding::warning("own-address", &server.name, text).remedy("name a server elsewhere")
    });
    let why = |server: &&ServerFacts| server.lookup_failed.clone().unwrap_or_default();
    if failed.len() > 1 && failed.len() == facts.servers.len() {
        let text = format!("no name was found ({}): the name servers do not work", why(&failed[0]));
        let first = look_at_output_first(facts);
        let remedy = format!(
            "{first}check /etc/resolv.conf (resolvectl status), which may name a server of a VPN, or of an uplink \
             that is gone"
        );
        return vec![Finding::problem("no-names", MACHINE, text).remedy(remedy)];
    }
    let first = look_at_output_first(facts);
    let remedy = format!("{first}check the name, and this device's name servers (/etc/resolv.conf, resolvectl status)");
    // If other names are found, this one is probably wrong.
    let level = if failed.len() < facts.servers.len() { Level::Warning } else { Level::Problem };
    let finding = |server: &&ServerFacts| {
        let text = format!("its address is not found ({})", why(server));
        Finding::new(level, "no-address", &server.name, text).remedy(remedy.clone())
    };
    own.chain(failed.iter().map(finding)).collect()
}

/// Reports a server of whose family no uplink has an address: it was not asked.
fn without_family(server: &ServerFacts, facts: &Facts) -> Option<Finding> {
    let mut ways = facts.uplinks.iter().flat_map(|uplink| &uplink.ways).peekable();
    ways.peek()?;
    let is_missed = |family_of: &IpAddr| ways.clone().all(|way| way.address.is_ipv4() != family_of.is_ipv4());
    let first = server.addresses.first().filter(|_| server.addresses.iter().all(is_missed))?;
    let family = if first.is_ipv4() { "IPv4" } else { "IPv6" };
    let text = format!("it has {family} only, which no uplink has: it was not asked");
    let remedy = format!("name a server that has both families, or set up {family} on an uplink");
    Some(Finding::warning("no-family", &server.name, text).remedy(remedy))
}

/// Reports a server whose family only some of the uplinks have.
fn missed_by(server: &ServerFacts, facts: &Facts) -> Option<Finding> {
    let usable = || facts.uplinks.iter().filter(|uplink| uplink.wrong.is_none() && !uplink.ways.is_empty());
    let reaches = |uplink: &&UplinkFacts| {
        let mut ways = uplink.ways.iter();
        ways.any(|way| server.addresses.iter().any(|ip| ip.is_ipv4() == way.address.is_ipv4()))
    };
    let without: Vec<&str> =
        usable().filter(|uplink| !reaches(uplink)).map(|uplink| uplink.interface.as_str()).collect();
    let first = server.addresses.first().filter(|_| !without.is_empty() && without.len() < usable().count())?;
    let family = if first.is_ipv4() { "IPv4" } else { "IPv6" };
    let (lacks, carries) = if without.len() == 1 { ("lacks", "carries") } else { ("lack", "carry") };
    let uplinks = list(&without);
    let text = format!(
        "it has {family} only, which {uplinks} {lacks}: {uplinks} {carries} nothing from there. All uplinks can carry \
         a part only if a server has both families"
    );
    Some(Finding::note("family-missed", &server.name, text))
}

/// Reports servers that no uplink reaches, uplinks that reach no server, and silent pairs.
fn reached(facts: &Facts, blocked: bool) -> Vec<Finding> {
    let inquiries = &facts.inquiries;
    let mut findings = refused(facts);
    // The firewall explains this, and has its own finding.
    if blocked {
        return findings;
    }
    let servers = unique(inquiries.iter().map(|inquiry| inquiry.server.as_str()));
    let uplinks = unique(inquiries.iter().map(|inquiry| inquiry.uplink.as_str()));
    if !inquiries.is_empty() && !inquiries.iter().any(answered) {
        let is_explained = |uplink: &&&str| gateway_is_silent(facts, uplink) || interference::stops(facts, uplink);
        if uplinks.iter().filter(is_explained).count() < uplinks.len() {
            findings.push(if is_open(facts) {
                servers_silent(facts, &servers)
            } else {
                nothing_answers(facts, &servers)
            });
        }
        return findings;
    }
    findings.extend(uplinks.iter().filter_map(|uplink| uplink_dead(facts, uplink, &servers)));
    findings
        .extend(uplinks.iter().flat_map(|uplink| [true, false].map(|v4| family_silent(facts, uplink, v4))).flatten());
    for server in servers {
        let of: Vec<&Inquiry> = inquiries.iter().filter(|inquiry| inquiry.server == server).collect();
        findings.extend(server_silent(server, &of, facts));
    }
    findings
}

/// Returns whether nothing but these servers is known to be silent.
pub(super) fn is_open(facts: &Facts) -> bool {
    let is_stopped = super::machine::firewall_blocks(facts)
        || facts.inquiries.iter().any(|inquiry| interference::stops(facts, &inquiry.uplink));
    let usable = || facts.uplinks.iter().filter(|uplink| uplink.wrong.is_none());
    let mut gateways = usable().flat_map(|uplink| &uplink.ways).map(|way| way.gateway_state);
    let hosts: BTreeSet<&str> = facts.inquiries.iter().map(|inquiry| inquiry.server.as_str()).collect();
    let finds_names = usable().any(|uplink| uplink.finds_names == Some(true));
    !is_stopped && (finds_names || (hosts.len() == 1 && gateways.any(|state| state == GatewayState::Answers)))
}

fn nothing_answers(facts: &Facts, servers: &[&str]) -> Finding {
    let text = format!("nothing answers over any uplink (asked: {})", list(servers));
    let first = look_here_first(facts, &EVERYWHERE);
    let remedy =
        format!("{first}check that the phones have mobile data and the plan has volume left, and name another server");
    Finding::problem("nothing-answers", MACHINE, text).remedy(remedy).likely_cause()
}

/// A single server that is down looks the same.
fn servers_silent(facts: &Facts, servers: &[&str]) -> Finding {
    let of_names = |uplink: &&UplinkFacts| uplink.finds_names == Some(true);
    let finding: Vec<&str> = facts.uplinks.iter().filter(of_names).map(|uplink| uplink.interface.as_str()).collect();
    let (heard, data) = match finding.is_empty() {
        true => (
            "their gateways do".to_owned(),
            "; if that is silent as well, check that the phones have mobile data and volume left",
        ),
        false => (format!("name servers do over {}", list(&finding)), ""),
    };
    let (does, others) = if servers.len() == 1 { ("does", "it is") } else { ("do", "they are") };
    let text = format!(
        "{} {does} not answer over any uplink, while {heard}: either {others} down, or the uplinks lead nowhere",
        list(servers)
    );
    let first = look_here_first(facts, &EVERYWHERE);
    let family = if asked_ipv6_alone(facts) { ", one that has IPv4, which was not asked" } else { "" };
    let remedy =
        format!("{first}name another server as well{family}: anabranch doctor {} OTHER:443{data}", servers.join(" "));
    Finding::warning("servers-silent", MACHINE, text).remedy(remedy).likely_cause()
}

/// Returns whether the uplinks have IPv4 and only IPv6 addresses were asked.
fn asked_ipv6_alone(facts: &Facts) -> bool {
    let mut ways = facts.uplinks.iter().flat_map(|uplink| &uplink.ways);
    ways.any(|way| way.address.is_ipv4()) && facts.inquiries.iter().all(|inquiry| inquiry.remote.is_ipv6())
}

/// Reports an uplink over which no server answers, while servers answer over others.
fn uplink_dead(facts: &Facts, uplink: &str, servers: &[&str]) -> Option<Finding> {
    if has_reached(facts, uplink) || gateway_is_silent(facts, uplink) || interference::stops(facts, uplink) {
        return None;
    }
    let first = look_here_first(facts, &EVERYWHERE);
    let data = "check that the phone has mobile data and volume left, and open the sign-in page if there is one \
                (hotels, trains)";
    let [server] = servers else {
        let text = "no server answers over it, while servers answer over other uplinks";
        return Some(Finding::problem("uplink-dead", uplink, text).remedy(format!("{first}{data}")));
    };
    // The uplink may block this one server.
    let port = if server.ends_with(":443") { "OTHER:443" } else { "OTHER:443, a port that is rarely blocked" };
    let second = format!("name a second server (anabranch doctor {server} {port})");
    let finds_names = facts.uplinks.iter().any(|known| known.interface == uplink && known.finds_names == Some(true));
    Some(match finds_names {
        true => {
            let text = format!(
                "{server} answers over other uplinks but not over this one, although names are found over it: it \
                 may block that server or its port"
            );
            Finding::warning("uplink-blocks", uplink, text).remedy(format!(
                "{first}{second}: if that answers, use the other uplinks for the first one; if not: {data}"
            ))
        }
        false => {
            let text = format!("{server}, the only server named, answers over other uplinks but not over this one");
            Finding::problem("uplink-dead", uplink, text).remedy(format!(
                "{first}{data}; if that does not help, the uplink may block that server or its port: {second}"
            ))
        }
    })
}

/// Reports a family over which nothing answers on an uplink whose other family works.
fn family_silent(facts: &Facts, uplink: &str, is_ipv4: bool) -> Option<Finding> {
    let of_family = |it: &&Inquiry| it.remote.is_ipv4() == is_ipv4;
    let mut own = facts.inquiries.iter().filter(|it| it.uplink == uplink && of_family(it)).peekable();
    own.peek()?;
    if own.any(answered) || !has_reached(facts, uplink) {
        return None;
    }
    let elsewhere = facts.inquiries.iter().filter(|it| of_family(it) && answered(it));
    let elsewhere = unique(elsewhere.map(|it| it.uplink.as_str()));
    let (family, other) = if is_ipv4 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    let whose = match elsewhere.is_empty() {
        true => "nor over that of any other: the servers or the uplinks may lack it".to_owned(),
        false => format!("but something does over that of {}", list(&elsewhere)),
    };
    let text = format!("nothing answers over its {family}, {whose}. Connections use {other} there");
    Some(Finding::note("family-silent", uplink, text))
}

/// Returns whether the gateway explains the silence; it has its own finding.
fn gateway_is_silent(facts: &Facts, uplink: &str) -> bool {
    let mut of = facts.uplinks.iter().filter(|known| known.interface == uplink);
    let all_silent = |ways: &[WayFacts]| ways.iter().all(|way| way.gateway_state == GatewayState::Silent);
    of.any(|known| !known.ways.is_empty() && all_silent(&known.ways)) && !has_reached(facts, uplink)
}

/// Reports ports on which no server listens.
fn refused(facts: &Facts) -> Vec<Finding> {
    let servers = unique(facts.inquiries.iter().map(|inquiry| inquiry.server.as_str()));
    let all_refuse = |server: &&str| {
        let mut of =
            facts.inquiries.iter().filter(|inquiry| inquiry.server == **server && answered(inquiry)).peekable();
        of.peek().is_some() && of.all(|inquiry| inquiry.plain == Reached::Refused)
    };
    let finding = |server: &str| {
        let text = "it refuses connections to this port, but is reachable";
        Finding::warning("refused", server, text).remedy("name a port on which the server listens: SERVER:PORT")
    };
    servers.into_iter().filter(all_refuse).map(finding).collect()
}

/// Reports a server that does not answer over uplinks that reach others.
fn server_silent(server: &str, inquiries: &[&Inquiry], facts: &Facts) -> Option<Finding> {
    let is_led_away = |inquiry: &Inquiry| {
        let mut detours = facts.detours.iter();
        detours.any(|detour| (&detour.uplink, detour.remote) == (&inquiry.uplink, inquiry.remote.ip()))
    };
    let silent =
        |inquiry: &&&Inquiry| !answered(inquiry) && has_reached(facts, &inquiry.uplink) && !is_led_away(inquiry);
    let over = unique(inquiries.iter().filter(silent).map(|inquiry| inquiry.uplink.as_str()));
    // If the uplink reaches the server's other address, little is lost.
    let over: Vec<&str> = over
        .into_iter()
        .filter(|uplink| !inquiries.iter().any(|inquiry| inquiry.uplink == *uplink && answered(inquiry)))
        .collect();
    if over.is_empty() {
        return None;
    }
    let others = unique(inquiries.iter().filter(|inquiry| answered(inquiry)).map(|inquiry| inquiry.uplink.as_str()));
    let (text, remedy) = match others.is_empty() {
        true => (
            format!("it does not answer over {}, while other servers do", list(&over)),
            "check its name and port; the server may be down, or drop unexpected packets".to_owned(),
        ),
        false => (
            format!("it does not answer over {}, but does over {}", list(&over), list(&others)),
            format!("something behind {} blocks this server or its port: use the other uplinks for it", list(&over)),
        ),
    };
    Some(Finding::warning("server-silent", server, text).remedy(remedy))
}

/// Reports large packets that vanish silently on an uplink, towards some or all servers.
fn black_holes(facts: &Facts) -> Vec<Finding> {
    let holed: Vec<&Inquiry> = facts.inquiries.iter().filter(|inquiry| inquiry.mtu.vanishes > 0).collect();
    let finding = |uplink: &str| {
        let of: Vec<&&Inquiry> = holed.iter().filter(|inquiry| inquiry.uplink == uplink).collect();
        let carries = of.iter().map(|inquiry| inquiry.mtu.carries).min().unwrap_or(0);
        let vanishes = of.iter().map(|inquiry| inquiry.mtu.vanishes).min().unwrap_or(0);
        let servers = unique(of.iter().map(|inquiry| inquiry.server.as_str()));
        let text = format!(
            "packets of {vanishes} octets vanish silently on the way to {} (a black hole); {carries} octets get \
             through. Every connection stalls for a second or two until it has found the path MTU",
            list(&servers)
        );
        Finding::warning("mtu-black-hole", uplink, text).remedy(smaller_packets(uplink, carries, facts))
    };
    unique(holed.iter().map(|inquiry| inquiry.uplink.as_str())).into_iter().map(finding).collect()
}

/// Returns the command that limits an uplink's packets to this size. The kernel removes all IPv6 from an interface
/// whose MTU is below the minimum of IPv6.
fn smaller_packets(uplink: &str, octets: u16, facts: &Facts) -> String {
    let mut ways = facts.uplinks.iter().filter(|known| known.interface == uplink).flat_map(|known| &known.ways);
    let has_ipv6 = ways.clone().any(|way| way.address.is_ipv6());
    if octets >= IPV6_MTU_MIN || !has_ipv6 {
        return format!("ip link set {uplink} mtu {octets}");
    }
    let gateway = ways.find(|way| way.address.is_ipv4()).and_then(|way| way.gateway);
    let via = gateway.map_or(String::new(), |gateway| format!(" via {gateway}"));
    format!(
        "ip route change default{via} dev {uplink} mtu lock {octets} (with the metric that `ip route` shows; for IPv4 \
         alone: an interface with an MTU below {IPV6_MTU_MIN} has no IPv6)"
    )
}

fn lossy(inquiry: &Inquiry) -> Option<Finding> {
    let (lost, answers) = (inquiry.unanswered as usize, inquiry.rtts.len());
    let text = format!("{lost} of {} small packets to {} were not answered over it", lost + answers, inquiry.server);
    let is_lossy = answers > 0 && lost > 1 && lost * LOSSY_ONE_IN >= lost + answers;
    is_lossy.then(|| Finding::note("lossy", &inquiry.uplink, text))
}
