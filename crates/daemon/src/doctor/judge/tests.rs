//! Tables of facts with their findings.

use std::net::IpAddr;

use linux::uplink::NO_DEFAULT_ROUTE;
use units::Duration;

use super::super::facts::*;
use super::super::report::Report;
use super::*;

pub(super) const S: &str = "s.example:443";
pub(super) const T: &str = "t.example:443";

/// A machine in good order.
pub(super) fn machine() -> Machine {
    Machine {
        may_administer: true,
        is_plumbed: true,
        kernel_mptcp: KernelMptcp { enabled: Some(true), has_command: true, endpoints: Vec::new() },
        clock_unix_s: 1_900_000_000,
        dropping_chains: Some(Vec::new()),
        ..Machine::default()
    }
}

pub(super) fn way(address: &str, gateway: &str) -> WayFacts {
    let parse = |text: &str| text.parse::<IpAddr>().unwrap();
    let gateway_state = GatewayState::Answers;
    WayFacts { address: parse(address), prefix_len: 24, gateway: Some(parse(gateway)), gateway_state }
}

pub(super) fn uplink(interface: &str, network: u8) -> UplinkFacts {
    let address = |host: u8| format!("192.0.{network}.{host}");
    UplinkFacts {
        interface: interface.into(),
        mtu: 1500,
        ways: vec![way(&address(10), &address(1))],
        ..UplinkFacts::default()
    }
}

pub(super) fn server(name: &str) -> ServerFacts {
    let addresses = vec!["198.51.100.1".parse().unwrap()];
    ServerFacts { name: name.into(), port: 443, addresses, lookup_failed: None, over_uplinks: false }
}

pub(super) fn inquiry(uplink: &str, server: &str, spoken: Spoken) -> Inquiry {
    Inquiry {
        uplink: uplink.into(),
        server: server.into(),
        remote: "198.51.100.1:443".parse().unwrap(),
        plain: Reached::Yes,
        mptcp: spoken,
        rtts: vec![Duration::from_millis(20); 5],
        unanswered: 0,
        mtu: PathMtu { carries: 1500, vanishes: 0, told: 0 },
    }
}

pub(super) fn silent(uplink: &str, server: &str) -> Inquiry {
    let nothing = Inquiry {
        plain: Reached::Silent,
        rtts: Vec::new(),
        mtu: PathMtu::default(),
        ..inquiry("", "", Spoken::Silent)
    };
    Inquiry { uplink: uplink.into(), server: server.into(), ..nothing }
}

pub(super) fn join(base: &str, uplink: &str, outcome: JoinOutcome) -> Join {
    let remote = "198.51.100.1:443".parse().unwrap();
    Join { server: S.into(), remote, base: base.into(), uplink: uplink.into(), announced: None, outcome, tries: 2 }
}

/// Two uplinks and two servers, all in good order.
pub(super) fn good() -> Facts {
    let inquiries = [("a", S), ("b", S)].map(|(uplink, server)| inquiry(uplink, server, Spoken::Confirmed));
    Facts {
        machine: machine(),
        uplinks: vec![uplink("a", 2), uplink("b", 3)],
        uplinks_named: true,
        servers: vec![server(S), server(T)],
        inquiries: inquiries.into(),
        joins: vec![join("a", "b", JoinOutcome::Established), join("b", "a", JoinOutcome::Established)],
        ..Facts::default()
    }
}

/// Returns the findings that ask for a change, as `code place`, in order.
pub(super) fn asked(facts: &Facts) -> Vec<String> {
    let all = judge(facts);
    let ask: Vec<_> = all.iter().filter(|finding| finding.asks_for_change()).collect();
    assert!(ask.iter().all(|finding| finding.remedy.is_some()), "{ask:?}");
    ask.iter().map(|finding| format!("{} {}", finding.code, finding.place)).collect()
}

pub(super) fn notes(facts: &Facts) -> Vec<&'static str> {
    judge(facts).iter().filter(|finding| !finding.asks_for_change()).map(|finding| finding.code).collect()
}

/// Returns good facts with a change.
pub(super) fn with(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = good();
    change(&mut facts);
    facts
}

#[test]
fn nothing_is_said_where_all_is_well() {
    let facts = good();
    assert_eq!((asked(&facts), notes(&facts)), (vec![], vec![]));
    let report = Report::new(facts);
    assert!(report.join_works && report.text().ends_with("\nNothing to change\n"), "{}", report.text());
    assert!(serde_json::to_value(&report).unwrap()["facts"]["inquiries"][0]["mptcp"] == "confirmed");
}

