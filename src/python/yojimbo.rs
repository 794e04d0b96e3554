//! Python's `tickwire.yojimbo.Profile`, as the core takes it.

use crate::python::prelude::*;

use super::checks;
use crate::transport::{YojimboChannel, YojimboConfig};

/// The settings of a profile, and whether the protocol's id takes its hash.
pub(super) fn read(profile: &Object<'_>, block_types: Vec<u16>) -> PyResult<(YojimboConfig, bool)> {
    let module = profile.py().import("tickwire.yojimbo")?;
    let is = |object: &Object<'_>, class| object.is_instance(&module.getattr(class)?);
    if !is(profile, "Profile")? {
        return Err(refused("yojimbo", "a Profile or None", profile));
    }
    let mut channels = Vec::new();
    let given = profile.getattr("channels")?;
    let given = given.try_iter().map_err(|_| refused("channels", "a list of ChannelSettings", &given))?;
    for given in given {
        let given = given?;
        if !is(&given, "ChannelSettings")? {
            return Err(refused("channels", "a list of ChannelSettings", &given));
        }
        channels.push(YojimboChannel {
            max_messages_per_packet: size(&given, "max_messages_per_packet")?,
            max_block_bytes: size(&given, "max_block_size")?,
            block_fragment_bytes: size(&given, "block_fragment_size")?,
            blocks: !truth(&given, "disable_blocks")?,
        });
    }
    let config = YojimboConfig {
        max_packet_bytes: size(profile, "max_packet_size")?,
        packet_fragment_bytes: size(profile, "packet_fragment_size")?,
        block_types,
        channels,
    };
    Ok((config, truth(profile, "fold_hash")?))
}

fn size(settings: &Object<'_>, name: &str) -> PyResult<usize> {
    checks::count(name, &settings.getattr(name)?, "")
}

fn truth(settings: &Object<'_>, name: &str) -> PyResult<bool> {
    argument(name, &settings.getattr(name)?, "True or False")
}

fn refused(name: &str, what: &str, given: &Object<'_>) -> PyErr {
    PyTypeError::new_err(format!("{name} must be {what}, not {}", class_name(given)))
}
