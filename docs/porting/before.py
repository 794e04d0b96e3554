"""The coin game with sockets, threads and pickle."""

import contextlib
import pickle
import socket
import struct
import threading

from rules import is_near, moved, place


def send(sock, what):
    data = pickle.dumps(what)
    sock.sendall(struct.pack("!I", len(data)) + data)


def receive(sock):
    (size,) = struct.unpack("!I", receive_exactly(sock, 4))
    return pickle.loads(receive_exactly(sock, size))


def receive_exactly(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the other side closed the connection")
        data += more
    return data


class Server:
    def __init__(self, address):
        self.listener = socket.create_server(address)
        self.address = self.listener.getsockname()
        self.lock = threading.Lock()
        self.sockets, self.players = {}, {}
        self.coin = place()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        name = receive(sock)
        with self.lock:
            self.sockets[name] = sock
        try:
            while True:
                spot = receive(sock)
                with self.lock:
                    score = self.players.get(name, (spot, 0))[1]
                    if is_near(spot, self.coin):
                        score, self.coin = score + 1, place()
                    self.players[name] = spot, score
        except (OSError, ConnectionError):
            pass
        with self.lock:
            del self.sockets[name]
            self.players.pop(name, None)
        sock.close()

    def tick(self):
        with self.lock:
            for sock in self.sockets.values():
                with contextlib.suppress(OSError):  # its thread notices, too
                    send(sock, (self.players, self.coin))

    def close(self):
        self.listener.close()
        with self.lock:
            for sock in self.sockets.values():
                sock.shutdown(socket.SHUT_RDWR)  # ends its thread


class Client:
    def __init__(self, address, name):
        self.name, self.me = name, place()
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lock = threading.Lock()
        self.state = {}, (0, 0)
        self.lost = False
        send(self.sock, name)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        try:
            while True:
                state = receive(self.sock)
                with self.lock:
                    self.state = state
        except (OSError, ConnectionError):
            self.lost = True

    def tick(self, keys):
        self.me = moved(self.me, keys)
        if not self.lost:
            try:
                send(self.sock, self.me)
            except OSError:
                self.lost = True

    def players(self):
        """Everybody's place and score, by name: one's own place is known here."""
        with self.lock:
            players, coin = dict(self.state[0]), self.state[1]
        score = players.get(self.name, (None, 0))[1]
        return players | {self.name: (self.me, score)}, coin

    def close(self):
        self.sock.close()
