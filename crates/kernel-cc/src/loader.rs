//! Loads controllers, with libbpf.
//!
//! A controller's link keeps it loaded: either pinned by [`load`], or open in the process that has called [`hold`], so
//! that it vanishes with that process in any case. The maps that hold its connections are always pinned. A socket that
//! uses a controller keeps the programs and maps, pinned or not, until it closes.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::file_system::{file_system, is_mounted};
use crate::{Connection, Controller, Counters, Error, PathId, Result, layers, layout, namespaces, sysctl};

// `OBJECTS`: the objects compiled by `build.rs`, by the names of their files.
include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The clang that has compiled the programs, for tests that compile one of their own.
pub const COMPILER: &str = env!("BPF_COMPILER");

/// Messages of libbpf while it loads; its functions return only a number.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Attempts to take the turn: half a minute of them, while a load takes a second or two.
const LOOKS_MAX: u32 = 3000;

/// Excludes other processes, and other threads of this one: a process that finds a controller half loaded, or a name
/// taken, would remove what another has pinned, and all threads share the messages. The turn ends with the value, and
/// with the process.
fn turn() -> Result<OwnedFd> {
    let failed = |error: Errno| Error::FileSystem(error.into());
    let folder = open(file_system(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(failed)?;
    for _ in 0..LOOKS_MAX {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) => pause(),
            Err(error) => return Err(failed(error)),
        }
    }
    Err(Error::Busy)
}

fn link(controller: &Controller) -> PathBuf {
    controller.folder().join("link")
}

/// Checks whether this build and this machine can load a controller. Mounts the BPF file system if it is missing.
///
/// # Errors
/// If not: what is lacking.
pub fn check() -> Result<()> {
    check_rights()?;
    // If the kernel's types cannot be read, libbpf says so when it loads a controller.
    if Btf::from_vmlinux().is_ok_and(|types| !has_links(&types)) {
        return Err(Error::Links);
    }
    mount_file_system().map_err(Error::FileSystem)
}

/// Returns whether a kernel with these types has links that keep a controller loaded: it has a type of its own for them.
fn has_links(types: &Btf<'_>) -> bool {
    types.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some()
}

fn check_rights() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Root);
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Error::Btf);
    }
    Ok(())
}

/// For root alone, as systemd mounts it: whoever can open the folder can hold its lock.
const MOUNT_OPTIONS: &CStr = c"mode=0700";

/// Mounts the file system, as bpftool does: systems with systemd have it mounted, containers often not.
fn mount_file_system() -> io::Result<()> {
    let folder = file_system();
    if is_mounted(&folder) {
        return Ok(());
    }
    Ok(mount("bpf", &folder, "bpf", MountFlags::empty(), MOUNT_OPTIONS)?)
}

/// Returns whether a controller is loaded, permanently or for a process.
pub fn is_loaded(controller: &Controller) -> bool {
    stays(controller) || (controller.folder().exists() && is_registered(controller))
}

/// Returns whether it stays loaded until it is unloaded.
fn stays(controller: &Controller) -> bool {
    link(controller).exists()
}

/// Returns whether the kernel has a controller of that name.
fn is_registered(controller: &Controller) -> bool {
    sysctl::available().is_ok_and(|names| names.iter().any(|name| name == controller.kernel_name))
}

/// Loads a controller into the kernel, with room for `connections_max` connections, including plain ones.
///
/// # Errors
/// If it is already loaded, or the kernel or this machine lacks something, which the error names.
pub fn load(controller: &Controller, connections_max: u32) -> Result<()> {
    check()?;
    let _turn = turn()?;
    register(controller, connections_max, |mut registered| registered.pin(link(controller)))
}

/// Like [`load`], until the returned value is dropped, or the process ends in any way.
///
/// # Errors
/// As [`load`].
pub fn hold(controller: &Controller, connections_max: u32) -> Result<Hold> {
    check()?;
    let _turn = turn()?;
    let link = register(controller, connections_max, Ok)?;
    Ok(Hold { controller: *controller, link: Some(link) })
}

/// A controller that the kernel keeps while this value exists.
#[derive(Debug)]
pub struct Hold {
    controller: Controller,
    link: Option<Link>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // If the turn does not come within half a minute, the controller is unloaded without it.
        let _turn = turn();
        let Some(mut held) = self.link.take() else { return };
        // If new connections would continue to use it, and nobody would know of them, it stays: `unload` would refuse
        // as well.
        let is_in_use = check_defaults(&self.controller).is_err();
        if is_in_use && held.pin(link(&self.controller)).is_ok() {
            return;
        }
        let _ = fs::remove_dir_all(self.controller.folder());
        drop(held);
        wait_until_gone(&self.controller);
    }
}