#[test]
fn what_the_machine_lacks() {
    type Change = fn(&mut Machine);
    let cases: [(&str, bool, Change); 6] = [
        ("no-rights machine", false, |machine| machine.may_administer = false),
        ("no-program machine", false, |machine| machine.missing_programs = vec![("nft".into(), "nftables".into())]),
        ("no-tun machine", false, |machine| machine.tun_refused = Some("no such file".into())),
        ("no-plumbing machine", false, |machine| machine.plumbing_refused = Some("nft: no nft_masq".into())),
        ("clock machine", true, |machine| machine.clock_unix_s = 3_600),
        ("vpn machine", true, |machine| machine.vpn = Some(Vpn { interface: "wg0".into(), kind: "wireguard".into() })),
    ];
    for (code, works, change) in cases {
        let facts = with(|facts| change(&mut facts.machine));
        assert_eq!((asked(&facts), join_works(&facts)), (vec![code.to_owned()], works));
    }
    // A consequence of something else that is missing is not reported too.
    let facts = with(|facts| {
        facts.machine.may_administer = false;
        facts.machine.plumbing_refused = Some("not permitted".into());
    });
    assert_eq!(asked(&facts), ["no-rights machine"]);
}

#[test]
fn what_is_only_good_to_know() {
    type Change = fn(&mut Facts);
    let cases: [(&str, Change); 8] = [
        ("kernel-mptcp", |facts| facts.machine.kernel_mptcp.enabled = None),
        ("kernel-mptcp", |facts| facts.machine.kernel_mptcp.enabled = Some(false)),
        ("kernel-mptcp", |facts| facts.machine.kernel_mptcp.has_command = false),
        ("foreign-endpoints", |facts| facts.machine.kernel_mptcp.endpoints = vec!["192.0.2.10 on a".into()]),
        ("managed", |facts| facts.uplinks[0].manager = Some(Manager::Networkd)),
        ("same-network", |facts| facts.uplinks[1].ways = facts.uplinks[0].ways.clone()),
        ("nat", |facts| facts.uplinks[0].ways[0].address = "100.64.1.2".parse().unwrap()),
        ("lossy", |facts| facts.inquiries[0].unanswered = 2),
    ];
    for (code, change) in cases {
        let facts = with(change);
        assert_eq!((asked(&facts), notes(&facts)), (vec![], vec![code]));
    }
    for (count, said) in [(3, vec![]), (4, vec!["many-uplinks"])] {
        let several =
            with(|facts| facts.uplinks = (0..count).map(|number| uplink(&format!("u{number}"), number)).collect());
        assert_eq!((asked(&several), notes(&several)), (vec![], said), "{count} uplinks");
    }
    let one_lost = with(|facts| facts.inquiries[0].unanswered = 1);
    assert!(notes(&one_lost).is_empty());
}

#[test]
fn firewalls_are_judged_by_what_passes() {
    let chain = |hook: &str| Some(vec![Chain { name: "ip filter X".into(), hook: hook.into() }]);
    let passes = with(|facts| facts.machine.dropping_chains = chain("forward"));
    assert_eq!((asked(&passes), notes(&passes)), (vec![], vec!["forward-drop"]));
    let blocked = with(|facts| {
        facts.machine.dropping_chains = chain("forward");
        facts.inquiries = vec![silent("a", S), silent("b", S)];
        facts.joins.clear();
    });
    assert_eq!((asked(&blocked), join_works(&blocked)), (vec!["forward-drop machine".to_owned()], false));
    let nobody_asked = with(|facts| {
        facts.machine.dropping_chains = chain("forward");
        (facts.servers, facts.inquiries, facts.joins) = Default::default();
    });
    assert_eq!((asked(&nobody_asked), join_works(&nobody_asked)), (vec!["forward-drop machine".to_owned()], true));
    let output = with(|facts| facts.machine.dropping_chains = chain("output"));
    assert_eq!((asked(&output), notes(&output)), (vec![], vec!["output-drop"]));
    let no_names = with(|facts| {
        facts.machine.dropping_chains = chain("output");
        facts.servers[1].lookup_failed = Some("timed out".into());
    });
    assert_eq!(asked(&no_names), ["output-drop machine", "no-address t.example:443"]);
}

