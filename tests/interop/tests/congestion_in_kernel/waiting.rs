//! Backups that wait: their windows do not count for their siblings.

use interop::{Protocol, wait_until};
use kernel_cc::{Controller, layout};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::{Flow, Loaded, rig};

const LOSSY: &str = "rate = '20 Mbit/s'\ndelay = '5 ms'\nqueue = '60 packets'\nloss = '0.5 %'";
const BACKUP: &str = "10.1.1.101";

/// LIA's state of the only connection: its alpha, in units of 2^-16, and the sum of windows for which it was computed,
/// zero if it is not valid; and the bits of the places whose subflows wait.
fn state(lia: &Controller) -> [u64; 3] {
    let map = MapHandle::from_pinned_path(lia.folder().join("connections")).unwrap();
    let key = map.keys().next().unwrap();
    let value = map.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    [8, 16, layout::WAITING_AT].map(|at| layout::word(&value, at))
}

/// Returns the bit of the backup's place. Places are listed in their order, and none is free between them.
fn backup(lia: &Controller) -> u64 {
    let subflows = &kernel_cc::connections(lia).unwrap()[0].subflows;
    1 << subflows.iter().position(|subflow| subflow.local.ip().to_string() == BACKUP).unwrap()
}

#[test]
fn a_backup_counts_while_it_carries() {
    let Some(rig) = rig(&[LOSSY], 1) else { return };
    let b = rig.host(1);
    b.ip([format!("address add {BACKUP}/23 dev path0")]).unwrap();
    b.ip([format!("mptcp endpoint add {BACKUP} id 7 dev path0 subflow backup")]).unwrap();
    let loaded = Loaded::new("lia", 1024);
    let lia = loaded.0;
    let flow = Flow::start(&rig, Protocol::Mptcp, "lia", 5000);
    wait_until("both subflows have their places", || loaded.subflows() == [2]);
    let backup = backup(&lia);
    wait_until("the backup waits", || state(&lia)[2] == backup);
    wait_until("alpha is that of a single path", || {
        let [alpha, sum, _] = state(&lia);
        sum != 0 && alpha == 1 << 16
    });
    b.ip(["mptcp endpoint change id 7 nobackup".into()]).unwrap();
    wait_until("it carries", || state(&lia)[2] == 0);
    wait_until("alpha is that of two paths", || {
        let [alpha, sum, _] = state(&lia);
        sum != 0 && alpha < 1 << 16
    });
    b.ip(["mptcp endpoint change id 7 backup".into()]).unwrap();
    wait_until("it waits again", || state(&lia)[2] == backup);
    assert!(flow.end() > 300_000);
    wait_until("places are given back", || loaded.subflows().is_empty());
}
