//! The connect tokens with which this process has sealed packets, so that no second client starts the same sequences
//! again under the same keys: an eavesdropper with two packets of one sequence can read both.
//!
//! Promises: a token that a client dials with, or has sealed anything with, is refused to every other client of the
//! process until it has expired, from whichever copy of its bytes it was read. Doesn't know about other processes:
//! those must have their own tokens. Bounded: beyond [`CAPACITY`] tokens the first one to expire is forgotten.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::netcode::{ConnectToken, TokenIdentity, TokenUse};
use crate::time::{Duration, Instant};

/// Most tokens that are remembered: under 100 bytes each.
const CAPACITY: usize = 65_536;

/// How long after its expiry a server may accept a token because its clock is behind ours: the maximum of the
/// server's setting.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The tokens of clients on one network.
#[derive(Debug, Default)]
pub struct UsedTokens {
    /// The use of each token, and when it is forgotten.
    tokens: HashMap<TokenIdentity, (TokenUse, Instant)>,
}

impl UsedTokens {
    /// Claims a token for a client, which shows its use in `using`; false if another client has it.
    pub fn claim(&mut self, now: Instant, token: &ClaimedToken, using: TokenUse) -> bool {
        if self.tokens.get(&token.identity).is_some_and(|(using, expires)| *expires > now && !using.is_free())
        {
            return false;
        }
        if self.tokens.len() >= CAPACITY {
            self.make_room(now);
        }
        // By our own clock from now on, which is later than its creation, so no server accepts it for longer.
        self.tokens.insert(token.identity, (using, now + token.lifetime + MAX_CLOCK_SKEW));
        true
    }

    fn make_room(&mut self, now: Instant) {
        self.tokens.retain(|_, (using, expires)| *expires > now && !using.is_free());
        if self.tokens.len() >= CAPACITY
            && let Some(first) =
                self.tokens.iter().min_by_key(|(_, (_, expires))| *expires).map(|(id, _)| *id)
        {
            self.tokens.remove(&first);
        }
    }
}

/// The remembered parts of a token.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedToken {
    identity: TokenIdentity,
    lifetime: Duration,
}

impl From<&ConnectToken> for ClaimedToken {
    fn from(token: &ConnectToken) -> Self {
        ClaimedToken { identity: token.identity(), lifetime: token.lifetime() }
    }
}

/// [`UsedTokens::claim`] for clients on sockets.
pub fn claim_token(token: &ClaimedToken, using: TokenUse) -> bool {
    static PROCESS: LazyLock<(std::time::Instant, Mutex<UsedTokens>)> =
        LazyLock::new(|| (std::time::Instant::now(), Mutex::default()));
    let (started, used) = &*PROCESS;
    let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
    used.claim(Instant::ZERO + started.elapsed(), token, using)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netcode::{Client, ClientConfig, TokenParams};
    use crate::rng::Rng;
    use crate::store::Datagrams;
    use crate::time::UnixSeconds;

    fn client(seed: u64) -> (ClaimedToken, Client) {
        let params = TokenParams {
            protocol_id: 1,
            private_key: &[0; 32],
            client_id: 1,
            created: UnixSeconds(1000),
            lifetime: Some(30),
            timeout: Some(5),
            public_addresses: &["10.0.0.1:1".parse().unwrap()],
            internal_addresses: None,
            user_data: &[0; 256],
            dated: true,
        };
        let token = ConnectToken::generate(&params, &mut Rng::seeded(seed)).unwrap();
        let claimed = ClaimedToken::from(&token);
        (claimed, Client::new(ClientConfig::new(1), token, Instant::ZERO).unwrap())
    }

    #[test]
    fn a_token_is_one_clients_from_its_dialling_until_it_expired() {
        let mut used = UsedTokens::default();
        let (token, mut first) = client(1);
        let (_, second) = client(1);
        let mut claim = |at, token: &ClaimedToken, client: &Client| {
            used.claim(Instant::ZERO + Duration::from_secs(at), token, client.token_use())
        };
        assert!(claim(0, &token, &first));
        assert!(!claim(0, &token, &second), "it is dialling");
        let (other, of_other) = client(2);
        assert!(claim(0, &other, &of_other), "another token");
        first.disconnect(None, &mut Datagrams::new()).unwrap();
        drop(first);
        assert!(!claim(30 + 3599, &token, &second), "it has sealed its goodbyes");
        assert!(claim(30 + 3600, &token, &second), "no server takes it any more");
    }

    #[test]
    fn a_token_that_sealed_nothing_is_free_again() {
        let mut used = UsedTokens::default();
        for (end, is_free) in [(4, false), (6, true)] {
            let (token, mut dialling) = client(3);
            assert!(used.claim(Instant::ZERO, &token, dialling.token_use()));
            dialling.update(Instant::ZERO + Duration::from_secs(end), &mut Datagrams::new());
            assert_eq!(used.claim(Instant::ZERO, &token, client(3).1.token_use()), is_free);
            assert_eq!(dialling.state().is_final(), is_free);
            used = UsedTokens::default();
        }
        let (token, dropped) = client(4);
        assert!(used.claim(Instant::ZERO, &token, dropped.token_use()));
        drop(dropped);
        assert!(used.claim(Instant::ZERO, &token, client(4).1.token_use()));
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut used = UsedTokens::default();
        let (token, mut client) = client(5);
        client.disconnect(None, &mut Datagrams::new()).unwrap();
        for n in 0..=CAPACITY as u64 {
            let mut identity = token.identity;
            identity[..8].copy_from_slice(&n.to_le_bytes());
            let lifetime = Duration::from_secs(30 + n);
            assert!(used.claim(Instant::ZERO, &ClaimedToken { identity, lifetime }, client.token_use()));
        }
        assert_eq!(used.tokens.len(), CAPACITY);
    }
}