#[test]
fn a_server_of_a_family_that_no_uplink_has_was_not_asked() {
    let other = with(|facts| {
        facts.servers[1].addresses = vec!["2001:db8::1".parse().unwrap()];
        facts.inquiries.retain(|inquiry| inquiry.server == S);
        facts.joins.retain(|join| join.server == S);
    });
    assert_eq!((asked(&other), join_works(&other)), (vec!["no-family t.example:443".to_owned()], true));
    let both = with(|facts| facts.servers[1].addresses.push("2001:db8::1".parse().unwrap()));
    assert!(asked(&both).is_empty(), "{:?}", asked(&both));
}

#[test]
fn uplinks_by_themselves() {
    let down = with(|facts| {
        facts.uplinks[1] = UplinkFacts { wrong: Some("is down: bring it up".into()), ..uplink("b", 3) };
        facts.inquiries.pop();
        facts.joins.clear();
    });
    assert_eq!((asked(&down), join_works(&down)), (vec!["unusable b".to_owned()], true));
    let none = with(|facts| {
        (facts.uplinks, facts.inquiries, facts.joins) = Default::default();
        facts.others = vec![("b".into(), "is down: bring it up".into())];
    });
    assert_eq!((asked(&none), join_works(&none)), (vec!["no-uplinks machine".to_owned()], false));
    let lacking = |name: &str| {
        (name.to_owned(), format!("{NO_DEFAULT_ROUTE}: add one (ip route add default dev {name} metric 902), or wait"))
    };
    let routes = with(|facts| {
        (facts.uplinks, facts.inquiries, facts.joins) = Default::default();
        facts.others = vec![lacking("a"), lacking("b")];
    });
    assert_eq!(asked(&routes), ["no-uplinks machine", "no-default-route a", "no-default-route b"]);
    let text = Report::new(routes).text();
    let changes = text.split("What to change").nth(1).unwrap();
    for part in ["add the default route of a and b (below)", "ip route add default dev b metric 902"] {
        assert!(changes.contains(part), "{part}: {text}");
    }
    let beside = with(|facts| facts.others = vec![lacking("c")]);
    assert_eq!((asked(&beside), join_works(&beside)), (vec!["no-default-route c".to_owned()], true));
    let relays_alone = with(|facts| {
        facts.uplinks.clear();
        facts.inquiries.clear();
        facts.joins.clear();
        facts.relays = vec!["anna".into()];
    });
    assert_eq!((asked(&relays_alone), join_works(&relays_alone)), (vec!["relays-alone machine".to_owned()], true));
    let mute = |facts: &mut Facts| facts.uplinks[1].ways[0].gateway_state = GatewayState::Silent;
    let gateway = with(|facts| {
        mute(facts);
        facts.inquiries[1] = silent("b", S);
        facts.joins.clear();
    });
    assert_eq!(asked(&gateway), ["gateway-silent b"]);
    // Something behind the gateway answered, so the gateway works.
    assert!(asked(&with(mute)).is_empty());
    // The other family may work.
    let half = with(|facts| {
        facts.uplinks[1]
            .ways
            .push(WayFacts { gateway_state: GatewayState::Silent, ..way("2001:db8::2", "2001:db8::1") });
        facts.uplinks[1].ways[0].gateway_state = GatewayState::Unknown;
    });
    assert_eq!((asked(&half), notes(&half)), (vec![], vec!["gateway-silent"]));
    let all = with(|facts| {
        facts.uplinks.iter_mut().for_each(|uplink| uplink.ways[0].gateway_state = GatewayState::Silent);
        facts.inquiries = vec![silent("a", S), silent("b", S)];
        facts.joins.clear();
    });
    assert_eq!((asked(&all), join_works(&all)), (vec!["gateway-silent a".into(), "gateway-silent b".into()], false));
}

