"""Makes the example files of this directory from real connections: nginx and curl over the kernel that runs here.

    .venv/bin/python examples/flows/make.py [DIRECTORY]

Takes a minute of a machine that does nothing else. Needs what `--engine emulate` needs (`firstflight doctor`), ss, and
for HTTPS openssl, dumpcap and an nginx with TLS. The paths are in paths.toml, which the link box keeps; what is written
are an access log, socket snapshots and captures, as anybody would take them, a table of what curl told, and rows of a
speed test as M-Lab's server would write them.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from firstflight.engines.emulate.kernel import KernelSettings
from firstflight.engines.emulate.lab import Lab
from firstflight.engines.emulate.layout import Layout, lay_out
from firstflight.engines.emulate.prepared import Prepared
from firstflight.observe.nginx_format import LOG_FORMAT
from firstflight.scenario import Cell, Scenario

HERE = Path(__file__).resolve().parent
SERVER = "hub[0]"
WEB, SPEED_TEST, SECURE = 8080, 8081, 8443
MSS, HEADERS = 1448, 52
SNAPSHOT_S = 0.5
TEST_S = 8
SIZES = (1_000, 2_000, 6_000, 20_000, 50_000, 60_000, 160_000, 3_000_000, 1_000_000_000)
LARGE = 3_000_000

NGINX = """\
daemon on;
user root root;
worker_processes 1;
pid {files}/nginx.pid;
error_log {files}/error.log;
events {{ worker_connections 1024; }}
http {{
    log_format firstflight '{log_format}';
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 60s;
    client_body_temp_path {files}/body;
    proxy_temp_path {files}/proxy;
    fastcgi_temp_path {files}/fastcgi;
    uwsgi_temp_path {files}/uwsgi;
    scgi_temp_path {files}/scgi;
    server {{
        listen {web};
        root {files}/documents;
        access_log {files}/access.log firstflight;
    }}
    server {{
        listen {speed_test};
        root {files}/documents;
        access_log off;
    }}
    server {{
        listen {secure} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {files}/chain.pem;
        ssl_certificate_key {files}/key.pem;
        ssl_session_cache shared:sessions:1m;
        root {files}/documents;
        access_log off;
    }}
}}
"""
# Documents of two connections over HTTPS, the second of which takes up the session of the first; options of curl.
SECURE_SIZES = ((20_000, 50_000), (2_000, 20_000))
VERSIONS = (("--tlsv1.3",), ("--tls-max", "1.2"))
DEVICE = "ff0"
SNAPLEN = 96


def main() -> None:
    """Make them all."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    scenario = Scenario.load(HERE / "paths.toml")
    layout = lay_out(scenario)
    settings = Prepared(Cell(key={}, scenario=scenario), layout).hosts
    with tempfile.TemporaryDirectory() as directory, Lab(layout) as lab:
        files = Path(directory)
        for host, told in settings.items():
            lab.set(host, told)
        serve(lab, files, SIZES)
        downloads = browse(lab, layout, files)
        secure(lab, layout, files)
        measure(lab, layout, files, settings[SERVER])
        for name in ("nginx.log", "ss.txt", "server.pcapng", "clients.pcapng", "https.pcapng"):
            (out / name).write_bytes((files / name.replace("nginx", "access")).read_bytes())
        write_table(out / "table.csv", downloads, (files / "ss.txt").read_text(encoding="ascii"))
        write_ndt7(out / "ndt7.csv", (files / "test.txt").read_text(encoding="ascii"))


def serve(lab: Lab, files: Path, sizes: Iterable[int]) -> None:
    """Nginx with its access log, and documents of these sizes."""
    (files / "documents").mkdir()
    for size in sizes:
        with (files / "documents" / str(size)).open("wb") as document:
            document.truncate(size)
    certify(files)
    config = files / "nginx.conf"
    ports = {"web": WEB, "speed_test": SPEED_TEST, "secure": SECURE}
    config.write_text(NGINX.format(files=files, log_format=LOG_FORMAT, **ports), encoding="ascii")
    # Its complaints go to a file: what it leaves in the background would keep a pipe open.
    command = ["sh", "-c", f"nginx -p {files} -c {config} -e {files}/error.log 2>> {files}/error.log"]
    lab.call("run", host=SERVER, program=command, within_s=10.0)


