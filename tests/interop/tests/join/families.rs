//! Phones with IPv6 only, with one family each, and with one family that does not get through.

use std::net::TcpStream;

use super::*;

#[test]
fn phones_may_have_ipv6_only() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "::");
    for usb in USB {
        net.laptop.ip([format!("address delete 192.168.42.10/24 dev {usb}")]).unwrap();
    }
    in_three_tries(|| {
        let joined = start(&net, options(&[Tier::Primary; 2]));
        wait_for(curl_from(&files, &net, &joined.ready, "http://[fd09::9]:8000/data.bin"));
        assert!(files.arrived());
        let status = status(&net);
        joined.end().unwrap();
        both_carried(&status, BYTES / 5)
    })
    .unwrap();
    let joined = start(&net, options(&[Tier::Primary; 2]));
    // Without an address of a family there is no way to reach it, and the error comes at once.
    let mut curl = net.laptop.command("curl").unwrap();
    curl.args(["--silent", "--max-time", "10", "--proxytunnel", "--proxy", &format!("http://{}", joined.ready)]);
    let ended = curl.args(["--write-out", "%{http_connect} %{time_total}", URL]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(said.starts_with("50") && said.ends_with(|c: char| c.is_ascii_digit()), "{said}");
}

/// Options with a name server that knows both addresses of a server.
fn both_families() -> JoinOptions {
    let mut options = options(&[Tier::Primary; 2]);
    options.proxy.lookup = Arc::new(|_| Ok(vec!["10.9.9.9".parse().unwrap(), "fd09::9".parse().unwrap()]));
    options
}

/// The same as [`both_families`], in the other order.
fn ipv6_first() -> JoinOptions {
    let mut options = both_families();
    options.proxy.lookup = Arc::new(|_| Ok(vec!["fd09::9".parse().unwrap(), "10.9.9.9".parse().unwrap()]));
    options
}

/// A rule for a phone's nft.
const SWALLOW_IPV6: &str =
    "add table ip6 swallow; add chain ip6 swallow it { type filter hook forward priority 0; policy drop; }";

/// URL of the file by the name that [`both_families`] resolves.
const NAMED: &str = "http://files.test:8000/data.bin";

/// Creates one phone with IPv4 only and one with IPv6 only.
fn one_family_each() -> Option<Tethered> {
    let net = Tethered::new([LINK, LINK])?;
    net.laptop
        .ip(["address delete fdc0:42::10/64 dev usb0", "address delete 192.168.42.10/24 dev usb1"].map(str::to_owned))
        .unwrap();
    Some(net)
}

#[test]
fn phones_with_one_family_each_carry_one_download() {
    let Some(net) = one_family_each() else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "::");
    in_three_tries(|| {
        let joined = start(&net, both_families());
        wait_for(curl_from(&files, &net, &joined.ready, NAMED));
        assert!(files.arrived());
        let status = status(&net);
        joined.end().unwrap();
        both_carried(&status, BYTES / 5)
    })
    .unwrap();
}

#[test]
fn a_download_lives_on_by_the_family_that_is_left() {
    for dying in USB {
        let Some(net) = one_family_each() else { return };
        let files = Files::new(4 * BYTES);
        let _server = net.web_server(files.path(), "::");
        let joined = start(&net, both_families());
        let curl = curl_from(&files, &net, &joined.ready, NAMED);
        wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 500_000));
        net.laptop.ip([format!("link delete {dying}")]).unwrap();
        wait_for(curl);
        assert!(files.arrived());
        assert_eq!(status(&net)["proxy"]["totals"]["connected"], 1);
    }
}

