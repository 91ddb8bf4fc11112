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
/// Holds what the kernel and a busy core leave unread for milliseconds at these rates.
const BUFFER_BYTES: u64 = 8 << 20;

/// Whether this machine can run it.
///
/// # Errors
/// What is lacking.
pub fn rehearse() -> Result<()> {
    linux::ability::rehearse(Needs { kernel_mptcp: true, ..Needs::default() })
}

/// The network of all cases. It vanishes when dropped.
pub struct Environment {
    /// The kernel whose peer is the engine.
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
        Ok(Self { near, far, mtu, engines: Cell::new(0), _keeper: keeper })
    }

    /// A fresh device for an engine, and where the kernel listens on it.
    pub fn engine_device(&self) -> Result<(Tun, SocketAddr)> {
        let addresses = vec![(IpAddr::from([10, 98, 2, 1]), 24)];
        let config = TunConfig { name: "engine".into(), mtu: self.mtu, offload: true, addresses };
        let tun = self.near.run(|| Tun::open(&config))??;
        Ok((tun, SocketAddr::from(([10, 98, 2, 1], PORT))))
    }

    /// Where the next engine connects from: never twice, because the kernel may still remember a connection whose
    /// engine is gone.
    pub fn engine_address(&self) -> SocketAddr {
        self.engines.set(self.engines.get() + 1);
        SocketAddr::from(([10, 98, 2, 2], PORT + self.engines.get()))
    }

    pub fn engine_config(&self, protocol: Protocol) -> ConnectionConfig {
        let controller = if protocol == Protocol::Mptcp { "lia" } else { "cubic" };
        ConnectionConfig {
            mptcp: protocol == Protocol::Mptcp,
            congestion: ControllerSpec::named(controller),
            send_buffer_bytes: BUFFER_BYTES,
            receive_buffer_bytes: BUFFER_BYTES,
            mtu: self.mtu,
            offload_max_bytes: OFFLOAD_PAYLOAD_MAX,
            ..ConnectionConfig::default()
        }
    }

    /// Where the other kernel listens.
    pub fn veth_address(&self) -> SocketAddr {
        SocketAddr::from(([10, 98, 1, 2], PORT))
    }
}
