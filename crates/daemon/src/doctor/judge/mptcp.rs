//! Whether MPTCP gets through, and who removes it.
//!
//! A single answer without MPTCP says little: the server may not speak MPTCP, or something on the path removes it. So
//! the doctor compares answers. If a server answers with MPTCP from the same address over another uplink, the server
//! speaks it. If another server answers with MPTCP over the same uplink, the uplink lets it pass.

use units::Duration;

use super::super::facts::{Facts, Inquiry, Reached, Spoken};
use super::{Finding, list, unique, without_uplink};

/// Below this time the answer comes from a device of this network, if other servers are at least `FAR_RTT_MIN` away.
const NEAR_RTT_MAX: Duration = Duration::from_millis(2);
const FAR_RTT_MIN: Duration = Duration::from_millis(10);
const PORTAL_REMEDY: &str = "connect to that network alone, open a page in a browser, and log in if asked to";

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for symptom in [Symptom::Plain, Symptom::Dropped, Symptom::Refused, Symptom::FellBack] {
        findings.extend(attribute(facts, symptom));
    }
    findings
}

/// What goes wrong with MPTCP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Symptom {
    /// The options are removed.
    Plain,
    /// The whole SYN disappears.
    Dropped,
    /// The SYN is answered with a reset.
    Refused,
    /// The options disappear after the handshake.
    FellBack,
}

impl Symptom {
    fn is_of(self, inquiry: &Inquiry) -> bool {
        match self {
            Self::Plain => inquiry.mptcp == Spoken::Plain,
            Self::Dropped => inquiry.mptcp == Spoken::Silent && inquiry.plain == Reached::Yes,
            Self::Refused => inquiry.mptcp == Spoken::Refused && inquiry.plain == Reached::Yes,
            Self::FellBack => inquiry.mptcp == Spoken::FellBack,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "mptcp-stripped",
            Self::Dropped => "mptcp-dropped",
            Self::Refused => "mptcp-refused",
            Self::FellBack => "mptcp-stripped-from-data",
        }
    }

    /// Describes what an uplink does to MPTCP.
    fn deed(self) -> &'static str {
        match self {
            Self::Plain => "it removes MPTCP's options from connections",
            Self::Dropped => {
                "it drops connections that offer MPTCP; the first ones continue as plain TCP after two seconds"
            }
            Self::Refused => "it resets connections that offer MPTCP; they must start again as plain TCP",
            Self::FellBack => "it lets MPTCP's handshake pass but removes its options from data",
        }
    }

    /// The same for several uplinks, or for one that the sentence names.
    fn deeds(self, are_several: bool) -> &'static str {
        match (self, are_several) {
            (Self::Plain | Self::FellBack, true) => "remove it",
            (Self::Plain | Self::FellBack, false) => "removes it",
            (Self::Dropped, true) => "drop it",
            (Self::Dropped, false) => "drops it",
            (Self::Refused, true) => "refuse it",
            (Self::Refused, false) => "refuses it",
        }
    }

    /// Describes the consequence for programs.
    fn consequence(self) -> &'static str {
        match self {
            Self::Plain | Self::FellBack => "Nothing is bonded towards that server: each connection has one uplink",
            Self::Dropped | Self::Refused => {
                "Nothing is bonded towards that server: each connection has one uplink, and the first ones take \
                 longer, since they start again as plain TCP"
            }
        }
    }
}

