# ruff: noqa: E501 (lines of logs stand as programs write them)
"""Logs as other programs write them: each format is a row of a table, what is around a line is peeled off, a format may
be given, and a refusal names a way out."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from firstflight import observe
from firstflight.cli import main
from firstflight.errors import RequestError
from firstflight.observe.reading import WAY_OUT

NOON = datetime(2024, 7, 4, 12, 0, 7, tzinfo=UTC).timestamp()
COMMON = '192.0.2.{i} - - [04/Jul/2024:12:00:07 +0000] "GET / HTTP/1.1" 200 {size}'
COMBINED = COMMON + ' "-" "UA/1.0"'

# Name: the beginning of the title, a line, and what it tells: seconds, whether it has a network, when it was.
LOGS: dict[str, tuple[str, str, float | None, bool, float | None]] = {
    "common": ("common or combined", COMMON, None, True, NOON),
    "X-Forwarded-For first": ("common", COMBINED.replace(" - -", ", 198.51.100.2 - -"), None, True, NOON),
    "X-Forwarded-For of three, without spaces": (
        "common",
        COMBINED.replace(" - -", ",198.51.100.2,10.0.0.1 10.0.0.9 - -"),
        None,
        True,
        NOON,
    ),
    "virtual host without a port": ("common", "www.example.org " + COMBINED, None, True, NOON),
    "virtual host second, lighttpd": ("common", COMBINED.replace(" - -", " www.example.org -"), None, True, NOON),
    "client with its port": ("common", COMBINED.replace(" - -", ":{port} - -"), None, True, NOON),
    "client in brackets with its port": (
        "common",
        COMBINED.replace("192.0.2.{i} ", "[2001:db8::{i}]:{port} "),
        None,
        True,
        NOON,
    ),
    "virtual host without a name": ("common", "198.51.100.9:443 " + COMBINED, None, True, NOON),
    "user with an empty name, Apache": ("common", COMBINED.replace("- -", '- ""'), None, True, NOON),
    "the whole line in quotes, LiteSpeed": ("common", f'"{COMBINED}"', None, True, NOON),
    "X-Forwarded-For first, in quotes": (
        "common",
        '"192.0.2.{i}, 10.0.0.1" 10.0.0.9' + COMBINED[11:],
        None,
        True,
        NOON,
    ),
    "a socket of a file, nginx": ("common", COMBINED.replace("192.0.2.{i}", "unix:"), None, False, NOON),
    "no status": ("common", COMBINED.replace(" 200 ", " - "), None, True, NOON),
    "host before the request, APISIX": (
        "common",
        COMMON.replace('"GET', 'www.example.org:9080 "GET') + ' 0.250 "-" "curl/8.0" 10.0.0.1:80 200 0.249 "http://a"',
        0.25,
        True,
        NOON,
    ),
    "time with a fraction": ("common", COMBINED.replace("07 +", "07.250000 +"), None, True, NOON + 0.25),
    "a name that is not resolved": ("common", COMBINED.replace("192.0.2.{i}", "host{i}.example"), None, False, NOON),
    "nginx's main": ("common", COMBINED + ' "203.0.113.5"', None, True, NOON),
    "ingress-nginx": (
        "common",
        COMBINED + " 422 0.250 [default-web-80] [] 10.0.0.7:8080 9000 0.249 200 0123456789abcdef",
        0.25,
        True,
        NOON,
    ),
    "no status, Traefik": ("Traefik log", COMBINED.replace(" 200 ", " - ") + ' 12 "-" "-" 250ms', 0.25, True, NOON),
    "morgan, in milliseconds": ("common", COMBINED + " - 250.125 ms", 0.250125, True, NOON),
    "nginx's compression ratio is no time": ("common", COMBINED + ' "3.10"', None, True, NOON),
    "gunicorn": ("common", COMBINED + " 0.250000", 0.25, True, NOON),
    "a word between time and request, Gandi": ("common", COMBINED.replace('] "G', '] (0 s) "G'), None, True, NOON),
    "nginx with rt=": ("common", COMBINED + ' rt=0.250 uct="0.000" urt="0.249"', 0.25, True, NOON),
    "Traefik, common": ("Traefik log", COMBINED + ' 12 "web@docker" "http://10.0.0.7:80" 250ms', 0.25, True, NOON),
    "Istio": (
        "Envoy or Istio",
        '[2024-07-04T12:00:07.000Z] "GET /p HTTP/1.1" 200 - via_upstream - "-" 0 {size} 250 22 "-" "curl/8.0" "7a1b" '
        '"shop.example" "10.0.0.5:8080" inbound|8080|| 127.0.0.6:41000 10.0.0.5:8080 192.0.2.{i}:{port} '
        "outbound_.80_._.shop default",
        0.25,
        True,
        NOON,
    ),
    "Istio, TCP": (
        "Envoy or Istio",
        '[2024-07-04T12:00:07.000Z] "- - -" 0 - - - "-" 1033 {size} 250 - "-" "-" "-" "-" "10.0.0.5:8080" '
        "outbound|8080|| 10.0.0.6:41000 10.0.0.5:8080 192.0.2.{i}:{port} - -",
        0.25,
        True,
        NOON,
    ),
    "Ambassador": (
        "Envoy or Istio",
        'ACCESS [2024-07-04T12:00:07.000Z] "GET /p HTTP/1.1" 200 - 0 {size} 250 22 "192.0.2.{i}" "curl/8.0" "7a1b" "s" '
        '"10.0.0.5:8080"',
        0.25,
        True,
        NOON,
    ),
    "Envoy, TCP": (
        "Envoy or Istio",
        '[2024-07-04T12:00:07.000Z] "- - -" 0 - 154 {size} 250 - "-" "-" "-" "-" "10.0.2.1:80"',
        0.25,
        False,
        NOON,
    ),
    "Envoy, client as passed on": (
        "Envoy or Istio",
        '[2024-07-04T12:00:07.000Z] "POST /v1 HTTP/2" 200 - 154 {size} 250 100 "192.0.2.{i}" "nsq2http" "cc21" "l" '
        '"tcp://10.0.2.1:80"',
        0.25,
        True,
        NOON,
    ),
    "HAProxy, TCP": (
        "HAProxy TCP log",
        "Jul  4 12:00:07 lb haproxy[14387]: 192.0.2.{i}:{port} [04/Jul/2024:12:00:07.000] fnt bck/srv1 0/0/250 {size} -- "
        "0/0/0/0/3 0/0",
        0.25,
        True,
        NOON,
    ),
    "HAProxy, IPv6": (
        "HAProxy HTTP log",
        "haproxy[14389]: 2001:db8::{i}:{port} [04/Jul/2024:12:00:07.000] http-in static/srv1 10/0/30/69/250 200 {size} - - "
        '---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"',
        0.25,
        True,
        NOON,
    ),
    "ALB": (
        "AWS Application or Classic",
        "h2 2024-07-04T12:00:07.000000Z app/lb/50dc6c495c0c9188 192.0.2.{i}:{port} 10.0.0.1:80 0.086 0.048 0.037 200 200 "
        '310 {size} "GET https://www.example.com:443/ HTTP/2.0" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn "R"',
        None,
        True,
        NOON,
    ),
    "ELB": (
        "AWS Application or Classic",
        "2024-07-04T12:00:07.000000Z my-lb 192.0.2.{i}:{port} 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 {size} "
        '"GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -',
        None,
        True,
        NOON,
    ),
    "NLB": (
        "AWS Network",
        "tls 2.0 2024-07-04T12:00:07 net/my-nlb/c6e77e28c25b2234 g3d4b5e8bb8464cd 192.0.2.{i}:{port} 172.100.100.185:443 "
        "250 2 98 {size} - arn:aws:acm:x - ECDHE-RSA-AES128-SHA tlsv12 - my-nlb.example - - -",
        0.25,
        True,
        NOON,
    ),
    "S3": (
        "S3 server",
        "79a59df900b949e5 bucket1 [04/Jul/2024:12:00:07 +0000] 192.0.2.{i} 79a59df900b949e5 3E57427F3EXAMPLE REST.GET.OBJECT "
        'photo.jpg "GET /bucket1/photo.jpg HTTP/1.1" 200 - {size} {size} 250 7 "-" "S3Console/0.4" - s9lzHYrFp76= SigV4',
        0.25,
        True,
        NOON,
    ),
    "Squid": (
        "Squid",
        "1720094407.000    250 192.0.2.{i} TCP_MISS/200 {size} GET http://example.org/a - HIER_DIRECT/198.51.100.1 text/html",
        0.25,
        True,
        NOON,
    ),
    "uWSGI": (
        "uWSGI",
        "[pid: 23|app: 0|req: 1/1] 192.0.2.{i} () {{32 vars in 500 bytes}} [Thu Jul  4 12:00:07 2024] GET / => generated "
        "{size} bytes in 250 msecs (HTTP/1.1 200) 2 headers in 79 bytes (1 switches on core 0)",
        0.25,
        True,
        NOON,
    ),
    "uWSGI, in microseconds": (
        "uWSGI",
        "[pid: 23|app: 0|req: 1/1] 192.0.2.{i} () {{32 vars in 500 bytes}} [Thu Jul  4 12:00:07 2024] GET / => generated "
        "{size} bytes in 250000 micros (HTTP/1.1 200) 2 headers in 79 bytes (1 switches on core 0)",
        0.25,
        True,
        NOON,
    ),
    "Traefik, JSON": (
        "Traefik JSON",
        '{{"ClientAddr":"192.0.2.{i}:{port}","ClientHost":"192.0.2.{i}","ClientPort":"{port}","DownstreamContentSize":{size},'
        '"Duration":250000000,"OriginContentSize":1,"RequestContentSize":2,"StartUTC":"2024-07-04T12:00:07Z","time":"x"}}',
        0.25,
        True,
        NOON,
    ),
    "Caddy": (
        "Caddy",
        '{{"level":"info","ts":1720094407.0,"request":{{"remote_ip":"192.0.2.{i}","remote_port":"{port}","client_ip":'
        '"192.0.2.{i}","headers":{{"X":["1"]}}}},"bytes_read":5,"duration":0.25,"size":{size},"status":200}}',
        0.25,
        True,
        NOON,
    ),
    "Caddy, console": (
        "Caddy",
        '2024/07/04 12:00:07.000\tINFO\thttp.log.access.log0\thandled request\t{{"request": {{"remote_ip": "192.0.2.{i}"}}, '
        '"bytes_read": 0, "duration": 0.25, "size": {size}, "status": 200}}',
        0.25,
        True,
        None,
    ),
    "Istio, JSON": (
        "Envoy or Istio JSON",
        '{{"bytes_received":"7","bytes_sent":"{size}","duration":"250","downstream_remote_address":"192.0.2.{i}:{port}",'
        '"start_time":"2024-07-04T12:00:07.000Z","upstream_host":"10.0.0.5:80"}}',
        0.25,
        True,
        NOON,
    ),
    "Google": (
        "Google Cloud",
        '{{"httpRequest":{{"requestSize":"310","responseSize":"{size}","latency":"0.250s","remoteIp":"192.0.2.{i}",'
        '"serverIp":"10.0.0.1"}},"timestamp":"2024-07-04T12:00:07Z"}}',
        0.25,
        True,
        NOON,
    ),
    "Azure Front Door": (
        "Azure Front Door",
        '{{"time":"2024-07-04T12:00:07Z","category":"FrontDoorAccessLog","properties":{{"clientIp":"192.0.2.{i}",'
        '"clientPort":"{port}","requestBytes":"300","responseBytes":"{size}","timeTaken":"0.25"}}}}',
        0.25,
        True,
        NOON,
    ),
    "Azure Application Gateway": (
        "Azure Application",
        '{{"timeStamp":"2024-07-04T12:00:07Z","properties":{{"clientIP":"192.0.2.{i}","clientPort":{port},"receivedBytes":'
        '577,"sentBytes":{size},"timeTaken":0.25}}}}',
        0.25,
        True,
        NOON,
    ),
    "ECS": (
        "Elastic",
        '{{"@timestamp":"2024-07-04T12:00:07Z","http":{{"request":{{"bytes":9,"body":{{"bytes":8}}}},"response":{{"bytes":'
        '{size},"body":{{"bytes":3}}}}}},"event":{{"duration":250000000}},"source":{{"ip":"192.0.2.{i}","port":{port}}},'
        '"destination":{{"ip":"10.0.0.1","port":443}}}}',
        0.25,
        True,
        NOON,
    ),
    "ECS, flat": (
        "Elastic",
        '{{"@timestamp":"2024-07-04T12:00:07Z","http.request.bytes":9,"http.response.body.bytes":{size},"event.duration":'
        '250000000,"client.ip":"192.0.2.{i}"}}',
        0.25,
        True,
        NOON,
    ),
    "ECS, flow": (
        "JSON lines",
        '{{"@timestamp":"2024-07-04T12:00:07Z","source":{{"ip":"192.0.2.{i}","port":{port},"bytes":620}},"destination":'
        '{{"ip":"198.51.100.1","bytes":{size}}},"network":{{"bytes":9}}}}',
        None,
        True,
        NOON,
    ),
    "Zeek": (
        "JSON lines",
        '{{"ts":1720094407.0,"id.orig_h":"192.0.2.{i}","id.orig_p":{port},"id.resp_h":"198.51.100.1","orig_bytes":620,'
        '"resp_bytes":{size}}}',
        None,
        True,
        NOON,
    ),
    "Suricata": (
        "JSON lines",
        '{{"timestamp":"2024-07-04T12:00:07.000000+0000","src_ip":"192.0.2.{i}","src_port":{port},"dest_ip":"198.51.100.1",'
        '"flow":{{"bytes_toserver":900,"bytes_toclient":{size}}}}}',
        None,
        True,
        NOON,
    ),
    "Cloudflare": (
        "JSON lines",
        '{{"ClientIP":"192.0.2.{i}","ClientSrcPort":{port},"ClientRequestBytes":9,"EdgeResponseBytes":{size},'
        '"EdgeStartTimestamp":"2024-07-04T12:00:07Z"}}',
        None,
        True,
        NOON,
    ),
    "linkerd": (
        "JSON lines",
        '{{"client.addr":"192.0.2.{i}:{port}","response_bytes":"{size}","timestamp":"2024-07-04T12:00:07Z"}}',
        None,
        True,
        NOON,
    ),
    "Envoy, no port": (
        "JSON lines",
        '{{"bytes_sent":{size},"downstream_remote_address_without_port":"192.0.2.{i}","start_time":"2024-07-04T12:00:07Z"}}',
        None,
        True,
        NOON,
    ),
    "nginx by the parser of Fluent Bit": (
        "JSON lines",
        '{{"date":1720094407.0,"remote":"192.0.2.{i}","host":"-","method":"GET","code":"200","size":"{size}"}}',
        None,
        True,
        NOON,
    ),
    "GitLab Workhorse": (
        "JSON lines",
        '{{"duration_ms":250,"remote_ip":"192.0.2.{i}","time":"2024-07-04T12:00:07Z","written_bytes":{size}}}',
        0.25,
        True,
        NOON,
    ),
    "pino-http": (
        "JSON lines",
        '{{"time":1720094407000,"req":{{"headers":{{"content-length":"7"}}}},"res":{{"headers":{{"content-length":"{size}"}}}}}}',
        None,
        False,
        NOON,
    ),
    "Kong": (
        "JSON lines",
        '{{"started_at":1720094407000,"response":{{"status":200,"size":{size}}},"request":{{"uri":"/a","size":310}},'
        '"client_ip":"192.0.2.{i}"}}',
        None,
        True,
        NOON,
    ),
    "varnishncsa, JSON": (
        "JSON lines",
        '{{"remote_ip": "192.0.2.{i}", "bytes": "{size}", "time": "[04/Jul/2024:12:00:07 +0000]"}}',
        None,
        True,
        NOON,
    ),
    "CloudFront, JSON": (
        "JSON lines",
        '{{"time": "12:00:07", "x-edge-location": "LAX1", "sc-bytes": "{size}", "c-ip": "192.0.2.{i}", "cs-bytes": "300"}}',
        None,
        True,
        None,
    ),
    "TCP_INFO of a collector": (
        "JSON lines",
        '{{"Timestamp":"2024-07-04T12:00:07Z","TCPInfo":{{"RTT":38200,"MinRTT":36900,"BytesSent":{size}}},"ip":"192.0.2.{i}"}}',
        None,
        True,
        NOON,
    ),
    "our own example": (
        "JSON lines",
        '{{"bytes": {size}, "client_ip": "192.0.2.{i}", "time": "2024-07-04T12:00:07Z", "duration_ms": 250}}',
        0.25,
        True,
        NOON,
    ),
}


def written(path: Path, line: str, count: int = 12, size: int = 9_000_000) -> Path:
    path.write_text("".join(line.format(i=i, size=size + i, port=50_000 + i) + "\n" for i in range(count)))
    return path


@pytest.mark.parametrize("name", LOGS)
def test_a_format_that_other_programs_write_is_read_with_what_it_has(tmp_path: Path, name: str) -> None:
    title, line, seconds, network, at = LOGS[name]
    seen = observe.read(written(tmp_path / "access.log", line))
    assert seen.source.form.startswith(title)
    assert seen.transfers["bytes"].to_list() == list(range(9_000_000, 9_000_012))
    assert seen.users.height == 12
    assert seen.users["subnet"].to_list() == ([0] if network else [None]) * 12
    assert seen.source.began_s == at
    found = seen.bounds["min_completion_time_s"].to_list() if seconds else []
    assert found == [pytest.approx(seconds)] * 12 if seconds else seen.bounds.is_empty()
    assert seen.problems == ()


@pytest.mark.parametrize(
    "name", [n for n, (_, line, *_) in LOGS.items() if "{port}" in line and n not in ("NLB", "HAProxy, TCP")]
)
def test_lines_of_one_client_port_are_one_connection_until_it_is_silent_for_long(tmp_path: Path, name: str) -> None:
    line = LOGS[name][1]
    path = tmp_path / "access.log"
    later = line.replace("12:00:07", "12:40:07").replace("1720094407", "1720096807")
    lines = [
        each.format(i=i, size=1000 + number, port=50_000 + i)
        for number, (each, i) in enumerate([(line, 1), (line, 2), (line, 1), (line, 1), (later, 1)])
    ]
    path.write_text("\n".join(lines) + "\n")
    seen = observe.read(path)
    assert seen.transfers.sort("bytes").select("client", "object").rows() == [(0, 0), (1, 0), (0, 1), (0, 2), (2, 0)]
    assert not seen.source.lines_apart
    assert "identifies the connection of a line" in seen.source.notes[0]


def test_where_a_log_does_not_tell_connections_the_summary_calls_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "access.log", COMBINED)
    printed = run(monkeypatch, capsys, path)
    assert "connections  not in this log: each response counts as a connection" in printed
    assert "responses    12\n" in printed
    assert observe.read(path).source.lines_apart
    assert "unknown" not in printed


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0
) -> str:
    monkeypatch.setattr(sys, "argv", ["firstflight", "observe", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == status, printed.err
    return printed.err if status else printed.out


WRAPPED = {
    "RFC 3164": "<134>Jul  4 12:00:08 web1 nginx: {}",
    "RFC 3164 of a file": "Jul  4 12:00:08 web1 nginx[312]: {}",
    "RFC 3164, host by address": "Jul  4 12:00:08 10.0.0.5 nginx: {}",
    "RFC 5424": "<134>1 2024-07-04T12:00:08.003Z web1 nginx 312 - - {}",
    "RFC 5424 with data": '<134>1 2024-07-04T12:00:08.003Z web1 nginx 312 ID47 [a@1 b="c\\]"][d@2 e="f"] {}',
    "RFC 5424, counted": "212 <134>1 2024-07-04T12:00:08.003+02:00 web1 nginx - - - {}",
    "rsyslog's file format": "2024-07-04T12:00:08.123456+02:00 web1 nginx: {}",
    "journalctl -o short-iso": "2024-07-04T12:00:08+0200 web1 nginx[312]: {}",
    "journalctl -o short-full": "Thu 2024-07-04 12:00:08 CEST web1 nginx[312]: {}",
    "journalctl -o short-unix": "1720094408.123456 web1 nginx[312]: {}",
    "journalctl -o short-monotonic": "[ 5041.123456] web1 nginx[312]: {}",
    "journalctl -o short-delta": "[ 5041.123456 <    0.000123 >] web1 nginx[312]: {}",
    "journalctl -o json": '{{"MESSAGE":{json},"_PID":"312","__REALTIME_TIMESTAMP":"1720094408123456"}}',
    "docker json-file": '{{"log":{jsonline},"stream":"stdout","time":"2024-07-04T12:00:08.123456789Z"}}',
    "CRI": "2024-07-04T12:00:08.123456789Z stdout F {}",
    "docker compose": "web-1  | {}",
    "docker compose, in color": "\x1b[36mweb-1  |\x1b[0m {}",
    "docker compose 2, in color": "\x1b[36mweb-1  | \x1b[0m{}",
    "nginx-proxy by docker compose, in color": "load-balancer  | \x1b[0;36;1mnginx.1    | \x1b[0m{}\x1b[0m",
    "docker logs --details of nginx-proxy": " nginx.1    | {}",
    "syslog without a time": "frontend.0 nginx: {}",
    "docker compose -t": "web_1  | 2024-07-04T12:00:08.123456789Z {}",
    "docker service logs": "web.1.x5z@node-1    | {}",
    "logcli": '2024-07-04T12:00:08Z {{job="nginx"}} {}',
    "docker logs -t": "2024-07-04T12:00:08.123456789Z {}",
    "kubectl --prefix": "[pod/web-7f9c/nginx] {}",
    "filebeat": '{{"@timestamp":"2024-07-04T12:00:08Z","message":{json},"log":{{"offset":12,"file":{{"path":"/a"}}}}}}',
    "filebeat, original": '{{"@timestamp":"2024-07-04T12:00:08Z","event":{{"original":{json}}}}}',
    "fluent-bit": '{{"log":{json},"stream":"stdout","kubernetes":{{"pod_name":"a"}}}}',
    "Splunk's collector": '{{"time":1720094408,"host":"a","event":{json}}}',
    "Datadog": '{{"id":"A","content":{{"message":{json}}}}}',
    "Graylog": '{{"version":"1.1","host":"a","short_message":{json},"timestamp":1720094408.1,"level":6}}',
    "CloudWatch Logs Insights": '{{"@timestamp":"2024-07-04 12:00:08.000","@message":{json}}}',
    "Azure Container Insights": '{{"TimeGenerated":"2024-07-04T12:00:08Z","LogMessage":{json},"PodName":"a"}}',
    "Azure Container Insights, older": '{{"TimeGenerated":"2024-07-04T12:00:08Z","LogEntry":{json},"ContainerID":"a"}}',
    "syslog-ng": '{{"PROGRAM":"nginx","MSG":{json},"HOST":"web1"}}',
    "Google, JSON": '{{"jsonPayload":{{"message":{json}}},"timestamp":"2024-07-04T12:00:08Z"}}',
    "Google, text": '{{"textPayload":{json},"timestamp":"2024-07-04T12:00:08Z"}}',
    "syslog in a container": "2024-07-04T12:00:08.1Z stdout F <134>Jul  4 12:00:08 web1 nginx: {}",
}
INNER = {"combined": COMBINED, "JSON": LOGS["our own example"][1], "nginx's own": None}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", WRAPPED)
def test_what_is_around_a_line_is_peeled_off(tmp_path: Path, name: str, inner: str) -> None:
    line = INNER[inner] or (
        "msec=1720094407.000 remote_addr=192.0.2.{i} connection={i} connection_requests=1 connection_time=0.100 "
        "request_time=0.000 request_completion=OK status=200 server_protocol=HTTP/1.1 request_length=83 bytes_sent={size} "
        "body_bytes_sent=17 tcpinfo_rtt=20000 tcpinfo_rttvar=10157 tcpinfo_snd_cwnd=10 tcpinfo_rcv_space=14480"
    )
    lines = [line.format(i=i, size=9000 + i) for i in range(1, 6)]
    wrap = WRAPPED[name]
    path = tmp_path / "log"
    around = [wrap.format(each, json=json.dumps(each), jsonline=json.dumps(each + "\n")) for each in lines]
    path.write_text("\n".join(around) + "\n")
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [9001, 9002, 9003, 9004, 9005]
    assert seen.users["subnet"].to_list() == [0] * 5
    assert seen.problems == ()


UDP = {
    "combined": (COMBINED, ("HTTP/1.1", "HTTP/3.0")),
    "Envoy": (LOGS["Envoy, client as passed on"][1], ("HTTP/2", "HTTP/3")),
    "W3C": ("#Fields: c-ip sc-bytes cs-version\n192.0.2.{i} {size} HTTP/1.1", ("HTTP/1.1", "HTTP/3")),
    "Caddy": (LOGS["Caddy"][1].replace('"client_ip"', '"proto":"HTTP/2.0","client_ip"'), ("HTTP/2.0", "HTTP/3.0")),
    "HAR": ('{{"request":{{"httpVersion":"h2"}},"response":{{"bodySize":{size}}}}}', ("h2", "h3")),
    "Zeek": (LOGS["Zeek"][1].replace('"resp_bytes"', '"proto":"tcp","resp_bytes"'), ("tcp", "udp")),
    "Suricata": (LOGS["Suricata"][1].replace('"flow"', '"proto":"TCP","flow"'), ("TCP", "UDP")),
}


@pytest.mark.parametrize("name", UDP)
def test_lines_of_udp_are_left_out_and_reported(tmp_path: Path, name: str) -> None:
    line, (tcp, udp) = UDP[name]
    path = tmp_path / "log"
    lines = [
        line.replace(tcp, name).format(i=i, size=9000 + i, port=50_000 + i) for i, name in enumerate((tcp, udp, tcp))
    ]
    path.write_text("\n".join(lines) + "\n")
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [9000, 9002]
    assert [(problem.what, problem.count) for problem in seen.problems] == [("not over TCP", 1)]


def test_connections_of_zeek_are_read(tmp_path: Path) -> None:
    path = tmp_path / "conn.log"
    fields = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto service duration orig_bytes resp_bytes conn_state"
    rows = [f"{NOON} C{i} 192.0.2.{i} 50000 198.51.100.1 443 tcp ssl 0.25 620 {9_000_000 + i} SF" for i in range(3)]
    rows.append(f"{NOON} C9 192.0.2.9 50000 198.51.100.1 443 tcp - - - - S0")
    head = "#separator \\x09\n#path\tconn\n#fields\t" + "\t".join(fields.split()) + "\n#types\ttime\n"
    path.write_text(head + "\n".join("\t".join(row.split()) for row in rows) + "\n#close\t2024-07-04-12-00-07\n")
    seen = observe.read(path)
    assert seen.source.form == "conn.log of Zeek"
    assert seen.transfers.select("client", "bytes").rows() == [(i, 9_000_000 + i) for i in range(3)]
    assert (seen.users["subnet"].to_list(), seen.source.began_s) == ([0] * 3, NOON)
    assert seen.bounds["min_completion_time_s"].to_list() == [0.25] * 3
    assert [str(problem) for problem in seen.problems] == ["1 x without a size (line 8)"]


def test_words_before_a_json_object_are_peeled_off(tmp_path: Path) -> None:
    """rsyslog's, of a sender that writes no tag."""
    line = "2021-11-12T16:59:46.613304+00:00 192.0.2.9  " + LOGS["our own example"][1]
    seen = observe.read(written(tmp_path / "log", line))
    assert seen.transfers["bytes"].to_list() == list(range(9_000_000, 9_000_012))
    assert (seen.users["subnet"].to_list(), seen.problems) == ([0] * 12, ())


