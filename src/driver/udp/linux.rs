//! Several datagrams per system call, and several in one that the system splits (GSO) or merges (GRO).
//!
//! The only place in the driver with `unsafe`: the standard library has no such calls. Each call builds its headers
//! anew on the stack, so no pointer outlives the call that needed it.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr;

use super::runs::Run;
use super::slab::{Arrived, Slab};

/// The most headers of one call. More gain nothing, and this many fit the stack anywhere.
pub(super) const BATCH: usize = 64;

/// `SK_MEMINFO_DROPS`, and the entries up to it, of what `SO_MEMINFO` gives.
const MEMINFO_DROPS: usize = 8;

/// One message of ancillary data, laid out as `CMSG_DATA` and `CMSG_SPACE` would. The value's place is filled up, so that no
/// byte is handed to the system that was never written.
#[repr(C)]
#[derive(Clone, Copy)]
struct Control {
    header: libc::cmsghdr,
    value: [u8; CONTROL_BYTES],
}

/// Room for a value, and for what aligns the end of it.
const CONTROL_BYTES: usize = 8;

/// A `sockaddr_in` or a `sockaddr_in6`, as bytes.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
struct Name([u8; NAME_BYTES]);

const NAME_BYTES: usize = size_of::<libc::sockaddr_in6>();

// The layout that `Name` relies on.
const _: () = {
    assert!(size_of::<libc::sockaddr_in>() == 16 && size_of::<libc::sockaddr_in6>() == 28);
    assert!(offset_of!(libc::sockaddr_in, sin_port) == 2 && offset_of!(libc::sockaddr_in6, sin6_port) == 2);
    assert!(
        offset_of!(libc::sockaddr_in, sin_addr) == 4 && offset_of!(libc::sockaddr_in6, sin6_flowinfo) == 4
    );
    assert!(
        offset_of!(libc::sockaddr_in6, sin6_addr) == 8 && offset_of!(libc::sockaddr_in6, sin6_scope_id) == 24
    );
};

impl Name {
    const EMPTY: Name = Name([0; NAME_BYTES]);

    /// The address, and how many bytes of it count.
    fn of(address: SocketAddr) -> (Name, u32) {
        let mut name = Name::EMPTY;
        let mut put = |at: usize, bytes: &[u8]| name.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(2, &address.port().to_be_bytes());
        let len = match address {
            SocketAddr::V4(v4) => {
                put(0, &(libc::AF_INET as libc::sa_family_t).to_ne_bytes());
                put(4, &v4.ip().octets());
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                put(0, &(libc::AF_INET6 as libc::sa_family_t).to_ne_bytes());
                put(4, &v6.flowinfo().to_ne_bytes());
                put(8, &v6.ip().octets());
                put(24, &v6.scope_id().to_ne_bytes());
                size_of::<libc::sockaddr_in6>()
            }
        };
        (name, len as u32)
    }

    /// An unspecified address for a family that an IP socket doesn't receive from.
    fn address(&self) -> SocketAddr {
        let [f0, f1, p0, p1, rest @ ..] = self.0;
        let port = u16::from_be_bytes([p0, p1]);
        let word = |at: usize| [rest[at], rest[at + 1], rest[at + 2], rest[at + 3]];
        match c_int::from(libc::sa_family_t::from_ne_bytes([f0, f1])) {
            libc::AF_INET => SocketAddrV4::new(Ipv4Addr::from(word(0)), port).into(),
            libc::AF_INET6 => {
                let mut ip = [0; 16];
                ip.copy_from_slice(&rest[4..20]);
                let (flow, scope) = (u32::from_ne_bytes(word(0)), u32::from_ne_bytes(word(20)));
                SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into()
            }
            _ => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into(),
        }
    }
}

impl Control {
    /// A message of this many bytes is as long as this.
    const fn len(bytes: usize) -> usize {
        offset_of!(Self, value) + bytes
    }

    fn new<const N: usize>(level: c_int, kind: c_int, value: [u8; N]) -> Self {
        // SAFETY: a `cmsghdr` is integers (and padding on some C libraries), for which zeros are valid.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        header.cmsg_level = level;
        header.cmsg_type = kind;
        header.cmsg_len = Self::len(N) as _;
        let mut filled = [0; CONTROL_BYTES];
        filled[..N].copy_from_slice(&value);
        Control { header, value: filled }
    }
}

