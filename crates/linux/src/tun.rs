//! TUN devices: packets between the kernel and this process.
//!
//! With offload a packet in either direction may be a *super-segment*: up to 64 KiB of one TCP flow that the kernel
//! neither cuts nor checksums. A `virtio_net_hdr` before it says how it would be cut. The engine takes and gives
//! super-segments as they are; the speed of TUN comes from that.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::{Bytes, BytesMut};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Setter, ioctl, opcode};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use tun_rs::{DeviceBuilder, Layer};

use crate::ip_command::Family;
use crate::lack::{Lack, Lacks, Right};
use crate::memory::Memory;
use crate::netns::kernel_has_ipv6;
use crate::offload::Offload;
use crate::uplink::Network;
use crate::{Error, Result, ip_command};

/// Device node of TUN.
const NODE: &str = "/dev/net/tun";
/// Octets of the largest packet, whether a super-segment or not.
pub const PACKET_MAX: usize = 65535;
/// Size of the pieces in which memory is allocated; the packets read into a piece share it.
pub const POOL_BYTES: usize = 16 * PACKET_MAX;

/// Packets that may wait in the kernel for this process; further ones are lost. A fast sender fills the kernel's
/// default of 500 within a millisecond; this number is enough for a receive buffer of 16 MB, and costs no memory while
/// none waits.
const QUEUE_PACKETS: u32 = 10_000;

/// The kernel's metric of routes to the networks of its IPv6 addresses.
const METRIC_OF_NETWORKS_V6: u32 = 256;

/// Settings of a new device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Name of the device, at most 15 octets.
    pub name: String,
    /// Largest packet that is not a super-segment, octets.
    pub mtu: u16,
    /// Exchange super-segments with the kernel.
    pub offload: bool,
    /// Addresses of the kernel's side, with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A TUN device of this process. It vanishes when dropped, and when the process ends.
pub struct Tun {
    device: OwnedFd,
    name: String,
    offload: bool,
    memory: Memory,
    pool: BytesMut,
}

/// Maximum octets of headers in [`Tun::read_behind`]: the longest of IPv4 and TCP, and more than IPv6 has without
/// extensions.
pub(crate) const HEADERS_MAX: usize = 120;

impl Tun {
    /// Creates a device in the calling thread's network namespace, with its addresses, and sets it up. Reads and writes
    /// do not block.
    ///
    /// # Errors
    /// If the process may not or the machine cannot; if the name is taken; if `ip` refuses an address.
    pub fn open(config: &TunConfig) -> Result<Self> {
        let tun = Self::take(config)?;
        ip_command::batch(None, Family::Named, &configuration(config, kernel_has_ipv6()))?;
        Ok(tun)
    }