def browse(lab: Lab, layout: Layout, files: Path) -> list[str]:
    """Three connections of each user, one after the other, with an answer every second and a half; what curl told of
    the last ones. The last answers are small: when they come, a snapshot finds the others acknowledged.
    """
    users = [host.name for host in layout.hosts if host.name != SERVER]
    with ThreadPoolExecutor() as pool:

        def connect(*answers: int) -> list[str]:
            urls = [f"http://{layout.host(SERVER).address}:{WEB}/{size}" for size in answers]
            told = list(pool.map(lambda user: fetch(lab, user, urls, "--rate", "40/m"), users))
            time.sleep(2 * SNAPSHOT_S)
            return told

        with snapshots(lab, pool, files / "ss.txt", WEB):
            lab.box("watch", ports=[SERVER])
            connect(20_000, 50_000, 160_000, 2_000)
            lab.box("pcapng", path=str(files / "server.pcapng"))
            lab.box("watch", ports=users)
            connect(6_000, 60_000)
            lab.box("pcapng", path=str(files / "clients.pcapng"))
            return connect(2_000, LARGE, 1_000)


def certify(files: Path) -> None:
    """A certificate of the server, signed by one of its own: the two of them are sent, as most sites do."""
    new = "openssl req -x509 -newkey rsa:2048 -nodes -days 30"
    script = f"""
        cd {files}
        {new} -subj /CN=authority -keyout authority.key -out authority.pem
        {new} -subj /CN=server -CA authority.pem -CAkey authority.key -keyout key.pem -out server.pem
        cat server.pem authority.pem > chain.pem"""
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True)


def secure(lab: Lab, layout: Layout, files: Path) -> None:
    """Four connections of each user over HTTPS, two of either version, the first with a new session and the second
    with that one; captured at the server as `tcpdump -s 96` does.
    """
    users = [host.name for host in layout.hosts if host.name != SERVER]
    base = f"https://{layout.host(SERVER).address}:{SECURE}"
    # One connection after the other.
    documents = [
        (f"{base}/{size}", *(("--header", "Connection: close") if size == sizes[-1] else ()))
        for sizes in SECURE_SIZES
        for size in sizes
    ]
    with ThreadPoolExecutor() as pool, sniffed(lab, pool, files / "https.pcapng"):
        for version in VERSIONS:
            list(pool.map(lambda user, version=version: fetch_secure(lab, user, documents, version), users))


class sniffed:  # noqa: N801 - used as a function
    """While it lasts, dumpcap captures the beginnings of the packets at the server."""

    def __init__(self, lab: Lab, pool: ThreadPoolExecutor, to: Path) -> None:
        self._stop = to.with_suffix(".stop")
        script = f"""
            dumpcap -q -p -i {DEVICE} -s {SNAPLEN} -w {to} -f 'tcp port {SECURE}' 2> {to}.log &
            until test -e {self._stop}; do sleep 0.1; done
            kill -INT $!
            wait $!"""
        program = ["sh", "-c", script]
        self._capturing = pool.submit(lab.call, "run", 120.0, host=SERVER, program=program, within_s=120.0)
        time.sleep(2.0)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        time.sleep(1.0)
        self._stop.touch()
        self._capturing.result()


def measure(lab: Lab, layout: Layout, files: Path, settings: KernelSettings) -> None:
    """A speed test of each user, all at once: as much as BBR, which M-Lab's servers use, sends in TEST_S seconds."""
    lab.set(SERVER, replace(settings, route={**settings.route, "congctl": "bbr"}))
    users = [host.name for host in layout.hosts if host.name != SERVER]
    url = f"http://{layout.host(SERVER).address}:{SPEED_TEST}/{SIZES[-1]}"
    with ThreadPoolExecutor() as pool, snapshots(lab, pool, files / "test.txt", SPEED_TEST):
        list(pool.map(lambda user: fetch(lab, user, [url], "--max-time", str(TEST_S)), users))


def fetch_secure(lab: Lab, user: str, documents: list[tuple[str, ...]], version: tuple[str, ...]) -> None:
    """Documents, each with options of its own, which curl fetches a second and a half apart."""
    program = ["curl", "--disable", "--rate", "40/m"]
    each = ["--silent", "--show-error", "--noproxy", "*", "--insecure", "--http1.1", *version, "--output", "/dev/null"]
    for number, document in enumerate(documents):
        program += [*(["--next"] if number else []), *each, *document]
    lab.call("run", 60.0, host=user, program=program, within_s=60.0)