#[test]
fn who_removes_mptcp() {
    use Spoken::{Confirmed, FellBack, Plain};
    let dropped = |uplink, server| Inquiry { mptcp: Spoken::Silent, ..inquiry(uplink, server, Plain) };
    let cases: [(Vec<Inquiry>, &[&str]); 12] = [
        // Another uplink shows that the server speaks it.
        (vec![inquiry("a", S, Confirmed), inquiry("b", S, Plain)], &["mptcp-stripped b"]),
        // Another server shows that the uplink lets it pass.
        (vec![inquiry("a", S, Plain), inquiry("a", T, Confirmed)], &["server-without-mptcp s.example:443"]),
        // Nothing decides.
        (vec![inquiry("a", S, Plain)], &["mptcp-undecided s.example:443"]),
        (vec![inquiry("a", S, Plain), inquiry("b", S, Plain)], &["mptcp-undecided s.example:443"]),
        // b strips, and T does not speak it. That b reveals nothing more about T is not repeated.
        (
            vec![inquiry("a", S, Confirmed), inquiry("b", S, Plain), inquiry("a", T, Plain), inquiry("b", T, Plain)],
            &["mptcp-stripped b", "server-without-mptcp t.example:443"],
        ),
        (vec![inquiry("a", S, Confirmed), dropped("b", S)], &["mptcp-dropped b"]),
        (vec![dropped("a", S), inquiry("a", T, Confirmed)], &["server-drops-mptcp s.example:443"]),
        (vec![dropped("a", S)], &["mptcp-dropped-undecided s.example:443"]),
        (vec![inquiry("a", S, Confirmed), inquiry("b", S, FellBack)], &["mptcp-stripped-from-data b"]),
        (vec![inquiry("a", S, Confirmed), inquiry("b", S, Spoken::Refused)], &["mptcp-refused b"]),
        (vec![inquiry("a", S, Spoken::Refused), inquiry("a", T, Confirmed)], &["server-refuses-mptcp s.example:443"]),
        // MPTCP was not tried.
        (vec![inquiry("a", S, Spoken::Unknown)], &[]),
    ];
    for (inquiries, wanted) in cases {
        let facts = with(|facts| (facts.inquiries, facts.joins) = (inquiries, Vec::new()));
        assert_eq!(asked(&facts), wanted);
        assert!(join_works(&facts));
    }
}

/// Returns the report's line about a over IPv4, and the finding `code`.
fn told(facts: &Facts, code: &str) -> (String, Finding) {
    let text = Report::new(facts.clone()).text();
    let line = text.lines().find(|line| line.starts_with("  a IPv4: ")).unwrap_or_default().to_owned();
    let finding = judge(facts).into_iter().find(|finding| finding.code == code);
    (line, finding.unwrap_or_else(|| panic!("no {code}: {text}")))
}

#[test]
fn what_resets_mptcp_everywhere_lets_plain_tcp_pass_and_bonds_nothing() {
    let both = |spoken: Spoken| {
        with(|facts| {
            facts.inquiries = vec![inquiry("a", S, spoken), inquiry("b", S, spoken)];
            facts.joins.clear();
        })
    };
    let (line, refused) = told(&both(Spoken::Refused), "mptcp-refused-undecided");
    assert!(line.contains("plain TCP; connections that offer MPTCP are refused, round trip"), "{line}");
    assert!(
        refused.text.contains("each connection has one uplink, and the first ones take longer"),
        "{}",
        refused.text
    );
    let (line, silent) = told(&both(Spoken::Silent), "mptcp-dropped-undecided");
    assert!(line.contains("plain TCP; connections that offer MPTCP are not answered"), "{line}");
    assert!(silent.text.contains("each connection has one uplink, and the first ones take longer"), "{}", silent.text);
    // A server that refuses both is not a plain TCP server.
    let closed = with(|facts| {
        facts.inquiries = vec![Inquiry { plain: Reached::Refused, ..inquiry("a", S, Spoken::Refused) }];
        facts.joins.clear();
    });
    assert!(told(&closed, "refused").0.contains("IPv4: refused"));
}

#[test]
fn what_no_server_shows_has_a_meaning_if_one_of_them_is_known() {
    let stripped = |servers: &[&str], uplinks: &[&str]| {
        let pairs = servers.iter().flat_map(|server| uplinks.iter().map(move |uplink| (*server, *uplink)));
        let inquiries = pairs.map(|(server, uplink)| inquiry(uplink, server, Spoken::Plain)).collect();
        let facts = with(|facts| (facts.inquiries, facts.joins) = (inquiries, Vec::new()));
        told(&facts, "mptcp-undecided").1.remedy.unwrap()
    };
    let two = stripped(&[S, T], &["a", "b"]);
    assert!(
        two.starts_with("if one of s.example:443 and t.example:443 is known to speak MPTCP, a and b remove it: try another access point"),
        "{two}"
    );
    assert!(
        two.contains("; if none is, also name a server that is: anabranch doctor s.example:443 t.example:443 KNOWN"),
        "{two}"
    );
    let one = stripped(&[S], &["a"]);
    assert!(
        one.starts_with("if s.example:443 is known to speak MPTCP, a removes it: ")
            && one.contains("; if not, also name a server"),
        "{one}"
    );
}

