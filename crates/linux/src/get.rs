//! `anabranch get`: downloads a file with HTTP over the engine, completely or not at all.

mod attempts;
mod completed;
mod download;
#[cfg(test)]
mod download_tests;
mod over_uplinks;
mod partial;
mod place;
mod sink;
mod stream;
mod subflows;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::thread;

use host::{Alone, EndpointHost};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use transport::path_manager::LocalAddress;
use transport::{ConnectionConfig, ConnectionStats};
use units::{Duration, Instant};

use crate::attachment::{Attachment, MTU, can_answer, forwarding_variable, forwards, is_own};
use crate::driver::{Driver, OFFLOAD_PAYLOAD_MAX};
use crate::engine_options::EngineOptions;
use crate::http::Url;
use crate::stop::Stop;
use crate::{Error, Result, uplink};
use attempts::Attempts;
use download::Download;
use over_uplinks::Uplinks;
use sink::Sink;

pub use download::Progress;
pub use sink::Output;

/// Octets buffered while a file arrives faster than the disk takes it.
const RECEIVE_BUFFER_BYTES: u64 = 16 << 20;
/// A download only receives, so it notices that a NAT has lost its state only when it sends. It must notice while the
/// server still waits for it to join again (20 s, decision 0017).
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What to download, and where to put it.
#[derive(Clone, Debug)]
pub struct GetOptions {
    /// URL of the file.
    pub url: Url,
    /// Destination of the file; an existing file there is replaced once the download is complete.
    pub output: Output,
    /// Addresses of the engine, one for each path; private ones if empty.
    pub via: Vec<IpAddr>,
    /// Interfaces of this host to use as uplinks, instead of `via`.
    pub interfaces: Vec<String>,
    /// Continue an earlier download, and keep what has arrived if this one fails.
    pub resume: bool,
    /// Settings of the engine.
    pub engine: EngineOptions,
}

/// A successful download.
#[derive(Clone, Debug, Serialize)]
pub struct GetReport {
    /// Octets received.
    pub bytes: u64,
    /// Octets of the file that an earlier download had left.
    pub resumed_bytes: u64,
    /// Whether the file was complete before, and the server still has this version of it.
    pub was_complete: bool,
    /// Why the server sent the complete file, although an earlier download had left a part of it.
    pub begun_anew: Option<&'static str>,
    /// From opening the connection to the last octet.
    pub duration: Duration,
    /// Statistics of the connection.
    pub connection: ConnectionStats,
}

/// Downloads a file, and tells `observe` now and then how far it is.
///
/// # Errors
/// Explained in one line: if the process may not make a TUN device; if the server cannot be reached or does not have
/// the file; if the connection breaks, or the file is shorter or longer than promised; if it cannot be written. Nothing
/// is left behind then, unless `resume` is set.
pub fn get(options: &GetOptions, stop: &Stop, observe: &mut dyn FnMut(Progress)) -> Result<GetReport> {
    get_from(&find(options, stop)?, options, stop, observe)
}

/// Looks up the addresses of the server. The resolver of this host may take half a minute if name servers are silent.
///
/// # Errors
/// Explained in one line: if the server has no address that the engine can reach, or `stop` is triggered.
pub fn find(options: &GetOptions, stop: &Stop) -> Result<Vec<SocketAddr>> {
    // Without uplinks the kernel is the engine's router and answers for its own addresses.
    let leads_back = |ip| !options.interfaces.is_empty() && is_own(ip);
    resolve(&options.url, &leads_back, stop)
}

