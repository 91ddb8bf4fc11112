//! Runs the proxy on a TUN device.

use std::net::IpAddr;
use std::os::fd::AsFd as _;

use host::{Alone, EndpointHost};
use linux::attachment::{Attachment, MTU};
use linux::driver::Driver;
use linux::stop::Stop;
use linux::{Error, Result};

use super::choice::Uplink;
use super::status::Totals;
use super::{Proxy, ProxyConfig};

/// Settings of [`run`].
#[derive(Clone)]
pub struct RunOptions {
    /// Settings of the proxy.
    pub config: ProxyConfig,
    /// Addresses of the engine, one for each uplink, routed to this host's device as for `anabranch get --via`.
    pub uplinks: Vec<Uplink>,
}

/// Runs a proxy in the calling thread and its network namespace until `stop` is triggered. `ready` gets the proxy once
/// it listens; `say` gets messages for people.
///
/// # Errors
/// If the process may not make a TUN device; if an address cannot be used; if the proxy cannot listen.
pub fn run(
    options: RunOptions,
    stop: &Stop,
    ready: impl FnOnce(&Proxy, linux::driver::Remote<EndpointHost<Alone, Proxy>>),
    say: impl FnMut(&str) + Send + 'static,
) -> Result<Totals> {
    let via: Vec<IpAddr> = options.uplinks.iter().map(|uplink| uplink.ip).collect();
    if via.is_empty() {
        return Err(Error::Usage("a proxy needs at least one uplink: name an address of the engine for each".into()));
    }
    let Attachment { mut endpoint, tun, .. } = Attachment::open(&via)?;
    let mut driver = Driver::new(tun, MTU)?;
    let waker = driver.waker()?;
    let mut proxy = Proxy::new(options.config, &options.uplinks, move || waker.wake(), say)?;
    for uplink in &options.uplinks {
        proxy.add_uplink(*uplink, &mut endpoint, driver.now());
    }
    proxy.end_at(stop.as_fd()).map_err(Error::system("watch a socket"))?;
    let source = proxy.source().map_err(Error::system("duplicate an epoll descriptor"))?;
    ready(&proxy, driver.remote()?);
    let mut host = EndpointHost::with_app(endpoint, Alone, proxy);
    // The proxy ends by itself, in good order; the driver must not end before it.
    driver.run_with(&mut host, &Stop::new()?, Some(source.as_fd()))?;
    Ok(host.app_ref().totals())
}