/// The same inquiry at the server's other address.
pub(super) fn over_ipv6(inquiry: Inquiry) -> Inquiry {
    Inquiry { remote: "[2001:db8::1]:443".parse().unwrap(), ..inquiry }
}

#[test]
fn a_server_with_mptcp_over_one_family_is_no_uplinks_doing() {
    let told = |inquiries: Vec<Inquiry>| {
        let facts = with(|facts| (facts.inquiries, facts.joins) = (inquiries, Vec::new()));
        let all = judge(&facts);
        let ask: Vec<_> = all.into_iter().filter(Finding::asks_for_change).collect();
        assert_eq!(ask.len(), 1, "{ask:?}");
        (format!("{} {}", ask[0].code, ask[0].place), ask[0].text.clone())
    };
    let plain = |uplink| inquiry(uplink, S, Spoken::Plain);
    let good = |uplink| over_ipv6(inquiry(uplink, S, Spoken::Confirmed));
    let (what, text) = told(vec![plain("a"), plain("b"), good("a"), good("b")]);
    assert_eq!(what, "server-without-mptcp s.example:443");
    assert!(text.starts_with("over IPv4 it does not speak MPTCP (over IPv6 it answers with MPTCP)"), "{text}");
    // Unknown: whether the IPv4 address speaks MPTCP, and what a lets pass.
    assert_eq!(told(vec![plain("a"), good("b")]).0, "mptcp-undecided s.example:443");
    // Another server's answer over IPv6 does not show what a lets pass over IPv4, but one over IPv4 does.
    let other = inquiry("a", T, Spoken::Confirmed);
    assert_eq!(told(vec![plain("a"), over_ipv6(other.clone())]).0, "mptcp-undecided s.example:443");
    let (what, text) = told(vec![plain("a"), over_ipv6(inquiry("a", "u", Spoken::Confirmed)), other]);
    assert_eq!(what, "server-without-mptcp s.example:443");
    assert!(text.starts_with("it does not speak MPTCP (a carries MPTCP to t.example:443)"), "{text}");
    // The comparison over one family blames the uplink.
    let (what, _) = told(vec![plain("a"), inquiry("b", S, Spoken::Confirmed), good("a"), good("b")]);
    assert_eq!(what, "mptcp-stripped a");
}

#[test]
fn a_family_that_an_uplink_lost_is_told_and_drops_no_joins() {
    let facts = with(|facts| {
        facts.inquiries.extend([over_ipv6(inquiry("a", S, Spoken::Confirmed)), over_ipv6(silent("b", S))]);
        let lost = join("a", "b", JoinOutcome::Silent);
        facts.joins.push(Join { remote: "[2001:db8::1]:443".parse().unwrap(), ..lost });
    });
    assert_eq!((asked(&facts), notes(&facts)), (vec![], vec!["family-silent"]));
    let said = judge(&facts).remove(0);
    assert_eq!(said.place, "b");
    assert!(said.text.starts_with("nothing answers over its IPv6, but something does over that of a"), "{}", said.text);
}