    /// Creates a device as [`Self::open`] does, or takes a free one that was made for this user, which needs no
    /// privilege. The device is not yet set up.
    ///
    /// # Errors
    /// If the process may not or the machine cannot; if the name is taken.
    pub(crate) fn take(config: &TunConfig) -> Result<Self> {
        let what = || Error::system(format!("create the TUN device {}", config.name));
        // Otherwise the builder would make a missing device node, which we must not leave on a machine.
        node()?;
        let mut builder = DeviceBuilder::new().name(&config.name).layer(Layer::L3);
        if config.offload {
            builder = builder.offload(true);
        }
        // A new device is already down; setting it down again would need a privilege.
        let device = builder.inherit_enable_state().build_sync().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Right::TunDevices.denied(error).into(),
            _ => what()(error),
        })?;
        device.set_nonblocking(true).map_err(what())?;
        let device = device.as_fd().try_clone_to_owned().map_err(what())?;
        Ok(Self::over(device, config.name.clone(), config.offload))
    }

    /// Wraps a device that is already open; any descriptor that gives and takes packets will do.
    pub(crate) fn over(device: OwnedFd, name: String, offload: bool) -> Self {
        Self { device, name, offload, memory: Memory::default(), pool: BytesMut::new() }
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether super-segments may be written.
    pub fn offload(&self) -> bool {
        self.offload
    }

    /// Returns the next packet, or `None` if none waits.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn read(&mut self) -> io::Result<Option<Incoming<'_>>> {
        let header_bytes = self.header_bytes();
        if self.pool.capacity() < PACKET_MAX + header_bytes {
            self.renew_pool();
        }
        if !self.read_to(None)? {
            return Ok(None);
        }
        let offload = self.offload_of(&self.pool)?;
        Ok(Some(Incoming { offload, header_bytes, pool: &mut self.pool }))
    }

    /// Continues to read at the start of the memory if nothing holds a packet of it any more: it is then still in the
    /// cache.
    pub(crate) fn rewind(&mut self) {
        if !self.pool.try_reclaim(POOL_BYTES) {
            self.renew_pool();
        }
    }

    fn renew_pool(&mut self) {
        self.memory.put(core::mem::take(&mut self.pool));
        self.pool = self.memory.take(PACKET_MAX + self.header_bytes());
    }

    /// Reads the next packet to a place where its payload continues `memory`, if the packet has `headers` octets of
    /// headers. `memory` must have at least that many octets, and room for a packet. The packet stays there if `joins`
    /// returns true, which sees it with the work that the kernel left undone in it; otherwise it is moved away, and
    /// `memory` is as before.
    ///
    /// The headers overwrite the last octets of `memory`, which are restored afterwards.
    ///
    /// # Errors
    /// If the device is gone.
    pub(crate) fn read_behind(
        &mut self,
        memory: &mut BytesMut,
        headers: usize,
        joins: impl FnOnce(Offload, &[u8]) -> bool,
    ) -> io::Result<Option<Placed<'_>>> {
        let covered = self.header_bytes() + headers;
        let start = memory.len() - covered;
        let mut kept = [0; Offload::LEN + HEADERS_MAX];
        kept[..covered].copy_from_slice(&memory[start..]);
        memory.truncate(start);
        let read = self.read_to(Some(memory));
        let joined = matches!(read, Ok(true)) && {
            let packet = &memory[start..];
            self.offload_of(packet).is_ok_and(|offload| joins(offload, &packet[self.header_bytes()..]))
        };
        if joined {
            memory[start..][..covered].copy_from_slice(&kept[..covered]);
            return Ok(Some(Placed::Behind));
        }
        if self.pool.capacity() < PACKET_MAX + Offload::LEN {
            self.renew_pool();
        }
        self.pool.extend_from_slice(&memory[start..]);
        memory.truncate(start);
        memory.extend_from_slice(&kept[..covered]);
        if !read? {
            return Ok(None);
        }
        let (offload, header_bytes) = (self.offload_of(&self.pool)?, self.header_bytes());
        Ok(Some(Placed::Apart(Incoming { offload, header_bytes, pool: &mut self.pool })))
    }

    /// Returns the octets of the header before each packet.
    fn header_bytes(&self) -> usize {
        if self.offload { Offload::LEN } else { 0 }
    }

    /// Appends a packet, with the header before it, to `memory` or to the pool; false if none waits.
    fn read_to(&mut self, memory: Option<&mut BytesMut>) -> io::Result<bool> {
        let memory = memory.unwrap_or(&mut self.pool);
        let len = match rustix::io::read(self.device.as_fd(), memory.spare_capacity_mut()) {
            Ok((filled, _)) => filled.len(),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        // SAFETY: the kernel has just written the first `len` octets of the spare capacity.
        unsafe { memory.set_len(memory.len() + len) };
        Ok(true)
    }

    /// Decodes the kernel's header before a packet.
    fn offload_of(&self, read: &[u8]) -> io::Result<Offload> {
        if !self.offload {
            return Ok(Offload::default());
        }
        let header = read.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Offload::decode(header))
    }

    /// Tells the kernel whether the device has a carrier, like a plugged cable. It needs no privilege.
    ///
    /// # Errors
    /// Before Linux 5.0.
    pub fn set_carrier(&self, leads_somewhere: bool) -> io::Result<()> {
        let value = c_int::from(leads_somewhere);
        // SAFETY: the kernel reads one `int` (TUNSETCARRIER in linux/if_tun.h).
        unsafe { ioctl(self.device.as_fd(), Setter::<{ opcode::write::<c_int>(b'T', 226) }, c_int>::new(value)) }?;
        Ok(())
    }

    /// Makes a persistent device vanish with this process from now on. It needs no privilege.
    ///
    /// # Errors
    /// If the device is gone.
    pub(crate) fn vanish_when_dropped(&self) -> io::Result<()> {
        // SAFETY: the kernel takes the value itself, not a pointer (TUNSETPERSIST in linux/if_tun.h).
        unsafe { ioctl(self.device.as_fd(), IntegerSetter::<{ opcode::write::<c_int>(b'T', 203) }>::new_usize(0)) }?;
        Ok(())
    }

    /// Writes a packet whose octets are in `parts`, one after the other. With offload the first part is an encoded
    /// [`Offload`].
    ///
    /// # Errors
    /// If the kernel refuses it: see [`is_taken`], or the device is down. The packet is lost.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(self.device.as_fd(), parts)?;
        Ok(())
    }
}

/// Returns whether an error of [`Tun::write`] concerns no other packet: this one is malformed, or the kernel has no
/// memory for it at the moment. As with the full queue of a network card, the packet is lost, and its sender
/// retransmits it if it matters.
pub(crate) fn refuses_only_this(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INVAL))
}

/// Returns whether the kernel has taken a packet that was written to a device. If it refuses only this one, the packet
/// is lost.
///
/// # Errors
/// If the device can no longer be used: it is down, or it is gone.
pub fn is_taken(written: io::Result<()>) -> Result<bool> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if refuses_only_this(&error) => Ok(false),
        Err(error) => Err(Error::device("write to", error)),
    }
}