/// Blames uplinks, or servers, or neither if the facts do not decide.
fn attribute(facts: &Facts, symptom: Symptom) -> Vec<Finding> {
    let inquiries = &facts.inquiries;
    let ill: Vec<&Inquiry> = inquiries.iter().filter(|inquiry| symptom.is_of(inquiry)).collect();
    let speaks = |it: &Inquiry| over(inquiries, it);
    let passes = |it: &Inquiry| carried(inquiries, it);
    let by_uplink: Vec<&&Inquiry> = ill.iter().filter(|inquiry| !speaks(inquiry).is_empty()).collect();
    let uplinks = unique(by_uplink.iter().map(|inquiry| inquiry.uplink.as_str()));
    let by_server: Vec<&&Inquiry> =
        ill.iter().filter(|inquiry| speaks(inquiry).is_empty() && !passes(inquiry).is_empty()).collect();
    let servers = unique(by_server.iter().map(|inquiry| inquiry.server.as_str()));
    let mut findings = Vec::new();
    for uplink in &uplinks {
        let of = by_uplink.iter().filter(|inquiry| inquiry.uplink == *uplink);
        let proof: Vec<String> =
            of.map(|it| format!("{} answers with MPTCP over {}", it.server, list(&speaks(it)))).collect();
        let text = format!("{} ({})", symptom.deed(), unique(proof.iter().map(String::as_str)).join("; "));
        let too_soon =
            by_uplink.iter().filter(|inquiry| inquiry.uplink == *uplink).find_map(|it| too_soon(inquiries, it));
        let remedy = without_uplink(facts, uplink);
        findings.push(match too_soon.filter(|_| symptom == Symptom::Plain) {
            Some(proof) => Finding::warning(symptom.code(), *uplink, format!("{text}; {proof}"))
                .remedy(format!("{PORTAL_REMEDY}; else: {remedy}"))
                .likely_cause(),
            None => Finding::warning(symptom.code(), *uplink, text).remedy(remedy),
        });
    }
    for server in &servers {
        let of = by_server.iter().filter(|inquiry| inquiry.server == *server);
        let proof: Vec<String> = of.map(|it| format!("{} carries MPTCP to {}", it.uplink, list(&passes(it)))).collect();
        findings.push(match of_one_family(inquiries, server, symptom) {
            Some((family, other)) => {
                let proof = format!("over {other} it answers with MPTCP");
                server_without(server, symptom, &format!("over {family} "), &proof)
            }
            None => server_without(server, symptom, "", &unique(proof.iter().map(String::as_str)).join("; ")),
        });
    }
    let open: Vec<&&Inquiry> =
        ill.iter().filter(|p| !uplinks.contains(&p.uplink.as_str()) && !servers.contains(&p.server.as_str())).collect();
    findings.extend(undecided(&open, symptom));
    findings
}

/// Returns a sign that a device nearby answers in the server's name: the answer comes far sooner than the server can
/// give one, judging by its times over other uplinks and other servers' times over this one.
fn too_soon(inquiries: &[Inquiry], suspect: &Inquiry) -> Option<String> {
    let least = |inquiry: &Inquiry| inquiry.rtts.iter().min().copied();
    let soon = least(suspect).filter(|rtt| *rtt < NEAR_RTT_MAX)?;
    let others = inquiries.iter().filter(|it| (it.server == suspect.server) != (it.uplink == suspect.uplink));
    let far = others.filter(|it| it.mptcp.is_good()).find(|it| least(it).is_some_and(|rtt| rtt >= FAR_RTT_MIN))?;
    let ms = |rtt: Duration| rtt.as_secs_f64() * 1e3;
    Some(format!(
        "{} answers within {:.1} ms there, but {} over {} within {:.0} ms: a device nearby likely answers in its \
         place, as in a network that asks you to log in (a captive portal)",
        suspect.server,
        ms(soon),
        far.server,
        far.uplink,
        ms(least(far).unwrap_or_default())
    ))
}

/// Returns the uplinks over which the address in question answers with MPTCP. An address of the other family may belong
/// to another host.
fn over<'a>(inquiries: &'a [Inquiry], asked: &Inquiry) -> Vec<&'a str> {
    let is_same = |it: &&Inquiry| (&it.server, it.remote) == (&asked.server, asked.remote) && it.mptcp.is_good();
    unique(inquiries.iter().filter(is_same).map(|inquiry| inquiry.uplink.as_str()))
}