#[test]
fn who_prevents_joins() {
    use JoinOutcome::{Established, Forbidden, Refused, Silent, Stripped};
    let cases: [([JoinOutcome; 2], &[&str]); 8] = [
        ([Established, Established], &[]),
        ([Stripped, Established], &["join-fails b"]),
        ([Silent, Established], &["join-fails b"]),
        ([Refused, Established], &["join-fails b"]),
        ([Refused, Refused], &["server-refuses-joins s.example:443"]),
        ([Forbidden, Forbidden], &["server-forbids-joins s.example:443"]),
        ([Stripped, Stripped], &["join-fails b", "join-fails a"]),
        ([Silent, Refused], &["join-fails b", "join-fails a"]),
    ];
    for ([to_b, to_a], wanted) in cases {
        let facts = with(|facts| facts.joins = vec![join("a", "b", to_b), join("b", "a", to_a)]);
        assert_eq!(asked(&facts), wanted);
    }
    // Joins to an announced address blame an uplink only if others show that the address can be joined.
    let to = "198.51.100.2:443".parse().ok();
    for (to_a, wanted) in [(Silent, "server-forbids-joins s.example:443"), (Established, "join-fails b")] {
        let facts = with(|facts| {
            let joins = [join("a", "b", Silent), join("b", "a", to_a)];
            facts.joins = joins.map(|join| Join { announced: to, ..join }).into();
        });
        assert_eq!(asked(&facts), [wanted]);
    }
    // Only one address forbids joins: no uplink drops or resets them.
    let facts = with(|facts| {
        let other = "[2001:db8::1]:443".parse().unwrap();
        let over_other = |uplink| Inquiry { remote: other, ..inquiry(uplink, S, Spoken::Confirmed) };
        facts.inquiries.extend(["a", "b"].map(over_other));
        let of = |outcome| [join("a", "b", outcome), join("b", "a", outcome)];
        facts.joins =
            of(Established).map(|join| Join { remote: other, ..join }).into_iter().chain(of(Forbidden)).collect();
    });
    assert_eq!(asked(&facts), ["server-forbids-joins s.example:443"]);
    // An address that was announced late for one of two connections.
    let facts = with(|facts| {
        let late = Join { announced: to, ..join("b", "a", Established) };
        facts.joins = vec![join("a", "b", Forbidden), late];
    });
    assert_eq!(asked(&facts), [] as [&str; 0]);
    // An uplink that strips MPTCP altogether is blamed once.
    let facts = with(|facts| {
        facts.inquiries[1].mptcp = Spoken::Plain;
        facts.joins = vec![join("a", "b", Stripped)];
    });
    assert_eq!(asked(&facts), ["mptcp-stripped b"]);
}

#[test]
fn joins_that_may_have_been_lost_are_no_proof() {
    use JoinOutcome::{Established, Silent};
    let silent = |change: &dyn Fn(&mut Facts)| {
        let facts = with(|facts| {
            facts.joins = vec![join("a", "b", Silent), join("b", "a", Established)];
            change(facts);
        });
        (asked(&facts), notes(&facts))
    };
    let blamed = (vec!["join-fails b".to_owned()], vec![]);
    let unsure = (vec![], vec!["joins-unsure"]);
    assert_eq!(silent(&|_| ()), blamed);
    // Losses on another uplink say nothing.
    assert_eq!(silent(&|facts| facts.inquiries[0].unanswered = 1), blamed);
    assert_eq!(silent(&|facts| facts.inquiries[1].unanswered = 1), unsure);
    assert_eq!(silent(&|facts| facts.inquiries[1].plain = Reached::Silent), unsure);
    assert_eq!(silent(&|facts| facts.joins[0].tries = 1), unsure);
    assert_eq!(silent(&|facts| facts.joins.push(join("c", "b", Established))), unsure);
}

/// Three uplinks. Each is tried first in one connection and second in another.
#[test]
fn a_servers_limit_of_subflows_is_not_the_uplinks_doing() {
    use JoinOutcome::{Established, Refused, Silent};
    const PAIRS: [(&str, &str); 6] = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "a"), ("c", "a"), ("c", "b")];
    let facts = |outcomes: [JoinOutcome; 6], count: usize| {
        with(|facts| {
            facts.uplinks.push(uplink("c", 4));
            facts.inquiries.push(inquiry("c", S, Spoken::Confirmed));
            let joins = PAIRS.iter().zip(outcomes).map(|((base, over), outcome)| join(base, over, outcome));
            facts.joins = joins.take(count).collect();
        })
    };
    let limited = "server-limits-joins s.example:443";
    let one_each = [Established, Refused, Established, Refused, Established, Refused];
    let said = judge(&facts(one_each, 6)).remove(0);
    assert!(said.text.starts_with("it accepts 1 further subflow per") && said.remedy.unwrap().contains("subflows 8"));
    let cases: [([JoinOutcome; 6], usize, &[&str]); 6] = [
        (one_each, 6, &[limited]),
        // The connection over c failed.
        (one_each, 4, &[limited]),
        // Only the connection over a exists: nothing shows that c can be added.
        (one_each, 2, &["join-fails c"]),
        // c resets every join.
        ([Established, Refused, Refused, Established, Established, Established], 6, &["join-fails c"]),
        // c resets every join, and the server accepts only one.
        ([Established, Refused, Refused, Established, Established, Refused], 6, &[limited, "join-fails c"]),
        // Dropped joins do not count towards the limit.
        ([Established, Silent, Silent, Established, Established, Refused], 6, &[limited, "join-fails c"]),
    ];
    for (outcomes, count, wanted) in cases {
        assert_eq!(asked(&facts(outcomes, count)), wanted, "{outcomes:?}");
    }
    // IPv4 and IPv6 are separate connections.
    let families = with(|facts| {
        facts.joins = vec![join("a", "b", Established), join("a", "b", Refused)];
        facts.joins[1].remote = "[2001:db8::1]:443".parse().unwrap();
        facts.inquiries.extend(["a", "b"].map(|uplink| over_ipv6(inquiry(uplink, S, Spoken::Confirmed))));
    });
    assert_eq!(asked(&families), ["join-fails b"]);
}

