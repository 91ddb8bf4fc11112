//! Where a download is put: follows links, except those that another user may have planted.
//!
//! In a folder like `/tmp`, everybody may create a link with the name that another user is about to write to. Kernels
//! with `fs.protected_symlinks` and its siblings do not follow such links, but replacing a file by renaming is beyond
//! them.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::{Error, Result};

/// As many links as the kernel follows.
const LINKS_MAX: u32 = 40;
/// Permissions of a folder in which everybody may create files, and only the owner of one may remove it.
const SHARED: u32 = 0o1002;

/// Returns the file to replace: `path`, or what the links there lead to, so that a link stays a link.
///
/// # Errors
/// If another user has made one of the links, or the file, in a folder that everybody may write to.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    resolve_as(path, rustix::process::geteuid().as_raw())
}

fn resolve_as(path: &Path, user: u32) -> Result<PathBuf> {
    // Where nothing stands, there is nothing to follow.
    let as_named = || Ok(path.to_owned());
    let Ok(whole) = std::path::absolute(path) else { return as_named() };
    let mut rest = parts(&whole);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let Ok(found) = fs::symlink_metadata(&next) else { return as_named() };
        let matters = found.is_symlink() || (rest.is_empty() && !found.is_dir());
        if matters && fs::metadata(&at).is_ok_and(|folder| is_planted(&found, &folder, user)) {
            return Err(planted(next, &found));
        }
        if !found.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        let target = fs::read_link(&next).ok().filter(|_| links <= LINKS_MAX);
        let Some(target) = target else { return as_named() };
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        parts(&target).into_iter().rev().for_each(|part| rest.push_front(part));
    }
    Ok(at)
}

/// Checks a file that is replaced or continued without following links.
///
/// # Errors
/// If another user has made it in a folder that everybody may write to.
pub fn check(path: &Path) -> Result<()> {
    let (Ok(found), Some(folder)) = (fs::symlink_metadata(path), path.parent()) else { return Ok(()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let user = rustix::process::geteuid().as_raw();
    let is_planted = fs::metadata(folder).is_ok_and(|folder| is_planted(&found, &folder, user));
    if is_planted { Err(planted(path.into(), &found)) } else { Ok(()) }
}

/// Returns the names on a path, without its root.
fn parts(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}

/// The rule of `fs.protected_symlinks` and `fs.protected_regular`: the owner of the folder is trusted with it.
fn is_planted(found: &Metadata, folder: &Metadata, user: u32) -> bool {
    folder.mode() & SHARED == SHARED && found.uid() != user && found.uid() != folder.uid()
}

fn planted(path: PathBuf, found: &Metadata) -> Error {
    let what = if found.is_symlink() { "link" } else { "file" };
    let message = format!(
        "is a {what} of another user (ID {}), in a folder that everybody may write to: name a file in a folder of your \
         own with -o",
        found.uid()
    );
    Error::File { path, message }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    use super::super::sink::{Output, Sink};
    use super::*;

    const NOBODY: u32 = 65534;

    /// Returns a folder like `/tmp`.
    fn shared() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let path = fs::canonicalize(folder.path()).unwrap();
        (folder, path)
    }

    #[test]
    fn own_links_are_followed() {
        let (_folder, path) = shared();
        fs::create_dir(path.join("deep")).unwrap();
        fs::write(path.join("deep/file"), "old").unwrap();
        symlink("deep/../deep/file", path.join("relative")).unwrap();
        symlink(path.join("relative"), path.join("absolute")).unwrap();
        symlink("loop", path.join("loop")).unwrap();
        symlink("none", path.join("dangling")).unwrap();
        for name in ["deep/file", "relative", "absolute", "deep/../absolute"] {
            assert_eq!(resolve(&path.join(name)).unwrap(), path.join("deep/file"), "{name}");
        }
        for name in ["loop", "dangling", "none", "none/at/all"] {
            assert_eq!(resolve(&path.join(name)).unwrap(), path.join(name), "nothing is there");
        }
        assert_eq!(resolve(Path::new("no-such-file")).unwrap(), Path::new("no-such-file"));
        check(&path.join("relative")).unwrap();
    }

    #[test]
    fn what_another_user_has_put_into_a_shared_folder_is_refused() {
        if !left_out::is_root("what another user has put into a shared folder") {
            return;
        }
        let (_folder, path) = shared();
        fs::create_dir(path.join("deep")).unwrap();
        fs::write(path.join("deep/file"), "precious").unwrap();
        fs::write(path.join("file"), "").unwrap();
        let links = [("link", "deep/file"), ("dangling", "none"), ("folder", "deep")];
        links.iter().for_each(|(name, target)| symlink(target, path.join(name)).unwrap());
        symlink("link", path.join("own")).unwrap();
        for name in ["file", "link", "dangling", "folder"] {
            lchown(path.join(name), Some(NOBODY), None).unwrap();
        }
        for (name, what) in
            [("file", "file"), ("link", "link"), ("dangling", "link"), ("folder/file", "link"), ("own", "link")]
        {
            let why = resolve(&path.join(name)).unwrap_err().to_string();
            assert!(why.contains(&format!("is a {what} of another user (ID {NOBODY})")) && why.contains("-o"), "{why}");
        }
        assert!(check(&path.join("file")).is_err() && check(&path.join("link")).is_err());
        let open = |name: &str, resume| {
            let opened = Sink::open(&Output::File(path.join(name)), "http://h/x", resume, Box::new(|| {}));
            opened.err().map(|why| why.to_string())
        };
        fs::rename(path.join("file"), path.join("new.part")).unwrap();
        for (name, resume) in [("link", false), ("link", true), ("new.part", false), ("new", true)] {
            let why = open(name, resume).unwrap_or_default();
            assert!(why.contains("of another user"), "{name}: {why}");
        }
        fs::rename(path.join("new.part"), path.join("file")).unwrap();
        assert_eq!(open("new", true), None);
        // Who made them may use them, and so may everybody where only root can make any.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve(&path.join("folder/../link")).unwrap(), path.join("deep/file"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(resolve_as(&path.join("file"), NOBODY).unwrap(), path.join("file"));
    }
}
