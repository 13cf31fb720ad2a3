"""The page with its data in it: a file that needs no server and no network, or the first part of a report."""

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmur_page.columns import in_columns
from murmur_page.page_files import picture, read_file, script
from murmur_pubsub.whole_files import write_text

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class FrozenPicture:
    """The parts of a frozen page, as HTML."""

    style: str
    body: str
    scripts: tuple[str, ...]
    """What runs in it."""


def content_policy(*scripts: str) -> str:
    """The content policy of a page in which these scripts run, no other, and nothing comes from any network."""
    digests = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def freeze(data: Mapping[str, Any], alone: bool = False) -> FrozenPicture:
    """The picture of that data (`murmur_page.recorded`); `alone`: it has a page to itself."""
    columns = {**data, "frames": in_columns(data["frames"])}
    own, unpack = script("frozen"), read_file("unpack.js")
    holders = _packed("live-data", json.dumps(columns, separators=(",", ":"))) + _packed("live-script", own)
    return FrozenPicture(read_file("live.css"), f"{picture(alone)}{holders}<script>{unpack}</script>", (unpack, own))


def _packed(name: str, text: str) -> str:
    """The text in an element of that name, which unpack.js takes it from."""
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{data}</script>\n'


def write_page(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file of the picture alone; raises `DiskError`."""
    parts = freeze(data, alone=True)
    title = html.escape(str(data["head"]["name"]))
    policy = content_policy(*parts.scripts)
    write_text(path, _PAGE.format(policy=policy, title=title, style=parts.style, body=parts.body))
