//! A killed program leaves no device and no route on the host.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use interop::{available, wait_until};
use linux::netns::{Keeper, Namespace};
use linux::serve::{ServeOptions, serve};
use linux::stop::Stop;

const ADDRESS: &str = "10.96.1.2";

/// Runs as a child of the next test, which kills it.
#[test]
#[ignore = "the child of a_killed_serve_leaves_no_device_and_no_route"]
fn serve_until_killed() {
    let Ok(name) = std::env::var("INTEROP_NAMESPACE") else { return };
    let host = Namespace::open(&name).unwrap();
    let idle_max = units::Duration::from_secs(60);
    let options = ServeOptions {
        folder: PathBuf::from("."),
        port: 8080,
        via: vec![ADDRESS.parse().unwrap()],
        idle_max,
        engine: linux::EngineOptions::default(),
        ended: None,
    };
    let stop = Stop::new().unwrap();
    host.run(|| serve(&options, &stop, &mut |line| println!("{line}"))).unwrap().unwrap();
}

#[test]
fn a_killed_serve_leaves_no_device_and_no_route() {
    if !available() {
        return;
    }
    let mut keeper = Keeper::start().unwrap();
    let host = keeper.create(&format!("killed-{}", std::process::id())).unwrap();
    let shown = |what: &[&str]| {
        let output = host.command("ip").unwrap().args(what).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = (shown(&["-o", "link"]), shown(&["route", "show", "table", "all"]));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::serve_until_killed", "--ignored", "--nocapture"])
        .env("INTEROP_NAMESPACE", host.name())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("serving")), "the child serves");
    assert!(shown(&["-o", "link"]).contains("anabranch0"));
    assert!(shown(&["route"]).contains(ADDRESS));
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel removes them in its own time.
    wait_until(&format!("all is as it was, {before:?}"), || {
        (shown(&["-o", "link"]), shown(&["route", "show", "table", "all"])) == before
    });
}
