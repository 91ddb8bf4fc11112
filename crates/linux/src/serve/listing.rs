//! A page that lists a folder. It is made slice by slice, so a folder of any size delays no other client.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, statat};
use rustix::io::Errno;

use crate::http::encode_path;

/// Entries read or written per slice.
const SLICE: usize = 1000;
/// Maximum number of entries that are sorted by name; more would have to be held in memory for every client. The
/// entries after them are sorted only slice by slice.
const SORTED_MAX: usize = 10_000;

/// A page that is being made.
pub struct Listing {
    /// Path of the folder as in links, with a slash at both ends.
    base: OsString,
    /// Entries not yet read; `None` at the end.
    entries: Option<Dir>,
    /// Names that are read but not yet written; sorted once there are enough.
    names: Vec<OsString>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Gathering,
    /// Number of names that are written.
    Writing(usize),
    Done,
}

impl Listing {
    /// Creates the page of the open `folder`, which is at `path`.
    ///
    /// # Errors
    /// If the folder cannot be opened for reading, for example because no descriptor is left.
    pub fn new(path: &Path, folder: &File) -> Result<Self, Errno> {
        let mut base = OsString::from("/");
        base.push(path);
        if path != Path::new("") {
            base.push("/");
        }
        Ok(Self { base, entries: Some(Dir::read_from(folder)?), names: Vec::new(), stage: Stage::Gathering })
    }

    /// Returns whether the page is complete.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Returns the next octets of the page, possibly none.
    pub fn slice(&mut self) -> String {
        match self.stage {
            Stage::Gathering => {
                self.read();
                if self.entries.is_some() && self.names.len() < SORTED_MAX {
                    return String::new();
                }
                self.names.sort();
                self.stage = Stage::Writing(0);
                self.head()
            }
            Stage::Writing(at) if at < self.names.len() => {
                let end = self.names.len().min(at + SLICE);
                self.stage = Stage::Writing(end);
                self.names[at..end].iter().map(|name| self.item(name)).collect()
            }
            Stage::Writing(_) if self.entries.is_some() => {
                self.names = Vec::new();
                self.read();
                self.names.sort();
                self.stage = Stage::Writing(0);
                String::new()
            }
            Stage::Writing(_) => {
                self.stage = Stage::Done;
                "</ul>\n".into()
            }
            Stage::Done => String::new(),
        }
    }

    /// Reads entries. An error ends the list, as the end of the folder does.
    fn read(&mut self) {
        let Some(entries) = &mut self.entries else { return };
        for _ in 0..SLICE {
            let Some(Ok(entry)) = entries.next() else {
                self.entries = None;
                return;
            };
            let own = entry.file_name().to_bytes();
            if own == b"." || own == b".." {
                continue;
            }
            let mut name = OsStr::from_bytes(own).to_owned();
            if is_folder(entries, &entry) {
                name.push("/");
            }
            self.names.push(name);
        }
    }

    fn head(&self) -> String {
        let title = escape(&self.base);
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n")
    }

    fn item(&self, name: &OsStr) -> String {
        let (base, link) = (encode_path(self.base.as_bytes()), encode_path(name.as_bytes()));
        format!("<li><a href=\"{base}{link}\">{}</a>\n", escape(name))
    }
}

/// Returns whether an entry is a folder: not every file system reports the type of its entries.
fn is_folder(folder: &Dir, entry: &DirEntry) -> bool {
    let kind = match entry.file_type() {
        FileType::Unknown => {
            let of_entry = folder.fd().and_then(|fd| statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW));
            of_entry.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        known => known,
    };
    kind == FileType::Directory
}

/// Escapes a name for display; octets that are not UTF-8 become the replacement character.
fn escape(text: &OsStr) -> String {
    let mut escaped = String::new();
    for c in text.to_string_lossy().chars() {
        let _ = match c {
            '&' => escaped.write_str("&amp;"),
            '<' => escaped.write_str("&lt;"),
            '>' => escaped.write_str("&gt;"),
            '"' => escaped.write_str("&quot;"),
            c => escaped.write_char(c),
        };
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::super::virtual_time::TestFolder;
    use super::*;
    use std::fs;

    /// Returns the slices of the page of `folder`, as if it were at `path`.
    fn slices(folder: &TestFolder, path: &str) -> Vec<String> {
        let mut listing = Listing::new(Path::new(path), &File::open(&folder.0).unwrap()).unwrap();
        core::iter::from_fn(|| (!listing.is_done()).then(|| listing.slice())).collect()
    }

    #[test]
    fn names_are_in_order_and_links_are_encoded() {
        let folder = TestFolder::new("links");
        fs::write(folder.0.join("<b>.bin"), "").unwrap();
        fs::write(folder.0.join("a b"), "").unwrap();
        fs::write(folder.0.join(OsString::from_vec(b"caf\xe9".to_vec())), "").unwrap();
        fs::create_dir(folder.0.join("d")).unwrap();
        let page = slices(&folder, "sub").concat();
        let links = [
            "<li><a href=\"/sub/%3Cb%3E.bin\">&lt;b&gt;.bin</a>\n",
            "<li><a href=\"/sub/a%20b\">a b</a>\n",
            "<li><a href=\"/sub/caf%E9\">caf\u{fffd}</a>\n",
            "<li><a href=\"/sub/d/\">d/</a>\n",
        ];
        assert!(page.contains(&format!("<ul>\n{}</ul>\n", links.concat())), "{page}");
        assert!(slices(&folder, "").concat().contains("<h1>/</h1>"));
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
        let folder = TestFolder::new("unread");
        fs::write(folder.0.join("file"), "").unwrap();
        assert!(Listing::new(Path::new(""), &File::open(folder.0.join("file")).unwrap()).is_err());
    }

    #[test]
    fn a_large_folder_comes_in_slices_and_nothing_is_missing() {
        let folder = TestFolder::new("large");
        let count = SORTED_MAX + 2 * SLICE + 1;
        (0..count).for_each(|n| drop(File::create(folder.0.join(format!("{n:06}"))).unwrap()));
        let slices = slices(&folder, "");
        assert!(slices.iter().all(|slice| slice.lines().count() <= SLICE), "no slice is longer than what fits a turn");
        let page = slices.concat();
        let mut names: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("<li><a href=\"/")).collect();
        assert!(names[..SORTED_MAX].is_sorted());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
