"""Answers GET /bytes/N, /paced/BITS_PER_SECOND/SECONDS, /image/N and /page/N, and accepts uploads by PUT. Ends with its input."""
import http.server
import os
import sys
import threading
import time

threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
PIECE = os.urandom(1 << 18)
TICK = 0.02


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, length, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Type", kind)
        self.end_headers()

    def do_GET(self):
        try:
            name, *numbers = self.path.partition("?")[0].strip("/").split("/")
            getattr(self, "get_" + name)(*map(int, numbers))
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True

    def get_bytes(self, length):
        self.answer(length)
        while length > 0:
            self.wfile.write(memoryview(PIECE)[:length])
            length -= len(PIECE)

    def get_paced(self, rate, seconds):
        count, size = round(seconds / TICK), int(rate * TICK / 8)
        self.answer(count * size)
        begin = time.monotonic()
        for number in range(count):
            time.sleep(max(0, begin + number * TICK - time.monotonic()))
            self.wfile.write(number.to_bytes(8, "big") + PIECE[8:size])

    def get_image(self, number):
        body = b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><!--" + b"x" * 8000 + b"--></svg>"
        self.answer(len(body), "image/svg+xml")
        self.wfile.write(body)

    def get_page(self, images):
        tags = "".join(f"<img src=/image/{number}>" for number in range(images))
        script = "<script>onload = () => document.title = 'took ' + performance.timing.loadEventStart + ' ' + " \
            "performance.timing.navigationStart; </script>"
        body = f"<html><head>{script}</head><body>{tags}</body></html>".encode()
        self.answer(len(body), "text/html")
        self.wfile.write(body)

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 1 << 16)))
        self.answer(0)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


Server(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