/// Does the same as [`get`] with a server at these addresses, of which there is at least one.
///
/// # Errors
/// Those of [`get`].
pub fn get_from(
    remotes: &[SocketAddr],
    options: &GetOptions,
    stop: &Stop,
    observe: &mut dyn FnMut(Progress),
) -> Result<GetReport> {
    let leads_back = |ip| !options.interfaces.is_empty() && is_own(ip);
    if is_private(options) && !remotes.iter().any(|remote| can_answer(remote.ip())) {
        return Err(Error::Usage(unnamed()));
    }
    let mut config = ConnectionConfig {
        mtu: MTU,
        offload_max_bytes: OFFLOAD_PAYLOAD_MAX,
        receive_buffer_bytes: RECEIVE_BUFFER_BYTES,
        keep_alive: Some(KEEP_ALIVE),
        ..ConnectionConfig::default()
    };
    options.engine.apply(&mut config)?;
    let (attachment, mut uplinks) = attach(options, stop)?;
    let Attachment { mut endpoint, tun, addresses } = attachment;
    options.engine.observe(&mut endpoint);
    // Further subflows wait as backups until one is worth it (subflows.rs).
    for ip in addresses.iter().copied() {
        endpoint.add_local_address(LocalAddress { ip, backup: true }, Instant::ZERO);
    }
    let ways = match &uplinks {
        Some(uplinks) => uplinks.addresses(),
        None => addresses.iter().map(|ip| vec![*ip]).collect(),
    };
    let names = uplinks.as_ref().map_or_else(Vec::new, Uplinks::names);
    let attempts = Attempts::new(&ways, remotes, config).with_names(&names);
    if !attempts.has_ways() {
        return Err(no_way(remotes[0].ip(), uplinks.is_some()));
    }
    if let Some(own) = remotes.iter().find(|remote| addresses.contains(&remote.ip())) {
        return Err(engines_own(own.ip(), !options.via.is_empty()));
    }
    // The kernel has an address on the engine's device, too.
    if let Some(own) = remotes.iter().find(|remote| leads_back(remote.ip())) {
        return Err(Error::Usage(format!("{} {OWN_OVER_UPLINKS}", own.ip())));
    }
    let mut driver = Driver::new(tun, MTU)?;
    driver.set_tap(options.engine.tap.clone());
    let waker = driver.waker()?;
    let wake = Box::new(move || waker.wake());
    let sink = Sink::open(&options.output, &options.url.to_string(), options.resume, wake)?;
    let download = Download::new(&options.url, sink, attempts, observe);
    let mut host = EndpointHost::with_app(endpoint, Alone, download);
    let finished = match &mut uplinks {
        Some(uplinks) => uplinks.run(driver, &mut host, stop),
        None => driver.run(&mut host, stop),
    };
    let (endpoint, _, download) = host.into_parts();
    let connection = download.connection().and_then(|id| endpoint.stats(id)).unwrap_or_default();
    let (bytes, resumed_bytes) = download.bytes();
    let (duration, begun_anew) = (download.duration(), download.begun_anew());
    let was_complete = download.was_complete();
    let finished = finished.and_then(|finished| if finished { Ok(()) } else { Err(Error::Interrupted) });
    download.finish(finished).map_err(|error| match &uplinks {
        Some(uplinks) => over_uplinks::explain(error, &uplinks.notes),
        None => explain(error, remotes, &options.via),
    })?;
    Ok(GetReport { bytes, resumed_bytes, was_complete, begun_anew, duration, connection })
}

/// Returns whether the engine gets private addresses, and no uplink.
fn is_private(options: &GetOptions) -> bool {
    options.via.is_empty() && options.interfaces.is_empty()
}

/// Says that an uplink should be named, with those that there are.
fn unnamed() -> String {
    let names: Vec<String> = uplink::discover_all()
        .map(|(uplinks, _)| uplinks.into_iter().map(|uplink| format!("--interface {}", uplink.interface)).collect())
        .unwrap_or_default();
    let example = if names.is_empty() { "--interface usb0".into() } else { names.join(" ") };
    format!(
        "without --interface, the download uses a private address that only this host can reach: name uplinks, like \
         {example}"
    )
}

/// Creates the engine and, if the options name interfaces, the plumbing to these uplinks.
fn attach(options: &GetOptions, stop: &Stop) -> Result<(Attachment, Option<Uplinks>)> {
    if options.interfaces.is_empty() {
        return Ok((Attachment::open(&options.via)?, None));
    }
    let (attachment, uplinks) = Uplinks::open(&options.interfaces, stop)?;
    Ok((attachment, Some(uplinks)))
}

