//! Tests: what is reached, what is not, and what may be in the way.

use super::super::facts::*;
use super::tests::*;
use super::*;

#[test]
fn who_is_not_reached() {
    let cases: [(Vec<Inquiry>, &[&str]); 5] = [
        (vec![silent("a", S), silent("b", S), silent("a", T), silent("b", T)], &["nothing-answers machine"]),
        (vec![inquiry("a", S, Spoken::Confirmed), silent("b", S)], &["uplink-dead b"]),
        (vec![silent("a", S), inquiry("a", T, Spoken::Confirmed)], &["server-silent s.example:443"]),
        (
            vec![inquiry("a", S, Spoken::Confirmed), silent("b", S), inquiry("b", T, Spoken::Confirmed)],
            &["server-silent s.example:443"],
        ),
        (vec![Inquiry { plain: Reached::Refused, ..inquiry("a", S, Spoken::Refused) }], &["refused s.example:443"]),
    ];
    for (inquiries, wanted) in cases {
        let facts = with(|facts| (facts.inquiries, facts.joins) = (inquiries, Vec::new()));
        assert_eq!(asked(&facts), wanted);
    }
    // One family is silent, but the other reaches the server.
    let v6 = Inquiry { remote: "[2001:db8::1]:443".parse().unwrap(), ..silent("a", S) };
    assert!(asked(&with(|facts| facts.inquiries.push(v6))).is_empty());
    let no_names =
        with(|facts| facts.servers.iter_mut().for_each(|server| server.lookup_failed = Some("timed out".into())));
    assert_eq!((asked(&no_names), join_works(&no_names)), (vec!["no-names machine".to_owned()], false));
    for (why, works) in [("Name or service not known", true), ("Temporary failure in name resolution", false)] {
        let one_name = with(|facts| {
            facts.servers.truncate(1);
            facts.servers[0].lookup_failed = Some(why.into());
            facts.inquiries.clear();
        });
        assert_eq!(join_works(&one_name), works, "{why}");
    }
}

#[test]
fn a_name_of_this_device_is_told_of_and_says_nothing_about_uplinks() {
    let facts = with(|facts| {
        facts.servers.iter_mut().for_each(|server| server.note_addresses(vec!["127.0.0.1".parse().unwrap()]));
        facts.inquiries.clear();
        facts.joins.clear();
    });
    assert_eq!(asked(&facts), ["own-address s.example:443", "own-address t.example:443"]);
    assert!(join_works(&facts));
    let mut server = server(S);
    server.note_addresses(["::1", "198.51.100.7"].map(|ip| ip.parse().unwrap()).into());
    assert!(!server.is_own() && server.addresses.len() == 1);
}

#[test]
fn name_servers_that_do_not_answer_are_told() {
    let said = |answers: &[bool], over_uplinks: bool| {
        let facts = with(|facts| {
            let ip = "192.0.2.53".parse().unwrap();
            facts.machine.name_servers =
                answers.iter().map(|answers| NameServer { ip, answers: *answers, fails: false }).collect();
            facts.servers[0].over_uplinks = over_uplinks;
        });
        assert!(join_works(&facts), "it finds names by itself");
        let text = judge(&facts).into_iter().find(|finding| finding.code == "names-silent").map(|finding| finding.text);
        assert_eq!(asked(&facts).len(), usize::from(text.is_some()));
        text.unwrap_or_default()
    };
    assert_eq!(said(&[], false), "");
    assert_eq!(said(&[true, true], false), "");
    assert!(said(&[false], true).contains("none of this machine's name servers resolves names (192.0.2.53 does"));
    assert!(said(&[false, true], false).contains("the name server 192.0.2.53 does not answer"));
    assert!(said(&[true], true).contains("did not find s.example:443 in time"));
    // Silent name servers are reported even if no server was named.
    let alone = with(|facts| {
        facts.machine.name_servers =
            vec![NameServer { ip: "192.0.2.53".parse().unwrap(), answers: false, fails: false }];
        (facts.servers, facts.inquiries, facts.joins) = Default::default();
    });
    assert_eq!(asked(&alone), ["names-silent machine"]);
}

/// Facts in which one server is silent over two uplinks, with the changes of `change`.
fn mute(change: impl FnOnce(&mut Facts)) -> Facts {
    with(|facts| {
        facts.servers.truncate(1);
        facts.inquiries = vec![silent("a", S), silent("b", S)];
        facts.joins.clear();
        change(facts);
    })
}

fn remedy(facts: &Facts, code: &str) -> String {
    let all = judge(facts);
    let found = all.iter().find(|finding| finding.code == code).unwrap_or_else(|| panic!("no {code}: {all:?}"));
    found.remedy.clone().unwrap_or_default()
}

