//! Paths that lead to the same place are the same.

use std::fs;
use std::path::{Path, PathBuf, absolute};

/// Where `path` leads, links followed; what is not there yet is named from the root, with the links on its way.
pub fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| absolute(path)).unwrap_or_else(|_| path.into())
}
