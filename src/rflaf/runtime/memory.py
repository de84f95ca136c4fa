"""How much memory there is."""

from __future__ import annotations

import os
from pathlib import Path


def free_bytes() -> int:
    """Memory that this process can still take without pushing others out, as far as known."""
    found = [physical_bytes()]
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        if "MemAvailable" in lines:
            found.append(1024 * int(lines["MemAvailable"].split()[0]))
    group = Path("/sys/fs/cgroup")  # a container's own limit
    try:
        limit = int((group / "memory.max").read_text())
        found.append(max(limit - int((group / "memory.current").read_text()), 0))
    except (OSError, ValueError):
        pass
    return min(found)


def physical_bytes() -> int:
    """Memory of the machine; 8 GiB where it does not say."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return 1 << 33


def gigabytes(count: float) -> str:
    """A number of bytes, for people."""
    return f"{count / 1e9:.3g} GB"
