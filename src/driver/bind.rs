//! Where a port that dials is bound.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a socket bound there reaches both address families: the IPv6 wildcard address includes IPv4.
pub fn reaches_both(bind: SocketAddr) -> bool {
    bind.is_ipv6() && bind.ip().is_unspecified()
}

/// Whether a socket bound there reaches an address.
pub fn reaches(bind: SocketAddr, address: SocketAddr) -> bool {
    reaches_both(bind) || address.is_ipv4() == bind.is_ipv4()
}

/// Any free port, of IPv6 or of IPv4 alone. A host of a simulated network must have an address of its own.
pub fn any_port(is_ipv6: bool, is_simulated: bool) -> SocketAddr {
    let ip = match (is_ipv6, is_simulated) {
        (false, false) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (true, false) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (false, true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        (true, true) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, 0)
}