@pytest.mark.parametrize("name", ["uWSGI", "our own example"])
def test_a_log_that_begins_with_other_lines_is_recognized(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "log", LOGS[name][1], 30)
    path.write_text("*** Starting uWSGI 2.0.21 (64bit) ***\n" * 40 + path.read_text())
    seen = observe.read(path)
    assert seen.transfers.height == 30
    assert [problem.count for problem in seen.problems] == [40]


@pytest.mark.parametrize("before", ["", "    "], ids=["export", "verbose"])
def test_the_journal_s_export_is_read(tmp_path: Path, before: str) -> None:
    path = tmp_path / "export"
    fields = ("__CURSOR=s=1;i=2", "__REALTIME_TIMESTAMP=1720094408123456", "_PID=312", "MESSAGE={}", "_HOSTNAME=web1")
    entry = "".join(f"{before}{field}\n" for field in fields) + "\n"
    path.write_text("".join(entry.format(COMBINED.format(i=i, size=9000 + i)) for i in range(3)))
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [9000, 9001, 9002]
    assert seen.source.form == "common or combined log, in journalctl -o export or verbose"


FORMS = {
    "nginx without RTT": (
        "log_format mine '$remote_addr|$time_iso8601|$request|$body_bytes_sent|$request_time';",
        "192.0.2.{i}|2024-07-04T12:00:07+00:00|GET /|x HTTP/1.1|{size}|0.250",
    ),
    "nginx, both sizes": (
        "$bytes_sent $body_bytes_sent $remote_addr $msec $request_time",
        "{size} 17 192.0.2.{i} 1720094407 0.25",
    ),
    "nginx's stream": (
        "$remote_addr [$time_local] $protocol $status $bytes_sent $bytes_received $session_time",
        "192.0.2.{i} [04/Jul/2024:12:00:07 +0000] TCP 200 {size} 402 0.250",
    ),
    "nginx, one variable twice": (
        "$body_bytes_sent $body_bytes_sent $remote_addr $msec $request_time",
        "{size} 17 192.0.2.{i} 1720094407 0.25",
    ),
    "Apache": (
        r'LogFormat "%{X-Forwarded-For}i %h %l %u %t \"%r\" %>s %b %D" proxied',
        '- 192.0.2.{i} - - [04/Jul/2024:12:00:07 +0000] "GET / HTTP/1.1" 200 {size} 250000',
    ),
    "Apache, with headers": ("%a %t %O %b %{ms}T", "192.0.2.{i} [04/Jul/2024:12:00:07 +0000] {size} 17 250"),
    "JSON paths": (
        "bytes=.body.out, address=who.ip time_ms=took at=when",
        '{{"body": {{"in": 3, "out": {size}}}, "who": {{"ip": "192.0.2.{i}"}}, "took": 250, "when": "2024-07-04T12:00:07Z"}}',
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_format_that_is_given_works_with_what_it_has(tmp_path: Path, name: str) -> None:
    form, line = FORMS[name]
    seen = observe.read(written(tmp_path / "log", line), log_format=form)
    assert seen.transfers["bytes"].to_list() == list(range(9_000_000, 9_000_012))
    assert seen.users["rtt_s"].null_count() == 12
    assert seen.source.began_s == NOON
    assert seen.bounds["min_completion_time_s"].to_list() == [pytest.approx(0.25)] * 12
    assert seen.users["subnet"].to_list() == [0] * 12
    assert seen.problems == ()


def test_a_format_that_is_given_applies_within_syslog_and_may_have_round_trips_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"Jul  4 12:00:08 web1 nginx: 192.0.2.{i} {20_000 + i}\n" for i in range(3)))
    seen = observe.read(path, log_format="$remote_addr $tcpinfo_rtt")
    assert seen.users["rtt_s"].to_list() == pytest.approx([0.02, 0.020001, 0.020002])
    assert seen.transfers.is_empty()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("$remote_addr $status", "neither the size of a response"),
        ("%h %>s", "neither the size of a response"),
        ("%h%b", "nothing before %b"),
        ("size=a.b", 'there is no quantity "size"; the quantities are bytes'),
        ("address=a.b", "neither the size of a response"),
    ],
)
def test_a_format_that_says_too_little_is_refused_before_the_file_is_read(tmp_path: Path, form: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        observe.read(tmp_path / "nothing", log_format=form)


REFUSED = {
    "words": "Dear diary,\ntoday nothing happened.\n",
    "a table of nothing": "a,b,c\n1,2,3\n",
    "uvicorn, which has no size": 'INFO:     127.0.0.1:50100 - "GET / HTTP/1.1" 200 OK\n' * 3,
    "JSON without a size": '{"level": "info", "msg": "started"}\n' * 3,
    "ss without -i": "State Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 10.0.0.1:443 10.0.0.2:50000\n",
    "IIS without sizes": "#Fields: date time c-ip time-taken\n2026-11-22 10:00:00 203.0.113.1 15\n",
    "junk": "\x01\x02\x03" * 400,
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", [None, "log", "nginx", "ss", "ndt7", "table"])
def test_every_refusal_ends_with_a_way_out_that_works(tmp_path: Path, name: str, kind: str | None) -> None:
    path = tmp_path / "file"
    path.write_text(REFUSED[name])
    with pytest.raises(RequestError) as refused:
        observe.read(path, kind)
    assert str(refused.value).endswith(WAY_OUT)
    assert "\n" not in str(refused.value)
    example = WAY_OUT[WAY_OUT.index("{") : WAY_OUT.index("}") + 1]
    path.write_text(f"{example}\n")
    seen = observe.read(path)
    assert (seen.transfers["bytes"].to_list(), seen.users["rtt_s"].to_list()) == ([48_000], [pytest.approx(0.038)])
    path.write_text("bytes,remote_addr\n48000,192.0.2.7\n")
    assert observe.read(path).transfers["bytes"].to_list() == [48_000]


def test_a_table_without_round_trips_is_read_as_a_log_without_them_is(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text("connection,bytes\na,1000\na,2000\nb,3000\n")
    seen = observe.read(path)
    assert seen.transfers.select("client", "bytes").rows() == [(0, 1000), (0, 2000), (1, 3000)]
    assert seen.users["rtt_s"].to_list() == [None, None]
    seen.flat().write_csv(path)
    assert observe.read(path).transfers["bytes"].to_list() == [1000, 2000, 3000]


@pytest.mark.parametrize(
    "head",
    [
        "RTT (ms),Down (Mbit/s),Size [bytes],Loss (%)",
        "rtt.ms;down mbps;BYTES;loss-percent",
        "RTT_MS\tDown_Mbps\tbytes\tloss %",
    ],
)
def test_columns_of_a_table_may_be_headed_as_in_a_spreadsheet(tmp_path: Path, head: str) -> None:
    between = next(mark for mark in ",;\t" if mark in head)
    (tmp_path / "t.csv").write_text(f"{head}\n{between.join(('40', '20', '9000', '2'))}\n")
    seen = observe.read(tmp_path / "t.csv")
    (user,) = seen.users.select("rtt_s", "down_bps", "loss").rows()
    assert user == pytest.approx((0.04, 20e6, 0.02))
    assert seen.transfers["bytes"].to_list() == [9000]


def test_json_lines_with_columns_of_a_table_are_a_table(tmp_path: Path) -> None:
    path = tmp_path / "flows.json"
    path.write_text('{"rtt_ms": 20, "down_mbps": 8.5, "bytes": 9000}\n{"rtt_ms": 30, "bytes": 1000}\nodd\n')
    seen = observe.read(path)
    assert seen.source.kind == "table"
    assert seen.users["down_bps"].to_list() == [8.5e6, None]
    assert [str(problem) for problem in seen.problems] == ["1 x not a JSON object (line 3)"]


# Each rule of "the first" or "the last" with a file in which the thing occurs twice.


def test_a_file_with_carriage_returns_alone_has_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(written(path, COMBINED, 3).read_bytes().replace(b"\n", b"\r"))
    assert observe.read(path).transfers.height == 3
    path.write_bytes(b"bytes,rtt_ms\r9000,38\r8000,39\r")
    assert observe.read(path).users["rtt_s"].to_list() == [0.038, 0.039]


@pytest.mark.parametrize("order", ["size of the response first", "size of the request first"])
def test_of_two_sizes_in_objects_the_response_s_counts_wherever_it_stands(tmp_path: Path, order: str) -> None:
    parts = [("response", {"status": 200, "size": 48_000}), ("request", {"uri": "/a", "size": 310})]
    path = tmp_path / "log"
    path.write_text(json.dumps(dict(parts if order.endswith("response first") else parts[::-1])) + "\n")
    assert observe.read(path).transfers["bytes"].to_list() == [48_000]


@pytest.mark.parametrize(
    "names",
    [
        "in out",
        "rx tx",
        "received sent",
        "inbound outbound",
        "upload download",
        "c2s s2c",
        "ingress egress",
        "client_to_server server_to_client",
        "input output",
    ],
)
def test_of_sizes_in_both_directions_the_one_to_the_client_counts(tmp_path: Path, names: str) -> None:
    received, sent = names.split()
    path = tmp_path / "log"
    path.write_text(json.dumps({received: {"bytes": 310}, sent: {"bytes": 48_000}}) + "\n")
    assert observe.read(path).transfers["bytes"].to_list() == [48_000]


def test_of_two_sizes_of_one_name_the_outer_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"cache": {"size": 999}, "size": 48000}\n')
    assert observe.read(path).transfers["bytes"].to_list() == [48_000]


def test_a_round_trip_without_a_unit_in_json_lines_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"bytes": 48000, "rtt": 38}\n')
    assert 'write "rtt" as rtt_ms, rtt_s or rtt_us, by its unit' in observe.read(path).source.notes[1]


@pytest.mark.parametrize(
    "other", [{"stats": {"decoder": {"bytes": 75_476_420}}}, {"fileinfo": {"size": 7}}, {"netflow": {"bytes": 7}}]
)
def test_other_events_of_suricata_are_no_responses(tmp_path: Path, other: dict[str, Any]) -> None:
    path = tmp_path / "eve.json"
    flow = {"src_ip": "192.0.2.7", "src_port": 50_000, "flow": {"bytes_toserver": 900, "bytes_toclient": 9000}}
    path.write_text(json.dumps(other) + "\n" + json.dumps(flow) + "\n")
    assert observe.read(path).transfers["bytes"].to_list() == [9000]


def test_a_field_in_quotes_may_have_spaces(tmp_path: Path) -> None:
    path = tmp_path / "ex.log"
    path.write_text(
        '#Fields: date time cs(User-Agent) c-ip sc-bytes\n2024-05-01 00:00:01 "Mozilla/5.0 (X11)" 192.0.2.1 9000\n'
    )
    assert observe.read(path).transfers["bytes"].to_list() == [9000]


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (
            "c-ip\tdate\ttime\tcs(User-Agent)\tbytes\ttime-taken",
            "192.0.2.1\t2024-07-04\t12:00:07\tM (X 1)\t9000000\t0.250",
        ),
        ("date time c-ip sc-bytes time-taken", '"2024-07-04" "12:00:07" "192.0.2.1" "9000000" "250"'),
    ],
    ids=["WebLogic, tabs and bytes", "every field in quotes"],
)
def test_fields_may_have_tabs_between_them_or_quotes_around(tmp_path: Path, head: str, line: str) -> None:
    path = tmp_path / "ex.log"
    path.write_text(f"#Version: 1.0\n#Fields: {head}\n{line}\n")
    seen = observe.read(path)
    assert (seen.transfers["bytes"].to_list(), seen.users["subnet"].to_list()) == ([9_000_000], [0])
    assert (seen.bounds["min_completion_time_s"].to_list(), seen.source.began_s) == ([0.25], NOON)


