//! Resolves paths, so that different paths to the same place compare equal.

use std::fs;
use std::path::{Path, PathBuf, absolute};

/// Returns the target of `path` with all links followed. A path that does not exist yet becomes absolute, with the
/// links in its existing part followed.
pub fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| below_real_parent(path))
        .or_else(|_| absolute(path))
        .unwrap_or_else(|_| path.into())
}

/// Returns `path` below its folder with all links followed.
fn below_real_parent(path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(parent)?.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_yet_is_found_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(real.join("d")).unwrap();
        std::os::unix::fs::symlink("d", real.join("link")).unwrap();
        for path in ["d/new", "link/new", "d/../d/new", "link/../link/new"] {
            assert_eq!(real_path(&real.join(path)), real.join("d/new"), "{path}");
        }
        assert_eq!(real_path(&real.join("none/new")), real.join("none/new"));
        assert_eq!(real_path(Path::new("new")), fs::canonicalize(".").unwrap().join("new"));
    }
}
