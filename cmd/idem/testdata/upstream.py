"""The service behind the gateway: it knows nothing of keys, and counts what reaches it."""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

arrived = {}
lock = threading.Lock()
released = threading.Event()
LARGE = 5 << 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "session=1")
        self.end_headers()
        self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def begin_chunks(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def do_GET(self):
        if self.path == "/release":
            released.set()
        if self.path.startswith("/arrived"):
            self.answer(200, str(arrived.get(self.path[len("/arrived"):], 0)).encode())
            return
        self.answer(200, b"ok")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            n = arrived[self.path] = arrived.get(self.path, 0) + 1
        if self.path.startswith("/slow"):
            released.wait()
        if self.path.startswith("/die"):
            self.close_connection = True
            self.connection.close()
        elif self.path.startswith("/echo"):
            headers = {k.lower(): v for k, v in self.headers.items()}
            self.answer(200, json.dumps({"headers": headers, "length": len(body)}).encode())
        elif self.path.startswith("/large"):
            self.begin_chunks("application/octet-stream")
            for _ in range(LARGE >> 16):
                self.chunk(b"x" * (1 << 16))
            self.chunk(b"")
        elif self.path.startswith("/unknown-length"):
            self.begin_chunks("text/plain")
            self.chunk(b"one,")
            self.chunk(b"two")
            self.chunk(b"")
        elif self.path.startswith("/events"):
            self.begin_chunks("text/event-stream")
            self.chunk(b"data: first\n\n")
            released.wait()
            self.chunk(b"data: second\n\n")
            self.chunk(b"")
        else:
            self.answer(201, b'{"payment":%d}' % n)

    do_PUT = do_POST


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that has gone is no news
        pass


server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print(server.server_port, flush=True)
server.serve_forever()
