use super::super::rates::Rates;
use super::super::selection::Measured;
use super::*;

fn way(address: &str) -> Option<Way> {
    Some(Way { address: address.parse().unwrap(), prefix_len: 24, gateway: None })
}

fn uplink(name: &str) -> Uplink {
    Uplink { index: 3, v4: way("192.168.42.10"), ..Uplink::absent(name).unwrap() }
}

fn roster() -> Roster {
    let path = |name, ip: &str| EnginePath { addresses: vec![ip.parse().unwrap()], uplink: uplink(name) };
    Roster::new(
        "anabranch0",
        Path::new("/state"),
        &[path("usb0", "10.99.0.2"), path("usb1", "10.99.0.3")],
        &[Tier::Primary, Tier::Backup],
    )
}

#[test]
fn an_uplink_that_is_never_used_or_lost_has_no_address() {
    let mut roster = roster();
    assert_eq!(roster.used().len(), 2);
    let near = roster.used()[0].near.map(|network| network.to_string());
    assert_eq!(near.as_deref(), Some("192.168.42.0/24"));
    roster.set_tier("usb1", Tier::Never).unwrap();
    assert_eq!(roster.used().len(), 1);
    roster.entry("usb0").unwrap().lost = Some("is down".into());
    assert!(roster.used().is_empty());
    assert!(roster.set_tier("usb0", Tier::Secondary).is_ok(), "for when it is back");
}

#[test]
fn a_newcomer_takes_the_place_of_one_that_nobody_misses() {
    let mut roster = roster();
    roster.set_target(Some(Rate::from_mbps(8))).unwrap();
    let path = |name, ip: &str| EnginePath { addresses: vec![ip.parse().unwrap()], uplink: uplink(name) };
    roster.admit(2, &path("enx0a", "10.99.0.4"));
    assert_eq!((roster.used().len(), roster.tier_of(2)), (3, Tier::Primary));
    assert!(roster.set_tier("enx0a", Tier::Secondary).is_ok() && roster.set_tier("enx0a", Tier::Primary).is_ok());
    for name in ["usb0", "usb1", "enx0a"] {
        assert!(!roster.entry(name).unwrap().may_be_forgotten(), "it is there");
        let (why, is_news) = roster.lose(name, "does not exist: there are usb7, usb8".into());
        assert_eq!((why.as_str(), is_news), ("does not exist: there are usb7, usb8", true));
        assert!(!roster.lose(name, "does not exist: there is usb7".into()).1);
        assert_eq!(roster.entry(name).unwrap().lost.as_deref(), Some("does not exist"));
    }
    let may = |roster: &Roster| roster.entries.iter().map(Entry::may_be_forgotten).collect::<Vec<_>>();
    assert_eq!(may(&roster), [true, false, true], "usb1 is to be a backup when it is back");
    roster.set_price("usb0", 3).unwrap();
    assert_eq!(may(&roster), [false, false, true]);
    roster.admit(2, &path("enx4f", "10.99.0.4"));
    assert_eq!((roster.entries.len(), roster.used().len(), roster.position("enx0a")), (3, 1, None));
}

#[test]
fn an_interface_that_is_used_under_another_name_is_told_by_it() {
    let mut roster = roster();
    let path = |name, index| EnginePath {
        addresses: vec!["10.99.0.4".parse().unwrap()],
        uplink: Uplink { index, ..uplink(name) },
    };
    roster.entries[1].uplink.index = 4;
    roster.lose("usb0", "is now called a+b, a name that commands would misread".into());
    roster.lose("usb1", "is down".into());
    roster.admit(2, &path("good", 3));
    let lost = |roster: &Roster, index: usize| roster.entries[index].lost.clone();
    assert_eq!(lost(&roster, 0).as_deref(), Some("is now called good"));
    assert_eq!((lost(&roster, 1).as_deref(), lost(&roster, 2)), (Some("is down"), None));
    // An uplink that never was there has no index to be known by.
    roster.entries[1].uplink.index = 0;
    roster.note_name(&Uplink::absent("usb5").unwrap());
    assert_eq!(lost(&roster, 1).as_deref(), Some("is down"));
}