def test_fields_may_be_declared_anew_in_the_middle_of_a_log(tmp_path: Path) -> None:
    head = "#Software: IIS\n#Version: 1.0\n#Fields: date time c-ip {}\n"
    line = "2024-05-01 00:00:0{} 192.0.2.1 {}\n"
    path = tmp_path / "ex.log"
    path.write_text(
        head.format("sc-bytes cs-bytes") + line.format(1, "150000 300") + line.format(2, "150001 300")
        + head.format("cs-bytes sc-bytes time-taken") + line.format(3, "300 150002 120") + line.format(4, "300 150003 120")
        + head.format("sc-bytes") + line.format(5, "150004")
    )  # fmt: skip
    assert observe.read(path).transfers["bytes"].to_list() == [150_000, 150_001, 150_002, 150_003, 150_004]


def test_of_two_addresses_the_client_s_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    rows: list[dict[str, Any]] = [
        {"server": {"ip": "198.51.100.9"}, "client": {"ip": f"192.0.{net}.7"}, "bytes": 9000} for net in (2, 3, 2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert observe.read(path).users["subnet"].to_list() == [0, 1, 0]


def test_w3c_s_times_with_a_fraction_are_seconds(tmp_path: Path) -> None:
    path = tmp_path / "ex.log"
    path.write_text("#Fields: date time c-ip sc-bytes time-taken\n2024-05-01 00:00:01 192.0.2.1 9000000 1.250\n")
    assert observe.read(path).bounds["min_completion_time_s"].to_list() == [1.25]


def test_round_trips_that_cannot_be_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    rtts = (38, -40, '"38,5"', 1e10, 0, '"-"', "null")
    path.write_text("".join(f'{{"body_bytes_sent": 9000, "rtt_ms": {rtt}}}\n' for rtt in rtts))
    seen = observe.read(path)
    assert seen.users["rtt_s"].to_list() == [0.038, *[None] * 6]
    assert [str(problem) for problem in seen.problems] == ["3 x an RTT that cannot be (lines 2, 3, 4)"]


def test_fastly_s_own_log_has_round_trips(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        '{"time_start":"2024-07-04T12:00:07Z","client_ip":"192.0.2.7","req_body_size":7,"resp_body_size":9000,'
        '"socket_cwnd":40,"socket_tcpi_rtt":38000,"socket_tcpi_rcv_rtt":5}\n'
    )
    seen = observe.read(path)
    assert (seen.users["rtt_s"].to_list(), seen.transfers["bytes"].to_list()) == ([0.038], [9000])
    assert seen.source.began_s == NOON


def test_a_log_of_round_trips_alone_is_not_said_to_have_sizes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"tcpi_rtt": 38200, "tcpi_min_rtt": 36900}\n')
    seen = observe.read(path)
    assert seen.users["rtt_s"].to_list() == [pytest.approx(0.0369)]
    assert seen.source.notes[0].startswith("it has RTTs;")


# Files that are packed, documents, in parts, or not files.


@pytest.mark.parametrize("name", ["common", "our own example", "Squid"])
def test_a_mark_of_the_encoding_before_the_text_costs_no_line(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "access.log", LOGS[name][1])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    seen = observe.read(path)
    assert seen.users["subnet"].to_list() == [0] * 12
    assert (seen.source.began_s, seen.problems) == (NOON, ())


def test_text_in_utf_16_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text("bytes,rtt_ms\n9000,38\n", encoding="utf-16")
    with pytest.raises(RequestError, match=r"is text in UTF-16.*iconv -f UTF-16 -t UTF-8 .* \| firstflight observe -"):
        observe.read(path)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_logs_are_read(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "access.log.packed"
    path.write_bytes(pack(written(tmp_path / "plain", COMBINED).read_bytes()))
    assert observe.read(path).transfers.height == 12


def test_a_file_packed_by_zstd_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "access.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40))
    with pytest.raises(RequestError, match=r"packed by zstd.*zstd -dc .* \| firstflight observe -"):
        observe.read(path)


def test_documents_of_json_are_read_by_their_entries(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    entries = [json.loads(LOGS["Google"][1].format(i=i, size=9_000_000 + i)) for i in range(3)]
    for document in (entries, {"entries": entries}, entries[0]):
        for indent in (None, 2):
            path.write_text(json.dumps(document, indent=indent))
            assert observe.read(path).transfers["bytes"][0] == 9_000_000


def test_a_har_is_read_with_its_connections(tmp_path: Path) -> None:
    entry = {
        "startedDateTime": "2024-07-04T12:00:07.000Z",
        "time": 250.5,
        "request": {"headersSize": 100, "bodySize": 0},
        "response": {"headersSize": 200, "bodySize": 8800, "content": {"size": 30_000}},
        "serverIPAddress": "203.0.113.9",
        "connection": "287",
    }
    other = entry | {"connection": "288", "response": {"bodySize": -1, "_transferSize": 7000, "content": {"size": 1}}}
    path = tmp_path / "page.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {}, "entries": [entry, other, entry]}}))
    seen = observe.read(path)
    assert seen.source.form == "HAR of a browser"
    assert seen.transfers.select("client", "object", "bytes").rows() == [(0, 0, 8800), (0, 1, 8800), (1, 0, 7000)]


@pytest.mark.parametrize(
    ("ids", "clients"),
    [(["287292", "287300", "287292"], [0, 0, 1]), ([None] * 3, [0, 1, 2])],
    ids=["Chrome", "Firefox"],
)
def test_a_server_s_port_in_a_har_is_no_connection(tmp_path: Path, ids: list[str | None], clients: list[int]) -> None:
    """Firefox and Chrome since 2024 write it as `connection`; Chrome has the connection's number beside it."""
    path = tmp_path / "page.har"
    entry = {"startedDateTime": "2025-10-23T16:47:03Z", "response": {"bodySize": 8800}, "connection": "443"}
    entries = [entry | ({"_connectionId": number} if number else {}) for number in ids]
    path.write_text(json.dumps({"log": {"entries": entries}}))
    assert observe.read(path).transfers["client"].to_list() == clients


def test_a_connection_may_have_the_number_of_a_server_s_port(tmp_path: Path) -> None:
    path = tmp_path / "log"
    line = {"remote_addr": "192.0.2.7", "connection": 443, "bytes_sent": 9000, "tcpinfo_rtt": 20_000}
    path.write_text("\n".join(json.dumps(line | {"connection": number}) for number in (442, 443, 443, 444)))
    assert observe.read(path).transfers["client"].to_list() == [0, 1, 1, 2]


def test_a_har_of_webpagetest_has_the_bytes_of_its_sockets(tmp_path: Path) -> None:
    """It writes a body of 0 bytes where it cannot look into HTTP/2."""
    path = tmp_path / "page.har"
    entries = [
        {"_bytesIn": size, "_bytesOut": "367", "_objectSize": "0", "_socket": socket, "response": {"bodySize": 0}}
        for size, socket in (("7740", "293"), ("4235", "293"), ("14632", "296"))
    ]
    path.write_text(json.dumps({"log": {"entries": entries}}))
    seen = observe.read(path)
    assert seen.transfers.select("client", "bytes").rows() == [(0, 7740), (0, 4235), (1, 14632)]


def test_the_size_of_unpacked_content_in_a_har_is_not_the_response_s(tmp_path: Path) -> None:
    """Chrome of HTTP/2: `bodySize` is -1, and some programs leave out its `_transferSize`."""
    path = tmp_path / "page.har"
    unpacked = {"bodySize": -1, "content": {"size": 30_000}}
    responses = [unpacked | {"_transferSize": 7000}, unpacked]
    entries = [{"startedDateTime": "2024-07-04T12:00:07Z", "response": response} for response in responses]
    path.write_text(json.dumps({"log": {"entries": entries}}))
    seen = observe.read(path)
    assert (seen.source.form, seen.transfers["bytes"].to_list()) == ("HAR of a browser", [7000])


def test_standard_input_and_the_parts_of_a_rotated_log_are_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older = tmp_path / "access.log.2.gz"
    older.write_bytes(gzip.compress(written(tmp_path / "plain", COMBINED, 7).read_bytes().rstrip(b"\n")))
    newer = written(tmp_path / "access.log", COMBINED, 5)
    assert "responses    12\n" in run(monkeypatch, capsys, older, newer)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(newer.read_bytes())))
    printed = run(monkeypatch, capsys, "-")
    assert printed.startswith("-: common or combined log\n")
    assert "responses    5\n" in printed
    for before in ("", "sep=,\n"):
        (tmp_path / "a.csv").write_text(f"{before}rtt_ms,p99,bytes\n20,9,1\n")
        (tmp_path / "b.csv").write_text(f"{before}rtt_ms,p99,bytes\n30,9,2\n")
        printed = run(monkeypatch, capsys, tmp_path / "a.csv", tmp_path / "b.csv")
        assert "responses    2\n" in printed
        assert "left out" not in printed
    capture = tmp_path / "c.pcap"
    capture.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20))
    assert "mergecap" in run(monkeypatch, capsys, capture, newer, status=2)


