//! The keys that decrypt captured connections, in a file of their own, which only its owner may read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::driver::files::hex;
use crate::netcode::{ConnectToken, Key};

/// A file with a line of JSON for each endpoint.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl KeyFile {
    /// # Errors
    /// The file can't be made.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = Mutex::new(private_file(&path)?);
        Ok(KeyFile { path, file })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the secrets of an endpoint's connections. `started` is when it began, in nanoseconds since 1970.
    ///
    /// # Errors
    /// The file can't be written to.
    pub fn note(&self, address: SocketAddr, started: u64, secrets: &Secrets<'_>) -> io::Result<()> {
        let line = secrets.line(address, started);
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }
}

/// The secrets that decrypt and replay an endpoint's connections.
pub enum Secrets<'a> {
    /// A server's: the key it shares with its backend, and the random bytes drawn at its start.
    Server { key: &'a Key, entropy: &'a [u8] },
    /// A client's: its connect token.
    Client { token: &'a ConnectToken },
}

impl Secrets<'_> {
    /// A line of JSON; nothing in it needs quoting.
    fn line(&self, address: SocketAddr, started: u64) -> String {
        let (role, secrets) = match self {
            Secrets::Server { key, entropy } => {
                ("server", format!("\"key\":\"{}\",\"entropy\":\"{}\"", hex(&key[..]), hex(entropy)))
            }
            Secrets::Client { token } => ("client", format!("\"token\":\"{}\"", hex(&token.to_bytes()))),
        };
        format!("{{\"role\":\"{role}\",\"address\":\"{address}\",\"started\":{started},{secrets}}}\n")
    }
}

/// A new file that only its owner may read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Applies to an existing file too.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}
