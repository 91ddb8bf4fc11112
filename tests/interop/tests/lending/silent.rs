//! A relay whose shared link is silently dead.

use interop::{Files, wait_until};

use super::Bed;

#[test]
fn a_relay_says_that_nothing_comes_back_over_its_link() {
    let Some(bed) = Bed::with_phones(&[0]) else { return };
    let files = Files::new(1000);
    let _server = bed.net.web_server(files.path(), "0.0.0.0");
    bed.pair(0);
    let _relay = bed.lend(0);
    let _joined = bed.join();
    let unheard = || bed.relay_status(0)["relay"]["unheard"].clone();
    assert!(bed.reaches("via-anna", super::URL));
    assert!(unheard().is_null());
    bed.net.set_link(0, false);
    // Each attempt takes two seconds.
    let is_said = (0..20).any(|_| {
        assert!(!bed.reaches_soon("via-anna", super::URL));
        unheard().as_u64().is_some_and(|nanos| nanos >= 5_000_000_000)
    });
    assert!(is_said, "{:#}", bed.relay_status(0));
    bed.net.set_link(0, true);
    wait_until("it is heard again", || bed.reaches_soon("via-anna", super::URL) && unheard().is_null());
}
