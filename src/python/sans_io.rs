//! What the sans-IO server and the sans-IO client are the same in, for what drives them.

use core::net::SocketAddr;

use super::address::Address;
use super::chunks::ChunkCore;
use super::inbox::{Fates, Packets};
use crate::endpoint::{Client, ClientEvent, ClientHandle, Goodbye, Inbox, Server, ServerEvent};
use crate::netcode::Counters;
use crate::store::Datagrams;
use crate::time::{Instant, UnixSeconds};
use crate::transport::chunks::ChunkCounters;
use crate::transport::{Attribute, Column, PacketCounters, Read, ScoreError, Unread};

/// A server or a client.
pub(super) trait Core: ChunkCore + Send + 'static {
    type Event;
    /// What it is, for sentences.
    const NAME: &str;

    /// Which one it is, for log lines.
    fn describe(&self, address: Address) -> String;
    fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    );
    /// Appends what became of messages and packets since the last time.
    fn take_fates(&mut self, fates: &mut Fates, packets: &mut Packets);

    fn transmit(&mut self, now: Instant, out: &mut Datagrams);
    fn transmit_between(&mut self, now: Instant, out: &mut Datagrams);
    fn next_deadline(&self) -> Instant;
    fn has_news(&self) -> bool;
    fn close(&mut self, now: Instant, out: &mut Datagrams);
    fn begin_close(&mut self, now: Instant, goodbye: Goodbye);
    fn is_over(&self) -> bool;
    fn poll_event(&mut self) -> Option<Self::Event>;
    fn take_messages(&mut self, inbox: &mut Inbox);
    fn take_unread(&mut self) -> Vec<(ClientHandle, Unread)>;
    fn handle_read(
        &mut self,
        now: Instant,
        client: ClientHandle,
        read: Read,
        inbox: &mut Inbox,
        out: &mut Datagrams,
    );
    fn netcode_counters(&self) -> &Counters;
    fn packet_counters(&self) -> PacketCounters;
    fn all_chunk_counters(&self) -> ChunkCounters;
    fn candidates(&self) -> usize;
    fn describe_candidates(&self, now: Instant, attribute: Attribute) -> Column;
    fn prioritize(&mut self, scores: &[f32]) -> Result<(), ScoreError>;
}

/// What both have as methods of their own.
macro_rules! as_it_is {
    () => {
        fn transmit(&mut self, now: Instant, out: &mut Datagrams) {
            self.transmit(now, out);
        }

        fn transmit_between(&mut self, now: Instant, out: &mut Datagrams) {
            self.transmit_between(now, out);
        }

        fn next_deadline(&self) -> Instant {
            self.next_deadline()
        }

        fn has_news(&self) -> bool {
            self.has_news()
        }

        fn close(&mut self, now: Instant, out: &mut Datagrams) {
            self.close(now, out);
        }

        fn begin_close(&mut self, now: Instant, goodbye: Goodbye) {
            self.begin_close(now, goodbye);
        }

        fn is_over(&self) -> bool {
            self.is_over()
        }

        fn poll_event(&mut self) -> Option<Self::Event> {
            self.poll_event()
        }

        fn take_messages(&mut self, inbox: &mut Inbox) {
            self.take_messages(inbox);
        }

        fn take_unread(&mut self) -> Vec<(ClientHandle, Unread)> {
            self.take_unread()
        }

        fn handle_read(
            &mut self,
            now: Instant,
            client: ClientHandle,
            read: Read,
            inbox: &mut Inbox,
            out: &mut Datagrams,
        ) {
            self.handle_read(now, client, read, inbox, out);
        }

        fn netcode_counters(&self) -> &Counters {
            self.netcode().counters()
        }

        fn packet_counters(&self) -> PacketCounters {
            self.packet_counters()
        }

        fn all_chunk_counters(&self) -> ChunkCounters {
            self.all_chunk_counters()
        }

        fn candidates(&self) -> usize {
            self.candidates()
        }

        fn describe_candidates(&self, now: Instant, attribute: Attribute) -> Column {
            self.describe_candidates(now, attribute)
        }

        fn prioritize(&mut self, scores: &[f32]) -> Result<(), ScoreError> {
            self.prioritize(scores)
        }
    };
}

impl Core for Server {
    type Event = ServerEvent;
    const NAME: &str = "server";

    fn describe(&self, address: Address) -> String {
        format!("the server at {}", address.0)
    }

    fn handle_datagram(
        &mut self,
        now: Instant,
        unix: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        self.handle_datagram(now, unix, from, datagram, out);
    }

    fn take_fates(&mut self, fates: &mut Fates, packets: &mut Packets) {
        let (mut told, mut known) = (Vec::new(), Vec::new());
        self.take_notifications(&mut told);
        told.into_iter().for_each(|(client, told)| fates.push(client.slot, told));
        self.take_packet_fates(&mut known);
        known.into_iter().for_each(|(client, fate)| packets.push(client.slot, fate));
    }

    as_it_is!();
}

impl Core for Client {
    type Event = ClientEvent;
    const NAME: &str = "client";

    fn describe(&self, address: Address) -> String {
        format!("the client at {} of {}", address.0, self.server_address())
    }

    fn handle_datagram(
        &mut self,
        now: Instant,
        _: UnixSeconds,
        from: SocketAddr,
        datagram: &mut [u8],
        out: &mut Datagrams,
    ) {
        self.handle_datagram(now, from, datagram, out);
    }

    fn take_fates(&mut self, fates: &mut Fates, packets: &mut Packets) {
        while let Some(told) = self.poll_notification() {
            fates.push(0, told);
        }
        while let Some(fate) = self.poll_packet_fate() {
            packets.push(0, fate);
        }
    }

    as_it_is!();
}
