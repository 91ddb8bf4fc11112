//! Namespaces connected by a veth pair, without the emulator.

use interop::{Digest, Protocol, accept, available, connect, listen, receive_all, send_pattern};
use linux::netns::{Keeper, Namespace};

/// Creates two namespaces with their keeper.
fn pair(purpose: &str) -> (Keeper, Namespace, Namespace) {
    let mut keeper = Keeper::start().unwrap();
    let name = |end: &str| format!("veth-{purpose}-{end}-{}", std::process::id());
    let near = keeper.create(&name("near")).unwrap();
    let far = keeper.create(&name("far")).unwrap();
    (keeper, near, far)
}

#[test]
fn both_ends_are_up_and_carry_a_connection() {
    if !available() {
        return;
    }
    let (_keeper, near, far) = pair("carry");
    near.connect("to-far", &far, "to-near").unwrap();
    near.ip(["address add 10.9.0.1/24 dev to-far".into()]).unwrap();
    far.ip(["address add 10.9.0.2/24 dev to-near".into()]).unwrap();
    let remote = "10.9.0.2:5000".parse().unwrap();
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        let listener = listen(&far, protocol, remote).unwrap();
        let mut sender = connect(&near, protocol, None, remote).unwrap();
        let mut receiver = accept(&listener).unwrap();
        send_pattern(&mut sender, 100_000).unwrap();
        drop(sender);
        assert_eq!(receive_all(&mut receiver).unwrap(), Digest::of_pattern(100_000));
    }
}

#[test]
fn the_devices_are_in_their_namespaces_only() {
    if !available() {
        return;
    }
    let (_keeper, near, far) = pair("place");
    near.connect("veth-a", &far, "veth-b").unwrap();
    let has = |namespace: &Namespace, device: &str| {
        let output = namespace.command("ip").unwrap().args(["-o", "link", "show", device]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains("UP")
    };
    assert!(has(&near, "veth-a") && has(&far, "veth-b"));
    assert!(!has(&near, "veth-b") && !has(&far, "veth-a"));
    assert!(!std::path::Path::new("/sys/class/net/veth-a").exists(), "the host has none of them");
}

#[test]
fn a_name_that_is_taken_is_refused() {
    if !available() {
        return;
    }
    let (_keeper, near, far) = pair("taken");
    near.connect("veth-a", &far, "veth-b").unwrap();
    let error = near.connect("veth-a", &far, "veth-c").unwrap_err().to_string();
    assert!(error.contains("veth-a") && error.contains("exists"), "{error}");
}