/// Registers a controller with the kernel, and passes its link to `keep`.
fn register<T>(
    controller: &Controller,
    connections_max: u32,
    keep: impl FnOnce(Link) -> libbpf_rs::Result<T>,
) -> Result<T> {
    if is_loaded(controller) {
        return Err(Error::Loaded { name: controller.name });
    }
    if is_registered(controller) {
        return Err(Error::Taken { name: controller.kernel_name });
    }
    listen();
    let kept = attach(controller, connections_max).and_then(keep);
    if kept.is_err() {
        // Its pinned maps are useless now.
        let _ = fs::remove_dir_all(controller.folder());
    }
    kept.map_err(|error| Error::Refused { name: controller.name, why: explain(&error) })
}

fn attach(controller: &Controller, connections_max: u32) -> libbpf_rs::Result<Link> {
    let mut object = opened(controller, connections_max)?.load()?;
    let folder = controller.folder();
    // Left by a process that held it and was killed, or by a version that pinned other maps: otherwise it would be
    // loaded.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(libbpf_rs::Error::from)?;
    for name in ["connections", "counters", "told", "adapting", "adapted"] {
        map(&mut object, name)?.pin(folder.join(name))?;
    }
    map(&mut object, controller.map)?.attach_struct_ops()
}

fn map<'a>(object: &'a mut Object, name: &str) -> libbpf_rs::Result<libbpf_rs::MapMut<'a>> {
    let found = object.maps_mut().find(|map| map.name() == OsStr::new(name));
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no map {name}")).into())
}

/// Opens the object with only one of its controllers: the programs of the others are neither loaded nor verified.
fn opened(controller: &Controller, connections_max: u32) -> libbpf_rs::Result<OpenObject> {
    let object = OBJECTS.iter().find(|(file, _)| *file == controller.file);
    let (_, object) = object.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, controller.file))?;
    let mut open = ObjectBuilder::default().open_memory(object)?;
    for mut map in open.maps_mut() {
        if map.map_type() == MapType::StructOps {
            map.set_autocreate(map.name() == OsStr::new(controller.map))?;
        } else if let Some(room) = room(map.name(), connections_max.max(1)) {
            map.set_max_entries(room)?;
        }
    }
    Ok(open)
}

/// Returns how many entries a map needs for `connections_max` connections; `None` for maps of a fixed size. Reports are
/// kept for each path: usually a connection has no more than a few.
fn room(map: &OsStr, connections_max: u32) -> Option<u32> {
    const REPORTS: u32 = 4;
    match map.to_str()? {
        "connections" | "adapted" => Some(connections_max),
        "told" => Some(connections_max.saturating_mul(REPORTS)),
        _ => None,
    }
}

fn listen() {
    said().clear();
    let note = |_, text: String| said().push(text);
    libbpf_rs::set_print(Some((PrintLevel::Warn, note)));
}

fn said() -> std::sync::MutexGuard<'static, Vec<String>> {
    SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The first message names what is lacking; those that follow only pass it on.
fn explain(error: &libbpf_rs::Error) -> String {
    let first = said().first().and_then(|text| text.lines().next()).map(|line| line.replace("libbpf: ", ""));
    match first {
        Some(first) if !first.trim().is_empty() => format!("{} ({error})", first.trim()),
        _ => error.to_string(),
    }
}

/// Unloads a controller. Connections that use it continue to do so until they end.
///
/// # Errors
/// If it is not loaded, if a process holds it, or if new connections of this network namespace, or of another one that
/// can be found, would use it by default.
pub fn unload(controller: &Controller) -> Result<()> {
    check()?;
    let _turn = turn()?;
    if !is_loaded(controller) {
        return Err(Error::NotLoaded { name: controller.name });
    }
    if !stays(controller) {
        return Err(Error::Held { name: controller.name });
    }
    check_defaults(controller)?;
    fs::remove_file(link(controller)).map_err(Error::FileSystem)?;
    fs::remove_dir_all(controller.folder()).map_err(Error::FileSystem)?;
    wait_until_gone(controller);
    Ok(())
}

