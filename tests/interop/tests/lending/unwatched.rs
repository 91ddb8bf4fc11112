//! A relay to which the kernel no longer reports changes of interfaces.

use std::time::Duration;

use interop::{break_the_watch, output, wait_until};

use super::{Bed, sleep};

#[test]
fn a_relay_that_sees_no_changes_is_still_guarded() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    bed.pair(0);
    let relay = bed.lend(0);
    let phone = bed.net.phone(0);
    let rules = || output(phone, "nft", &["list", "ruleset"]);
    let whole = rules();
    break_the_watch(phone);
    sleep(Duration::from_millis(1500));
    output(phone, "nft", &["flush", "ruleset"]);
    wait_until("the guard stands again", || rules() == whole);
    let ways = || output(phone, "ip", &["rule"]);
    let laid = ways();
    let own = laid.lines().find(|line| line.contains("10.99.")).expect("a rule of the relay");
    let priority = own.split(':').next().expect("its priority");
    output(phone, "ip", &["rule", "delete", "priority", priority]);
    wait_until("the rule is there again", || ways() == laid);
    relay.end().unwrap();
}