#[test]
fn black_holes_have_a_remedy() {
    let hole = with(|facts| facts.inquiries[1].mtu = PathMtu { carries: 1400, vanishes: 1420, told: 0 });
    assert_eq!(asked(&hole), ["mtu-black-hole b"]);
    assert_eq!(judge(&hole)[0].remedy.as_deref(), Some("ip link set b mtu 1400"));
    let narrow = |is_v6: bool| {
        let facts = with(|facts| {
            facts.inquiries[1].mtu = PathMtu { carries: 576, vanishes: 1000, told: 0 };
            let mut way = facts.uplinks[1].ways[0].clone();
            way.address = "2001:db8::2".parse().unwrap();
            facts.uplinks[1].ways.extend(is_v6.then_some(way));
        });
        judge(&facts)[0].remedy.clone().unwrap()
    };
    assert_eq!(narrow(false), "ip link set b mtu 576");
    assert!(narrow(true).starts_with("ip route change default ") && narrow(true).contains(" dev b mtu lock 576 "));
    let told = with(|facts| facts.inquiries[1].mtu = PathMtu { carries: 1400, vanishes: 0, told: 1400 });
    assert!(asked(&told).is_empty());
}

/// The result of a transfer over an uplink, and of one with small packets if nothing arrived.
fn rate(uplink: &str, bytes: u64, bytes_small: u64) -> Rate {
    let failed = (bytes == 0).then(|| "nothing arrived within 5 s".to_owned());
    let (timed_bytes, duration, suffices) = (bytes, Duration::from_millis(500), true);
    Rate { uplink: uplink.into(), bytes, timed_bytes, duration, suffices, failed, bytes_small }
}

