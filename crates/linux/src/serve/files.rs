//! Access to the files of one folder, and nothing else.

use std::fs::{File, Metadata};
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::listing::Listing;
use crate::http::content_type;
use crate::{Error, Result};

/// How often a file is opened if the kernel asks to try again.
const OPEN_TRIES: usize = 16;

/// A folder to serve. The kernel itself keeps every path inside it, symbolic links included (`openat2` with
/// `RESOLVE_BENEATH`), so no race with a rename leads out.
pub struct Folder {
    root: File,
}

/// Target of a path.
pub enum Found {
    /// A file, its metadata and its media type.
    File(File, Metadata, &'static str),
    /// The `index.html` of a folder, with its metadata and its media type.
    Index(File, Metadata, &'static str),
    /// A folder without an `index.html`: a page that lists it.
    Listing(Listing),
}

impl Folder {
    /// Opens the folder.
    pub fn open(path: &Path) -> Result<Self> {
        let root = File::open(path).map_err(Error::file(path))?;
        if !root.metadata().map_err(Error::file(path))?.is_dir() {
            return Err(Error::File { path: path.into(), message: "is not a folder".into() });
        }
        Ok(Self { root })
    }

    /// Returns the target of `path`, or the status that says why it is not available.
    pub fn find(&self, path: &Path) -> Result<Found, u16> {
        let (file, metadata) = self.open_beneath(path)?;
        if metadata.is_dir() {
            let index = path.join("index.html");
            return match self.open_beneath(&index) {
                Ok((file, metadata)) if metadata.is_file() => {
                    Ok(Found::Index(file, metadata, content_type("index.html")))
                }
                // Something of that name that is no file hides nothing.
                Ok(_) | Err(404) => Listing::new(path, &file).map(Found::Listing).map_err(status_of),
                // Whoever may not read the page may not read the names either; and a lack of descriptors passes.
                Err(status) => Err(status),
            };
        }
        if !metadata.is_file() {
            return Err(404);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Found::File(file, metadata, content_type(&name)))
    }

    fn open_beneath(&self, path: &Path) -> Result<(File, Metadata), u16> {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        // Without NONBLOCK a named pipe would stop the whole server.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(self.root.as_fd(), path, flags, Mode::empty(), resolve);
        // openat2(2), EAGAIN: something was renamed meanwhile, so the kernel is not sure that `..` stayed inside.
        let again = (1..OPEN_TRIES).map(|_| open());
        let opened = [open()].into_iter().chain(again).find(|opened| !matches!(opened, Err(Errno::AGAIN)));
        let file: File = opened.unwrap_or(Err(Errno::AGAIN)).map_err(status_of)?.into();
        let metadata = file.metadata().map_err(|_| 500_u16)?;
        Ok((file, metadata))
    }
}

/// Returns the status for a file that cannot be opened.
fn status_of(error: Errno) -> u16 {
    match error {
        Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP => 403,
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO => 404,
        // No descriptors are left: other clients are downloading, and will finish some time. Or files are being renamed
        // all the time.
        Errno::MFILE | Errno::NFILE | Errno::AGAIN => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("serve-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("sub")).unwrap();
        fs::write(path.join("a.txt"), "hello").unwrap();
        path
    }

    fn status(folder: &Folder, path: &str) -> Option<u16> {
        folder.find(Path::new(path)).err()
    }

    #[test]
    fn files_and_listings() {
        let path = folder("files");
        let served = Folder::open(&path).unwrap();
        assert!(
            matches!(served.find(Path::new("a.txt")), Ok(Found::File(_, metadata, "text/plain; charset=utf-8")) if metadata.len() == 5)
        );
        assert!(matches!(served.find(Path::new("sub")), Ok(Found::Listing(_))));
        fs::write(path.join("sub/index.html"), "x").unwrap();
        assert!(matches!(served.find(Path::new("sub")), Ok(Found::Index(_, _, "text/html; charset=utf-8"))));
        assert_eq!(status(&served, "none"), Some(404));
        assert_eq!(status(&served, "a.txt/b"), Some(404));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn who_comes_when_no_descriptor_is_left_may_come_again() {
        let errors = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::IO];
        assert_eq!(errors.map(status_of), [503, 503, 503, 500]);
    }

    /// The kernel gives up on a path with `..` while anything at all is renamed.
    #[test]
    fn renames_do_not_hide_files() {
        let path = folder("renamed");
        let served = Folder::open(&path).unwrap();
        let is_over = AtomicBool::new(false);
        let statuses: Vec<u16> = thread::scope(|scope| {
            scope.spawn(|| {
                for [from, to] in [["x", "y"], ["y", "x"]].into_iter().cycle() {
                    let _ = fs::rename(path.join(from), path.join(to));
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            fs::write(path.join("x"), "").unwrap();
            let statuses = (0..20_000).filter_map(|_| status(&served, "sub/../a.txt")).collect();
            is_over.store(true, Ordering::Relaxed);
            statuses
        });
        // How often it gives up in a row is up to the kernel's scheduler.
        assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn links_do_not_lead_out() {
        let path = folder("beneath");
        symlink("/etc/passwd", path.join("absolute")).unwrap();
        symlink("../../../etc/passwd", path.join("relative")).unwrap();
        symlink("a.txt", path.join("inside")).unwrap();
        let served = Folder::open(&path).unwrap();
        assert_eq!(status(&served, "absolute"), Some(403));
        assert_eq!(status(&served, "relative"), Some(403));
        assert_eq!(status(&served, "inside"), None);
        assert_eq!(status(&served, "../a.txt"), Some(403));
        // A page that may not be read does not make the names of the others public.
        let index = path.join("sub/index.html");
        for target in ["/etc/passwd", "index.html"] {
            symlink(target, &index).unwrap();
            assert_eq!(status(&served, "sub"), Some(403), "{target}");
            fs::remove_file(&index).unwrap();
        }
        fs::create_dir(&index).unwrap();
        assert!(matches!(served.find(Path::new("sub")), Ok(Found::Listing(_))));
        fs::remove_dir_all(path).unwrap();
    }
}