#[test]
fn a_renamed_uplink_keeps_its_tier_and_price() {
    let path = |name: &str, index| EnginePath {
        addresses: vec!["10.99.0.4".parse().unwrap()],
        uplink: Uplink { index, ..uplink(name) },
    };
    let mut roster = roster();
    roster.entries[1].uplink.index = 4;
    roster.set_tier("usb0", Tier::Never).unwrap();
    roster.set_price("usb0", 7).unwrap();
    roster.admit(2, &path("enx02", 5));
    assert_eq!(roster.tier_of(2), Tier::Primary, "another device");
    roster.lose("usb0", "is now called enx03".into());
    roster.admit(3, &path("enx03", 3));
    let settings = |roster: &Roster, index: usize| (roster.entries[index].tier, roster.entries[index].price);
    assert_eq!(settings(&roster, 3), (Tier::Never, 7));
    assert!(roster.used_of(3).is_empty());
    assert!(roster.news_of_new(3).contains("not used") && roster.news_of_new(2).ends_with("used as primary"));
    // Renamed once more: what was set last holds.
    roster.set_tier("enx03", Tier::Secondary).unwrap();
    roster.lose("enx03", "is now called enx04".into());
    roster.admit(4, &path("enx04", 3));
    assert_eq!((settings(&roster, 0), settings(&roster, 4)), ((Tier::Never, 7), (Tier::Secondary, 7)));
    // It may also take the place of the uplink that it was.
    roster.lose("enx04", "is now called enx05".into());
    roster.admit(4, &path("enx05", 3));
    assert_eq!(settings(&roster, 4), (Tier::Secondary, 7));
    // Renamed back, before it is known that the other name is gone.
    roster.set_tier("enx05", Tier::Never).unwrap();
    let back = path("usb0", 3).uplink;
    roster.take_back(0, &back);
    assert_eq!(settings(&roster, 0), (Tier::Never, 7));
    roster.set_tier("usb0", Tier::Primary).unwrap();
    roster.take_back(0, &back);
    assert_eq!(settings(&roster, 0), (Tier::Primary, 7), "once");
    // What never was there has no number to be known by.
    roster.entries[0].uplink.index = 0;
    roster.admit(5, &path("enx06", 0));
    assert_eq!(settings(&roster, 5), (Tier::Primary, 0));
}

/// The new name may be usable at once, or only seconds later.
#[test]
fn a_renamed_uplink_keeps_its_tier_and_price_if_another_one_takes_its_name_at_once() {
    let found = |name: &str, index| Uplink { index, ..uplink(name) };
    let settings = |roster: &Roster, index: usize| (roster.entries[index].tier, roster.entries[index].price);
    let usable = |roster: &mut Roster, index: usize, found: Uplink| {
        roster.take_back(index, &found);
        roster.entries[index].replace(found, &[]);
    };
    let succeeded_by = |successor| {
        let mut roster = roster();
        roster.entries[1].uplink.index = 4;
        roster.set_tier("usb0", Tier::Never).unwrap();
        roster.lose("usb0", "is now called old".into());
        usable(&mut roster, 0, found("usb0", successor));
        roster
    };
    // Its successor is an uplink, or is new; uplinks are known by their names.
    for (successor, tier) in [(4, Tier::Backup), (7, Tier::Never)] {
        let mut roster = succeeded_by(successor);
        roster.admit(2, &EnginePath { addresses: Vec::new(), uplink: found("old", 3) });
        assert_eq!((settings(&roster, 0), settings(&roster, 2)), ((tier, 0), (Tier::Never, 0)));
    }
    let mut swapped = succeeded_by(4);
    usable(&mut swapped, 1, found("usb1", 3));
    assert_eq!((settings(&swapped, 0), settings(&swapped, 1)), ((Tier::Backup, 0), (Tier::Never, 0)));
}

