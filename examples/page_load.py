"""How long a page takes in a real browser, by initial window and version of HTTP.

    .venv/bin/python examples/page_load.py            # a minute; needs nginx, openssl and chromium, not root

A page with twelve images of 30 kB is served by nginx and loaded by headless Chromium, which is started anew for each
load, over 10 Mbit/s with a round trip of 100 ms: `firstflight shell examples/download.toml` with the delay changed. The
time is the browser's own, from the navigation's start to the end of the load event.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

WINDOWS = (3, 10, 32)
LOADS = 5
IMAGES, IMAGE_BYTES = 12, 30_000
PAGE = """<!doctype html><title>page</title>{images}<pre id=time></pre><script>
addEventListener("load", () => setTimeout(() => {{
    const loaded = performance.getEntriesByType("navigation")[0]
    document.getElementById("time").textContent = `loaded ${{loaded.loadEventEnd}} ${{loaded.nextHopProtocol}}`
}}, 0))
</script>"""
BROWSER = (
    "chromium --headless --disable-gpu --ignore-certificate-errors --user-data-dir={profile} {sandbox} --dump-dom {url}"
)


def main() -> None:
    """Print a row for each window and version: median, and all loads."""
    here = Path(__file__).parent
    sandbox = "--no-sandbox" if os.geteuid() == 0 else ""
    with tempfile.TemporaryDirectory() as directory:
        site = Path(directory, "site")
        site.mkdir()
        images = "".join(f'<img src="{number}.bmp" width=9>' for number in range(IMAGES))
        (site / "index.html").write_text(PAGE.format(images=images))
        for number in range(IMAGES):
            (site / f"{number}.bmp").write_bytes(os.urandom(IMAGE_BYTES))
        print("window  version   median  loads, ms")
        for window in WINDOWS:
            loads = [
                BROWSER.format(profile=f"{directory}/{window}-{load}", sandbox=sandbox, url=f"{scheme}://server/")
                for scheme in ("http", "https")
                for load in range(LOADS)
            ]
            shell = [Path(sys.executable).with_name("firstflight"), "shell", here / "download.toml", "--serve", site]
            changed = ["--set", f"tcp.initial_window={window}", "--set", "network.links[0].delay=50ms"]
            done = subprocess.run(
                [*shell, *changed, "--", "sh", "-c", "; ".join(loads)], capture_output=True, check=False
            )
            found: dict[str, list[float]] = {}
            for time, version in re.findall(r'"time">loaded ([\d.]+) (\S+?)<', done.stdout.decode()):
                found.setdefault(version, []).append(float(time))
            if not found:
                sys.exit(done.stderr.decode())
            for version, times in found.items():
                print(f"{window:6}  {version:8}  {median(times):6.0f}  {' '.join(f'{time:.0f}' for time in times)}")


if __name__ == "__main__":
    main()
