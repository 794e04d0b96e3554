//! Endpoints with threads of their own under load, over real loopback sockets: games that send, receive, leave and close
//! while the threads work. What it is for is that a sanitizer looks on: `make sanitize`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tickwire::driver::capture::Capture;
use tickwire::driver::proxy::{Both, Proxy, ProxyConfig, ProxyThread};
use tickwire::driver::udp::UdpConfig;
use tickwire::driver::{Driver, Next, OsEntropy, Poller, Service, Shared};
use tickwire::endpoint::{
    ChunkLimits, ClientConfig, DEVELOPMENT_ADDRESS, DEVELOPMENT_KEY, Host, Inbox, PeerHandle, SendError,
    ServerConfig,
};
use tickwire::netcode::{self, ConnectToken, TokenParams};
use tickwire::netsim::Conditions;
use tickwire::store::Datagrams;
use tickwire::time::{Duration, Instant};
use tickwire::transport::{Body, ConnectionConfig, Protocol, SendOptions};
use tickwire::wire::Value;

use crate::pair::{DIALLED, RELIABLE, number, protocol};

const PROTOCOL_ID: u64 = 7;
const CLIENTS: u32 = 8;
/// For each client that stays.
const MESSAGES: u32 = 200;
/// Far more than any of this takes, also with a sanitizer.
const PATIENCE: Duration = Duration::from_secs(120);

/// An endpoint and what carries its datagrams.
struct Place {
    core: Host,
    /// None once closed.
    driver: Option<Driver>,
    /// Told after each turn that read something.
    news: SyncSender<()>,
}

impl Service for Place {
    fn turn(&mut self) -> Next {
        let Place { core, driver, news } = self;
        let Some(driver) = driver else { return Next::Over };
        let mut read = false;
        let more = driver.receive_at_most(16, |now, unix, from, datagram, out| {
            read = true;
            core.handle_datagram(now, unix, from, datagram, out);
        });
        driver.transmit(|now, out| core.transmit_between(now, out));
        if read {
            let _told_already = news.try_send(());
        }
        if more.unwrap() {
            return Next::Pause(Duration::from_micros(100));
        }
        Next::Wait(core.next_deadline() - driver.now())
    }

    fn close(&mut self) {
        let Some(mut driver) = self.driver.take() else { return };
        driver.transmit(|now, out| self.core.close(now, out));
        driver.finish();
    }

    fn discard(&mut self) {
        self.driver = None;
    }
}

/// A host with a thread, and what tells its game that there is something to read.
struct Game {
    host: Arc<Shared<Place>>,
    news: Receiver<()>,
}

impl Game {
    fn new(core: Host, driver: Driver) -> Self {
        let (sender, news) = sync_channel(1);
        let bell = Poller::new(driver.socket().unwrap().handle().unwrap()).unwrap();
        let host = Place { core, driver: Some(driver), news: sender };
        Game { host: Arc::new(Shared::new(host, Some(bell)).unwrap()), news }
    }

    /// Does something with the core, and wakes the thread.
    fn with<T>(&self, work: impl FnOnce(&mut Host, Instant, &mut Datagrams) -> T) -> T {
        let mut host = self.host.lock().unwrap();
        let Place { core, driver, .. } = &mut *host;
        let result = driver.as_mut().unwrap().transmit(|now, out| work(core, now, out));
        drop(host);
        self.host.wake();
        result
    }

    fn wait(&self) {
        self.news.recv_timeout(PATIENCE).expect("there is something to read in time");
    }
}

fn driver(capture: &Capture) -> Driver {
    let config = UdpConfig { gro: false, ..UdpConfig::default() };
    let mut driver = Driver::udp("127.0.0.1:0".parse().unwrap(), config).unwrap();
    driver.set_capture(capture.clone());
    driver
}

fn server(capture: &Capture) -> Game {
    let driver = driver(capture);
    let addresses = vec![driver.local_address(), DEVELOPMENT_ADDRESS];
    let config = ServerConfig {
        netcode: netcode::ServerConfig::new(PROTOCOL_ID, DEVELOPMENT_KEY, CLIENTS as usize, addresses),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits { memory_bytes: 10_000 },
    };
    let core = Host::server(config, protocol(), &mut OsEntropy, driver.unix()).unwrap();
    Game::new(core, driver)
}

fn client(id: u32, server: SocketAddr, capture: &Capture) -> Game {
    let driver = driver(capture);
    let params = TokenParams {
        protocol_id: PROTOCOL_ID,
        private_key: &DEVELOPMENT_KEY,
        client_id: id.into(),
        created: driver.unix(),
        lifetime: Some(300),
        timeout: Some(120),
        public_addresses: &[server],
        internal_addresses: Some(&[DEVELOPMENT_ADDRESS]),
        user_data: &[0; 256],
        dated: true,
    };
    let token = ConnectToken::generate(&params, &mut OsEntropy).unwrap();
    let config = ClientConfig {
        netcode: netcode::ClientConfig::new(PROTOCOL_ID),
        connection: ConnectionConfig::default(),
        chunks: ChunkLimits::CLIENT,
    };
    let core = Host::client(config, protocol(), token, driver.now()).unwrap().0;
    Game::new(core, driver)
}