def test_ss_with_the_kind_of_socket_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ss.txt"
    path.write_text(
        "Netid State  Recv-Q Send-Q Local Address:Port   Peer Address:Port Process\n"
        "udp   ESTAB  0      0      192.0.2.10:53        198.51.100.7:50100\n"
        "tcp   LISTEN 0      511    0.0.0.0:443          0.0.0.0:*\n"
        "\t cubic cwnd:10\n"
        "tcp   ESTAB  0      0      192.0.2.10:443       198.51.100.7:50100\n"
        "\t cubic wscale:7,7 rto:240 rtt:38.2/1.5 mss:1448 cwnd:20 bytes_sent:150000 bytes_acked:150001 segs_out:110 "
        "data_segs_out:104 send 6Mbps delivery_rate 5Mbps busy:160ms minrtt:36.9\n"
    )
    seen = observe.read(path)
    assert (seen.transfers["bytes"].to_list(), seen.users["rtt_s"].to_list()) == ([150_000], [pytest.approx(0.0369)])
    assert [str(problem) for problem in seen.problems] == ["1 x a socket without a round trip (line 3)"]


def test_the_data_of_a_socket_may_stand_in_several_lines(tmp_path: Path) -> None:
    """As in text that a program or a person wrapped; of two other sockets the first line is missing."""
    path = tmp_path / "ss.txt"
    path.write_text(
        "     cubic rtt:9/1 mss:1448 cwnd:10 bytes_sent:1\n"
        "ESTAB  0  0  192.0.2.10:443  198.51.100.7:50100\n"
        "     skmem:(r0,rb131072,t0,tb87040,f4096,w0,o0,bl0,d0)\n"
        "     cubic wscale:7,7 rto:204 rtt:3.75/1.5 ato:40 mss:1448 pmtu:1500\n"
        "     rcvmss:536 advmss:1448 cwnd:10 bytes_sent:4521 bytes_acked:4522\n"
        "     segs_out:23 data_segs_out:12 busy:36ms minrtt:3.06\n"
        "     cubic wscale:7,7 rto:204 rtt:9/1 mss:1448 cwnd:10 bytes_sent:1\n"
    )
    seen = observe.read(path)
    assert (seen.transfers["bytes"].to_list(), seen.users["rtt_s"].to_list()) == ([4521], [pytest.approx(0.00306)])
    assert seen.transfers["segments_sent"].to_list() == [12]
    assert [str(problem) for problem in seen.problems] == ["2 x neither a socket nor its data (lines 1, 7)"]


