"""Plays a video by range requests: video.py DEVICE PROXY_PORT PORT BITS_PER_SECOND SECONDS (- and 0: none).

Pieces of 2 s, one request each on one connection; the buffer holds at most 10 s, and playing begins with 4 s. Prints the ms until it
plays, the number of stalls, and the ms of all stalls.
"""
import http.client
import socket
import sys
import time

device, (proxy_port, port, rate, seconds) = sys.argv[1], map(int, sys.argv[2:6])
PIECE_S, KEPT_S, FIRST_S = 2, 10, 4
connection = http.client.HTTPConnection("127.0.0.1" if proxy_port else "10.9.9.9", proxy_port or port, timeout=60)
if device != "-":
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    connection.sock.connect(("10.9.9.9", port))
url = f"http://10.9.9.9:{port}/large.bin" if proxy_port else "/large.bin"
begin = then = time.monotonic()
kept, started, stalls, stalled = 0.0, None, 0, 0.0
for number in range(seconds // PIECE_S):
    size = rate * PIECE_S // 8
    connection.request("GET", url, headers={"Range": f"bytes={number * size}-{(number + 1) * size - 1}"})
    answer = connection.getresponse()
    assert answer.status == 206 and len(answer.read()) == size
    now = time.monotonic()
    if started is not None:
        kept -= now - then
        if kept < 0:
            stalls, stalled, kept = stalls + 1, stalled - kept, 0.0
    then = now
    kept += PIECE_S
    if started is None and kept >= FIRST_S:
        started = now - begin
    if kept > KEPT_S:
        time.sleep(kept - KEPT_S)
print(round(started * 1000), stalls, round(stalled * 1000))
