//! Where a port that dials is bound.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a socket bound there reaches both address families: the IPv6 wildcard address includes IPv4.
fn reaches_both(bind: SocketAddr) -> bool {
    bind.is_ipv6() && bind.ip().is_unspecified()
}

/// Whether a socket bound there reaches an address.
fn reaches(bind: SocketAddr, address: SocketAddr) -> bool {
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

/// Refuses servers of which a socket bound there reaches none.
///
/// # Errors
/// The address families that differ.
pub fn check_families(bind: SocketAddr, servers: &[SocketAddr], is_simulated: bool) -> Result<(), String> {
    if is_simulated || servers.iter().any(|server| reaches(bind, *server)) {
        return Ok(());
    }
    let (own, other) = if bind.is_ipv6() { ("IPv6", "IPv4") } else { ("IPv4", "IPv6") };
    Err(format!("bind is an {own} address, {bind}, but the connect token lists only {other} servers"))
}

/// Where a port that dials these servers is bound, and where else if that fails. `given` is the caller's choice.
///
/// # Errors
/// The port would reach none of the servers.
pub fn dialling_port(
    given: Option<SocketAddr>,
    servers: &[SocketAddr],
    is_simulated: bool,
) -> Result<(SocketAddr, Option<SocketAddr>), String> {
    // In a simulated network, one address reaches everybody.
    let considered = if is_simulated { &servers[..servers.len().min(1)] } else { servers };
    let is_ipv6 = considered.iter().any(SocketAddr::is_ipv6);
    let bind = given.unwrap_or_else(|| any_port(is_ipv6, is_simulated));
    check_families(bind, servers, is_simulated)?;
    // A system without IPv6 can still reach servers with IPv4 addresses.
    let falls_back = reaches_both(bind) && servers.iter().any(SocketAddr::is_ipv4);
    let ipv4 = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), bind.port());
    Ok((bind, falls_back.then_some(ipv4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_reaches_one_of_its_servers() {
        let [four, six] = ["192.0.2.1:7", "[2001:db8::1]:7"].map(|text| text.parse().unwrap());
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (any, any_six) = (at("0.0.0.0:0"), at("[::]:0"));
        assert_eq!(dialling_port(None, &[four], false), Ok((any, None)));
        assert_eq!(dialling_port(None, &[six], false), Ok((any_six, None)));
        assert_eq!(dialling_port(None, &[four, six], false), Ok((any_six, Some(any))));
        assert_eq!(dialling_port(None, &[four, six], true), Ok((at("127.0.0.1:0"), None)));
        let given = Some(at("192.0.2.9:5"));
        assert_eq!(dialling_port(given, &[six, four], false), Ok((at("192.0.2.9:5"), None)));
        let told = "bind is an IPv4 address, 192.0.2.9:5, but the connect token lists only IPv6 servers";
        assert_eq!(dialling_port(given, &[six], false), Err(told.into()));
        assert!(dialling_port(given, &[six], true).is_ok() && dialling_port(given, &[], false).is_err());
    }
}