def test_mlab_rows_as_nested_json_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ndt7.json"
    measurements = [{"TCPInfo": {"RTT": 20_000}}, {"TCPInfo": {"RTT": 25_000}}]
    row = {
        "id": "ndt-1",
        "a": {"MeanThroughputMbps": 48.2, "MinRTT": 13.1, "LossRate": 0.001},
        "client": {"IPAddress": "192.0.2.1"},
        "raw": {"Download": {"ServerMeasurements": measurements}},
    }
    path.write_text((json.dumps(row) + "\n") * 2)
    seen = observe.read(path)
    assert seen.source.kind == "ndt7"
    assert seen.users["rtt_s"].to_list() == pytest.approx([0.0131] * 2)
    assert seen.users["max_rtt_s"].to_list() == [0.025] * 2
    assert seen.users["loss"].to_list() == [0.001] * 2
    assert seen.users["subnet"].to_list() == [0] * 2


@pytest.mark.parametrize(
    "odd",
    [
        '{"a":' * 5000 + "1" + "}" * 5000,
        "[" * 100_000,
        '{"bytes": 1e999, "rtt_ms": NaN}',
        '{"bytes": {"bytes": {"bytes": -7}}}',
        '{"bytes": ' + "9" * 5000 + "}",
        '{"": {"": 1}, "bytes": "a", "time": [1], "client_ip": {"x": null}}',
        "<134>1 " + "x " * 50_000,
        "\x1b[36m" * 1000,
    ],
)
def test_an_odd_line_among_others_costs_that_line_alone(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "log"
    good = '{"bytes": 9000, "client_ip": "192.0.2.7"}\n'
    path.write_text(good + odd + "\n" + good * 3)
    seen = observe.read(path)
    assert seen.transfers["bytes"].to_list() == [9000] * 4
    assert [problem.count for problem in seen.problems] == [1]


NGINX_LINE = (
    "msec={at}.5 remote_addr=192.0.2.1 connection={i} connection_requests=1 connection_time=0.1 request_time=0.01 "
    "request_completion=OK status=200 server_protocol=HTTP/1.1 request_length=80 bytes_sent=9000 body_bytes_sent=8800 "
    "tcpinfo_rtt=20000 tcpinfo_rttvar=100 tcpinfo_snd_cwnd=10 tcpinfo_rcv_space=14600{tls}"
)


def test_nginx_logs_of_tls_show_versions_resumption_and_key_exchange(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    ends = ("TLSv1.3 {}=. ssl_curve=X25519MLKEM768", "TLSv1.3 {}=r ssl_curve=X25519", "TLSv1.2 {}=. ssl_curve=-")
    tls = [f" ssl_protocol={end}".format("ssl_session_reused") for end in ends]
    path.write_text("\n".join(NGINX_LINE.format(at=i, i=i, tls=end) for i, end in enumerate([*tls, ""])) + "\n")
    seen = observe.read(path)
    assert seen.transfers.height == 4
    assert seen.handshakes.select("client", "version", "resumed").rows() == [(0, 13, 0), (1, 13, 1), (2, 12, 0)]
    assert "3 connections over TLS, 2 of them TLS 1.3, 1 with a post-quantum key exchange" in seen.source.notes


def test_the_time_of_handshakes_is_read_from_a_load_balancer(tmp_path: Path) -> None:
    path = tmp_path / "nlb.log"
    line = (
        "tls 2.0 2024-07-04T12:00:07 net/my-nlb/c6e77e28c25b2234 g3d4b5e8bb8464cd 192.0.2.1:{} 172.100.100.185:443 "
        "250 {} 98 9000 - arn:aws:acm:x - ECDHE-RSA-AES128-SHA tlsv12 - my-nlb.example - - -"
    )
    path.write_text(line.format(1000, 42) + "\n" + line.format(1001, "-") + "\n")
    assert observe.read(path).handshakes.select("client", "time_s").rows() == [(0, 0.042)]
