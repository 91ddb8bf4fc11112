"""Forwards connections to 127.0.0.1:PORT through the proxy to 10.9.9.9:PORT: forward.py PROXY_PORT PORT. Ends with its input."""
import os
import socket
import sys
import threading

threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
proxy_port, port = map(int, sys.argv[1:3])


def pump(source, sink):
    try:
        while octets := source.recv(1 << 18):
            sink.sendall(octets)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()


listener = socket.create_server(("127.0.0.1", port))
while True:
    client = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", proxy_port))
    server.sendall(bytes([5, 1, 0, 5, 1, 0, 1, 10, 9, 9, 9]) + port.to_bytes(2, "big"))
    answer = b""
    while len(answer) < 12:
        answer += server.recv(12 - len(answer))
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
