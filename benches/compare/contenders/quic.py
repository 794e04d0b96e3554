"""QUIC through aioquic: DATAGRAM frames for unreliable messages, one stream for reliable ones."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import tempfile
from pathlib import Path
from typing import Any

from contenders.asyncio_udp import Waiting
from contenders.endpoint import LOCALHOST, Options, not_installed

NAME = "aioquic"
VARIANTS = ("",)
REQUIRES = ("aioquic",)
GIVES = "connections, TLS 1.3, acks, resending, ordering within a stream, congestion control"
LACKS = "message boundaries in streams (messages of 64 bytes each are counted in bytes here)"
SWARM = None
NO_SWARM = (
    "there is no native QUIC client in the swarm, and clients in Python would be measured more than "
    "the server"
)
RELIABLE = True
DATAGRAMS = True
UNRELIABLE = True
NATIVE = False
WAKES = "its own event loop waits for it, in every measurement"
MESSAGE = 64


def missing(_variant: str) -> str | None:
    return not_installed("aioquic")


def run(_variant: str, coroutine: Any) -> None:
    asyncio.run(coroutine)


class End(Waiting):
    """All connections of one side."""

    def __init__(self, reliable: bool) -> None:
        super().__init__()
        self.reliable = reliable
        self.streams: dict[Any, int] = {}
        self.whole = True
        self.rest = b""

    def protocol(self, *arguments: Any, **keywords: Any) -> Any:
        from aioquic.asyncio.protocol import QuicConnectionProtocol
        from aioquic.quic.events import DatagramFrameReceived, HandshakeCompleted, StreamDataReceived

        end = self

        class Connection(QuicConnectionProtocol):
            def quic_event_received(self, event: Any) -> None:
                if isinstance(event, DatagramFrameReceived):
                    end.put(self, event.data)
                elif isinstance(event, StreamDataReceived):
                    end.streams.setdefault(self, event.stream_id)
                    end.stream_data(self, event.data)
                elif isinstance(event, HandshakeCompleted):
                    end.peers.append(self)

        return Connection(*arguments, **keywords)

    def stream_data(self, peer: Any, data: bytes) -> None:
        if not self.whole:
            self.put(peer, data)
            return
        self.rest += data
        cut = len(self.rest) // MESSAGE * MESSAGE
        for start in range(0, cut, MESSAGE):
            self.put(peer, self.rest[start : start + MESSAGE])
        self.rest = self.rest[cut:]

    def send(self, peer: Any, data: bytes) -> None:
        if self.reliable:
            self.send_block(peer, data)
        else:
            peer._quic.send_datagram_frame(data)

    def send_block(self, peer: Any, data: bytes) -> None:
        if peer not in self.streams:
            self.streams[peer] = peer._quic.get_next_available_stream_id()
        peer._quic.send_stream_data(self.streams[peer], data)

    async def flush(self) -> None:
        for peer in self.peers:
            peer.transmit()

    def close(self) -> None:
        for peer in self.peers:
            peer.close()


def configuration(**more: Any) -> Any:
    from aioquic.quic.configuration import QuicConfiguration

    return QuicConfiguration(
        alpn_protocols=["compare"],
        max_datagram_frame_size=65536,
        max_data=1 << 26,
        max_stream_data=1 << 26,
        **more,
    )


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine and its key, in files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, private


async def serve(_variant: str, options: Options) -> End:
    from aioquic.asyncio import serve as quic_serve

    end = End(options.reliable)
    end.whole = not options.block
    with tempfile.TemporaryDirectory() as folder:
        settings = configuration(is_client=False)
        settings.load_cert_chain(*certificate(Path(folder)))
    server = await quic_serve(LOCALHOST, 0, configuration=settings, create_protocol=end.protocol)
    end.port = server._transport.get_extra_info("sockname")[1]
    return end


async def connect(_variant: str, port: int, options: Options) -> End:
    from aioquic.asyncio import connect as quic_connect

    end = End(options.reliable)
    settings = configuration(is_client=True, verify_mode=ssl.CERT_NONE)
    end.context = quic_connect(LOCALHOST, port, configuration=settings, create_protocol=end.protocol)
    await end.context.__aenter__()
    return end
