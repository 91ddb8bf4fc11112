//! Phones whose network is that of an engine, or contains it.

use super::*;

/// Gives the phone with this number another network: `laptop` and `phone` are the addresses there.
fn readdress(net: &Tethered, number: usize, laptop: &str, phone: &str) {
    let usb = USB[number];
    net.phone(number).ip([format!("address add {phone} dev lan")]).unwrap();
    let metric = 100 + number;
    let gateway = phone.split('/').next().unwrap();
    let commands = [
        format!("address delete {}/24 dev {usb}", net.lan(number)[0]),
        format!("address add {laptop} dev {usb}"),
        format!("route replace default via {gateway} dev {usb} metric {metric}"),
    ];
    net.laptop.ip(commands).unwrap();
}

fn everything() -> JoinOptions {
    let mut all = options(&[]);
    all.uplinks.interfaces.clear();
    all.uplinks.state = "/nonexistent".into();
    all
}

/// Each network of a phone, and the device whose network the engine then has.
#[test]
fn a_phone_may_have_the_network_that_an_engine_would_take() {
    for (laptop, phone, device) in [
        ("10.99.0.10/24", "10.99.0.1/24", "anabranch1"),
        ("10.100.1.10/12", "10.100.1.1/12", "anabranch0"),
        // The phone has the address that the kernel would have on the first device.
        ("10.99.5.10/16", "10.99.0.1/16", "anabranch1"),
    ] {
        let Some(net) = Tethered::new([LINK, LINK]) else { return };
        let files = Files::new(BYTES);
        let _server = net.web_server(files.path(), "0.0.0.0");
        readdress(&net, 0, laptop, phone);
        let before = net.state();
        in_three_tries(|| {
            let joined = start(&net, everything());
            assert_eq!(net.laptop.run(control::running).unwrap().unwrap(), [device], "{laptop}");
            wait_for(curl(&files, &net, &joined.ready));
            assert!(files.arrived());
            let status = ask(&net, device, &Request::Status).unwrap();
            joined.end().unwrap();
            both_carried(&status, BYTES / 8)
        })
        .unwrap();
        assert_eq!(net.state(), before);
    }
}

#[test]
fn a_phone_that_gets_the_engines_network_keeps_no_other_from_coming_back() {
    let Some(net) = Tethered::new([LINK, LINK]) else { return };
    let _joined = start(&net, everything());
    let lost = |index: usize| status(&net)["uplinks"][index]["lost"].as_str().map(str::to_owned);
    net.laptop.ip(["link set usb0 down".into()]).unwrap();
    wait_until("it is lost", || lost(0).is_some());
    net.laptop.ip(["address flush dev usb0".into(), "link set usb0 up".into()]).unwrap();
    net.laptop.ip(["address add 192.168.42.10/24 dev usb0".into()]).unwrap();
    readdress(&net, 0, "10.99.0.10/24", "10.99.0.129/24");
    wait_until("it is refused", || lost(0).is_some_and(|why| why.contains("contains the engine's address")));
    net.laptop.ip(["link set usb1 down".into()]).unwrap();
    wait_until("it is lost", || lost(1).is_some());
    net.laptop.ip(["link set usb1 up".into()]).unwrap();
    net.laptop.ip([format!("route replace default via {} dev usb1 metric 101", net.lan(1)[1])]).unwrap();
    wait_until("it is used again", || lost(1).is_none());
    assert!(lost(0).is_some());
}