#[test]
fn addresses_follow_the_families_of_their_uplink() {
    let addresses = ["10.99.0.2", "fd99::2"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let path = EnginePath { addresses: addresses.into(), uplink: Uplink::absent("via-anna").unwrap() };
    let mut roster = Roster::new("anabranch0", Path::new("/state"), &[path], &[Tier::Primary]);
    let used = |roster: &Roster| roster.used().iter().map(|uplink| uplink.ip).collect::<Vec<_>>();
    assert!(used(&roster).is_empty(), "it is not there yet");
    let v4 = uplink("via-anna");
    let there = ["192.168.42.10", "fd99:62::8"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let replace = |roster: &mut Roster, found: &Uplink| roster.entries[0].replace(found.clone(), &there);
    assert_eq!(replace(&mut roster, &v4), addresses, "it is there");
    assert_eq!(used(&roster), addresses[..1]);
    let both = Uplink { v6: way("fd99:62::8"), ..v4.clone() };
    assert_eq!(replace(&mut roster, &both), addresses[1..], "IPv4 goes on");
    assert_eq!(used(&roster), addresses);
    assert_eq!(replace(&mut roster, &Uplink { v4: None, ..both.clone() }), addresses[..1]);
    assert_eq!(used(&roster), addresses[1..]);
    roster.entries[0].lost = Some("has no carrier".into());
    assert_eq!(replace(&mut roster, &both), addresses, "what ran over it has ended");
    assert_eq!(replace(&mut roster, &Uplink { index: 4, ..both }), addresses, "another device");
}

#[test]
fn an_uplink_that_is_not_used_is_not_said_to_be() {
    let mut roster = roster();
    assert_eq!(roster.news_of(0, true), "is available and in use");
    assert_eq!(roster.news_of(0, false), "has changed, and its new settings are in use");
    roster.set_tier("usb0", Tier::Never).unwrap();
    assert_eq!(roster.news_of(0, true), "is available, but not used, since its tier is never");
    roster.set_tier("usb0", Tier::Secondary).unwrap();
    roster.set_tier("usb1", Tier::Primary).unwrap();
    roster.set_target(Some(Rate::from_mbps(8))).unwrap();
    let measured =
        |tier, mbps| Measured { tier, price: 0, usable: true, held_back: false, rate: Rate::from_mbps(mbps) };
    let both = [measured(Tier::Secondary, 1), measured(Tier::Primary, 9)];
    roster.selection.as_mut().unwrap().look(&both, true, units::Instant::from_secs(1));
    assert_eq!(roster.news_of(0, true), "is available, and waits as a backup for the target bit rate");
    assert_eq!(roster.news_of(1, true), "is available and in use");
}

#[test]
fn what_began_from_a_former_address_goes_on_until_that_is_gone() {
    let own = ["10.99.0.2", "fd99::2"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let [first, second] = ["2001:db8::a", "2001:db8::b"].map(|v6| Uplink { v6: way(v6), ..uplink("wwan0") });
    let path = EnginePath { addresses: own.into(), uplink: first.clone() };
    let there = ["192.168.42.10", "2001:db8::b", "2001:db8::a"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let mut roster = Roster::new("anabranch0", Path::new("/state"), &[path], &[Tier::Primary]);
    assert_eq!(roster.entries[0].replace(second.clone(), &there), [] as [IpAddr; 0]);
    assert_eq!(roster.entries[0].replace(second.clone(), &there[..2]), own[1..]);
    // What ended with the uplink does not end once more with the former address.
    assert_eq!(roster.entries[0].replace(first.clone(), &there), [] as [IpAddr; 0]);
    roster.entries[0].lost = Some("is down".into());
    assert_eq!(roster.entries[0].replace(second.clone(), &there), own);
    assert_eq!(roster.entries[0].replace(second.clone(), &there[..2]), [] as [IpAddr; 0]);
    // With the kernel's own MPTCP, they are the uplink's.
    let path = EnginePath { addresses: first.ways().map(|way| way.address).collect(), uplink: first };
    let mut roster = Roster::new("anabranch-kernel", Path::new("/state"), &[path], &[Tier::Primary]);
    let entry = &mut roster.entries[0];
    assert!(!entry.replace_for_kernel(second.clone(), &there));
    assert_eq!(entry.addresses, there, "the current ones come first");
    entry.replace_for_kernel(second.clone(), &there[..2]);
    assert_eq!(entry.addresses, there[..2]);
    // The kernel may prefer one that the uplink is not known by.
    let all = ["10.50.0.7", "192.168.42.10", "2001:db8::c", "2001:db8::b"].map(|ip| ip.parse::<IpAddr>().unwrap());
    assert!(entry.note_addresses(&all));
    let noted = (vec![all[1], all[3], all[2]], vec![all[0]]);
    assert_eq!((&entry.addresses, &entry.others), (&noted.0, &noted.1));
    // A program that fails lists none.
    assert!(!entry.note_addresses(&[]));
    assert_eq!((&entry.addresses, &entry.others), (&noted.0, &noted.1));
    entry.replace_for_kernel(second, &[]);
    assert_eq!((&entry.addresses, &entry.others), (&noted.0, &noted.1));
}

/// The status of a link to the relay anna.
fn lent(interface: &str, lends: Option<&'static str>, is_backup: bool) -> LinkStatus {
    LinkStatus {
        interface: interface.into(),
        relay: "anna".into(),
        key: String::new(),
        slot: 1,
        place: "192.168.7.1".parse().unwrap(),
        is_up: lends.is_some(),
        round_trip: None,
        is_paired: true,
        is_renumbered: false,
        no_device: None,
        silent: None,
        lends,
        lends_in_words: lends,
        is_backup,
        spare_bps: None,
        owner_bps: None,
        left_bytes: None,
        volume_renews: None,
    }
}

#[test]
fn a_relay_with_little_left_carries_no_target() {
    let mut roster = roster();
    roster.set_tier("usb1", Tier::Primary).unwrap();
    roster.set_target(Some(Rate::from_mbps(8))).unwrap();
    roster.handle_link(&lent("usb1", Some("fully"), false));
    let (mut rates, mut sums, mut second) = (Rates::default(), [0, 0], 1000);
    let mut look = |roster: &mut Roster, seconds| {
        for _ in 0..seconds {
            for (index, bytes) in [5_000_000 / 8, 12_000_000 / 8].into_iter().enumerate() {
                sums[index] += if roster.tier_of(index) == Tier::Primary { bytes } else { 0 };
            }
            rates.look(roster, sums.into(), true, units::Instant::from_secs(second));
            second += 1;
        }
        [0, 1].map(|index| roster.tier_of(index))
    };
    assert_eq!(look(&mut roster, 60), [Tier::Backup, Tier::Primary], "the relay alone is enough");
    roster.handle_link(&lent("usb1", Some("as-backup"), true));
    assert_eq!(look(&mut roster, 2), [Tier::Primary, Tier::Backup]);
    assert!(!roster.is_left_out(1), "its relay is the reason, not the target");
    assert_eq!(look(&mut roster, 60), [Tier::Primary, Tier::Backup]);
    roster.handle_link(&lent("usb1", Some("fully"), false));
    assert_eq!(look(&mut roster, 60), [Tier::Backup, Tier::Primary]);
}

#[test]
fn a_relay_with_little_left_is_a_backup() {
    let mut roster = roster();
    let status = |lends, is_backup| lent("usb0", lends, is_backup);
    assert_eq!(roster.handle_link(&status(Some("fully"), false)), None, "as expected");
    assert_eq!(roster.tier_of(0), Tier::Primary);
    assert_eq!(roster.handle_link(&status(Some("as-backup"), true)).unwrap(), "the relay anna as-backup");
    assert_eq!((roster.tier_of(0), roster.entries[0].tier), (Tier::Backup, Tier::Primary));
    assert!(!roster.is_left_out(0), "no target leaves it out");
    assert_eq!(roster.handle_link(&status(Some("as-backup"), true)), None);
    assert_eq!(roster.handle_link(&status(None, false)), None, "it is lost: its device tells");
    assert!(roster.handle_link(&status(Some("fully"), false)).is_some());
    assert_eq!(roster.tier_of(0), Tier::Primary);
    assert_eq!(roster.handle_link(&status(Some("ended"), false)), None, "it is about to be lost, which tells why");
    for is_news in [true, false] {
        let (why, told) = roster.lose("usb0", "has no carrier".into());
        assert_eq!((why.as_str(), told), ("is not lent now: the relay anna ended", is_news));
    }
    assert_eq!(roster.handle_link(&status(Some("no-battery"), false)).unwrap(), "the relay anna no-battery");
    // It has ended, or removed this device: what it said last need not hold any more.
    assert_eq!(roster.handle_link(&LinkStatus { is_up: false, ..status(Some("no-battery"), false) }), None);
    let lost = roster.entries[0].lost.clone().unwrap();
    assert!(lost.starts_with("has no relay behind it") && lost.contains("anabranch peers"), "{lost}");
    assert!(roster.handle_link(&status(Some("ended"), false)).is_some());
    assert_eq!(roster.entries[0].lost.as_deref(), Some("is not lent now: the relay anna ended"), "it is back");
}

#[test]
fn a_link_whose_packets_nobody_carries_any_more_says_so() {
    let mut roster = roster();
    roster.handle_link(&lent("usb0", Some("as-backup"), true));
    let why = "leads nowhere: nobody carries its packets any more: restart anabranch join";
    assert_eq!(roster.handle_link(&lent("usb0", Some("as-backup"), true).ended(why)), None);
    let (told, is_news) = roster.lose("usb0", "does not exist: there is usb1".into());
    assert_eq!((told.as_str(), is_news), (why, true));
    let link = roster.entries[0].link.as_ref().unwrap();
    assert_eq!((link.is_up, link.lends, link.is_backup), (false, None, false));
}

#[test]
fn what_is_set_together_is_set_whole_or_not_at_all() {
    let tier = |uplink: &str, tier| Request::SetTier { uplink: uplink.into(), tier };
    let price = |uplink: &str, price| Request::SetPrice { uplink: uplink.into(), price };
    let mut roster = roster();
    for (changes, why) in [
        (vec![tier("usb0", Tier::Never), tier("usb1", Tier::Never)], "no uplink would be left"),
        (vec![tier("usb0", Tier::Backup), price("usb7", 2)], "usb0, usb1"),
        (vec![price("usb0", 7), Request::Status], "only tiers"),
    ] {
        assert!(roster.set_all(&changes).unwrap_err().contains(why), "{changes:?}");
        let now: Vec<_> = roster.entries.iter().map(|entry| (entry.tier, entry.price)).collect();
        assert_eq!(now, [(Tier::Primary, 0), (Tier::Backup, 0)], "{changes:?}");
    }
    // Neither change of a tier would be accepted alone in this order.
    roster.set_tier("usb1", Tier::Never).unwrap();
    roster.set_all(&[tier("usb0", Tier::Never), tier("usb1", Tier::Primary), price("usb1", 2)]).unwrap();
    let now: Vec<_> = roster.entries.iter().map(|entry| (entry.tier, entry.price)).collect();
    assert_eq!(now, [(Tier::Never, 0), (Tier::Primary, 2)]);
}

#[test]
fn whose_tier_a_change_changes_is_told() {
    let (mut roster, target) = (roster(), Some(Rate::from_mbps(8)));
    let usb0: IpAddr = "10.99.0.2".parse().unwrap();
    assert_eq!(roster.change(|roster| roster.set_tier("usb0", Tier::Backup)), Ok(vec![usb0]));
    assert_eq!(roster.change(|roster| roster.set_tier("usb0", Tier::Backup)), Ok(vec![]));
    assert_eq!(roster.change(|roster| roster.set_target(target)), Ok(vec![]));
    assert!(roster.change(|roster| roster.set_tier("usb7", Tier::Backup)).is_err());
}

#[test]
fn the_last_uplink_stays_in_use() {
    let mut roster = roster();
    roster.set_tier("usb1", Tier::Never).unwrap();
    assert!(roster.set_tier("usb0", Tier::Never).unwrap_err().contains("last uplink"));
    assert!(roster.set_tier("usb7", Tier::Primary).unwrap_err().contains("usb0, usb1"));
}