/// Sends at most [`BATCH`] of `runs`, whose bytes are in `arena`: how many were sent, in order. An error is that of
/// the first run; an error of a later run appears when that one is the first.
pub(super) fn send(socket: &UdpSocket, arena: &[u8], runs: &[Run]) -> io::Result<usize> {
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut names = [const { MaybeUninit::<Name>::uninit() }; BATCH];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    let places = headers.iter_mut().zip(&mut vectors).zip(names.iter_mut().zip(&mut controls));
    let count = runs.len().min(BATCH);
    for (run, ((header, vector), (name, control))) in runs.iter().zip(places) {
        let bytes = &arena[run.bytes.clone()];
        let (address, name_len) = Name::of(run.to);
        // The system only reads through a vector to send.
        let vector =
            vector.write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        let header = header.write(empty_header(vector));
        header.msg_hdr.msg_name = ptr::from_mut(name.write(address)).cast();
        header.msg_hdr.msg_namelen = name_len;
        if run.count > 1 {
            let segment = Control::new(libc::SOL_UDP, libc::UDP_SEGMENT, run.segment.to_ne_bytes());
            header.msg_hdr.msg_control = ptr::from_mut(control.write(segment)).cast();
            header.msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
    }
    // SAFETY: the first `count` headers are written; they point into this frame or into `arena`, with the given
    // lengths, and live until the call returns.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count as c_uint, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives into a slab that was handed out completely, at most `most` slots: how many slots were filled, and how
/// many could have been.
pub(super) fn receive(socket: &UdpSocket, slab: &mut Slab, most: usize) -> io::Result<(usize, usize)> {
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut names = [const { MaybeUninit::<Name>::uninit() }; BATCH];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    let (slots, arrived) = slab.refill(most.min(BATCH));
    let count = slots.len();
    let places = headers.iter_mut().zip(&mut vectors).zip(names.iter_mut().zip(&mut controls));
    for (slot, ((header, vector), (name, control))) in slots.zip(places) {
        let vector = vector.write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        let header = header.write(empty_header(vector));
        header.msg_hdr.msg_name = ptr::from_mut(name.write(Name::EMPTY)).cast();
        header.msg_hdr.msg_namelen = NAME_BYTES as u32;
        header.msg_hdr.msg_control =
            ptr::from_mut(control.write(Control::new(0, 0, [0; CONTROL_BYTES]))).cast();
        header.msg_hdr.msg_controllen = size_of::<Control>() as _;
    }
    // SAFETY: the first `count` headers are written; each points into this frame and to a slot of its own, with the
    // given lengths, which live until the call returns and are not read meanwhile.
    let received = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count as c_uint, 0, ptr::null_mut())
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for ((header, vector), (name, control)) in
        headers.iter().zip(&vectors).zip(names.iter().zip(&controls)).take(received.min(count))
    {
        // SAFETY: all four were written above, for each of the first `count`. The system wrote into them whole
        // integers, bytes of an address, and a length.
        let (header, vector, name, control) = unsafe {
            (
                header.assume_init_ref(),
                vector.assume_init_ref(),
                name.assume_init_ref(),
                control.assume_init_ref(),
            )
        };
        let segment = gro_size_of(&header.msg_hdr, control).unwrap_or(vector.iov_len);
        arrived.push(Arrived { from: name.address(), len: header.msg_len as usize, segment });
    }
    Ok((received, count))
}

fn empty_header(vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: integers and pointers (and padding on some C libraries), for which zeros are valid.
    let mut header: libc::mmsghdr = unsafe { zeroed() };
    header.msg_hdr.msg_iov = vector;
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// The length of each datagram, if the system joined several.
fn gro_size_of(header: &libc::msghdr, control: &Control) -> Option<usize> {
    let (value, _) = control.value.split_first_chunk()?;
    let is_whole = header.msg_controllen >= Control::len(value.len()) as _;
    let is_it = (control.header.cmsg_level, control.header.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
    let joined = c_int::from_ne_bytes(*value);
    (is_whole && is_it && joined > 0).then_some(joined as usize)
}

/// Whether this system supports GSO. One that doesn't would send a long datagram whole.
pub(super) fn has_gso(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok()
}

/// Lets the system join datagrams of one source that arrive together; false when it doesn't know how.
pub(super) fn join(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Makes routers fragment datagrams that are too long for their next link (IPv4), and ignores ICMP's path MTUs. No
/// datagram of ours is above IPv6's guaranteed MTU; if an IPv4 path is narrower, or somebody claims that it is, Linux
/// would otherwise lose a datagram first, and all of them where ICMP is filtered. False if the system can't.
pub(super) fn allow_fragments(socket: &UdpSocket, ipv6: bool) -> bool {
    let (level, option, omit) = if ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_OMIT)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT)
    };
    set(socket, level, option, omit).is_ok()
}

const ANCILLARY_BYTES: usize = 512;

/// Space for the system's description of an error.
#[repr(C, align(8))]
struct Ancillary([u8; ANCILLARY_BYTES]);

/// Whether the system keeps reports about refused datagrams, for [`refused`]: an unconnected socket doesn't get them
/// otherwise. False if it can't.
pub(super) fn watch_refusals(socket: &UdpSocket, ipv6: bool, watch: bool) -> bool {
    let watch = c_int::from(watch);
    let v6 = !ipv6 || set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, watch).is_ok();
    // A socket of both families has one for each.
    let v4 = set(socket, libc::IPPROTO_IP, libc::IP_RECVERR, watch).is_ok();
    v6 && (v4 || ipv6)
}

