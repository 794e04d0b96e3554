//! Losses in bursts: the chain of Gilbert and Elliott, stepped once for each packet.

use super::conditions::{ConditionsError, probability};
use crate::rng::Rng;

/// A link that is good or bad. Each packet is lost with the state's probability, then the state may change: bursts are
/// measured in packets, whatever the packet rate. Links start good.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// The probability that a good link turns bad after a packet.
    pub to_bad: f64,
    /// The probability that a bad link turns good after a packet: 1 / the mean length of a burst.
    pub to_good: f64,
    /// The probability of loss while the link is good.
    pub good_loss: f64,
    /// The probability of loss while the link is bad.
    pub bad_loss: f64,
}

impl Bursts {
    /// Bursts that lose all their packets, `length` of them on average, and `loss` of all packets.
    /// # Errors
    /// The length is below 1, or the loss is not below 1, or more than such bursts can cause: between two of them at
    /// least one packet passes.
    pub fn mean(loss: f64, length: f64) -> Result<Self, ConditionsError> {
        if !(1.0..=1e9).contains(&length) {
            return Err(ConditionsError::BurstLength { value: length });
        }
        let most = length / (length + 1.0);
        if !(0.0..=most).contains(&loss) {
            return Err(ConditionsError::BurstLoss { value: loss, length, bound: most });
        }
        Ok(Self::of(loss, length))
    }

    /// [`mean`](Self::mean) of valid arguments.
    pub(super) fn of(loss: f64, length: f64) -> Self {
        let to_good = 1.0 / length;
        // Rounding may exceed 1 at the bound.
        let to_bad = (to_good * loss / (1.0 - loss)).min(1.0);
        Bursts { to_bad, to_good, good_loss: 0.0, bad_loss: 1.0 }
    }

    /// Whether the settings are valid.
    ///
    /// # Errors
    /// The first setting out of its bounds.
    pub fn check(&self) -> Result<(), ConditionsError> {
        probability("to_bad", self.to_bad)?;
        probability("to_good", self.to_good)?;
        probability("good_loss", self.good_loss)?;
        probability("bad_loss", self.bad_loss)
    }

    /// Whether the next packet is lost, on a link whose state is `bad`.
    pub(super) fn step(&self, bad: &mut bool, rng: &mut Rng) -> bool {
        let (loss, turn) = if *bad { (self.bad_loss, self.to_good) } else { (self.good_loss, self.to_bad) };
        let lost = rng.chance(loss);
        *bad ^= rng.chance(turn);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_a_mean_are_a_chain() {
        let bursts = Bursts::mean(0.2, 4.0).unwrap();
        assert_eq!(bursts, Bursts { to_bad: 0.0625, to_good: 0.25, good_loss: 0.0, bad_loss: 1.0 });
        assert_eq!(Bursts::mean(0.5, 1.0).unwrap().to_bad, 1.0, "every second packet");
    }

    #[test]
    fn means_that_no_chain_has_are_named() {
        let message = |loss, length| Bursts::mean(loss, length).unwrap_err().to_string();
        assert_eq!(message(0.1, 0.5), "length must be 1 to 1e9 packets, the mean of bursts, not 0.5");
        assert_eq!(message(0.9, 4.0), "loss must be 0 to 0.8 by bursts of 4 packets, not 0.9");
        assert!(Bursts::mean(f64::NAN, 4.0).is_err());
    }
}
