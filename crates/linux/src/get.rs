//! `anabranch get`: a file over HTTP over the engine, whole or not at all.

mod download;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use transport::{ConnectionConfig, ConnectionStats};
use units::Duration;

use crate::attachment::{Attachment, MTU, forwards};
use crate::driver::OFFLOAD_PAYLOAD_MAX;
use crate::http::Url;
use crate::stop::Stop;
use crate::{Error, Result};
use download::Download;

/// Octets kept for a file that arrives faster than the disk takes it.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;

/// What to get, and where to put it.
#[derive(Clone, Debug)]
pub struct GetOptions {
    /// The file's place.
    pub url: Url,
    /// Where it goes; another file there is replaced once the download is complete.
    pub output: PathBuf,
    /// Addresses of the engine, one for each path to use; private ones if there are none.
    pub via: Vec<IpAddr>,
    /// Show a progress bar on the terminal.
    pub progress: bool,
}

/// A download that succeeded.
#[derive(Clone, Debug)]
pub struct GetReport {
    /// Octets of the file.
    pub bytes: u64,
    /// From opening the connection to the last octet.
    pub duration: Duration,
    /// The connection's statistics.
    pub connection: ConnectionStats,
}

/// Downloads a file.
///
/// # Errors
/// In one line: without root; if the server cannot be reached or does not have the file; if the connection breaks, or
/// the file is not as long as promised; if it cannot be written. Nothing is left behind then.
pub fn get(options: &GetOptions, stop: &Stop) -> Result<GetReport> {
    let remotes = resolve(&options.url)?;
    let mut attachment = Attachment::open(&options.via)?;
    let pair = remotes.iter().find_map(|remote| Some((attachment.address_for(remote.ip())?, *remote)));
    let Some((local, remote)) = pair else {
        return Err(Error::Usage(format!("no address of --via is of the family of {}", remotes[0].ip())));
    };
    let bar = progress_bar(options.progress);
    let mut download = Download::new(&options.url, &options.output, bar)?;
    let config = ConnectionConfig {
        mtu: MTU,
        offload_max_bytes: OFFLOAD_PAYLOAD_MAX,
        receive_buffer_bytes: RECEIVE_BUFFER_BYTES,
        ..ConnectionConfig::default()
    };
    let (endpoint, start) = attachment.driver.endpoint();
    let connection = endpoint
        .connect(SocketAddr::new(local, 0), remote, config, start)
        .map_err(|error| Error::Peer(format!("cannot connect to {remote}: {error}")))?;
    download.started(connection, start);
    let finished = attachment.driver.run(&mut download, stop)?;
    let (endpoint, now) = attachment.driver.endpoint();
    let statistics = endpoint.stats(connection).unwrap_or_default();
    if !finished {
        return Err(Error::Interrupted);
    }
    let bytes = download.finish().map_err(|error| explain(error, local, remote))?;
    Ok(GetReport { bytes, duration: now - start, connection: statistics })
}

fn resolve(url: &Url) -> Result<Vec<SocketAddr>> {
    let remotes = (url.host.as_str(), url.port).to_socket_addrs();
    let remotes: Vec<_> = remotes.map_err(|error| Error::Peer(format!("cannot find {}: {error}", url.host)))?.collect();
    if remotes.is_empty() {
        return Err(Error::Peer(format!("{} has no address", url.host)));
    }
    Ok(remotes)
}

/// Adds the likely reason to a failure to reach anyone.
fn explain(error: Error, local: IpAddr, remote: SocketAddr) -> Error {
    match error {
        Error::Peer(message) if message.contains("did not answer") && !forwards(remote.ip()) => Error::Peer(format!(
            "{message} (the kernel does not forward, so {local} reaches this host only: sysctl net.ipv4.ip_forward)"
        )),
        error => error,
    }
}

fn progress_bar(visible: bool) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = "{bar:30} {bytes:>11} of {total_bytes:11} {bytes_per_sec:>12} {eta:>4}";
    ProgressBar::no_length().with_style(ProgressStyle::with_template(style).expect("the template is well-formed"))
}
