//! The committed header matches the sources.

use std::fs;
use std::path::Path;

/// Renew the header with `ANABRANCH_RENEW=1 cargo test -p capi header`.
#[test]
fn header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml reads");
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate().expect("the sources parse");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let path = root.join("include/anabranch.h");
    if std::env::var_os("ANABRANCH_RENEW").is_some() {
        fs::write(&path, &generated).expect("the header can be written");
    }
    let committed = fs::read(&path).unwrap_or_default();
    assert!(committed == generated, "include/anabranch.h is stale: ANABRANCH_RENEW=1 cargo test -p capi header");
}
