//! TUN devices: packets between the kernel and this process.
//!
//! With offload a packet in either direction may be a *super-segment*: up to 64 KiB of one TCP flow that the kernel
//! neither cuts nor checksums. A `virtio_net_hdr` in front of it says how it would be cut. The engine takes and gives
//! super-segments as they are, which is where the speed of TUN comes from.

use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::{Bytes, BytesMut};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::ip_command::Family;
use crate::lack::{Lack, Lacks, Right};
use crate::offload::Offload;
use crate::{Error, Result, ip_command};

/// Where devices come from.
const NODE: &str = "/dev/net/tun";
/// Octets of the largest packet, super-segment or not.
pub const PACKET_MAX: usize = 65535;
/// Memory is taken from the allocator in pieces of this size, which the packets read into it share.
pub const POOL_BYTES: usize = 16 * PACKET_MAX;

/// Packets that may wait in the kernel for this process; more are lost. The kernel's 500 are gone within a millisecond of
/// a fast sender; these last for a receive buffer of 16 MB, and hold no memory while none waits.
const QUEUE_PACKETS: u32 = 10_000;

/// How a device is made.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Its name, at most 15 octets.
    pub name: String,
    /// Largest packet that is not a super-segment, octets.
    pub mtu: u16,
    /// Exchange super-segments with the kernel.
    pub offload: bool,
    /// Addresses of the kernel's side with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A TUN device of this process. It vanishes when dropped, and with the process.
pub struct Tun {
    device: SyncDevice,
    name: String,
    offload: bool,
    pool: BytesMut,
}

impl Tun {
    /// Creates a device in the calling thread's network namespace, with its addresses, and sets it up. Reads and
    /// writes do not block.
    ///
    /// # Errors
    /// If the process may not or the machine cannot; if the name is taken; if `ip` refuses an address.
    pub fn open(config: &TunConfig) -> Result<Self> {
        let what = || Error::system(format!("create the TUN device {}", config.name));
        // The builder would make a missing device node, which is not ours to leave on a machine.
        node()?;
        let mut builder = DeviceBuilder::new().name(&config.name).layer(Layer::L3);
        if config.offload {
            builder = builder.offload(true);
        }
        let device = builder.enable(false).build_sync().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => Right::TunDevices.denied(error).into(),
            _ => what()(error),
        })?;
        device.set_nonblocking(true).map_err(what())?;
        ip_command::batch(None, Family::Named, &configuration(config))?;
        Ok(Self { device, name: config.name.clone(), offload: config.offload, pool: BytesMut::new() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether super-segments may be written.
    pub fn offload(&self) -> bool {
        self.offload
    }

    /// The next packet. `None`: nothing waits.
    ///
    /// # Errors
    /// If the device is gone.
    pub fn read(&mut self) -> io::Result<Option<Incoming<'_>>> {
        let header_bytes = if self.offload { Offload::LEN } else { 0 };
        if self.pool.capacity() < PACKET_MAX + header_bytes {
            // Takes the old memory back if no packet of it is left, and new memory otherwise.
            self.pool.reserve(POOL_BYTES);
        }
        let len = match rustix::io::read(self.device.as_fd(), self.pool.spare_capacity_mut()) {
            Ok((filled, _)) => filled.len(),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        // SAFETY: the kernel has just written the first `len` octets of the spare capacity.
        unsafe { self.pool.set_len(len) };
        let mut incoming = Incoming { offload: Offload::default(), header_bytes, pool: &mut self.pool };
        if header_bytes > 0 {
            let header = incoming.pool.first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
            incoming.offload = Offload::decode(header);
        }
        Ok(Some(incoming))
    }

    /// Tells the kernel whether the device leads anywhere, as a plug that is pulled does. It needs no right.
    ///
    /// # Errors
    /// Before Linux 5.0.
    pub fn set_carrier(&self, leads_somewhere: bool) -> io::Result<()> {
        let value = c_int::from(leads_somewhere);
        // SAFETY: the kernel reads one `int` (TUNSETCARRIER in linux/if_tun.h).
        unsafe { ioctl(self.device.as_fd(), Setter::<{ opcode::write::<c_int>(b'T', 226) }, c_int>::new(value)) }?;
        Ok(())
    }

    /// Hands the kernel a packet whose octets stand in `parts`, one after the other. With offload the first part is
    /// an encoded [`Offload`].
    ///
    /// # Errors
    /// If the kernel does not take it: a malformed packet, or the device is down. The packet is lost.
    pub fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(self.device.as_fd(), parts)?;
        Ok(())
    }
}

/// A packet that was read. Unless it is taken, the next one is read into its place.
pub struct Incoming<'a> {
    /// What the kernel left undone in it.
    pub offload: Offload,
    header_bytes: usize,
    pool: &'a mut BytesMut,
}

impl Incoming<'_> {
    /// Its octets, an IP header first.
    pub fn octets(&self) -> &[u8] {
        &self.pool[self.header_bytes..]
    }

    /// Takes it, together with a share in the memory that it lies in.
    pub fn take(self) -> Bytes {
        self.pool.split().freeze().slice(self.header_bytes..)
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        // What has been taken is not there any more.
        self.pool.clear();
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Whether `/dev/net/tun` can be opened; if not, also whether that would be enough.
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

/// Whether the calling thread's network namespace has a device of that name. `/sys` may show another namespace's, or be
/// missing.
pub(crate) fn exists(name: &str) -> bool {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
    socket.is_ok_and(|socket| name_to_index(socket, name).is_ok())
}

/// The `ip` commands that bring a new device up.
fn configuration(config: &TunConfig) -> Vec<String> {
    let name = &config.name;
    // Without link-local addresses the kernel sends nothing of its own into the device. A device that is too narrow for IPv6
    // knows nothing of them any more.
    let mut commands = vec![
        format!("link set {name} txqueuelen {QUEUE_PACKETS} addrgenmode none"),
        format!("link set {name} mtu {}", config.mtu),
    ];
    let address = |(ip, prefix): &(IpAddr, u8)| match ip {
        IpAddr::V4(_) => format!("address add {ip}/{prefix} dev {name}"),
        IpAddr::V6(_) => format!("address add {ip}/{prefix} dev {name} nodad"),
    };
    commands.extend(config.addresses.iter().map(address));
    commands.push(format!("link set {name} up"));
    commands
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
        assert_eq!(configuration(&config), expected);
    }
}
