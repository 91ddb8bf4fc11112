//! A relay whose shared link gets another address, like a modem that dials in again.

use daemon::join::Wanted;
use daemon::links::RelayChoice;
use daemon::proxy::choice::Tier;
use interop::{Files, carried, output, wait_for, wait_until};
use linux::clock::Clock;
use units::Duration;

use super::{BYTES, Bed, longest_pause};

#[test]
fn a_download_over_one_relay_goes_on_when_its_link_gets_another_address() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(6 * BYTES);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let _relay = bed.lend(0);
    // With another uplink the download would continue in any case.
    let relays = vec![RelayChoice { name: "anna".into(), address: None, tier: Tier::Primary }];
    let joined = bed.join_with(Wanted { relays, ..bed.wanted() });
    let transfer = bed.curl(&files, &joined.ready);
    wait_until("it carries", || carried(&bed.status(), 0) > 1_000_000);
    let (phone, share) = (bed.net.phone(0), bed.share(0));
    let shown = output(phone, "sh", &["-c", &format!("ip -o -4 address show dev {share} | awk '{{print $4}}'")]);
    let before = shown.trim();
    let (address, length) = before.split_once('/').unwrap();
    let (net, host) = address.rsplit_once('.').unwrap();
    assert_ne!(host, "77");
    phone
        .ip([
            format!("address del {before} dev {share}"),
            format!("address add {net}.77/{length} dev {share}"),
            format!("route add 0.0.0.0/0 dev {share}"),
        ])
        .unwrap();
    let clock = Clock::start();
    let pause = longest_pause(&files, clock, clock.now() + Duration::from_secs(9));
    println!("nothing arrives for {:.1} s", pause.as_secs_f64());
    // Without help the connection notices after a minute.
    assert!(pause < Duration::from_secs(6), "nothing arrived for {:.1} s", pause.as_secs_f64());
    wait_for(transfer);
    assert!(files.arrived());
}
