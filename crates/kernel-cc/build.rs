//! Compiles the BPF programs if a suitable clang is installed. Without one, everything else is built.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const FOLDER: &str = "../../bpf";

/// Newest first: a distribution's `clang` may be older than its other versions.
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
        println!(
            "cargo::warning=no clang for BPF: `anabranch cc` will have no controllers to load (apt-get install \
            clang-14)"
        );
        return;
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let objects: String = sources().iter().map(|source| compile(compiler, source, &out)).collect();
    let objects = format!("static OBJECTS: &[(&str, &[u8])] = &[\n{objects}];\n");
    fs::write(out.join("objects.rs"), objects).expect("cargo's own folder can be written");
    println!("cargo::rustc-cfg=bpf_programs");
    println!("cargo::rustc-env=BPF_COMPILER={compiler}");
}

/// Returns every `bpf/*.bpf.c`, sorted by name.
fn sources() -> Vec<PathBuf> {
    let files = fs::read_dir(FOLDER).expect("the folder is part of the tree");
    let mut sources: Vec<_> = files.map(|file| file.expect("it can be read").path()).collect();
    sources.retain(|path| path.to_string_lossy().ends_with(".bpf.c"));
    sources.sort();
    sources
}

/// Compiles a file into `out`. Returns the library's entry for it: its name without endings, and the object.
fn compile(compiler: &str, source: &Path, out: &Path) -> String {
    let object = out.join(source.with_extension("o").file_name().expect("it has a name"));
    let status = Command::new(compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object)
        // Keeps the build folder out of the names of sources in the debugging information.
        .arg(format!("-fdebug-prefix-map={FOLDER}=bpf"))
        .status()
        .expect("it was started before");
    assert!(status.success(), "{compiler} cannot compile {}: {status}", source.display());
    let object = object.file_name().expect("it has a name").to_string_lossy().into_owned();
    let name = object.trim_end_matches(".bpf.o");
    format!("    ({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{object}\"))),\n")
}

fn compiles_for_bpf(compiler: &str) -> bool {
    let targets = Command::new(compiler).arg("--print-targets").output();
    targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf "))
}