#[test]
fn one_server_that_is_down_does_not_show_that_the_uplinks_are() {
    let down = mute(|_| ());
    assert_eq!((asked(&down), join_works(&down)), (vec!["servers-silent machine".to_owned()], true));
    assert!(judge(&down)[0].text.starts_with("s.example:443 does not answer over any uplink, while their gateways do"));
    assert!(remedy(&down, "servers-silent").contains("OTHER:443; if that is silent as well, check that the phones"));
    let second = |facts: &mut Facts| facts.inquiries.extend([silent("a", T), silent("b", T)]);
    // Several servers are silent, and nothing behind the gateways answers.
    let dead = mute(second);
    assert_eq!((asked(&dead), join_works(&dead)), (vec!["nothing-answers machine".to_owned()], false));
    // Name servers behind the gateways answer.
    let names = mute(|facts| {
        second(facts);
        facts.uplinks[1].finds_names = Some(true);
    });
    assert_eq!((asked(&names), join_works(&names)), (vec!["servers-silent machine".to_owned()], true));
    assert!(
        judge(&names)[0].text.contains("while name servers do over b")
            && !remedy(&names, "servers-silent").contains("mobile")
    );
    // Neither a gateway nor a name server answers.
    let nothing =
        mute(|facts| facts.uplinks.iter_mut().for_each(|uplink| uplink.ways[0].gateway_state = GatewayState::Unknown));
    assert_eq!((asked(&nothing), join_works(&nothing)), (vec!["nothing-answers machine".to_owned()], false));
}

#[test]
fn a_server_of_the_family_that_is_broken_shows_nothing_of_the_other_one() {
    let broken = mute(|facts| {
        facts.servers[0].addresses = vec!["2001:db8::1".parse().unwrap()];
        facts.inquiries = ["a", "b"].map(|uplink| over_ipv6(silent(uplink, S))).into();
        facts.uplinks.iter_mut().for_each(|uplink| uplink.ways.push(way("fd00:1::2", "fd00:1::1")));
    });
    assert_eq!((asked(&broken), join_works(&broken)), (vec!["servers-silent machine".to_owned()], true));
    assert!(remedy(&broken, "servers-silent").contains("one that has IPv4, which was not asked"));
}

#[test]
fn a_name_that_is_wrong_comes_after_what_concerns_all() {
    let facts = |change: fn(&mut Facts)| {
        mute(|facts| {
            facts.servers.push(ServerFacts { lookup_failed: Some("no such name".into()), ..server("u.example:443") });
            facts.inquiries.extend([silent("a", T), silent("b", T)]);
            change(facts);
        })
    };
    assert_eq!(asked(&facts(|_| ())), ["nothing-answers machine", "no-address u.example:443"]);
    let names = facts(|facts| facts.uplinks[0].finds_names = Some(true));
    assert_eq!(asked(&names), ["servers-silent machine", "no-address u.example:443"]);
}

#[test]
fn one_server_may_be_what_an_uplink_blocks() {
    let blocked = |finds_names: Option<bool>, server: &str| {
        let facts = with(|facts| {
            facts.inquiries = vec![inquiry("a", server, Spoken::Confirmed), silent("b", server)];
            facts.uplinks[1].finds_names = finds_names;
            facts.joins.clear();
        });
        let finding = judge(&facts).remove(0);
        (finding.code, finding.level, finding.remedy.unwrap())
    };
    let (code, level, remedy) = blocked(Some(true), "s.example:80");
    assert_eq!((code, level), ("uplink-blocks", Level::Warning));
    assert!(remedy.starts_with("name a second server (anabranch doctor s.example:80 OTHER:443, a port"), "{remedy}");
    for finds_names in [None, Some(false)] {
        let (code, level, remedy) = blocked(finds_names, "s.example:80");
        assert_eq!((code, level), ("uplink-dead", Level::Problem));
        assert!(remedy.contains("mobile data") && remedy.contains("name a second server"), "{remedy}");
    }
}

#[test]
fn what_this_device_drops_is_not_the_phones_doing() {
    let rules = |hook: &str| Some(vec![Chain { name: "inet mine forw".into(), hook: hook.into() }]);
    // This device's own programs get answers.
    let forward = mute(|facts| {
        facts.machine.dropping_rules = rules("forward");
        facts.direct = vec![inquiry("a", S, Spoken::Unknown), inquiry("b", S, Spoken::Unknown)];
    });
    assert_eq!((asked(&forward), join_works(&forward)), (vec!["forwarding-drops machine".to_owned()], false));
    assert!(remedy(&forward, "forwarding-drops").contains("nft list chain inet mine forw shows them"));
    let unseen = mute(|facts| facts.direct = vec![inquiry("a", S, Spoken::Unknown), inquiry("b", S, Spoken::Unknown)]);
    assert!(remedy(&unseen, "forwarding-drops").contains("iptables-legacy"));
    let one = with(|facts| {
        facts.inquiries[1] = silent("b", S);
        facts.direct = vec![inquiry("b", S, Spoken::Unknown)];
        facts.joins.clear();
    });
    assert_eq!((asked(&one), join_works(&one)), (vec!["forwarding-drops machine".to_owned()], true));
    // No program gets answers: the rule may or may not be the cause.
    let output = mute(|facts| facts.machine.dropping_rules = rules("output"));
    assert!(
        remedy(&output, "servers-silent")
            .starts_with("first check this device's own rules that drop packets (nft list chain inet mine forw); ")
    );
    let names = with(|facts| {
        facts.machine.dropping_rules = rules("output");
        facts.machine.name_servers =
            vec![NameServer { ip: "192.0.2.53".parse().unwrap(), answers: false, fails: false }];
    });
    assert!(remedy(&names, "names-silent").starts_with("first check this device's own rules that drop packets"));
}

