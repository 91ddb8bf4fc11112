//! These tests themselves with restricted root rights: they pass with a message, and fail where CI relies on them.

use std::process::{Command, Output};

use interop::{Rig, available_with};

/// Runs as a child of the next test, which drops its capabilities.
#[test]
#[ignore = "the child of tests_without_capabilities_are_left_out"]
fn emulate_for_a_moment() {
    let Some(rig) = Rig::new(&[""]) else { return };
    println!("emulated {}", rig.finish());
}

fn without_capabilities(ci: &str) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]);
    command.arg(std::env::current_exe().unwrap());
    command
        .args(["--exact", "confined::emulate_for_a_moment", "--ignored", "--nocapture"])
        .env("CI", ci)
        .output()
        .unwrap()
}

#[test]
fn tests_without_capabilities_are_left_out() {
    if !available_with(&[("setpriv", "util-linux")]) {
        return;
    }
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let left_out = without_capabilities("");
    let lines = said(&left_out).lines().filter(|line| line.starts_with("left out: interop tests: ")).count();
    assert!(left_out.status.success() && lines == 1, "{left_out:?}");
    assert!(said(&left_out).contains("CAP_SYS_ADMIN") && said(&left_out).contains("CAP_NET_ADMIN"), "{left_out:?}");
    let relied_on = without_capabilities("true");
    assert!(!relied_on.status.success() && said(&relied_on).contains("CI leaves nothing out"), "{relied_on:?}");
}
