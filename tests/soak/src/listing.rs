//! Segments as lines of text, for finding out why a case fails.

use std::fmt::Write;

use simulator::{Direction, Interface, Tap};
use units::Instant;
use wire::mptcp::{DataSeq, Dss, MptcpOption};
use wire::{Options, Segment};

/// Prints every segment when it leaves or reaches a host.
pub struct Listing;

impl Tap for Listing {
    fn segment(&mut self, at: Instant, interface: Interface, direction: Direction, segment: &Segment) {
        let host = if interface.host == simulator::CLIENT { "client" } else { "server" };
        let way = if direction == Direction::Sent { "sends" } else { "gets " };
        let (seq, ack, window) = (segment.seq.0, segment.ack.0, segment.window);
        println!(
            "{:>14.9} {host} {way} {}>{} {:?} seq {seq} +{} ack {ack} win {window}{}",
            at.as_secs_f64(),
            segment.src,
            segment.dst,
            segment.flags,
            segment.payload.len(),
            options(&segment.options)
        );
    }
}

fn options(options: &Options) -> String {
    let mut text = String::new();
    for block in &options.sack {
        let _ = write!(text, " sack {}-{}", block.start.0, block.end.0);
    }
    if let Some(stamps) = options.timestamps {
        let _ = write!(text, " ts {}/{}", stamps.value, stamps.echo);
    }
    for option in &options.mptcp {
        match option {
            MptcpOption::Dss(dss) => text += &dss_words(dss),
            other => drop(write!(text, " {other:?}")),
        }
    }
    text
}

fn dss_words(dss: &Dss) -> String {
    let number = |number: DataSeq| match number {
        DataSeq::Short(low) => u64::from(low),
        DataSeq::Long(dsn) => dsn & u64::from(u32::MAX),
    };
    let mut text = String::new();
    if let Some(mapping) = dss.mapping {
        let _ = write!(text, " maps {}+{} at {}", number(mapping.dsn), mapping.len, mapping.ssn);
    }
    if let Some(ack) = dss.data_ack {
        let _ = write!(text, " data-ack {}", number(ack));
    }
    if dss.data_fin {
        text += " data-fin";
    }
    text
}
