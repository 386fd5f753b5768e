"""The page of ``report`` in a browser: pictures of it, and what its script makes of it."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.support.command import Run

CAPTURE = str(Path(__file__).resolve().parents[2] / "captures" / "incidents" / "broker-killed.pcap.xz")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("profile")


def browse(page: Path, profile: Path, *options: str) -> str:
    """What Chromium prints of a page."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
        *options, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture
def page(kwiresniff: Run, tmp_path: Path) -> Path:
    out = tmp_path / "report.html"
    assert kwiresniff("report", "-q", "-O", str(out), CAPTURE).code == 0
    return out


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (400, False), (1400, True)])
def test_a_picture_of_the_page_is_not_empty(page: Path, profile: Path, width: int, dark: bool) -> None:
    """It has the size of the window, and a picture of one colour would be a hundredth as large."""
    picture = page.with_suffix(".png")
    options = ["--blink-settings=preferredColorScheme=0"] if dark else []
    browse(page, profile, f"--screenshot={picture}", f"--window-size={width},2000", *options)
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, 2000)
    assert len(data) > 60_000


def test_it_is_printed_on_several_pages(page: Path, profile: Path) -> None:
    """As a document of paper, without the field to search in."""
    printed = page.with_suffix(".pdf")
    browse(page, profile, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    data = printed.read_bytes()
    assert data.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", data)) > 1
    assert b"/FT /Tx" not in data


def test_the_script_runs_under_the_policy_of_the_page(page: Path, profile: Path) -> None:
    """Without it there is no field to search in, and no heading to sort by."""
    assert 'type="search"' not in page.read_text("utf-8")
    dom = browse(page, profile, "--dump-dom")
    assert 'type="search"' in dom
    assert 'tabindex="0"' in dom


def test_another_script_does_not_run(page: Path, profile: Path) -> None:
    """Were a name from the wire to become a script, the policy would keep it from running."""
    html = page.read_text("utf-8")
    page.write_text(html.replace("<body>", "<body><script>document.title = 'taken over'</script>", 1), "utf-8")
    title = re.search(r"<title>(.*?)</title>", browse(page, profile, "--dump-dom"))
    assert title is not None
    assert title[1] == "Kafka on the wire"
