"""File drop: files as chunks, with a progress bar. Run each in its own terminal::

    python -m tickwire.samples.filedrop serve --folder inbox
    python -m tickwire.samples.filedrop send world.zip --network 4g

An interrupted transfer resumes where it stopped when the same file is sent again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import tickwire as tw
from tickwire.samples import command

MAX_NAME = 64  # the bytes that a chunk's label takes


@tw.message
class Saved:
    """The name of the saved file; sent to the file's sender."""

    name: Annotated[str, tw.text(2 * MAX_NAME)]


PROTOCOL = tw.Protocol(
    id=0x7469636B_64726F70, messages=[Saved], channels=[tw.reliable_ordered("answers"), tw.chunks("files")]
)
TICKS_PER_SECOND = 60
# A folder that a file can't leave, and a name that no shell trips over.
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._- ")


def serve(parsed: argparse.Namespace) -> None:
    """Receives files into a folder until Ctrl-C."""
    folder, parts = parsed.folder, parsed.folder / ".part"
    try:
        parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"can't keep files in {folder}: {error.strerror}; choose another --folder"
        raise command.SampleError(text) from None
    limit = round(parsed.limit * 2**20)
    with command.open_server(
        parsed, PROTOCOL, transfers=tw.transfer.Transfers(directory=parts, file_limit=limit)
    ) as server:
        print(f"Files sent to {server.address} go into {folder}; Ctrl-C ends it.", flush=True)
        with tw.run(server, TICKS_PER_SECOND) as ticks:
            for _, inbox in ticks:
                take(server, inbox, folder)


def take(server: tw.Server, inbox: tw.Inbox[tuple[tw.ClientHandle, object]], folder: Path) -> None:
    """Saves received files, and notifies their senders."""
    kept: dict[Path, Path] = {}  # several clients may send the same file at once
    for chunk in inbox.chunks:
        assert chunk.path is not None
        assert chunk.client is not None
        if chunk.path not in kept:
            kept[chunk.path] = keep(chunk.path, folder, safe_name(chunk.label))
        saved = kept[chunk.path].name
        print(f"{saved}: {chunk.size:,} bytes", flush=True)
        server.send(chunk.client, Saved(saved))  # if it waited for the answer
    for _, label, error in inbox.chunk_failures:
        print(f"{safe_name(label)} didn't come: {error}", flush=True)


def keep(came: Path, folder: Path, name: str) -> Path:
    """Moves a file into the folder, under an unused name."""
    wanted = Path(name)
    target, number = folder / wanted, 2
    while target.exists():
        target = folder / f"{wanted.stem}-{number}{wanted.suffix}"
        number += 1
    return came.rename(target)


def safe_name(label: str) -> str:
    """Makes a safe file name from the sender's label, because the label can be any text."""
    return "".join(letter if letter in SAFE else "_" for letter in label).strip(" .") or "unnamed"


def send(parsed: argparse.Namespace) -> None:
    """Sends a file, and shows the progress."""
    command.extra("rich")
    name = parsed.file.name
    try:
        chunk = tw.transfer.Chunk(parsed.file)
    except OSError as error:
        text = f"can't read {parsed.file}: {error.strerror}; name a file that you may read"
        raise command.SampleError(text) from None
    transfer: tw.transfer.Transfer | None = None
    saved: list[Saved] = []
    # A thread sends as fast as the link carries it, also between ticks.
    dial = command.dial(parsed, PROTOCOL, tuning=tw.Tuning(driver="thread"), client_id=client_id(chunk))
    with (
        dial as client,
        tw.run(client, TICKS_PER_SECOND) as ticks,
        _progress(name) as show,
    ):
        for _, inbox in ticks:
            for event in inbox.events:
                match event:
                    case tw.Connected():
                        transfer = client.send_chunk(chunk, label=_label(name))
                    case tw.Disconnected(_, reason):
                        raise command.disconnected(reason, parsed.address)
                    case _:
                        pass
            saved += inbox.messages
            if transfer is None:
                continue
            # The thread can end the connection between two ticks: the next one says why it ended.
            if transfer.error and client.connected:
                raise command.SampleError(
                    f"{name} didn't go through: {transfer.error}; see --limit of its server"
                )
            show(transfer)
            if saved:
                break
    if not saved:
        raise KeyboardInterrupt
    print(f"The server has it, as {safe_name(saved[0].name)}.")


def client_id(chunk: tw.transfer.Chunk) -> int:
    """A client id that is the same for the same file from the same machine. The server resumes partial
    files by this id.
    """
    # By its name: some machines, containers above all, have no other number that stays.
    machine = socket.gethostname().encode()
    return int.from_bytes(hashlib.sha256(chunk.hash + machine).digest()[:8], "little")


def _label(name: str) -> str:
    return name.encode(errors="replace")[-MAX_NAME:].decode(errors="ignore")


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Callable[[tw.transfer.Transfer], None]]:
    """Makes a progress bar: returns a function that shows a transfer's progress."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(name, total=None, rate="connecting")

        def show(transfer: tw.transfer.Transfer) -> None:
            rate = f"{transfer.rate * 8 / 1e6:.1f} Mbit/s" if transfer.rate else ""
            progress.update(task, completed=transfer.bytes_done, total=transfer.size, rate=rate)

        yield show


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit code."""
    prog = "python -m tickwire.samples.filedrop"
    parser = command.Parser(prog=prog, description="Sends files to a folder elsewhere.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    server = commands.add_parser("serve", help="take files into a folder")
    command.add_server_options(server)
    server.add_argument("--folder", type=Path, default=Path("inbox"), help="where files go (inbox)")
    limit = command.number(float, 0.001, 1_000_000)
    text = "the largest file (1024)"
    server.add_argument("--limit", type=limit, default=1024, metavar="MIB", help=text)
    server.set_defaults(run=serve)
    client = commands.add_parser("send", help="send a file")
    client.add_argument("file", metavar="FILE", type=Path, help="the file")
    command.add_client_options(client)
    command.add_network_option(client)
    client.set_defaults(run=send)
    return command.run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
