//! In steady state no packet allocates: memory is that of packets before.

mod dummy;

use core::alloc::{GlobalAlloc, Layout};
use core::net::SocketAddr;
use std::alloc::System;
use std::cell::Cell;

use network::{Link, LossModel, PathEnds, Queue, TwoHosts};
use simulator::app::Transfer;
use simulator::{EndpointHost, Host, HostId, Simulation, Source};
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, Endpoint, EndpointConfig};
use units::{Duration, Instant, Rate};

/// Counts what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations between two times of a run.
fn allocations<H: Host>(simulation: &mut Simulation<H>, from_s: u64, to_s: u64) -> u64 {
    simulation.run_until(Instant::from_secs(from_s));
    let before = ALLOCATIONS.get();
    simulation.run_until(Instant::from_secs(to_s));
    ALLOCATIONS.get() - before
}

fn link() -> Link {
    Link::new(Rate::from_mbps(100), Duration::from_millis(10)).queue(Queue::packets(200))
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1_u8)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

#[test]
fn links_and_driver() {
    // A narrow queue and random loss: packets that are dropped leave their memory too.
    let lossy = link().queue(Queue::packets(50)).loss(LossModel::uniform(0.001));
    let mut simulation = dummy::simulation(vec![link(), lossy], 300, 1);
    assert_eq!(allocations(&mut simulation, 5, 15), 0);
    assert!(simulation.network().imbalances().next().is_none());
}

fn host(ips: impl Iterator<Item = core::net::IpAddr>, seed: u64) -> EndpointHost {
    let local_addresses = ips.map(|ip| LocalAddress { ip, backup: false }).collect();
    EndpointHost::new(Endpoint::with_seed(EndpointConfig { local_addresses, ..EndpointConfig::default() }, seed))
}

#[test]
fn the_engine_at_both_ends() {
    let wired = TwoHosts::new(1).path(link()).path(link()).one_server_address().build();
    let remote = SocketAddr::new(wired.paths[0].server, 80);
    let local = SocketAddr::new(wired.paths[0].client, 0);
    let config = ConnectionConfig::default();
    let receiver = Transfer::connect(local, remote, config.clone()).expecting(Source::endless());
    let sender = Transfer::listen(remote, config).sending(Source::endless());
    let client_ip = |path: &PathEnds| path.client;
    let mut simulation = Simulation::new(wired.network);
    simulation.attach(wired.client, host(wired.paths.iter().map(client_ip), 1).app(receiver));
    simulation.attach(wired.server, host([remote.ip()].into_iter(), 2).app(sender));
    assert_eq!(allocations(&mut simulation, 20, 30), 0);
    let report = &simulation.host(HostId(0)).reports()[0];
    assert!(report.received_bytes > 400_000_000, "{} octets in 30 s", report.received_bytes);
}
