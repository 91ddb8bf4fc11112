//! Findings that concern all uplinks: privileges, programs, firewalls, tunnels, the clock.

use super::super::facts::{Facts, Ipv6Forwarding, Machine, NameServer};
use super::interference::look_here_first;
use super::{Finding, MACHINE, answered, list, named};

/// 2025-01-01: an earlier time shows that the clock is wrong.
const CLOCK_LEAST_UNIX_S: u64 = 1_735_689_600;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = abilities(&facts.machine);
    findings.extend(clock(&facts.machine));
    findings.extend(firewall(facts));
    findings.extend(vpn(facts));
    findings.extend(kernel_mptcp(&facts.machine));
    findings.extend(ipv6(facts));
    findings.extend(name_servers(facts));
    findings
}

/// Reports what the machine lacks for a join.
fn abilities(machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !machine.may_administer {
        let text = "this process lacks CAP_NET_ADMIN, which join needs to change the network";
        let remedy = "sudo anabranch doctor, and sudo anabranch join (in a container: --cap-add NET_ADMIN)";
        findings.push(Finding::problem("no-rights", MACHINE, text).remedy(remedy));
    }
    for (program, package) in &machine.missing_programs {
        let text = format!("the program `{program}`, which join needs, is missing");
        findings.push(Finding::problem("no-program", MACHINE, text).remedy(format!("apt-get install {package}")));
    }
    if let Some(why) = &machine.tun_refused {
        let remedy = "modprobe tun (in a container: --device /dev/net/tun)";
        findings.push(Finding::problem("no-tun", MACHINE, format!("no TUN device: {why}")).remedy(remedy));
    }
    if let Some(why) = machine.plumbing_refused.as_ref().filter(|_| findings.is_empty()) {
        let remedy = "anabranch join --dry-run shows every step; the one that failed is named above";
        let text = format!("the engine cannot be connected with the uplinks: {why}");
        findings.push(Finding::problem("no-plumbing", MACHINE, text).remedy(remedy));
    }
    findings
}

fn clock(machine: &Machine) -> Option<Finding> {
    let text = "the clock is years behind: every HTTPS certificate looks invalid";
    (machine.clock_unix_s < CLOCK_LEAST_UNIX_S).then(|| {
        Finding::warning("clock", MACHINE, text).remedy("timedatectl set-ntp true, or date -s 'YYYY-MM-DD HH:MM'")
    })
}

/// Reports chains that drop by policy. The engine's packets are forwarded; the host's own name queries are output.
fn firewall(facts: &Facts) -> Vec<Finding> {
    let chains = facts.machine.dropping_chains.iter().flatten();
    let chain = |chain: &super::super::facts::Chain| {
        let name = &chain.name;
        if chain.hook == "forward" {
            forward_drop(facts, name)
        } else {
            let text = format!("the firewall chain `{name}` drops outgoing packets that none of its rules accepts");
            let finding = |level| Finding::new(level, "output-drop", MACHINE, text);
            match lacks_names(facts) {
                true => finding(super::Level::Warning)
                    .remedy(format!("nft insert rule {name} udp dport 53 accept"))
                    .likely_cause(),
                false => finding(super::Level::Note),
            }
        }
    };
    chains.map(chain).collect()
}

/// Returns whether this device's programs are known to find names late or not at all.
fn lacks_names(facts: &Facts) -> bool {
    facts.servers.iter().any(|server| server.lookup_failed.is_some() || server.over_uplinks)
        || facts.machine.name_servers.iter().any(|server| !server.answers)
}

fn forward_drop(facts: &Facts, name: &str) -> Finding {
    let text = format!("the firewall chain `{name}` drops forwarded packets that none of its rules accepts");
    if facts.inquiries.iter().any(answered) {
        return Finding::note("forward-drop", MACHINE, text + "; it lets the engine's packets pass");
    }
    // Without inquiries nothing shows whether engine packets pass.
    let level = if facts.inquiries.is_empty() { super::Level::Warning } else { super::Level::Problem };
    Finding::new(level, "forward-drop", MACHINE, text + ", so it may drop all of the engine's packets").remedy(format!(
        "nft insert rule {name} iifname '\"anabranch*\"' accept; nft insert rule {name} oifname '\"anabranch*\"' accept"
    ))
}

/// Returns whether a firewall explains that nothing answers.
pub(super) fn firewall_blocks(facts: &Facts) -> bool {
    firewall(facts).iter().any(|finding| finding.code == "forward-drop" && finding.level == super::Level::Problem)
}

