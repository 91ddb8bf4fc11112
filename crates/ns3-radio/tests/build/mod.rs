//! Builds what is in `ns3/`, for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds targets of `ns3/Makefile`; returns the folder of the results, beside those of cargo. Returns `None` where ns-3
/// or make is missing, which is an error in CI.
pub fn make(arguments: &[&str]) -> Option<PathBuf> {
    let prefix = std::env::var("NS3_PREFIX").unwrap_or_else(|_| "/usr".into());
    if !Path::new(&prefix).join("include/ns3/core-module.h").exists() {
        return leave_out("ns-3 (libns3-dev)");
    }
    let test = std::env::current_exe().expect("this test has a path");
    let out = test.parent().and_then(Path::parent).expect("cargo puts tests into deps/").join("ns3");
    let mut make = Command::new("make");
    make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    make.args(["-f", "ns3/Makefile", "-j2", "CXXFLAGS=-O0"]).args(arguments);
    make.arg(format!("NS3_PREFIX={prefix}")).arg(format!("OUT={}", out.display()));
    match make.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => leave_out("make"),
        Err(error) => panic!("{make:?}: {error}"),
        Ok(output) => {
            let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
            assert!(output.status.success(), "{}", said.join("\n"));
            Some(out)
        }
    }
}

fn leave_out(missing: &str) -> Option<PathBuf> {
    left_out::leave_out("what is in ns3/", format!("{missing} is missing"));
    None
}
