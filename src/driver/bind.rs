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

/// Where a client binds that dials one of these servers, unless the game says where. The second address is to be tried if
/// the first can't be bound: a system without IPv6 can still reach servers with IPv4 addresses.
///
/// # Errors
/// As of [`check_families`].
pub fn choose(
    bind: Option<SocketAddr>,
    servers: &[SocketAddr],
    is_simulated: bool,
) -> Result<(SocketAddr, Option<SocketAddr>), String> {
    // In a simulated network, one address reaches everybody.
    let considered = if is_simulated { &servers[..1] } else { servers };
    let bind = bind.unwrap_or_else(|| any_port(considered.iter().any(SocketAddr::is_ipv6), is_simulated));
    check_families(bind, servers, is_simulated)?;
    let falls_back = reaches_both(bind) && servers.iter().any(SocketAddr::is_ipv4);
    let fallback = falls_back.then(|| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), bind.port()));
    Ok((bind, fallback))
}

/// Refuses a token without a server that a socket bound there can reach.
///
/// # Errors
/// Says so.
pub fn check_families(bind: SocketAddr, servers: &[SocketAddr], is_simulated: bool) -> Result<(), String> {
    if is_simulated || servers.iter().any(|server| reaches(bind, *server)) {
        return Ok(());
    }
    let (own, other) = if bind.is_ipv6() { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
    Err(format!("bind is an {own} address, {bind}, but the connect token lists only {other} servers"))
}
