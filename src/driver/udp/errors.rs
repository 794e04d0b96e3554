//! The meaning of a socket's errors.

use std::io::{self, ErrorKind};

/// Whether an error says that a peer can't be reached.
pub(in crate::driver) fn is_unreachable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

/// ENOBUFS, which has no `ErrorKind`.
pub(in crate::driver) fn is_out_of_buffers(error: &io::Error) -> bool {
    let code = if cfg!(windows) {
        10_055
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        105
    } else {
        55
    };
    error.raw_os_error() == Some(code)
}

/// WSAEMSGSIZE: how Windows reports a datagram longer than the buffer. Other systems truncate it to the buffer's
/// length, which is one more than that of any valid datagram.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    cfg!(windows) && error.raw_os_error() == Some(10_040)
}
