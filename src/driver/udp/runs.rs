//! Datagrams that may leave as one: the system, or the network card, cuts them apart again.

use std::net::SocketAddr;
use std::ops::Range;

/// The most datagrams in one run: the minimum that Linux accepts.
const MAX_SEGMENTS: usize = 64;

/// The most bytes in one run: the payload of a single UDP datagram over IPv4.
const MAX_RUN_BYTES: usize = 65_535 - 20 - 8;

/// Datagrams in a row to one destination, all of one length but the last, which may be shorter; or a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) to: SocketAddr,
    /// Where their bytes are, one after the other.
    pub(super) bytes: Range<usize>,
    /// How many there are.
    pub(super) count: usize,
    /// The length of each, when there are several.
    pub(super) segment: u16,
}

impl Run {
    pub(super) fn single(to: SocketAddr, bytes: Range<usize>) -> Self {
        // A datagram of more than 65,535 bytes stays alone.
        let segment = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        Run { to, bytes, count: 1, segment }
    }

    /// Whether `next` may leave as the last of this run.
    fn takes(&self, (to, bytes): &(SocketAddr, Range<usize>)) -> bool {
        let segment = usize::from(self.segment);
        let full = self.bytes.len() == self.count * segment;
        full && *to == self.to
            && bytes.start == self.bytes.end
            && (1..=segment).contains(&bytes.len())
            && self.count < MAX_SEGMENTS
            && self.bytes.len() + bytes.len() <= MAX_RUN_BYTES
    }
}

/// Fills `runs` with at most `most` runs from the start of `entries`, of single datagrams unless those of one length
/// to one destination may be `joined`.
pub(super) fn gather(
    entries: &[(SocketAddr, Range<usize>)],
    joined: impl Fn(SocketAddr, u16) -> bool,
    most: usize,
    runs: &mut Vec<Run>,
) {
    runs.clear();
    for entry in entries {
        let full = runs.len() == most;
        match runs.last_mut() {
            Some(run) if run.takes(entry) && (run.count > 1 || joined(run.to, run.segment)) => {
                run.bytes.end = entry.1.end;
                run.count += 1;
            }
            _ if full => break,
            _ => runs.push(Run::single(entry.0, entry.1.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Datagrams;

    /// (port, datagrams, bytes) of the runs of datagrams given as (port, length).
    fn runs(datagrams: &[(u16, usize)], joined: bool, most: usize) -> Vec<(u16, usize, usize)> {
        let mut batch = Datagrams::new();
        for (port, len) in datagrams {
            batch.push(SocketAddr::from(([127, 0, 0, 1], *port)), &vec![0; *len]);
        }
        let mut runs = Vec::new();
        gather(batch.entries(), |_, _| joined, most, &mut runs);
        let mut end = 0;
        for run in &runs {
            assert_eq!(run.bytes.start, end);
            end = run.bytes.end;
        }
        runs.iter().map(|run| (run.to.port(), run.count, run.bytes.len())).collect()
    }

    #[test]
    fn equal_ones_to_one_peer_go_together_and_a_shorter_one_ends_it() {
        let datagrams = [(1, 9), (1, 9), (1, 5), (1, 5), (2, 5), (2, 6), (2, 6), (1, 6)];
        let together = [(1, 3, 23), (1, 1, 5), (2, 1, 5), (2, 2, 12), (1, 1, 6)];
        assert_eq!(runs(&datagrams, true, 64), together);
        assert_eq!(runs(&datagrams, true, 3), together[..3]);
        assert_eq!(runs(&datagrams, false, 64).len(), datagrams.len());
        assert_eq!(runs(&datagrams, false, 1), [(1, 1, 9)]);
    }

    #[test]
    fn empty_and_impossible_ones_go_alone() {
        assert_eq!(
            runs(&[(1, 0), (1, 0), (1, 3), (1, 0)], true, 64),
            [(1, 1, 0), (1, 1, 0), (1, 1, 3), (1, 1, 0)]
        );
        assert_eq!(runs(&[(1, 70_000), (1, 5), (1, 70_000)], true, 64).len(), 3);
    }

    #[test]
    fn a_run_is_bounded_in_datagrams_and_bytes() {
        assert_eq!(runs(&[(1, 10); 100], true, 64), [(1, 64, 640), (1, 36, 360)]);
        assert_eq!(runs(&[(1, 1200); 60], true, 64), [(1, 54, 64_800), (1, 6, 7200)]);
        assert_eq!(runs(&[(1, 65_507), (1, 65_507)], true, 64).len(), 2);
    }
}
