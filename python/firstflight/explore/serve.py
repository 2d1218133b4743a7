"""The page on loopback."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from firstflight.errors import MachineError


def server(page: str, port: int) -> ThreadingHTTPServer:
    """Listens on 127.0.0.1 (port 0: a free one) and answers with the page. MachineError if the port is taken."""
    content = page.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.split("?")[0] != "/":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise MachineError(f"port {port} of 127.0.0.1: {error.strerror}; name another: --port") from None
