"""Downloads a paced stream, and prints the longest time without an octet in ms: stream.py DEVICE PROXY_PORT PORT PATH (- and 0: none)."""
import socket
import sys
import time

device, proxy_port, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
server = ("10.9.9.9", int(port))
connection = socket.socket()
if device != "-":
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
connection.settimeout(30)
connection.connect(("127.0.0.1", proxy_port) if proxy_port else server)
origin = f"http://10.9.9.9:{port}" if proxy_port else ""
connection.sendall(f"GET {origin}{path} HTTP/1.1\r\nHost: 10.9.9.9:{port}\r\nConnection: close\r\n\r\n".encode())
longest, total, last = 0, 0, None
while True:
    try:
        octets = connection.recv(1 << 16)
    except OSError:
        octets = b""
        longest = max(longest, 30)
    now = time.monotonic()
    if not octets:
        break
    total += len(octets)
    if last is not None:
        longest = max(longest, now - last)
    last = now
print(round(longest * 1000), total)
