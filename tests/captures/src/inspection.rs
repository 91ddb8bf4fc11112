//! One run of tshark over one capture.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Columns requested from tshark. Several values of one field in one packet are separated by commas.
const FIELDS: [&str; 18] = [
    "frame.number",
    "_ws.malformed",
    "tcp.checksum.status",
    "tcp.checksum",
    "tcp.checksum_calculated",
    "ip.checksum.status",
    "tcp.stream",
    "tcp.len",
    "tcp.srcport",
    "tcp.dstport",
    "mptcp.stream",
    "mptcp.expected_token",
    "mptcp.expected_idsn",
    "tcp.options.mptcp.recvtok",
    "tcp.options.mptcp.rawdataseqno",
    "tcp.options.mptcp.datalvllen",
    "tcp.options.mptcp.datafin.flag",
    "tcp.options.mptcp.subtype",
];
/// tshark's status of a checksum that differs from the computed one.
const BAD_CHECKSUM: &str = "0";
/// The two zeros of ones' complement, received and computed. Receivers accept either (RFC 1071). If Linux completes a
/// checksum in software and the result is 0, it writes the other zero for every protocol, because in UDP a 0 means
/// "none".
const ZEROS: [&str; 2] = ["0xffff", "0x0000"];
/// What tshark reports about packets that are complete but odd. It also complains about a missing mapping of a
/// subflow's FIN, which has none.
const ODDITIES: &str = "mptcp.connection.echoed_key_mismatch or mptcp.connection.missing_algorithm or \
    mptcp.connection.unsupported_algorithm or (mptcp.dss.missing_mapping and tcp.len > 0) or tcp.option.len.invalid";

/// tshark's findings about a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Number of packets.
    pub packets: usize,
    /// Numbers of the packets that tshark could not dissect to the end, or whose checksums are wrong.
    pub broken: Vec<u64>,
    /// Numbers of the packets about which tshark's MPTCP analysis complains.
    pub odd: Vec<u64>,
    /// The MPTCP connections that tshark recognised, by its own number.
    pub connections: BTreeMap<u64, Connection>,
    /// Octets of TCP payload, by TCP stream.
    pub payload_bytes: BTreeMap<u64, u64>,
    /// Octets of the longest TCP payload of one packet.
    pub payload_bytes_max: u64,
    /// Subtypes of the MPTCP options in the capture (RFC 8684 section 8).
    pub subtypes: BTreeSet<u64>,
}

/// One MPTCP connection as tshark sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The TCP streams of the connection: those whose joins carry a token of its keys.
    pub streams: BTreeSet<u64>,
    /// Tokens that tshark derived from the keys of the handshake.
    pub tokens: BTreeSet<u32>,
    /// Initial data sequence numbers that tshark derived from the keys, by the TCP port of the host that uses them.
    pub idsns: BTreeMap<u64, u64>,
    /// Tokens that joins carried.
    pub joined_with: BTreeSet<u32>,
    /// End of the last mapping in the data of the connection, in octets from the first one. Computed from the raw
    /// numbers: the relative ones of Wireshark 4.0 use the wrong end's key on joined subflows.
    pub dsn_end_max: u64,
}

/// Runs tshark over the capture at `path`.
///
/// # Panics
/// If tshark fails: these tests look for captures that it cannot read.
pub fn inspect(path: &Path) -> Inspection {
    let mut inspection = Inspection::default();
    for row in rows(path, "tcp", &FIELDS) {
        inspection.add(&row);
    }
    inspection.odd = rows(path, ODDITIES, &["frame.number"]).iter().filter_map(|row| number(&row[0])).collect();
    inspection
}

fn rows(path: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-2", "-Y", filter, "-T", "fields"]);
    // To tshark's heuristics some pattern octets look like a protocol (such as Thrift), and then seem malformed.
    command.args(["-d", "tcp.port==1-65535,data"]);
    for preference in ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "mptcp.analyze_mappings:TRUE"] {
        command.args(["-o", preference]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap_or_else(|error| panic!("tshark: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark cannot read {}: {complaint}", path.display());
    let text = String::from_utf8(output.stdout).unwrap_or_else(|error| panic!("tshark: {error}"));
    let columns = |line: &str| line.split('\t').map(String::from).collect();
    text.lines().map(columns).collect()
}

impl Inspection {
    fn add(&mut self, row: &[String]) {
        let [frame, malformed, tcp_status, received, computed, ip_status, stream, len, rest @ ..] = row else {
            panic!("tshark gave {} columns", row.len())
        };
        self.packets += 1;
        let wrong = |status: &str| status.split(',').any(|status| status == BAD_CHECKSUM);
        let tcp_wrong = wrong(tcp_status) && [received.as_str(), computed.as_str()] != ZEROS;
        if !malformed.is_empty() || tcp_wrong || wrong(ip_status) {
            self.broken.extend(number(frame));
        }
        let stream = number(stream).unwrap_or_default();
        let len = number(len).unwrap_or_default();
        *self.payload_bytes.entry(stream).or_default() += len;
        self.payload_bytes_max = self.payload_bytes_max.max(len);
        let [from, to, connection, token, idsn, joined, dsn, mapped, fin, subtypes] = rest else {
            panic!("tshark gave {} columns", row.len())
        };
        self.subtypes.extend(subtypes.split(',').filter_map(number));
        if let Some(connection) = number(connection) {
            let connection = self.connections.entry(connection).or_default();
            connection.streams.insert(stream);
            connection.tokens.extend(number(token).map(|token| token as u32));
            connection.idsns.extend(number(from).zip(number(idsn)));
            connection.joined_with.extend(number(joined).map(|token| token as u32));
            if let (Some(raw), Some(mapped)) = (number(dsn), number(mapped)) {
                // A DATA_FIN counts as one octet (RFC 8684 section 3.3.3).
                let ports = [from, to].map(|port| number(port).unwrap_or_default());
                let end = connection.offset(raw, ports) + mapped - u64::from(fin == "1");
                connection.dsn_end_max = connection.dsn_end_max.max(end);
            }
        }
    }
}

impl Connection {
    /// Returns the octets before data sequence number `raw`, of which at least the lower half is present, in a packet
    /// between two ports. The first octet's number follows the initial one of the sender. One port identifies the
    /// sender: a join keeps one of the ports. For a join between new ports both hosts' numbers are tried; only one
    /// makes sense.
    fn offset(&self, raw: u64, [from, to]: [u64; 2]) -> u64 {
        let offset = |idsn: &u64| u64::from((raw as u32).wrapping_sub(*idsn as u32).wrapping_sub(1));
        let is_sender = |port: u64| port == from || (port != to && self.idsns.contains_key(&to));
        let of_sender = self.idsns.iter().find(|(port, _)| is_sender(**port)).map(|(_, idsn)| offset(idsn));
        of_sender.or_else(|| self.idsns.values().map(offset).min()).unwrap_or(0)
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
