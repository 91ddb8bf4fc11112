//! Resolves paths, so that different paths to the same place compare equal.

use std::fs;
use std::path::{Path, PathBuf, absolute};

/// Returns the target of `path` with all links followed. A path that does not exist yet becomes absolute, with the
/// links in its existing part followed.
pub fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| absolute(path)).unwrap_or_else(|_| path.into())
}
