//! Addresses as C uses them.

use core::ffi::{CStr, c_char};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::endpoint::write_out;
use crate::status::{AnabranchStatus, Failure, guard};

/// An IP address and a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnabranchAddress {
    /// 4, 6, or 0 for no address.
    pub family: u8,
    /// Port in the byte order of the machine; 0 for none or any.
    pub port: u16,
    /// The address in network byte order; IPv4 uses the first four octets.
    pub octets: [u8; 16],
}

impl From<SocketAddr> for AnabranchAddress {
    fn from(address: SocketAddr) -> Self {
        let mut octets = [0; 16];
        let family = match address.ip() {
            IpAddr::V4(ip) => {
                octets[..4].copy_from_slice(&ip.octets());
                4
            }
            IpAddr::V6(ip) => {
                octets = ip.octets();
                6
            }
        };
        Self { family, port: address.port(), octets }
    }
}

/// Reads an address argument.
///
/// # Safety
/// `address` is null or points to an address.
pub(crate) unsafe fn read_address(address: *const AnabranchAddress, name: &str) -> Result<SocketAddr, Failure> {
    // SAFETY: null, or an address by the contract of this function.
    let address = unsafe { address.as_ref() }.ok_or_else(|| Failure::null(name))?;
    let [a, b, c, d, ..] = address.octets;
    let ip = match address.family {
        4 => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        6 => IpAddr::V6(Ipv6Addr::from(address.octets)),
        other => return Err(Failure::argument(format_args!("{name}: address family {other}, which must be 4 or 6"))),
    };
    Ok(SocketAddr::new(ip, address.port))
}

/// Reads an address from text: `10.0.0.1`, `10.0.0.1:80`, `2001:db8::1` or `[2001:db8::1]:80`. Refuses an address with
/// a scope (`[fe80::1%3]:80`), because the scope would be lost.
///
/// # Safety
/// `text` is null or a string; `address` is null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_address_parse(
    text: *const c_char,
    address: *mut AnabranchAddress,
) -> AnabranchStatus {
    guard(|| {
        // SAFETY: null, or a string by the contract of this function.
        let text = unsafe { read_text(text, "text") }?;
        let parsed = text.parse::<SocketAddr>().or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)));
        let unreadable =
            |_| Failure::argument(format_args!("{text:?} is no address like 10.0.0.1:80 or [2001:db8::1]:80"));
        let parsed = parsed.map_err(unreadable)?;
        if matches!(parsed, SocketAddr::V6(v6) if v6.scope_id() != 0) {
            return Err(Failure::argument(format_args!("{text:?}: an address has no scope here: leave %... out")));
        }
        // SAFETY: null, or room for an address by the contract of this function.
        unsafe { write_out(address, "address", parsed.into()) }?;
        Ok(AnabranchStatus::Ok)
    })
}

/// Reads a string argument.
///
/// # Safety
/// `text` is null or a string that outlives the result.
pub(crate) unsafe fn read_text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: not null, and so a string that outlives the result, by the contract of this function.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Failure::argument(format_args!("{name} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &CStr) -> Option<AnabranchAddress> {
        let mut address = AnabranchAddress::default();
        // SAFETY: a string, and a variable of this function.
        let status = unsafe { anabranch_address_parse(text.as_ptr(), &mut address) };
        (status == AnabranchStatus::Ok).then_some(address)
    }

    #[test]
    fn reads_both_families_with_and_without_port() {
        let v4 = parse(c"10.0.0.1:80").unwrap();
        assert_eq!((v4.family, v4.port, &v4.octets[..5]), (4, 80, &[10, 0, 0, 1, 0][..]));
        assert_eq!(parse(c"10.0.0.1").unwrap().port, 0);
        let v6 = parse(c"[2001:db8::1]:443").unwrap();
        assert_eq!((v6.family, v6.port, v6.octets[0], v6.octets[15]), (6, 443, 0x20, 1));
        // SAFETY: a variable of this function.
        let read = unsafe { read_address(&v6, "v6") }.unwrap();
        assert_eq!(read, "[2001:db8::1]:443".parse().unwrap());
        assert_eq!(parse(c"10.0.0"), None);
        assert_eq!((parse(c"[fe80::1%3]:80"), parse(c"[fe80::1]:80").is_some()), (None, true));
    }

    #[test]
    fn refuses_null_and_unknown_families() {
        // SAFETY: null is allowed.
        let null = unsafe { read_address(core::ptr::null(), "remote") };
        assert!(null.unwrap_err().message().contains("remote"));
        let odd = AnabranchAddress { family: 5, ..AnabranchAddress::default() };
        // SAFETY: a variable of this function.
        let odd = unsafe { read_address(&odd, "remote") };
        assert!(odd.unwrap_err().message().contains("family 5"));
    }
}