/// The connection needs no traffic: the other family's uplink has joined before the first one's dies.
#[test]
fn a_connection_that_is_idle_lives_on_too() {
    let Some(net) = one_family_each() else { return };
    let files = Files::new(BYTES / 8);
    let _server = net.web_server(files.path(), "::");
    let joined = start(&net, both_families());
    let proxy = joined.ready.clone();
    let mut client = net.laptop.run(|| TcpStream::connect(proxy)).unwrap().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(b"CONNECT files.test:8000 HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    client.write_all(b"GET /data.bin HTTP/1.0\r\n").unwrap();
    let subflows = || {
        let all = status(&net)["proxy"]["clients"][0]["connection"]["subflows"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|it| it["closed_at"].is_null() && !it["established_at"].is_null()).collect::<Vec<_>>()
    };
    wait_until("both have a subflow", || subflows().len() == 2);
    sleep(Duration::from_secs(3));
    let first = subflows()[0]["local"].as_str().unwrap().contains("10.99.0.");
    net.laptop.ip([format!("link delete {}", USB[usize::from(!first)])]).unwrap();
    wait_until("it has one left", || subflows().len() == 1);
    client.write_all(b"\r\n").unwrap();
    let mut whole = Vec::new();
    client.read_to_end(&mut whole).unwrap();
    let file = fs::read(files.path().join("data.bin")).unwrap();
    assert!(whole.ends_with(&file), "{} octets", whole.len());
}

#[test]
fn a_family_that_one_phone_swallows_leaves_it_the_other() {
    for broken in 0..2 {
        let Some(net) = Tethered::new([LINK, LINK]) else { return };
        let files = Files::new(2 * BYTES);
        let _server = net.web_server(files.path(), "::");
        let drop =
            "add table ip6 swallow; add chain ip6 swallow it { type filter hook forward priority 0; policy drop; }";
        output(net.phone(broken), "nft", &[drop]);
        let mut options = both_families();
        options.proxy.lookup = Arc::new(|_| Ok(vec!["fd09::9".parse().unwrap(), "10.9.9.9".parse().unwrap()]));
        in_three_tries(|| {
            let joined = start(&net, options.clone());
            wait_for(curl_from(&files, &net, &joined.ready, NAMED));
            assert!(files.arrived());
            let status = status(&net);
            joined.end().unwrap();
            both_carried(&status, BYTES / 4)
        })
        .unwrap();
    }
}

/// Addresses of the two families come from different servers, not always at the same time.
#[test]
fn a_phone_gets_ipv4_after_ipv6() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    for usb in USB {
        net.laptop.ip([format!("address delete 192.168.42.10/24 dev {usb}")]).unwrap();
    }
    let joined = start(&net, options(&[Tier::Primary; 2]));
    net.laptop
        .ip(["address add 192.168.42.10/24 dev usb0", "route add default via 192.168.42.129 dev usb0 metric 100"]
            .map(str::to_owned))
        .unwrap();
    wait_until("it is seen", || status(&net)["uplinks"][0]["ways"].to_string().contains("192.168.42.10"));
    wait_for(curl(&files, &net, &joined.ready));
    assert!(files.arrived());
}

#[test]
fn a_download_lives_on_when_its_family_dies_on_all_phones() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(4 * BYTES);
    let _server = net.web_server(files.path(), "::");
    let joined = start(&net, ipv6_first());
    let curl = curl_from(&files, &net, &joined.ready, NAMED);
    wait_until("both carry", || (0..2).all(|index| carried(&status(&net), index) > 500_000));
    (0..2).for_each(|number| drop(output(net.phone(number), "nft", &[SWALLOW_IPV6])));
    wait_for(curl);
    assert!(files.arrived());
    assert_eq!(status(&net)["proxy"]["totals"]["connected"], 1);
}

/// A carrier's device removes MPTCP from IPv6 only. The first connection detects this, and the second one also tries
/// IPv4.
#[test]
fn the_family_in_which_mptcp_gets_through_is_found_out() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let strip = "add table ip6 strip; add chain ip6 strip it { type filter hook forward priority 0; }; \
        add rule ip6 strip it reset tcp option mptcp";
    (0..2).for_each(|number| drop(output(net.phone(number), "nft", &[strip])));
    let files = Files::new(2 * BYTES);
    let _server = net.web_server(files.path(), "::");
    in_three_tries(|| {
        let joined = start(&net, ipv6_first());
        for _ in 0..3 {
            wait_for(curl_from(&files, &net, &joined.ready, NAMED));
            assert!(files.arrived());
        }
        let status = status(&net);
        joined.end().unwrap();
        // At least one of three came over both.
        if status["proxy"]["totals"]["mptcp"].as_u64().unwrap() == 0 {
            return Err(format!("{status:#}"));
        }
        both_carried(&status, BYTES / 2)
    })
    .unwrap();
}

/// The first connection tries an address that never answers; later ones do not.
#[test]
fn an_address_that_answers_nothing_is_tried_once() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let count = "add table ip6 dead; add chain ip6 dead it { type filter hook prerouting priority -300; }; \
        add rule ip6 dead it ip6 daddr fd09::dead counter drop";
    (0..2).for_each(|number| drop(output(net.phone(number), "nft", &[count])));
    let tried = || {
        let of = |number: usize| {
            let shown = output(net.phone(number), "nft", &["list table ip6 dead"]);
            let packets =
                shown.split_once("packets ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
            packets.unwrap()
        };
        of(0) + of(1)
    };
    let files = Files::new(BYTES / 8);
    let _server = net.web_server(files.path(), "::");
    let mut options = both_families();
    options.proxy.lookup = Arc::new(|_| Ok(vec!["fd09::dead".parse().unwrap(), "10.9.9.9".parse().unwrap()]));
    let joined = start(&net, options);
    let download = || {
        wait_for(curl_from(&files, &net, &joined.ready, NAMED));
        assert!(files.arrived());
    };
    download();
    assert!(tried() > 0);
    // By then the loser of the race has been given up, or a little later on a busy machine.
    sleep(Duration::from_secs(2));
    for _ in 0..3 {
        in_three_tries(|| {
            let before = tried();
            download();
            let more = tried() - before;
            (more == 0).then_some(()).ok_or_else(|| format!("{more} packets to the dead address"))
        })
        .unwrap();
    }
}
