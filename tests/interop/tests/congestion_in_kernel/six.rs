//! Subflows over IPv6.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use interop::{Protocol, wait_until};
use kernel_cc::{CONTROLLERS, Connection, Controller};

use super::{Flow, Loaded, WIDE, rig};

const REMOTE: &str = "[fd00:1::1]:5000";
const LOCAL: [&str; 2] = ["fd00:1:1::1", "fd00:1:1::66"];

fn locals(connection: &Connection) -> BTreeSet<IpAddr> {
    connection.subflows.iter().map(|subflow| subflow.local.ip()).collect()
}

fn only_connection(controller: &Controller) -> Connection {
    let mut all = kernel_cc::connections(controller).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn is_measured(connection: &Connection) -> bool {
    connection.subflows.iter().all(|subflow| subflow.srtt.is_some())
}

#[test]
fn subflows_over_ipv6_are_shown_with_their_addresses() {
    let Some(rig) = rig(&[WIDE], 1) else { return };
    let second = LOCAL[1];
    rig.host(1).ip([format!("address add {second}/47 dev path0 nodad")]).unwrap();
    // The kernel starts with the last one added, but that is not documented.
    for local in LOCAL {
        rig.host(1).ip([format!("mptcp endpoint add {local} dev path0 subflow")]).unwrap();
    }
    // Data that wait in the kernel at the end must leave first.
    rig.host(1).set("ipv4/tcp_wmem", "4096 100000 500000").unwrap();
    let remote: SocketAddr = REMOTE.parse().unwrap();
    let expected: BTreeSet<IpAddr> = LOCAL.iter().map(|local| local.parse().unwrap()).collect();
    for controller in CONTROLLERS {
        let name = controller.name;
        let loaded = Loaded::new(name, 1024);
        let flow = Flow::start_to(&rig, Protocol::Mptcp, controller.kernel_name, remote);
        wait_until("both subflows have their places", || loaded.subflows() == [2]);
        wait_until("both are measured", || is_measured(&only_connection(controller)));
        let found = only_connection(controller);
        assert!(found.token.is_some(), "{name}: {found:?}");
        assert_eq!(locals(&found), expected, "{name}: {found:?}");
        assert!(found.subflows.iter().all(|subflow| subflow.remote == remote), "{name}: {found:?}");
        let ports: BTreeSet<u16> = found.subflows.iter().map(|subflow| subflow.local.port()).collect();
        assert!(ports.len() == 2 && !ports.contains(&0), "{name}: {found:?}");
        wait_until("it carries", || flow.received() > 300_000);
        assert!(flow.end() > 300_000, "{name}");
        wait_until("places are given back", || loaded.subflows().is_empty());
    }
}

/// An IPv6 socket that uses IPv4.
#[test]
fn ipv4_over_a_socket_of_ipv6_is_shown_as_ipv4() {
    let Some(rig) = rig(&[WIDE], 2) else { return };
    let balia = Loaded::new("balia", 1024);
    let flow = Flow::start_to(&rig, Protocol::Mptcp, "balia", "[::ffff:10.1.0.1]:5000".parse().unwrap());
    wait_until("both subflows have their places", || balia.subflows() == [2]);
    let found = only_connection(&balia.0);
    let expected: BTreeSet<IpAddr> = ["10.1.1.1", "10.1.1.101"].map(|local| local.parse().unwrap()).into();
    assert_eq!(locals(&found), expected, "{found:?}");
    assert!(found.subflows.iter().all(|subflow| subflow.remote == super::remote(5000)), "{found:?}");
    flow.end();
    wait_until("places are given back", || balia.subflows().is_empty());
}