fn numbers(protocol: &Protocol, inbox: &Inbox) -> Vec<(PeerHandle, u32)> {
    let Body::Declared(schema) = &protocol.messages()[0].body else { panic!("it is declared") };
    let number = |record| match schema.fields()[0].load(inbox.game.body(record)) {
        Value::Uint(number) => number as u32,
        other => panic!("{other:?}"),
    };
    inbox.game.records.iter().map(|record| (record.head.peer, number(record))).collect()
}

/// Answers each message until it is told to end; how many there were.
fn echo(game: &Game, done: &AtomicBool) -> u32 {
    let (protocol, mut inbox, mut answered) = (protocol(), Inbox::new(), 0);
    while !done.load(Ordering::Relaxed) {
        game.wait();
        inbox.game.clear();
        game.with(|core, now, out| {
            while core.poll_event().is_some() {}
            core.take_messages(&mut inbox);
            for (client, message) in numbers(&protocol, &inbox) {
                match core.send(now, client, RELIABLE, number(message), SendOptions::default()) {
                    Ok(()) => answered += 1,
                    // It left with messages on their way.
                    Err(SendError::NotConnected) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            core.transmit(now, out);
        });
    }
    answered
}

/// Sends numbers until this many answers came, each once and in order.
fn play(game: &Game, answers: u32) {
    let (protocol, mut inbox) = (protocol(), Inbox::new());
    let (mut sent, mut came) = (0, Vec::new());
    while came.len() < answers as usize {
        inbox.game.clear();
        game.with(|core, now, out| {
            while core.poll_event().is_some() {}
            core.take_messages(&mut inbox);
            // As many as one tick of a busy game has.
            for _ in 0..10 {
                if sent < MESSAGES
                    && core.is_connected(DIALLED)
                    && core.send(now, DIALLED, RELIABLE, number(sent), SendOptions::default()).is_ok()
                {
                    sent += 1;
                }
            }
            core.transmit(now, out);
        });
        came.extend(numbers(&protocol, &inbox).into_iter().map(|(_, number)| number));
        if came.len() < answers as usize {
            game.wait();
        }
    }
    assert_eq!(came, (0..came.len() as u32).collect::<Vec<_>>());
}

#[test]
fn games_come_and_go_while_threads_work() {
    let path = std::env::temp_dir().join(format!("tickwire-threaded-{}.pcapng", std::process::id()));
    let capture = Capture::create(&path, 1 << 20).unwrap();
    let server = server(&capture);
    let host = Arc::clone(&server.host);
    let target = host.lock().unwrap().driver.as_ref().unwrap().local_address();
    let proxy = Proxy::bind("127.0.0.1:0".parse().unwrap(), ProxyConfig::new(target)).unwrap();
    let (proxy, done) = (ProxyThread::start(proxy).unwrap(), &AtomicBool::new(false));
    let dial = proxy.address();
    thread::scope(|scope| {
        let echoes = scope.spawn(move || echo(&server, done));
        let looks = scope.spawn(|| {
            // Asks all that others work on meanwhile.
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                let loss = if looks % 2 == 0 { 0.02 } else { 0.0 };
                let conditions = Conditions::perfect().loss(loss);
                proxy.set_conditions(Both { up: conditions, down: conditions }).unwrap();
                assert!(capture.counters().bytes <= 1 << 20);
                assert!(host.lock().unwrap().core.connected().count() <= CLIENTS as usize);
                capture.flush();
                looks += 1;
            }
            looks
        });
        let games: Vec<_> = (0..CLIENTS)
            .map(|id| {
                let capture = &capture;
                scope.spawn(move || {
                    let game = client(id, dial, capture);
                    if id % 2 == 0 {
                        play(&game, MESSAGES);
                        // The game and another thread close it, and both see it closed.
                        let host = Arc::clone(&game.host);
                        let other = thread::spawn(move || host.close());
                        game.host.close();
                        assert!(game.host.lock().unwrap().driver.is_none());
                        other.join().unwrap();
                    } else {
                        // Gone in the middle, without a close.
                        play(&game, MESSAGES / 4);
                    }
                })
            })
            .collect();
        let played: Vec<_> = games.into_iter().map(|game| game.join()).collect();
        done.store(true, Ordering::Relaxed);
        // Ends the wait of who answers.
        let _told_already = host.lock().unwrap().news.try_send(());
        assert!(played.iter().all(Result::is_ok));
        assert!(echoes.join().unwrap() >= CLIENTS / 2 * (MESSAGES + MESSAGES / 4));
        assert!(looks.join().unwrap() > 0);
    });
    host.close();
    assert!(proxy.stop().paths.up.forwarded > 0);
    assert!(capture.close().is_ok());
    std::fs::remove_file(path).unwrap();
}
