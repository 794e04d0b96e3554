//! Which datagrams may be sent as one (GSO), learned from the system's refusals.
//!
//! A refusal is ambiguous: a segment may be above the path MTU of **one destination** (EINVAL before Linux 6.14,
//! EMSGSIZE since), the route to it may be encrypted (EIO), or no network card of this machine may support it. So it
//! counts against the destination first, whose datagrams then go one by one for some time. Only when many
//! destinations in a row refuse, and none accepts, is GSO disabled for all, again for some time: no peer can disable
//! it for the others.

use std::net::SocketAddr;

use crate::time::Duration;

/// How long a refusal counts, of one destination and of all.
pub(super) const REFUSED_FOR: Duration = Duration::from_secs(60);

/// Destinations that refuse in a row before GSO is disabled.
const MAX_STRIKES: usize = 8;

/// Destinations remembered. Beyond that, the first to expire make room.
const MAX_REFUSED: usize = 64;

/// The known limits of the system and of destinations. Times are since the socket began.
#[derive(Debug)]
pub(super) struct Gso {
    is_supported: bool,
    refused: Vec<Refused>,
    /// Destinations that refused since one took datagrams as one.
    strikes: usize,
    off_until: Duration,
}

#[derive(Debug)]
struct Refused {
    to: SocketAddr,
    /// Segments of this length or longer go one by one.
    segment: u16,
    until: Duration,
}

impl Gso {
    pub(super) fn new(is_supported: bool) -> Self {
        Gso { is_supported, refused: Vec::new(), strikes: 0, off_until: Duration::ZERO }
    }

    /// Whether datagrams of that length to `to` may leave as one.
    pub(super) fn allows(&self, to: SocketAddr, segment: u16, now: impl FnOnce() -> Duration) -> bool {
        if self.refused.is_empty() && self.off_until.is_zero() {
            return self.is_supported;
        }
        let now = now();
        let is_free =
            |refused: &Refused| refused.to != to || segment < refused.segment || refused.until <= now;
        self.is_supported && self.off_until <= now && self.refused.iter().all(is_free)
    }

    /// Notes that some left as one.
    pub(super) fn taken(&mut self) {
        self.strikes = 0;
    }

    /// Notes that datagrams of that length left one by one, but not as one; `maybe_all` when the reason may be the system's.
    pub(super) fn refused(&mut self, to: SocketAddr, segment: u16, maybe_all: bool, now: Duration) {
        let until = now + REFUSED_FOR;
        if let Some(known) = self.refused.iter_mut().find(|refused| refused.to == to) {
            // Twice in that time: it isn't their length.
            let segment = if known.until > now { 0 } else { segment };
            *known = Refused { to, segment, until };
            return;
        }
        if self.refused.len() == MAX_REFUSED {
            let first = (0..MAX_REFUSED).min_by_key(|index| self.refused[*index].until);
            first.map(|first| self.refused.swap_remove(first));
        }
        self.refused.push(Refused { to, segment, until });
        self.strikes += usize::from(maybe_all);
        if self.strikes >= MAX_STRIKES {
            // When that is over, one refusal is enough.
            self.strikes = MAX_STRIKES - 1;
            self.refused.clear();
            self.off_until = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(5);
    const LATER: Duration = Duration::from_secs(65);

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_refusal_counts_against_its_destination_and_length_for_some_time() {
        let mut gso = Gso::new(true);
        gso.refused(peer(1), 1200, true, NOW);
        let asked = [(1, 1200), (1, 1201), (1, 1199), (2, 1200)];
        assert_eq!(
            asked.map(|(to, segment)| gso.allows(peer(to), segment, || NOW)),
            [false, false, true, true]
        );
        assert!(gso.allows(peer(1), 1200, || LATER));
        gso.refused(peer(1), 600, true, NOW);
        assert!(!gso.allows(peer(1), 10, || NOW), "twice: it isn't the length");
        gso.refused(peer(1), 1200, true, LATER);
        assert!(gso.allows(peer(1), 1199, || LATER), "a new time begins with the length again");
        assert!(!Gso::new(false).allows(peer(1), 10, || NOW));
    }

    #[test]
    fn one_destination_never_ends_it_for_all_and_many_in_a_row_do_for_some_time() {
        let mut gso = Gso::new(true);
        for round in 0..100 {
            gso.refused(peer(1), 1200, true, NOW + REFUSED_FOR * round);
            assert!(gso.allows(peer(2), 1200, || NOW));
        }
        let mut gso = Gso::new(true);
        let all_refuse =
            |gso: &mut Gso, count| (0..count).for_each(|n| gso.refused(peer(n), 1200, true, NOW));
        all_refuse(&mut gso, 7);
        gso.taken();
        gso.refused(peer(8), 1200, true, NOW);
        assert!(gso.allows(peer(9), 1200, || NOW), "somebody took it in between");
        let mut gso = Gso::new(true);
        (0..100).for_each(|n| gso.refused(peer(n), 1200, false, NOW));
        assert!(gso.allows(peer(100), 1200, || NOW), "too long for them says nothing of others");
        assert_eq!(gso.refused.len(), MAX_REFUSED);
        let mut gso = Gso::new(true);
        all_refuse(&mut gso, 8);
        assert!(!gso.allows(peer(9), 1, || NOW) && gso.allows(peer(9), 1200, || LATER));
        gso.refused(peer(9), 1200, true, LATER);
        assert!(!gso.allows(peer(10), 1, || LATER), "one more is enough then");
    }
}