fn vpn(facts: &Facts) -> Option<Finding> {
    let vpn = facts.machine.vpn.as_ref()?;
    let others: Vec<&str> = facts
        .uplinks
        .iter()
        .filter(|uplink| uplink.wrong.is_none() && uplink.interface != vpn.interface)
        .map(|uplink| uplink.interface.as_str())
        .collect();
    let is_uplink = facts.uplinks.iter().any(|uplink| uplink.wrong.is_none() && uplink.interface == vpn.interface);
    if is_uplink && others.is_empty() {
        return None;
    }
    let what = match is_uplink {
        true => "join takes it for one of the uplinks, so only a part of the traffic goes through the tunnel",
        false => "join's traffic leaves by the uplinks, not through the tunnel",
    };
    let text = format!("the tunnel {} ({}) takes this host's default route; {what}", vpn.interface, vpn.kind);
    let which = if others.is_empty() { " --interface NAME".into() } else { named(&others) };
    let remedy = format!(
        "if this is intended, name the uplinks: anabranch join{which}; if not, do not join while the tunnel is up"
    );
    Some(Finding::warning("vpn", MACHINE, text).remedy(remedy))
}

/// Reports the state of the kernel's MPTCP. Only `join --kernel` and servers on this machine use it.
fn kernel_mptcp(machine: &Machine) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mptcp = &machine.kernel_mptcp;
    let text = match mptcp.enabled {
        None => Some("the kernel has no MPTCP (CONFIG_MPTCP); join does not need it, the kernel mode does"),
        Some(false) => Some(
            "the kernel's MPTCP is off; join does not need it, the kernel mode does (sysctl -w net.mptcp.enabled=1)",
        ),
        Some(true) if !mptcp.has_command && machine.missing_programs.is_empty() => {
            Some("`ip mptcp` does not work; join does not need it, the kernel mode does (iproute2 5.8 or newer)")
        }
        Some(true) => None,
    };
    findings.extend(text.map(|text| Finding::note("kernel-mptcp", MACHINE, text)));
    if !mptcp.endpoints.is_empty() {
        let text = format!(
            "the kernel's MPTCP has endpoints of another program: {}; they are left alone",
            list(&mptcp.endpoints)
        );
        findings.push(Finding::note("foreign-endpoints", MACHINE, text));
    }
    findings
}

fn ipv6(facts: &Facts) -> Option<Finding> {
    let is_concerned = |uplink: &super::super::facts::UplinkFacts| uplink.ways.iter().any(|way| way.address.is_ipv6());
    let concerned = facts.machine.forwards_ipv6 == Ipv6Forwarding::Off && facts.uplinks.iter().any(is_concerned);
    let text = "this kernel forwards IPv6 for all interfaces or none, and forwarding is off: uplinks are used without \
                IPv6 (sysctl -w net.ipv6.conf.all.forwarding=1, with accept_ra=2 for interfaces that must keep their \
                router)";
    concerned.then(|| Finding::note("ipv6-forwarding", MACHINE, text))
}

/// Reports name servers that this machine's programs ask in vain. A join works around them; other programs cannot.
fn name_servers(facts: &Facts) -> Option<Finding> {
    let servers = &facts.machine.name_servers;
    let shown = |server: &NameServer| match server.fails {
        true => format!("{} fails to resolve names (SERVFAIL)", server.ip),
        false => format!("{} does not answer", server.ip),
    };
    let silent: Vec<String> = servers.iter().filter(|server| !server.answers).map(shown).collect();
    let late = facts.servers.iter().find(|server| server.over_uplinks && server.lookup_failed.is_none());
    let text = match (silent.is_empty(), silent.len() < servers.len(), late) {
        (true, _, None) => return None,
        (true, _, Some(server)) => {
            format!("this machine's name servers did not find {} in time; it was found over an uplink", server.name)
        }
        (false, true, _) => format!("the name server {}: look-ups take long", list(&silent)),
        (false, false, _) => format!(
            "none of this machine's name servers resolves names ({}): programs find no names, and join asks over each \
             uplink instead",
            list(&silent)
        ),
    };
    let remedy = format!(
        "{}check /etc/resolv.conf (resolvectl status), which may name a server of a VPN, or of an uplink that is gone",
        look_at_output_first(facts)
    );
    Some(Finding::warning("names-silent", MACHINE, text).remedy(remedy))
}

/// Returns what to check before blaming name servers; empty if this device drops nothing that it sends.
pub(super) fn look_at_output_first(facts: &Facts) -> String {
    let policies = facts.machine.dropping_chains.iter().flatten().filter(|chain| chain.hook == "output");
    let policies: Vec<&str> = policies.map(|chain| chain.name.as_str()).collect();
    match policies.is_empty() {
        true => look_here_first(facts, &["output", "postrouting"]),
        false => format!("make the firewall chain {} accept name queries (output-drop); otherwise: ", list(&policies)),
    }
}
