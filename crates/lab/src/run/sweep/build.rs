//! Identifies the build of this program that made a run: continuing a sweep after changing a controller would mix two
//! builds.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::sync::OnceLock;

const PIECE_BYTES: usize = 1 << 20;

/// Identifies this build by the program's octets; empty if they cannot be read.
pub(crate) fn this_build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    // The file may have been replaced since; the link leads to the running program.
    BUILD.get_or_init(|| {
        let opened = File::open("/proc/self/exe").or_else(|_| std::env::current_exe().and_then(File::open));
        opened.and_then(digest).map_or_else(|_| String::new(), |digest| format!("{digest:016x}"))
    })
}

/// A fast digest suffices: the program is a hundred megabytes, and not a secret.
fn digest(mut program: impl Read) -> io::Result<u64> {
    let (mut hasher, mut octets) = (DefaultHasher::new(), vec![0; PIECE_BYTES]);
    loop {
        match program.read(&mut octets) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(len) => hasher.write(&octets[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_apart_and_one_is_always_the_same() {
        assert_eq!(this_build().len(), 16);
        assert_eq!(digest(&b"one"[..]).unwrap(), digest(&b"one"[..]).unwrap());
        assert_ne!(digest(&b"one"[..]).unwrap(), digest(&b"two"[..]).unwrap());
    }
}
