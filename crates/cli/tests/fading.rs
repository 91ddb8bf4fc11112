//! `anabranch fading` as the shell sees it.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;

fn fading(arguments: &[&str]) -> Assert {
    Command::new(assert_cmd::cargo::cargo_bin!("anabranch")).arg("fading").args(arguments).assert()
}

#[test]
fn a_trace_has_100_rows_of_10000_samples() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let write = |name: &str, more: &[&str]| {
        let path = file(name).display().to_string();
        fading(&[&["-o", &path], more].concat()).success().stdout(contains("Doppler frequency"));
        std::fs::read_to_string(file(name)).unwrap()
    };
    let walk = write("walk.fad", &["--profile", "epa", "--speed", "3 km/h"]);
    let rows: Vec<usize> = walk.lines().map(|row| row.split(' ').count()).collect();
    assert_eq!(rows, [10_000; 100]);
    // The same seed gives the same file; 3 km/h are 0.8333 m/s.
    assert_eq!(walk, write("same.fad", &["--seed", "1"]));
    assert_ne!(walk, write("other.fad", &["--seed", "2"]));
    assert_ne!(walk, write("car.fad", &["--profile", "eva", "--speed", "60 km/h"]));
}

#[test]
fn it_tells_the_doppler_frequency() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("walk.fad").display().to_string();
    // 10 m/s over the 0.1 m of 2.99792458 GHz.
    let drive = ["-o", &path, "--speed", "10 m/s", "--carrier", "2.99792458 GHz"];
    fading(&drive).success().stdout(contains("Doppler frequency 100.00 Hz"));
}

#[test]
fn mistakes_take_one_line() {
    let one_line = |text: &str| text.lines().count() == 1;
    let refuse = |arguments: &[&str], code: i32, says: &str| {
        fading(arguments).code(code).stderr(contains(says).and(predicate::function(one_line)));
    };
    refuse(&["-o", "x.fad", "--speed", "3"], 2, "write it like \"3 km/h\"");
    refuse(&["-o", "x.fad", "--speed", "0 km/h"], 2, "write 0.3 km/h to 500 km/h");
    refuse(&["-o", "x.fad", "--speed", "NaN km/h"], 2, "out of range");
    refuse(&["-o", "x.fad", "--carrier", "2.1"], 2, "write it like \"3 GHz\"");
    refuse(&["-o", "x.fad", "--carrier", "1 MHz"], 2, "100 MHz to 100 GHz");
    refuse(&["-o", "/nowhere/at/all/x.fad"], 2, "cannot write /nowhere/at/all/x.fad");
}
