//! Two namespaces joined by veth, and TUN devices in the first.

use core::cell::Cell;
use core::net::{IpAddr, SocketAddr};

use linux::Result;
use linux::ability::Needs;
use linux::driver::OFFLOAD_PAYLOAD_MAX;
use linux::netns::{Keeper, Namespace};
use linux::tun::{Tun, TunConfig};
use transport::ConnectionConfig;
use transport::congestion::ControllerSpec;

use crate::kernel::Protocol;

const PORT: u16 = 5001;
/// Enough for data that the kernel and a busy core leave unread for milliseconds at these rates.
pub const BUFFER_BYTES: u64 = 8 << 20;

/// The path between an engine and the kernel at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Only the device, which takes and gives super-segments.
    Whole,
    /// A router and a line whose network cards cut every super-segment and merge nothing.
    Line,
    /// A device without offload.
    Plain,
}

/// Checks that this machine can run the benches.
///
/// # Errors
/// What is lacking.
pub fn rehearse() -> Result<()> {
    linux::ability::rehearse(Needs { kernel_mptcp: true, ..Needs::default() })
}

/// The network of all cases. It vanishes when dropped.
pub struct Environment {
    /// The kernel that an engine talks to directly.
    pub near: Namespace,
    /// The other kernel.
    pub far: Namespace,
    mtu: u16,
    engines: Cell<u16>,
    _keeper: Keeper,
}

impl Environment {
    pub fn create(mtu: u16) -> Result<Self> {
        let mut keeper = Keeper::start()?;
        let id = std::process::id();
        let (near, far) = (keeper.create(&format!("bench-near-{id}"))?, keeper.create(&format!("bench-far-{id}"))?);
        near.connect("veth", &far, "veth")?;
        near.ip([format!("link set veth mtu {mtu}"), "address add 10.98.1.1/24 dev veth".into()])?;
        far.ip([format!("link set veth mtu {mtu}"), "address add 10.98.1.2/24 dev veth".into()])?;
        far.ip(["route add 10.98.2.0/24 via 10.98.1.1".into()])?;
        near.set("ipv4/ip_forward", "1")?;
        Ok(Self { near, far, mtu, engines: Cell::new(0), _keeper: keeper })
    }

    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Creates a new device for an engine. The kernel it talks to listens at [`Self::kernel`].
    pub fn engine_device(&self, way: Way) -> Result<Tun> {
        let addresses = vec![(IpAddr::from([10, 98, 2, 1]), 24)];
        let config = TunConfig { name: "engine".into(), mtu: self.mtu, offload: way != Way::Plain, addresses };
        let tun = self.near.run(|| Tun::open(&config))??;
        if way == Way::Line {
            self.near.ip(["link set engine gso_max_segs 1".into()])?;
        }
        let segments = if way == Way::Line { 1 } else { 65535 };
        self.near.ip([format!("link set veth gso_max_segs {segments}")])?;
        Ok(tun)
    }

    /// Returns the kernel that an engine talks to, and where it listens.
    pub fn kernel(&self, way: Way) -> (&Namespace, SocketAddr) {
        match way {
            Way::Line => (&self.far, self.veth_address()),
            Way::Whole | Way::Plain => (&self.near, SocketAddr::from(([10, 98, 2, 1], PORT))),
        }
    }

    /// Returns the next engine's address, never one twice: the kernel may still have a connection whose engine is gone.
    pub fn engine_address(&self) -> SocketAddr {
        self.engines.set(self.engines.get() + 1);
        SocketAddr::from(([10, 98, 2, 2], PORT + self.engines.get()))
    }

    pub fn engine_config(&self, protocol: Protocol, way: Way) -> ConnectionConfig {
        let controller = if protocol == Protocol::Mptcp { "lia" } else { "cubic" };
        ConnectionConfig {
            mptcp: protocol == Protocol::Mptcp,
            congestion: ControllerSpec::named(controller),
            send_buffer_bytes: BUFFER_BYTES,
            receive_buffer_bytes: BUFFER_BYTES,
            mtu: self.mtu,
            offload_max_bytes: if way == Way::Plain { 0 } else { OFFLOAD_PAYLOAD_MAX },
            ..ConnectionConfig::default()
        }
    }

    /// Returns where the other kernel listens.
    pub fn veth_address(&self) -> SocketAddr {
        SocketAddr::from(([10, 98, 1, 2], PORT))
    }
}
