//! Compiles the BPF programs, if there is a clang that can. Without one everything else is built.

use std::env;
use std::path::Path;
use std::process::Command;

/// Newest first: what a distribution calls `clang` may be older than what it also has.
const COMPILERS: [&str; 9] =
    ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];

fn main() {
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rustc-check-cfg=cfg(bpf_programs)");
    if env::var_os("CARGO_FEATURE_LOAD").is_none() {
        return;
    }
    let named = env::var("CLANG").ok();
    let compilers = named.iter().map(String::as_str).chain(COMPILERS);
    let Some(compiler) = compilers.into_iter().find(|compiler| compiles_for_bpf(compiler)) else {
        println!("cargo::warning=no clang for BPF: `anabranch cc` will load nothing (apt-get install clang-14)");
        return;
    };
    let object = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("anabranch.bpf.o");
    let status = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", "../../bpf/anabranch.bpf.c", "-o"])
        .arg(&object)
        // Debugging information names the source: not by where it was built.
        .arg("-fdebug-prefix-map=../../bpf=bpf")
        .status()
        .expect("it was started before");
    assert!(status.success(), "{compiler} cannot compile bpf/anabranch.bpf.c: {status}");
    println!("cargo::rustc-cfg=bpf_programs");
}

fn compiles_for_bpf(compiler: &str) -> bool {
    let targets = Command::new(compiler).arg("--print-targets").output();
    targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf "))
}