class snapshots:  # noqa: N801 - used as a function
    """While it lasts, ss is asked again and again, the time before each of its answers."""

    def __init__(self, lab: Lab, pool: ThreadPoolExecutor, to: Path, port: int) -> None:
        self._stop = to.with_suffix(".stop")
        loop = f"""
            until test -e {self._stop}; do
                date +%s.%N
                ss -tinH "sport = :{port}"
                sleep {SNAPSHOT_S}
            done >> {to}"""
        program = ["sh", "-c", loop]
        self._asking = pool.submit(lab.call, "run", 120.0, host=SERVER, program=program, within_s=120.0)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._stop.touch()
        self._asking.result()


def fetch(lab: Lab, user: str, urls: list[str], *options: str) -> str:
    """One connection, on which a user fetches documents one after the other; a line of times and sizes for each."""
    line = "%{local_ip}:%{local_port} %{time_starttransfer} %{time_total} %{size_download} %{size_header}\\n"
    program = ["curl", "--disable", "--silent", "--noproxy", "*", "--write-out", line, *options]
    for url in urls:
        program += ["--output", "/dev/null", url]
    # Status 28: the time that was given is over.
    command = ["sh", "-c", '"$@" || test $? = 28', "sh", *program]
    return str(lab.call("run", 60.0, host=user, program=command, within_s=60.0))


def write_table(path: Path, downloads: list[str], snapshots: str) -> None:
    """A plain table: a row an answer of the users' last connections with the times that curl told, and of the large
    ones the rate at which they came; the least round trip as the server's kernel told it.
    """
    least_ms = {end: numbers(info)["minrtt"] for end, info in sockets(snapshots)}
    lines = ["connection,rtt_ms,down_kbps,bytes,first_byte_time_ms,completion_time_ms"]
    for connection, answers in enumerate(downloads):
        for answer in answers.splitlines():
            end, *rest = answer.split()
            first_byte_s, total_s, body, header = map(float, rest)
            # As a link counts, with the headers of its packets.
            bits = (body - MSS) * 8 * (MSS + HEADERS) / MSS
            rate = f"{bits / (total_s - first_byte_s) / 1e3:.0f}" if body >= LARGE else ""
            times = f"{first_byte_s * 1e3:.1f},{total_s * 1e3:.1f}"
            lines.append(f"{connection},{least_ms[end]},{rate},{int(body + header)},{times}")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def sockets(snapshots: str) -> Iterator[tuple[str, str]]:
    """The other end of each socket, and what ss told of it, snapshot after snapshot."""
    for first, second in pairwise(snapshots.splitlines()):
        if second.startswith("\t"):
            yield first.split()[4], second


def numbers(info: str) -> dict[str, float]:
    """The numbers in a line of ss."""
    return {name: float(value) for name, value in re.findall(r"(\w+)[: ](\d+(?:\.\d+)?)", info)}


def write_ndt7(path: Path, snapshots: str) -> None:
    """The last snapshot of each connection as a row of M-Lab's table: its server keeps the same numbers of the kernel.

    Microseconds and bytes in TCPInfo, Mbit/s and milliseconds in `a`.
    """
    fields = ("BytesAcked", "BytesRetrans", "BytesSent", "ElapsedTime", "MinRTT", "RTT")
    head = ["id", "a.CongestionControl", "a.MeanThroughputMbps", "a.MinRTT", "a.LossRate"]
    lines = [",".join(head + [f"raw.Download.ServerMeasurements.TCPInfo.{field}" for field in fields])]
    for number, info in enumerate(dict(sockets(snapshots)).values()):
        told = numbers(info)
        sent, acknowledged, again = told["bytes_sent"], told["bytes_acked"], told.get("bytes_retrans", 0.0)
        elapsed_us, least_ms = told["busy"] * 1e3, told["minrtt"]
        row = [f"example_{number}", "bbr", f"{acknowledged * 8 / elapsed_us:.4f}", f"{least_ms}", f"{again / sent:.6f}"]
        row += [f"{value:.0f}" for value in (acknowledged, again, sent, elapsed_us, least_ms * 1e3, told["rtt"] * 1e3)]
        lines.append(",".join(row))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
