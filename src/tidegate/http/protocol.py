"""HTTP/1.1 on the socket: uvicorn's fast protocol, mended for clients that ask for HTTP/2.

Java's HTTP client, and with it Spark, sends `Upgrade: h2c` with its requests. A server that does not speak h2c must
answer as if that had not been said; the parser instead takes everything after the headers for another protocol and
loses the body. So such a request is read a second time, without the words that asked for the upgrade:

    POST /x  Connection: Upgrade  Upgrade: h2c  Content-Length: 2   {}      what came
    POST /x  Content-Length: 2                                      {}      what is read
"""

from __future__ import annotations

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_UPGRADE = frozenset({b"upgrade", b"http2-settings"})


class Http1Protocol(HttpToolsProtocol):
    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            head = self._head_without_upgrade()
            self._renew_parser()
            self.data_received(head + rest)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def on_headers_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _head_without_upgrade(self) -> bytes:
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token.lower() not in _UPGRADE) or b"keep-alive"
            if name not in _UPGRADE:
                lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _renew_parser(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