/// Returns the servers that answer with MPTCP over the same uplink and family: those show what the uplink lets pass. A
/// provider may treat the families differently, so another server's answer over the other family shows nothing. That
/// of the server itself counts, however ([`of_one_family`]).
fn carried<'a>(inquiries: &'a [Inquiry], asked: &Inquiry) -> Vec<&'a str> {
    let counts = |it: &&Inquiry| {
        let is_alike = it.remote.is_ipv4() == asked.remote.is_ipv4() || it.server == asked.server;
        it.uplink == asked.uplink && it.mptcp.is_good() && is_alike
    };
    unique(inquiries.iter().filter(counts).map(|inquiry| inquiry.server.as_str()))
}

/// If a server answers with MPTCP over only one family, returns the family without MPTCP and the one with it.
fn of_one_family(inquiries: &[Inquiry], server: &str, symptom: Symptom) -> Option<(&'static str, &'static str)> {
    let mut of = inquiries.iter().filter(|it| it.server == server);
    let with = of.clone().find(|it| it.mptcp.is_good())?;
    let without = of.find(|it| symptom.is_of(it) && it.remote.is_ipv4() != with.remote.is_ipv4())?;
    Some(if without.remote.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") })
}

/// `wherein` names the family if only one is concerned.
fn server_without(server: &str, symptom: Symptom, wherein: &str, proof: &str) -> Finding {
    let (code, text) = match symptom {
        Symptom::Plain => (
            "server-without-mptcp",
            format!("{wherein}it does not speak MPTCP ({proof}): each connection has one uplink"),
        ),
        Symptom::Dropped => (
            "server-drops-mptcp",
            format!("{wherein}it, or a firewall in front of it, drops connections that offer MPTCP ({proof})"),
        ),
        Symptom::Refused => (
            "server-refuses-mptcp",
            format!("{wherein}it, or a firewall in front of it, resets connections that offer MPTCP ({proof})"),
        ),
        Symptom::FellBack => (
            "server-strips-data",
            format!("{wherein}something in front of it removes MPTCP's options from data ({proof})"),
        ),
    };
    let remedy = "if the server is yours: use Linux 5.6 or newer, run sysctl -w net.mptcp.enabled=1, start its \
                  program with mptcpize run, and put no proxy or load balancer in front of it";
    Finding::warning(code, server, text).remedy(remedy)
}

fn undecided(open: &[&&Inquiry], symptom: Symptom) -> Option<Finding> {
    let (servers, uplinks) = (
        unique(open.iter().map(|inquiry| inquiry.server.as_str())),
        unique(open.iter().map(|inquiry| inquiry.uplink.as_str())),
    );
    let first = servers.first()?;
    let what = match symptom {
        Symptom::Plain => "connections are answered without MPTCP",
        Symptom::Dropped => "connections that offer MPTCP are not answered, others are",
        Symptom::Refused => "connections that offer MPTCP are reset, others are not",
        Symptom::FellBack => "MPTCP's options are removed from data",
    };
    let whether = match uplinks.len() {
        1 => format!("whether the server or {} is to blame", uplinks[0]),
        _ => format!("whether the server or all of {} are to blame", list(&uplinks)),
    };
    let text = format!("{what} over {}; this does not show {whether}. {}", list(&uplinks), symptom.consequence());
    let (which, speaks) = match servers.len() {
        1 => (format!("if {first} is"), "if not, also name a server that is"),
        _ => (format!("if one of {} is", list(&servers)), "if none is, also name a server that is"),
    };
    let deed = format!("{} {}", list(&uplinks), symptom.deeds(uplinks.len() > 1));
    let remedy = format!(
        "{which} known to speak MPTCP, {deed}: try another access point name (APN) or another provider there; \
         {speaks}: anabranch doctor {} KNOWN:PORT",
        servers.join(" ")
    );
    let code = match symptom {
        Symptom::Plain => "mptcp-undecided",
        Symptom::Dropped => "mptcp-dropped-undecided",
        Symptom::Refused => "mptcp-refused-undecided",
        Symptom::FellBack => "mptcp-data-undecided",
    };
    Some(Finding::warning(code, *first, text).remedy(remedy))
}