/// # Errors
/// If new connections would use it by default, here or in another network namespace that can be found.
fn check_defaults(controller: &Controller) -> Result<()> {
    if sysctl::default()? == controller.kernel_name {
        return Err(Error::IsDefault { name: controller.kernel_name });
    }
    let elsewhere = namespaces::that_use(controller.kernel_name);
    if !elsewhere.is_empty() {
        return Err(Error::IsDefaultElsewhere { name: controller.kernel_name, namespaces: elsewhere });
    }
    Ok(())
}

/// The kernel unloads it a moment after the request, on a busy machine after seconds.
fn wait_until_gone(controller: &Controller) {
    for _ in 0..LOOKS_MAX {
        if !is_registered(controller) {
            return;
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "it waits for the kernel and for other processes, in real time")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Opens a map of a loaded controller. Changes nothing: without the BPF file system, none is loaded.
pub(crate) fn pinned(controller: &Controller, map: &str) -> Result<MapHandle> {
    check_rights()?;
    if !is_loaded(controller) {
        return Err(Error::NotLoaded { name: controller.name });
    }
    let path = controller.folder().join(map);
    let version = || Error::Version { name: controller.name, folder: controller.folder().display().to_string() };
    MapHandle::from_pinned_path(path).map_err(|_| version())
}

/// Returns the keys of a hash map that may change meanwhile, each once.
pub(crate) fn keys(map: &MapHandle) -> BTreeSet<Vec<u8>> {
    each_once(map.keys(), map.max_entries())
}

/// When a key is removed while the walk stands on it, the kernel starts again from the first, possibly without end.
fn each_once(walk: impl Iterator<Item = Vec<u8>>, entries_max: u32) -> BTreeSet<Vec<u8>> {
    const ROUNDS_MAX: usize = 4;
    walk.take(ROUNDS_MAX.saturating_mul(entries_max as usize)).collect()
}

/// Returns its connections.
///
/// # Errors
/// If it is not loaded, or was loaded by another version.
pub fn connections(controller: &Controller) -> Result<Vec<Connection>> {
    let map = pinned(controller, "connections")?;
    if map.value_size() as usize != layout::CONNECTION_OCTETS {
        let folder = controller.folder().display().to_string();
        return Err(Error::Version { name: controller.name, folder });
    }
    let (told, adapted) = (pinned(controller, "told")?, pinned(controller, "adapted")?);
    let values = keys(&map).into_iter().filter_map(|key| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        let adapted = adapted.lookup(&key, MapFlags::ANY).ok().flatten().unwrap_or_default();
        let mut connection = Connection::parse(controller, layout::word(&key, 0), &value, &adapted);
        if let Some(token) = connection.token {
            for subflow in &mut connection.subflows {
                subflow.told = layers::told_of(&told, PathId { token, address_id: subflow.address_id });
            }
        }
        Some(connection)
    });
    Ok(values.collect())
}

/// Returns the counts of subflows so far.
///
/// # Errors
/// If it is not loaded.
pub fn counters(controller: &Controller) -> Result<Counters> {
    let map = pinned(controller, "counters")?;
    let count = |which: u32| {
        let value = map.lookup(&which.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        value.map_or(0, |value| layout::word(&value, 0))
    };
    Ok(Counters { added: count(0), removed: count(1), without_place: count(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_maps_of_connections_grow_with_their_number() {
        let rooms = ["connections", "adapted", "told", "counters", "adapting"].map(|map| room(OsStr::new(map), 1000));
        assert_eq!(rooms, [Some(1000), Some(1000), Some(4000), None, None]);
    }

    /// The types of an object are fewer than a kernel's. This kernel has links, as all since 6.4.
    #[test]
    fn a_kernel_without_links_is_told_from_one_with_them() {
        let (file, object) = OBJECTS[0];
        let types = Btf::from_raw(file, object).unwrap().expect("the object has types");
        assert!(!has_links(&types));
        if let Ok(types) = Btf::from_vmlinux() {
            assert!(has_links(&types));
        }
    }

    #[test]
    fn a_walk_that_starts_again_lists_each_key_once_and_ends() {
        let key = |number: u8| vec![number; 8];
        let walk = [1, 2, 3, 1, 2, 3, 4].map(key).into_iter();
        assert_eq!(each_once(walk, 4).into_iter().collect::<Vec<_>>(), [1, 2, 3, 4].map(key));
        let steps = std::cell::Cell::new(0);
        let endless = core::iter::repeat_with(|| {
            steps.set(steps.get() + 1);
            assert!(steps.get() <= 100, "there is no end");
            key(1)
        });
        assert_eq!(each_once(endless, 4).len(), 1);
    }
}