/// The destination of a datagram that found no open port; `None` if there are no more reports. Other reports give an
/// unspecified address.
pub(super) fn refused(socket: &UdpSocket) -> Option<SocketAddr> {
    let mut name = Name::EMPTY;
    let mut bytes = [0u8; 1];
    let mut vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Ancillary([0; ANCILLARY_BYTES]);
    let mut header = empty_header(&mut vector).msg_hdr;
    header.msg_name = ptr::from_mut(&mut name).cast();
    header.msg_namelen = NAME_BYTES as u32;
    header.msg_control = ptr::from_mut(&mut control).cast();
    header.msg_controllen = ANCILLARY_BYTES as _;
    // SAFETY: the header points to places of this frame, of the lengths given, which live until the call returns.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE) };
    if received < 0 {
        return None;
    }
    // The first message of ancillary data is its header and then the error, whose first integer is errno.
    const ERROR_AT: usize = size_of::<libc::cmsghdr>().next_multiple_of(size_of::<usize>());
    let number = control.0[ERROR_AT..].first_chunk().map_or(0, |number| c_int::from_ne_bytes(*number));
    let is_whole = header.msg_controllen >= (ERROR_AT + size_of::<c_int>()) as _;
    // SAFETY: the bytes are aligned for integers of 64 bits and longer than a header, which is integers (and padding on some C
    // libraries), and any bits are valid ones.
    let told: libc::cmsghdr = unsafe { control.0.as_ptr().cast::<libc::cmsghdr>().read() };
    let kind = (told.cmsg_level, told.cmsg_type);
    let errors = [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)];
    let is_reported = is_whole && errors.contains(&kind);
    Some(if is_reported && number == libc::ECONNREFUSED { name.address() } else { Name::EMPTY.address() })
}

/// Datagrams that the system dropped before they were read, since the socket began, modulo 2^32; `None` if it doesn't
/// report them.
pub(super) fn drops(socket: &UdpSocket) -> Option<u32> {
    let mut info = [0u32; MEMINFO_DROPS + 1];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes to `info`, which is as long, and any bits are valid integers.
    let result = unsafe {
        let info = info.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, info, &raw mut len)
    };
    (result == 0 && len as usize == size_of_val(&info)).then_some(info[MEMINFO_DROPS])
}

/// Whether an error of a run may mean that this system, or its network card, doesn't support GSO. Before Linux 6.14
/// `EINVAL` also means that a segment is above one destination's path MTU; since then that is `EMSGSIZE`, which has
/// no meaning for other destinations.
pub(super) fn refuses_to_cut(error: &io::Error) -> bool {
    let refusals = [libc::EIO, libc::EINVAL, libc::ENOPROTOOPT, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| refusals.contains(&code))
}

/// Sets an integer option.
pub(super) fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the value is in this frame and has the given length.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an integer option.
#[cfg(test)]
pub(super) fn get(socket: &UdpSocket, level: c_int, option: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the system writes at most `len` bytes to the value in this frame, which is as long.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut len) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_through_the_system() {
        let v6 = |scope| SocketAddr::from(SocketAddrV6::new("fe80::1:2".parse().unwrap(), 65_000, 7, scope));
        for address in ["1.2.3.4:5".parse().unwrap(), "[2001:db8::9]:443".parse().unwrap(), v6(0), v6(3)] {
            let (name, len) = Name::of(address);
            assert_eq!(name.address(), address);
            assert_eq!(len, if address.is_ipv4() { 16 } else { 28 });
        }
        assert_eq!(Name::EMPTY.address(), "0.0.0.0:0".parse().unwrap());
    }
}
