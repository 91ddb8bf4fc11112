//! The kernel's sockets, opened in a namespace and usable from any thread.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use linux::netns::Namespace;
use socket2::{Domain, Socket, Type};

/// Maximum time that a kernel socket waits, so that a hanging test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
}

/// The kernel's view of an MPTCP connection: the head of `struct mptcp_info` (include/uapi/linux/mptcp.h).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpInfo {
    /// Subflows besides the first.
    pub subflows: u8,
    /// Number of announced addresses.
    pub add_addr_signal: u8,
    /// Number of addresses that the peer announced.
    pub add_addr_accepted: u8,
    /// Maximum of `subflows`.
    pub subflows_max: u8,
    /// Maximum of `add_addr_signal`.
    pub add_addr_signal_max: u8,
    /// Maximum of `add_addr_accepted`.
    pub add_addr_accepted_max: u8,
    reserved: [u8; 2],
    /// Bit 0: fallback; bit 1: the remote key was received.
    pub flags: u32,
    /// This side's token.
    pub token: u32,
    /// Next data sequence number to send.
    pub write_seq: u64,
    /// Next data sequence number to be acknowledged by the peer.
    pub snd_una: u64,
    /// Next data sequence number to receive.
    pub rcv_nxt: u64,
    /// Number of local addresses in use.
    pub local_addr_used: u8,
    /// Maximum of `local_addr_used`.
    pub local_addr_max: u8,
    /// Whether DSS checksums are in use.
    pub csum_enabled: u8,
    padding: u8,
    /// Octets retransmitted at the data level.
    pub retransmits: u32,
}

impl MptcpInfo {
    /// Returns whether the connection fell back to TCP.
    pub fn fell_back(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// Opens a listening socket in `namespace`; one at `[::]` accepts IPv4 too.
///
/// # Errors
/// The errors of the system calls.
pub fn listen(namespace: &Namespace, protocol: Protocol, address: SocketAddr) -> io::Result<Socket> {
    listen_as(namespace, protocol, address, false)
}

/// Does the same as [`listen`], only for connections of the address's family.
///
/// # Errors
/// The errors of the system calls.
pub fn listen_only(namespace: &Namespace, protocol: Protocol, address: SocketAddr) -> io::Result<Socket> {
    listen_as(namespace, protocol, address, address.is_ipv6())
}

fn listen_as(namespace: &Namespace, protocol: Protocol, address: SocketAddr, only_v6: bool) -> io::Result<Socket> {
    inside(namespace, || {
        let socket = open(protocol, address)?;
        if only_v6 {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(16)?;
        Ok(socket)
    })
}

/// Accepts the next connection of a listening socket.
///
/// # Errors
/// If none comes for a minute.
pub fn accept(listener: &Socket) -> io::Result<TcpStream> {
    listener.set_read_timeout(Some(PATIENCE))?;
    let (socket, _) = listener.accept()?;
    patient(socket)
}

/// Opens a connection from `namespace`, from the address `local` if given.
///
/// # Errors
/// The errors of the system calls.
pub fn connect(
    namespace: &Namespace,
    protocol: Protocol,
    local: Option<SocketAddr>,
    remote: SocketAddr,
) -> io::Result<TcpStream> {
    inside(namespace, || {
        let socket = open(protocol, remote)?;
        if let Some(local) = local {
            socket.bind(&local.into())?;
        }
        socket.connect(&remote.into())?;
        patient(socket)
    })
}

/// Does the same as [`connect`], with the congestion controller of this name.
///
/// # Errors
/// The errors of the system calls; one means that the kernel has no such controller.
pub fn connect_with(
    namespace: &Namespace,
    protocol: Protocol,
    controller: &str,
    remote: SocketAddr,
) -> io::Result<TcpStream> {
    inside(namespace, || {
        let socket = open(protocol, remote)?;
        // An unbound MPTCP socket accepts every name, and reports no error if no controller has it.
        socket.bind(&any(remote).into())?;
        socket.set_tcp_congestion(controller.as_bytes())?;
        socket.connect(&remote.into())?;
        patient(socket)
    })
}

/// Returns any port of any address of the family.
fn any(remote: SocketAddr) -> SocketAddr {
    let address: IpAddr = if remote.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(address, 0)
}

/// Returns the kernel's information about an MPTCP connection.
///
/// # Errors
/// If the socket uses plain TCP.
pub fn mptcp_info(stream: &TcpStream) -> io::Result<MptcpInfo> {
    const SOL_MPTCP: libc::c_int = 284;
    const MPTCP_INFO: libc::c_int = 1;
    let mut info = MptcpInfo::default();
    let mut len = size_of::<MptcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets of plain integers to `info`, which is at least that large.
    let status =
        unsafe { libc::getsockopt(stream.as_raw_fd(), SOL_MPTCP, MPTCP_INFO, (&raw mut info).cast(), &raw mut len) };
    if status == 0 { Ok(info) } else { Err(io::Error::last_os_error()) }
}

/// Returns the smoothed round-trip time of a plain TCP connection.
///
/// # Errors
/// The error of the system call.
pub fn srtt(stream: &TcpStream) -> io::Result<Duration> {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets of plain integers to `info`, which has that size.
    let status = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut len)
    };
    if status == 0 { Ok(Duration::from_micros(info.tcpi_rtt.into())) } else { Err(io::Error::last_os_error()) }
}

/// Closes a connection at once: MP_FASTCLOSE, or RST for plain TCP.
///
/// # Errors
/// The error of the system call.
pub fn abort(stream: TcpStream) -> io::Result<()> {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
}

/// Returns a counter of the kernel's MPTCP in a namespace, by its name in `/proc/net/netstat` (`MPJoinSynRx`).
///
/// # Panics
/// If there is no such counter.
pub fn counter(namespace: &Namespace, name: &str) -> u64 {
    find_counter(namespace, name).unwrap_or_else(|| panic!("no counter {name}"))
}

/// Returns the same, or `None` if this kernel has no such counter.
///
/// # Panics
/// If the namespace is gone.
pub fn find_counter(namespace: &Namespace, name: &str) -> Option<u64> {
    // Not /proc/net, which belongs to the namespace of the process's first thread.
    let text = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat"));
    let text = text.expect("the namespace is there").expect("proc is mounted");
    let mut rows = text.lines().filter(|line| line.starts_with("MPTcpExt:")).map(str::split_whitespace);
    let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
    names.zip(values).find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok())
}

fn open(protocol: Protocol, address: SocketAddr) -> io::Result<Socket> {
    let protocol = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
}

fn patient(socket: Socket) -> io::Result<TcpStream> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket.into())
}

fn inside<T: Send>(namespace: &Namespace, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    namespace.run(work).map_err(io::Error::other)?
}