#[test]
fn an_output_chain_that_keeps_names_away_is_what_is_to_be_changed() {
    let facts = with(|facts| {
        facts.machine.dropping_chains = Some(vec![Chain { name: "inet mine out".into(), hook: "output".into() }]);
        facts.machine.name_servers =
            vec![NameServer { ip: "192.0.2.53".parse().unwrap(), answers: false, fails: false }];
    });
    assert_eq!(asked(&facts), ["output-drop machine", "names-silent machine"]);
    let unknown = with(|facts| {
        facts.machine.dropping_chains = Some(vec![Chain { name: "inet mine out".into(), hook: "output".into() }]);
        facts.servers.truncate(1);
        facts.servers[0].lookup_failed = Some("Temporary failure in name resolution".into());
    });
    assert_eq!(asked(&unknown), ["no-address s.example:443", "output-drop machine"]);
    assert!(remedy(&unknown, "no-address").starts_with("make the firewall chain inet mine out accept"));
    assert!(remedy(&facts, "names-silent").starts_with("make the firewall chain inet mine out accept name queries"));
}

#[test]
fn rules_of_others_that_come_before_the_engines_are_named() {
    let rule = "50: from all to 198.51.100.0/24 lookup 777";
    let before = with(|facts| facts.machine.rules_before = vec![Rule { command: "ip rule", text: rule.into() }]);
    assert_eq!((asked(&before), notes(&before)), (vec![], vec!["rules-before"]));
    let detour = |uplink: &str, by: Option<&str>| Detour {
        uplink: uplink.into(),
        remote: "198.51.100.1".parse().unwrap(),
        is_back: false,
        leaves_by: by.map(str::to_owned),
    };
    let none = |command| {
        mute(|facts| {
            facts.machine.rules_before = vec![Rule { command, text: rule.into() }];
            facts.detours = vec![detour("a", None), detour("b", None)];
        })
    };
    let all = none("ip rule");
    assert_eq!((asked(&all), join_works(&all)), (vec!["rules-before machine".to_owned()], false));
    let finding = judge(&all).remove(0);
    assert_eq!(finding.level, Level::Problem);
    assert!(
        finding.text.contains(rule) && finding.text.contains("198.51.100.1 over a: not at all"),
        "{}",
        finding.text
    );
    assert!(
        finding.remedy.unwrap().starts_with("ip rule del pref 50, and add it again with a priority of 200 or more")
    );
    let ipv6 = judge(&none("ip -6 rule")).remove(0);
    assert!(ipv6.text.contains("(ip -6 rule)") && ipv6.remedy.unwrap().starts_with("ip -6 rule del pref 50"));
    let back = mute(|facts| {
        facts.machine.rules_before = vec![Rule { command: "ip rule", text: rule.into() }];
        facts.detours = vec![detour("a", Some("b")), Detour { is_back: true, ..detour("b", Some("b")) }];
    });
    assert!(judge(&back)[0].text.contains("answers from 198.51.100.1 over b: by b"), "{}", judge(&back)[0].text);
    let one = with(|facts| {
        facts.machine.rules_before = vec![Rule { command: "ip rule", text: rule.into() }];
        facts.inquiries[0] = silent("a", S);
        facts.detours = vec![detour("a", Some("b"))];
        facts.joins.clear();
    });
    assert_eq!((asked(&one), join_works(&one)), (vec!["rules-before machine".to_owned()], true));
    assert!(judge(&one)[0].text.contains("198.51.100.1 over a: by b"));
}

#[test]
fn a_name_server_that_could_not_find_out_has_answered() {
    let facts = with(|facts| {
        facts.machine.name_servers =
            vec![NameServer { ip: "192.0.2.53".parse().unwrap(), answers: false, fails: true }];
    });
    let text = &judge(&facts)[0].text;
    assert!(text.contains("(192.0.2.53 fails to resolve names (SERVFAIL))"), "{text}");
}

#[test]
fn an_uplink_without_the_family_of_a_server_carries_nothing_from_there() {
    let facts = with(|facts| facts.uplinks[1].ways = vec![way("2001:db8:1::2", "2001:db8:1::1")]);
    assert!(asked(&facts).is_empty());
    let said = judge(&facts).into_iter().find(|finding| finding.code == "family-missed").unwrap();
    assert_eq!(said.place, S);
    assert!(said.text.starts_with("it has IPv4 only, which b lacks: b carries nothing from there"), "{}", said.text);
}
