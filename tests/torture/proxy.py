"""A way to PostgreSQL that can be cut at any moment."""

import socket
import struct
import threading


class Proxy:
    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            ours, _ = self.listener.accept()
            try:
                theirs = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                ours.close()
                continue
            with self.lock:
                self.pairs.add((ours, theirs))
            for source, sink in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=self.carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """Ends every connection as a machine does that has lost its power: with a reset, in the middle of anything."""
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                try:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.shutdown(socket.SHUT_RDWR)
                    end.close()
                except OSError:
                    pass
        return len(pairs)