#[test]
fn large_packets_that_vanish_on_the_way_back_are_told_from_a_wrong_url() {
    let said = |a: Rate, b: Rate| {
        let facts = with(|facts| facts.rates = vec![a, b]);
        let all = judge(&facts);
        all.into_iter()
            .map(|finding| format!("{} {}: {}", finding.code, finding.place, finding.remedy.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(said(rate("a", 0, 90_000), rate("b", 5_000_000, 0)), ["mtu-black-hole-back a: ip link set a mtu 1280"]);
    let both = said(rate("a", 0, 90_000), rate("b", 0, 90_000));
    assert!(
        both.len() == 2 && both[1].starts_with("mtu-black-hole-back b: ip link set b mtu 1280; or the server"),
        "{both:?}"
    );
    let blocked = said(rate("a", 0, 0), rate("b", 5_000_000, 0));
    assert!(
        blocked.len() == 1 && blocked[0].starts_with("measure a: the URL is right, since b fetched it"),
        "{blocked:?}"
    );
    let wrong = said(rate("a", 0, 0), rate("b", 0, 0));
    assert!(wrong.len() == 2 && wrong[0].starts_with("measure a: name an http:// URL"), "{wrong:?}");
}

#[test]
fn transfers_that_are_too_short_show_no_rate() {
    let nothing = Duration::ZERO;
    let none = |whole: Rate| Rate { timed_bytes: 0, duration: nothing, suffices: false, ..whole };
    let text = Report::new(with(|facts| facts.rates = vec![none(rate("a", 1_256, 0))])).text();
    assert!(!text.contains("bit/s") && text.contains("1 kB arrived, too little to tell a rate: name"), "{text}");
}

#[test]
fn slow_rates_are_told_in_kilobits() {
    let slow = with(|facts| facts.rates = vec![rate("a", 4_000, 0), rate("b", 5_000_000, 0)]);
    let text = Report::new(slow).text();
    assert!(text.contains("about 64 kbit/s (4 kB in 0.5 s)"), "{text}");
    assert!(text.contains("about 80.0 Mbit/s (5.0 MB in 0.5 s)"), "{text}");
}

#[test]
fn what_matters_most_comes_first() {
    let facts = with(|facts| {
        facts.machine.clock_unix_s = 0;
        facts.machine.kernel_mptcp.enabled = Some(false);
        facts.uplinks[1].wrong = Some("is down: bring it up".into());
        facts.inquiries.pop();
        facts.joins.clear();
    });
    let levels: Vec<Level> = judge(&facts).iter().map(|finding| finding.level).collect();
    assert_eq!(levels, [Level::Problem, Level::Warning, Level::Note]);
    let text = Report::new(facts).text();
    let changes = text.split("What to change\n").nth(1).unwrap();
    assert!(changes.starts_with("  1. b (unusable): bring it up\n  2. machine (clock): "), "{text}");
}

#[test]
fn who_answers_too_soon_is_likely_a_captive_portal() {
    let portal = |rtt_micros: u64, far_millis: u64| {
        let facts = with(|facts| {
            let rtts = vec![Duration::from_micros(rtt_micros); 5];
            facts.inquiries[0] = Inquiry { rtts, ..inquiry("a", S, Spoken::Plain) };
            facts.inquiries[1].rtts = vec![Duration::from_millis(far_millis); 5];
        });
        let found = judge(&facts).into_iter().find(|finding| finding.code == "mptcp-stripped").unwrap();
        (found.text.contains("captive portal"), found.remedy.unwrap())
    };
    let (is_named, remedy) = portal(100, 40);
    assert!(is_named && remedy.contains("log in") && remedy.contains("a=secondary"), "{remedy}");
    for (near, far) in [(20_000, 40), (1_500, 4)] {
        let (is_named, remedy) = portal(near, far);
        assert!(!is_named && !remedy.contains("log in"), "{near} us, {far} ms");
    }
}

#[test]
fn names_that_lead_into_an_uplinks_own_network_say_nothing_of_the_uplinks() {
    let gateway: IpAddr = "192.0.2.1".parse().unwrap();
    let facts = |names: [&str; 2]| {
        with(|facts| {
            facts.servers = names.map(|name| ServerFacts { addresses: vec![gateway], ..server(name) }).into();
            facts.inquiries = Vec::new();
            for name in names {
                let remote = (gateway, 443).into();
                facts.inquiries.push(Inquiry { remote, ..inquiry("a", name, Spoken::Plain) });
                facts.inquiries.push(Inquiry { remote, ..silent("b", name) });
            }
            facts.joins.clear();
        })
    };
    let named = facts([S, T]);
    assert_eq!(asked(&named), ["name-in-own-network a"]);
    let text = &judge(&named)[0].text;
    assert!(
        text.starts_with("the address of s.example:443 and t.example:443 is 192.0.2.1, in this network itself"),
        "{text}"
    );
    // A user who names the gateway by its address means the gateway.
    let meant = facts(["192.0.2.1:443", "192.0.2.1:80"]);
    assert!(
        asked(&meant).contains(&"uplink-dead b".into()) && !asked(&meant).contains(&"name-in-own-network a".into())
    );
    // Another server shows the state of the uplink; that finding comes second.
    let mut dead = facts([S, T]);
    dead.servers.push(server("u.example:443"));
    dead.inquiries.extend([silent("b", "u.example:443"), inquiry("a", "u.example:443", Spoken::Confirmed)]);
    assert_eq!(asked(&dead), ["name-in-own-network a", "uplink-dead b"]);
}

#[test]
fn a_likely_captive_portal_comes_before_what_follows_from_it() {
    let facts = with(|facts| {
        let rtts = vec![Duration::from_micros(100); 5];
        facts.inquiries = vec![
            Inquiry { rtts, ..inquiry("a", S, Spoken::Plain) },
            Inquiry { rtts: vec![Duration::from_millis(40); 5], ..inquiry("b", S, Spoken::Confirmed) },
            silent("a", T),
            inquiry("b", T, Spoken::Confirmed),
        ];
        facts.joins.clear();
    });
    assert_eq!(asked(&facts), ["mptcp-stripped a", "server-silent t.example:443"]);
}
