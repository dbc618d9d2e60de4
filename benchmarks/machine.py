"""Where and when measurements were made."""

from __future__ import annotations

import datetime
import os
import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loads import PROGRAM


@dataclass(frozen=True)
class Machine:
    """What a reader has to know to judge the figures."""

    when: str
    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    client: str
    placement: str


def describe(cores: int, server_cpu: int | None) -> Machine:
    """This machine, now; servers have a core for themselves if ``server_cpu`` is one."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Machine(
        when=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=_processor(),
        cores=cores,
        memory_gib=round(pages * size / 2**30),
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=_python(),
        client=PROGRAM.version() if PROGRAM else "own driver only: redis-benchmark was not found",
        placement="no core is reserved"
        if server_cpu is None
        else "the server has a core to itself",
    )


def _python() -> str:
    """The interpreter, and whether it was configured to be guided by a profile when it was built;
    Debian does that by other means."""
    guided = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    form = "with" if guided else "without"
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{version}, configured {form} --enable-optimizations"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