/// The error for a URL whose address is the engine's own.
fn engines_own(remote: IpAddr, is_via: bool) -> Error {
    Error::Usage(if is_via {
        format!("{remote} is an address of the engine: name another one with --via")
    } else {
        format!("{remote} is an address of this download's own engine, which serves nothing: write that of the server")
    })
}

/// The error for a `remote` of an address family that the engine does not have.
fn no_way(remote: IpAddr, over_uplinks: bool) -> Error {
    let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
    Error::Usage(if over_uplinks {
        format!("{remote} is an {family} address, but no uplink has {family}: name another one with --interface")
    } else {
        format!("{remote} is an {family} address: give the engine one as well with --via")
    })
}

/// Resolves a URL's host with the resolver of this host. Addresses for which `leads_back` is true belong to this host,
/// and no uplink leads there.
fn resolve(url: &Url, leads_back: &dyn Fn(IpAddr) -> bool, stop: &Stop) -> Result<Vec<SocketAddr>> {
    let host = url.host();
    let found = look_up(host.as_str(), url.port(), stop)?.map_err(|error| {
        Error::Peer(format!("cannot find the address of {host} ({error}): check the name, or write an IP address"))
    })?;
    // An IPv4 address in IPv6 notation (::ffff:10.1.0.1) is an IPv4 address on the network.
    let remotes: Vec<SocketAddr> =
        found.iter().map(|remote| (remote.ip().to_canonical(), remote.port()).into()).collect();
    let why_not = |remote: &SocketAddr| match remote.ip() {
        ip if ip.is_loopback() && leads_back(ip) => Some(LOOPBACK_OVER_UPLINKS),
        ip => why_not(ip).or_else(|| leads_back(ip).then_some(OWN_OVER_UPLINKS)),
    };
    let reachable: Vec<SocketAddr> = remotes.iter().copied().filter(|remote| why_not(remote).is_none()).collect();
    match remotes.first().filter(|_| reachable.is_empty()) {
        Some(first) => Err(Error::Usage(format!("{} {}", first.ip(), why_not(first).unwrap_or_default()))),
        None if reachable.is_empty() => Err(Error::Peer(format!("{host} has no address"))),
        None => Ok(reachable),
    }
}

/// Asks the resolver of this host, which cannot be interrupted: in a thread, which is left behind if `stop` is triggered.
fn look_up(host: &str, port: u16, stop: &Stop) -> Result<io::Result<Vec<SocketAddr>>> {
    let done = Stop::new()?;
    let (handle, host) = (done.handle()?, host.to_owned());
    let (answer, answered) = mpsc::channel();
    thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Nobody listens any more after an interruption.
        let _ = answer.send(found);
        handle.stop();
    });
    loop {
        let mut fds = [&done, stop].map(|stop| PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Error::system("wait for the resolver")(errno)),
        }
        if stop.is_triggered() {
            return Err(Error::Interrupted);
        }
        if let Ok(found) = answered.try_recv() {
            return Ok(found);
        }
    }
}

/// Why uplinks reach no address of this host.
const OWN_OVER_UPLINKS: &str = "is an address of this host itself, which no uplink reaches: leave out --interface";
const LOOPBACK_OVER_UPLINKS: &str = "is a loopback address of this host itself, which no uplink reaches: leave out \
    --interface, and write an address at which others reach this host, like 10.99.0.1 on anabranch0";

/// Returns why no host can reach another one by this address.
fn why_not(address: IpAddr) -> Option<&'static str> {
    match address {
        ip if ip.is_loopback() => Some(
            "is a loopback address, and the engine is a separate host: write an address at which others reach this \
             host, like 10.99.0.1 on anabranch0",
        ),
        ip if ip.is_unspecified() => Some("means all addresses: write the address of one host"),
        ip if ip.is_multicast() => Some("is a multicast address: write the address of one host"),
        IpAddr::V4(ip) if ip.is_broadcast() => Some("is the broadcast address: write the address of one host"),
        _ => None,
    }
}

