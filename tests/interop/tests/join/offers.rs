//! Phones whose carriers interfere with MPTCP but not with plain TCP.

use super::*;

/// Adds an nft rule for the packets that a phone forwards.
fn treat(net: &Tethered, phone: usize, rule: &str) {
    let chain = "add table inet box; add chain inet box pass { type filter hook forward priority 0; policy accept; }; flush chain inet box pass; add rule inet box pass";
    output(net.phone(phone), "nft", &[&format!("{chain} {rule}")]);
}

/// Returns the seconds until a request through the proxy is answered.
fn answer_s(net: &Tethered, proxy: &str) -> f64 {
    let proxy = format!("socks5h://{proxy}");
    let arguments = ["--silent", "--fail", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{time_total}"];
    let said = output(&net.laptop, "curl", &[&arguments[..], &["--proxy", &proxy, URL]].concat());
    said.trim().parse().unwrap_or_else(|_| panic!("curl said {said:?}"))
}

#[test]
fn servers_are_asked_without_an_offer_where_all_carriers_swallow_or_refuse_it() {
    for (what, first_s) in [("drop", 2.0..5.0), ("reject with tcp reset", 0.0..1.5)] {
        in_three_tries(|| without_an_offer(what, &first_s)).unwrap();
    }
}

/// Makes two requests where both carriers do this to offers: the first one is answered after `first_s` seconds, and the
/// second one soon.
fn without_an_offer(what: &str, first_s: &core::ops::Range<f64>) -> Result<(), String> {
    let Some(net) = Tethered::new([LINK, LINK]) else { return Ok(()) };
    let files = Files::new(BYTES / 100);
    let _server = net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|phone| treat(&net, phone, &format!("tcp flags syn tcp option mptcp exists {what}")));
    let joined = start(&net, options(&[Tier::Primary; 2]));
    let [first, second] = [(); 2].map(|()| answer_s(&net, &joined.ready));
    let status = status(&net);
    assert_eq!(
        (status["proxy"]["totals"]["connected"].as_u64(), &status["proxy"]["totals"]["mptcp"]),
        (Some(2), &0.into())
    );
    joined.end().unwrap();
    // What is remembered costs the second one no time.
    let is_right = first_s.contains(&first) && second < 1.5;
    is_right.then_some(()).ok_or_else(|| format!("{what}: {first} s, then {second} s"))
}

#[test]
fn one_carrier_that_refuses_offers_leaves_mptcp_to_the_other() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES / 100);
    let _server = net.web_server(files.path(), "0.0.0.0");
    treat(&net, 0, "tcp flags syn tcp option mptcp exists reject with tcp reset");
    let joined = start(&net, options(&[Tier::Primary; 2]));
    for requests in 1..=3 {
        answer_s(&net, &joined.ready);
        assert_eq!(status(&net)["proxy"]["totals"]["mptcp"], requests);
    }
    joined.end().unwrap();
}

/// The kernel at the other end keeps using MPTCP, since our options arrive intact: the engine has to tell it.
#[test]
fn a_download_whose_options_are_removed_on_the_way_here_goes_on() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let files = Files::new(BYTES);
    let _server = net.web_server(files.path(), "0.0.0.0");
    (0..2).for_each(|phone| {
        treat(&net, phone, "oifname lan tcp flags & syn == 0 reset tcp option mptcp");
    });
    let joined = start(&net, options(&[Tier::Primary; 2]));
    wait_for(curl(&files, &net, &joined.ready));
    assert!(files.arrived());
    joined.end().unwrap();
}
