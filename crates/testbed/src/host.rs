//! One host: a namespace with its devices and routes.

use std::net::IpAddr;
use std::sync::Arc;

use lab::run::Standing;
use linux::Result;
use linux::netns::{Family, Keeper, Namespace, kernel_has_ipv6};
use linux::tun::{Tun, TunConfig};

/// The device towards the network.
pub const NET: &str = "net";
/// The device towards the engine.
const ENGINE: &str = "engine";
/// The minimum MTU of IPv6, octets.
const IPV6_MTU_MIN: u16 = 1280;
/// Routing table for packets from the network, if the engine takes them all.
const TABLE: u32 = 100;

/// A host that has been set up.
pub struct RealHost {
    pub namespace: Arc<Namespace>,
    pub net: Tun,
    /// The engine's device, if there is an engine behind the kernel.
    pub engine: Option<Tun>,
}

/// Setup of a host.
pub struct HostPlan<'a> {
    /// Name of the namespace.
    pub name: String,
    pub addresses: &'a [IpAddr],
    /// Largest packet, octets.
    pub mtu: u16,
    /// The engine's relation to packets; `None` if the kernel itself has the addresses.
    pub standing: Option<Standing>,
    /// Attributes of the default route, in the syntax of `ip route`.
    pub route: String,
}

impl RealHost {
    /// Sets a host up in a namespace of its own, which `keeper` removes.
    ///
    /// # Errors
    /// If the process may not, or the name is taken.
    pub fn new(keeper: &mut Keeper, plan: &HostPlan<'_>) -> Result<Self> {
        let namespace = Arc::new(keeper.create(&plan.name)?);
        namespace.set_up_host()?;
        let own = match plan.standing {
            None => plan.addresses.iter().map(|ip| (*ip, if ip.is_ipv4() { 32 } else { 128 })).collect(),
            Some(_) => Vec::new(),
        };
        let open = |name: &str, addresses: Vec<(IpAddr, u8)>| {
            let config = TunConfig { name: name.into(), mtu: plan.mtu, offload: false, addresses };
            namespace.run(|| Tun::open(&config))?
        };
        let net = open(NET, own)?;
        let has_engine = matches!(plan.standing, Some(Standing::Beside | Standing::OnTheWay));
        let engine = has_engine.then(|| open(ENGINE, Vec::new())).transpose()?;
        // IPv6 needs packets of 1280 octets (RFC 8200 section 5); on a device with less, the kernel has no IPv6.
        // A kernel without IPv6 is asked only for addresses that need it, and then says so.
        let wants_v6 = kernel_has_ipv6() || plan.addresses.iter().any(IpAddr::is_ipv6);
        let families = [(Family::V4, true), (Family::V6, wants_v6 && plan.mtu >= IPV6_MTU_MIN)];
        for (family, _) in families.into_iter().filter(|(_, is_there)| *is_there) {
            namespace.ip_family(family, &routes(plan, family))?;
        }
        Ok(Self { namespace, net, engine })
    }
}

/// Returns the `ip` commands for the routes of one family.
fn routes(plan: &HostPlan<'_>, family: Family) -> Vec<String> {
    let mut commands = vec![format!("route add default dev {NET} {}", plan.route)];
    match plan.standing {
        None | Some(Standing::Absent) => {}
        Some(Standing::Beside) => {
            let of_family = |ip: &&IpAddr| ip.is_ipv4() == (family == Family::V4);
            let own = plan.addresses.iter().filter(of_family);
            commands.extend(own.map(|ip| format!("route add {ip} dev {ENGINE}")));
        }
        Some(Standing::OnTheWay) => {
            commands.push(format!("route add default dev {ENGINE} table {TABLE}"));
            commands.push(format!("rule add iif {NET} lookup {TABLE}"));
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_gets_what_is_for_it() {
        let addresses = ["10.1.0.1".parse().unwrap()];
        let commands = |standing| {
            let plan = HostPlan { name: "h".into(), addresses: &addresses, mtu: 1500, standing, route: String::new() };
            routes(&plan, Family::V4).join("; ")
        };
        assert_eq!(commands(None), "route add default dev net ");
        assert_eq!(commands(Some(Standing::Absent)), "route add default dev net ");
        assert_eq!(commands(Some(Standing::Beside)), "route add default dev net ; route add 10.1.0.1 dev engine");
        let all = "route add default dev net ; route add default dev engine table 100; rule add iif net lookup 100";
        assert_eq!(commands(Some(Standing::OnTheWay)), all);
    }
}
