//! From a case to the topology of an emulation, and to addresses. The kernel is host `a`; the engine is behind host `b`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use soak::transport::case::Side;

use crate::case::{Case, Middlebox, PathCase, StripFrom, Way};

/// The port of the first talk; each talk has its own.
pub const PORT_FIRST: u16 = 5000;

/// Returns the kernel's address on a path.
pub fn kernel_ip(case: &Case, path: usize) -> IpAddr {
    address(case, path, 0, 1)
}

/// Returns the engine's address on a path: an unused one of host `b`.
pub fn engine_ip(case: &Case, path: usize) -> IpAddr {
    address(case, path, 1, 2)
}

fn address(case: &Case, path: usize, side: u8, host: u8) -> IpAddr {
    let number = path as u8 + 1;
    match case.ipv6 {
        true => Ipv6Addr::new(0xfd00, number.into(), side.into(), 0, 0, 0, 0, host.into()).into(),
        false => Ipv4Addr::new(10, number, side, host).into(),
    }
}

/// Returns the server's address for the first talk.
pub fn server(case: &Case) -> SocketAddr {
    let ip = match case.kernel_is {
        Side::Server => kernel_ip(case, 0),
        Side::Client => engine_ip(case, 0),
    };
    SocketAddr::new(ip, PORT_FIRST)
}

/// Returns the topology, as a file for the emulator.
pub fn topology(case: &Case) -> String {
    let mut text = format!("seed = {}\n[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n", case.seed >> 1);
    case.paths.iter().for_each(|path| link(path, &mut text));
    text
}

fn link(path: &PathCase, text: &mut String) {
    let _ = writeln!(text, "[[link]]\nbetween = ['a', 'b']\nmtu = {}", path.mtu);
    let _ = writeln!(text, "up = {}\ndown = {}", way(&path.up), way(&path.down));
    let outages = path.outages_ms.iter().map(|[from, until]| format!("{{ from = '{from} ms', until = '{until} ms' }}"));
    let _ = writeln!(text, "outages = [{}]", outages.collect::<Vec<_>>().join(", "));
    let boxes: Vec<_> = path.boxes.iter().map(middlebox).collect();
    let _ = writeln!(text, "middleboxes = [{}]", boxes.join(", "));
}

fn way(way: &Way) -> String {
    let mut fields = vec![
        format!("rate = '{} kbit/s'", way.rate_kbps),
        format!("delay = '{} ms'", way.delay_ms),
        format!("queue = '{} packets'", way.queue_packets),
    ];
    if way.loss_percent > 0.0 && way.burst_packets > 1.0 {
        let (mean, burst) = (way.loss_percent, way.burst_packets);
        fields.push(format!("loss = {{ mean = '{mean} %', burst_packets = {burst:.1} }}"));
    } else {
        fields.push(format!("loss = '{} %'", way.loss_percent));
    }
    if way.reorder_percent > 0.0 {
        let (percent, delay_ms) = (way.reorder_percent, way.reorder_ms);
        fields.push(format!("reorder = {{ probability = '{percent} %', delay = '{delay_ms} ms' }}"));
    }
    if way.duplicate_percent > 0.0 {
        fields.push(format!("duplicate = '{} %'", way.duplicate_percent));
    }
    if way.corrupt_percent > 0.0 {
        fields.push(format!("corrupt = '{} %'", way.corrupt_percent));
    }
    format!("{{ {} }}", fields.join(", "))
}

fn middlebox(middlebox: &Middlebox) -> String {
    match middlebox {
        Middlebox::Narrow { mtu, silent } => format!("{{ narrow = {{ size = '{mtu} B', silent = {silent} }} }}"),
        Middlebox::Split { bytes } => format!("{{ split = {{ payload = '{bytes} B' }} }}"),
        Middlebox::Nat => "{ nat = { idle_timeout = '300 s' } }".into(),
        Middlebox::StripMptcp(from) => {
            let on = match from {
                StripFrom::Syn => "syn",
                StripFrom::SynAck => "syn-ack",
                StripFrom::All => "all",
            };
            format!("{{ strip = {{ options = ['mptcp'], on = '{on}' }} }}")
        }
        Middlebox::StripTcp => {
            "{ strip = { options = ['sack', 'timestamps', 'window-scale', 'mss'], on = 'syn' } }".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;

    /// The emulator accepts every topology that can be drawn.
    #[test]
    fn topologies_are_what_the_emulator_takes() {
        for number in 0..500 {
            let case = draw(1, number);
            let text = topology(&case);
            let parsed = testbed::emulator::Topology::parse(&text);
            let links = parsed.unwrap_or_else(|error| panic!("{error}\n{text}")).links.len();
            assert_eq!(links, case.paths.len());
        }
    }
}