/// The place of a packet after [`Tun::read_behind`].
pub(crate) enum Placed<'a> {
    /// Behind the earlier octets.
    Behind,
    /// As [`Tun::read`] would have returned it.
    Apart(Incoming<'a>),
}

/// A packet that was read. Unless it is taken, the next one overwrites it.
pub struct Incoming<'a> {
    /// What the kernel left undone in the packet.
    pub offload: Offload,
    header_bytes: usize,
    pool: &'a mut BytesMut,
}

impl Incoming<'_> {
    /// Returns the packet's octets, which begin with an IP header.
    pub fn octets(&self) -> &[u8] {
        &self.pool[self.header_bytes..]
    }

    /// Takes the packet, together with a share of the memory that holds it.
    pub fn take(self) -> Bytes {
        self.pool.split().freeze().slice(self.header_bytes..)
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        // A taken packet is no longer there.
        self.pool.clear();
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Checks that `/dev/net/tun` can be opened; if not, also whether that alone would be enough.
pub(crate) fn node() -> Result<(), Lacks> {
    let Err(errno) = rustix::fs::open(NODE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) else { return Ok(()) };
    let node = match errno {
        Errno::NOENT => Lack::TunNode,
        Errno::ACCESS if !rustix::process::geteuid().is_root() => Lack::Root,
        errno => Lack::TunClosed(io::Error::from(errno).to_string()),
    };
    let right = (!Right::TunDevices.is_held()).then(|| Right::TunDevices.lack());
    Err(right.into_iter().chain([node]).collect())
}

/// Returns whether the calling thread's network namespace has a device of that name. `/sys` may show another
/// namespace's devices, or be missing.
pub(crate) fn exists(name: &str) -> bool {
    index(name).is_some()
}

/// Returns the index of the device of that name in the calling thread's network namespace.
pub(crate) fn index(name: &str) -> Option<u32> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    name_to_index(socket, name).ok()
}

/// Returns the `ip` commands that bring a new device up, for a kernel with or without IPv6.
pub(crate) fn configuration(config: &TunConfig, has_ipv6: bool) -> Vec<String> {
    let name = &config.name;
    // Without link-local addresses the kernel sends nothing of its own into the device. A device that is too narrow for
    // IPv6 no longer has this setting, so it comes before the MTU. A kernel without IPv6 refuses it.
    let addresses_of_its_own = if has_ipv6 { " addrgenmode none" } else { "" };
    let mut commands = vec![
        format!("link set {name} txqueuelen {QUEUE_PACKETS}{addresses_of_its_own}"),
        format!("link set {name} mtu {}", config.mtu),
    ];
    commands.extend(config.addresses.iter().map(|address| address_add(name, address)));
    commands.push(format!("link set {name} up"));
    commands
}

fn address_add(name: &str, (ip, prefix_len): &(IpAddr, u8)) -> String {
    match ip {
        IpAddr::V4(_) => format!("address add {ip}/{prefix_len} dev {name}"),
        IpAddr::V6(_) => format!("address add {ip}/{prefix_len} dev {name} nodad"),
    }
}

/// Returns the `ip` commands that give a device that is up these addresses of the kernel's side, each followed by the
/// one for the route to its network, which the kernel makes with a new address.
pub(crate) fn addressing(name: &str, addresses: &[(IpAddr, u8)]) -> Vec<String> {
    let both = |address: &(IpAddr, u8)| {
        let network = Network { address: address.0, prefix_len: address.1 };
        let route = match address.0 {
            IpAddr::V4(ip) => format!("route add {network} dev {name} proto kernel scope link src {ip}"),
            IpAddr::V6(_) => format!("-6 route add {network} dev {name} proto kernel metric {METRIC_OF_NETWORKS_V6}"),
        };
        [address_add(name, address), route]
    };
    addresses.iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_name() {
        assert!(exists("lo") && !exists("no-such-device"));
    }

    #[test]
    fn a_device_is_brought_up_last() {
        let config = TunConfig {
            name: "path0".into(),
            mtu: 1400,
            offload: false,
            addresses: vec![("10.0.0.1".parse().unwrap(), 24), ("fd00::1".parse().unwrap(), 64)],
        };
        let expected = [
            "link set path0 txqueuelen 10000 addrgenmode none",
            "link set path0 mtu 1400",
            "address add 10.0.0.1/24 dev path0",
            "address add fd00::1/64 dev path0 nodad",
            "link set path0 up",
        ];
        assert_eq!(configuration(&config, true), expected);
    }

    #[test]
    fn a_kernel_without_ipv6_is_asked_nothing_about_it() {
        let addresses = vec![("10.0.0.1".parse().unwrap(), 24)];
        let config = TunConfig { name: "path0".into(), mtu: 1400, offload: false, addresses };
        let commands = configuration(&config, false);
        assert_eq!(commands[0], "link set path0 txqueuelen 10000");
        assert!(commands.iter().all(|command| !command.contains("addrgenmode") && !command.contains(':')));
    }
}