/// Adds the likely reason to a failure to reach any server without uplinks.
fn explain(error: Error, remotes: &[SocketAddr], via: &[IpAddr]) -> Error {
    let why = match error {
        Error::Peer(ref message) if !message.contains("did not answer") => return error,
        Error::Peer(_) if via.is_empty() => unnamed(),
        // With `--via` the user chose addresses that other hosts route here.
        Error::Peer(_) if !forwards(remotes[0].ip()) => format!(
            "the kernel does not forward, so answers from others do not arrive: run sysctl -w {}=1",
            forwarding_variable(remotes[0].ip())
        ),
        error => return error,
    };
    Error::Peer(format!("{error} ({why})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str) -> std::result::Result<Vec<SocketAddr>, String> {
        let own: IpAddr = "10.1.0.2".parse().unwrap();
        resolve(&url.parse().unwrap(), &|ip| ip == own, &Stop::new().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_ipv4_address_in_the_look_of_ipv6_is_one_of_ipv4() {
        assert_eq!(resolved("http://[::ffff:10.1.0.1]:8000/x"), Ok(vec!["10.1.0.1:8000".parse().unwrap()]));
        assert!(resolved("http://[::ffff:127.0.0.1]/x").unwrap_err().contains("127.0.0.1 is a loopback address"));
    }

    #[test]
    fn the_remedy_for_an_address_of_the_engine_is_one_that_can_be_had() {
        let own = "10.99.0.2".parse().unwrap();
        assert!(engines_own(own, true).to_string().ends_with("name another one with --via"));
        assert!(!engines_own(own, false).to_string().contains("--via"));
    }

    #[test]
    fn who_gets_no_answer_at_a_private_address_hears_of_uplinks() {
        // The kernel of a test may forward or not, which matters only to addresses that other hosts have a route to.
        let why = |message: &str, via: &[IpAddr]| {
            let remotes = ["192.0.2.1:80".parse().unwrap()];
            explain(Error::Peer(message.into()), &remotes, via).to_string()
        };
        let forwards = forwards("192.0.2.1".parse().unwrap());
        let own = why("the server did not answer within 30 s", &[]);
        assert!(own.contains("name uplinks, like --interface ") && !own.contains("ip_forward"), "{own}");
        let others = why("the server did not answer within 30 s", &["10.7.0.2".parse().unwrap()]);
        assert_eq!(others.contains("ip_forward"), !forwards, "{others}");
        assert!(!why("the server answers 404", &[]).contains('('));
    }

    #[test]
    fn a_lookup_can_be_interrupted() {
        let stop = Stop::new().unwrap();
        stop.handle().unwrap().stop();
        assert!(matches!(look_up("name.invalid", 80, &stop), Err(Error::Interrupted)));
    }

    #[test]
    fn the_variable_that_forwards_is_that_of_the_family() {
        let why = explain(
            Error::Peer("the server did not answer within 30 s".into()),
            &["[2001:db8::1]:80".parse().unwrap()],
            &["fd00::3".parse().unwrap()],
        )
        .to_string();
        let forwards = forwards("2001:db8::1".parse().unwrap());
        assert!(forwards || why.contains("sysctl -w net.ipv6.conf.all.forwarding=1"), "{why}");
    }

    #[test]
    fn where_no_uplink_leads_is_said_at_once() {
        for url in ["http://10.1.0.2/x", "http://[::ffff:10.1.0.2]/x"] {
            assert!(resolved(url).unwrap_err().starts_with("10.1.0.2 is an address of this host itself"));
        }
        let stop = Stop::new().unwrap();
        let lo = resolve(&"http://127.0.0.1/x".parse().unwrap(), &|_| true, &stop).unwrap_err().to_string();
        assert!(lo.contains("leave out --interface, and write an address"), "{lo}");
        let lo = resolve(&"http://127.0.0.1/x".parse().unwrap(), &|_| false, &stop).unwrap_err().to_string();
        assert!(!lo.contains("--interface"), "{lo}");
    }
}
