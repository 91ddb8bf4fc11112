//! Plain TCP between kernels, beside the scenario's connections: the traffic of relays' owners.

use std::io::{self, Read, Write};
use std::sync::Arc;

use lab::run::{KernelFlow, greedy_controllers};
use lab::scenario::{RelayMode, Scenario};
use linux::netns::Namespace;
use linux::{Error, Result};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Ends;
use crate::controllers::kernel_name;
use crate::sockets::Sockets;

/// Maximum octets written to or read from the kernel at once.
const PIECE_BYTES: usize = 1 << 16;

/// The owners' traffic of a run, as far as kernels carry it, until it is dropped.
#[derive(Default)]
pub struct Neighbours {
    /// For each relay, whether kernels carry its owner's traffic.
    are_kernels: Vec<bool>,
    owners: Vec<Owner>,
    sockets: Arc<Sockets>,
}

/// The traffic of one relay's owner.
#[derive(Default)]
struct Owner {
    receives: Option<Arc<Namespace>>,
    sends: Option<Arc<Namespace>>,
    flows: Vec<KernelFlow>,
}

impl Neighbours {
    /// Creates the owners' traffic of `scenario`. Kernels carry a relay's part of it if the kernel is at both ends of
    /// the scenario's connections, relays are links of the destination, and each flow beside them is a greedy TCP
    /// connection under a controller of the kernel's own.
    pub fn new(scenario: &Scenario, ends: Ends) -> Self {
        let both = ends == Ends::KERNELS && scenario.cooperation.relays == RelayMode::MultiHomed;
        let fits = |name: &String| ["newreno", "cubic"].contains(&name.as_str());
        let is_kernel = |relay| both && greedy_controllers(scenario, relay).is_some_and(|names| names.iter().all(fits));
        let are_kernels: Vec<bool> = (0..scenario.relays.len()).map(is_kernel).collect();
        let owners = are_kernels.iter().map(|_| Owner::default()).collect();
        Self { are_kernels, owners, sockets: Arc::default() }
    }

    /// Returns whether kernels carry the traffic of the owner of `relay`.
    pub fn is_kernel(&self, relay: usize) -> bool {
        self.are_kernels[relay]
    }

    /// Sets where the owner of `relay` receives.
    pub fn receive_in(&mut self, relay: usize, namespace: &Arc<Namespace>) {
        self.owners[relay].receives = Some(Arc::clone(namespace));
    }

    /// Sets from where the owner of `relay` receives.
    pub fn send_from(&mut self, relay: usize, namespace: &Arc<Namespace>) {
        self.owners[relay].sends = Some(Arc::clone(namespace));
    }

    /// Sets the flows that the owner of `relay` receives.
    pub fn carry(&mut self, relay: usize, flows: Vec<KernelFlow>) {
        self.owners[relay].flows = flows;
    }

    /// Opens all flows, each in two threads of its own that end with it.
    ///
    /// # Errors
    /// If the kernel refuses to listen.
    pub fn begin(&mut self) -> Result<()> {
        for owner in &mut self.owners {
            let (Some(receives), Some(sends)) = (&owner.receives, &owner.sends) else { continue };
            for flow in owner.flows.drain(..) {
                let listener = receives.run(|| listen(&flow))?;
                let listener = listener.map_err(Error::system(format!("listen at {}", flow.to)))?;
                let (namespace, sockets) = (Arc::clone(sends), Arc::clone(&self.sockets));
                let (received, received_by) = (flow.received.clone(), Arc::clone(&self.sockets));
                // A flow ends only with the run.
                std::thread::spawn(move || drop(receive(&listener, &received_by, |len| received.add(len))));
                std::thread::spawn(move || namespace.enter().is_ok().then(|| drop(send(&flow, &sockets))));
            }
        }
        Ok(())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        self.sockets.end();
    }
}

fn tcp(flow: &KernelFlow) -> io::Result<Socket> {
    Socket::new(Domain::for_address(flow.to), Type::STREAM, Some(Protocol::TCP))
}

fn listen(flow: &KernelFlow) -> io::Result<Socket> {
    let socket = tcp(flow)?;
    socket.bind(&flow.to.into())?;
    socket.listen(1)?;
    Ok(socket)
}

fn receive(listener: &Socket, sockets: &Sockets, count: impl Fn(u64)) -> io::Result<()> {
    sockets.add(listener)?;
    let (socket, _) = listener.accept()?;
    sockets.add(&socket)?;
    let mut octets = vec![0; PIECE_BYTES];
    loop {
        match (&socket).read(&mut octets) {
            Ok(0) => return Ok(()),
            Ok(len) => count(len as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn send(flow: &KernelFlow, sockets: &Sockets) -> io::Result<()> {
    let socket = tcp(flow)?;
    socket.set_tcp_congestion(kernel_name(&flow.controller).unwrap_or(&flow.controller).as_bytes())?;
    socket.bind(&flow.from.into())?;
    sockets.connect(&socket, flow.to)?;
    let octets = vec![0; PIECE_BYTES];
    loop {
        (&socket).write_all(&octets)?;
    }
}
