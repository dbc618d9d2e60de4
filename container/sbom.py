"""Says what an image consists of: a bill of materials in the form of CycloneDX 1.6, as JSON.

``python -I sbom.py`` lists the Python packages that this Python finds, those of the Python that its
environment was made with, Python itself, and what dpkg has installed. The image is built with its
own, ``/opt/penstock/sbom.cdx.json``. There is no time and no random number in it: the same image
has the same bill.
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from email.message import Message
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

DPKG_STATUS: Final = "/var/lib/dpkg/status"
OS_RELEASE: Final = "/etc/os-release"

CLASSIFIERS: Final = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
"""What older packages say of their licence, and what SPDX calls it."""

TEXTS: Final = {
    "MIT": "MIT",
    "MIT License": "MIT",
    "MIT style": "MIT",
    "Apache 2.0": "Apache-2.0",
    "BSD-2-Clause": "BSD-2-Clause",
}

Component = dict[str, Any]


def licence_of(metadata: Message) -> str:
    """The licence of a package as an SPDX expression; empty if its metadata does not say."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    names = [CLASSIFIERS.get(line, "") for line in metadata.get_all("Classifier") or ()]
    if known := sorted({name for name in names if name}):
        return " AND ".join(known)
    return TEXTS.get(metadata.get("License") or "", "")


def canonical(name: str) -> str:
    """The name of a Python package as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_packages() -> Iterator[Component]:
    """A component for each package that is installed."""
    base = [str(path) for path in Path(sys.base_prefix, "lib").glob("python3*/*-packages")]
    for one in distributions(path=[*sys.path, *base]):
        metadata = cast(Message, one.metadata)
        name = canonical(str(metadata["Name"]))
        licence = licence_of(metadata)
        yield _component(
            name,
            one.version,
            f"pkg:pypi/{name}@{quote(one.version)}",
            licences=[{"expression": licence}] if licence else [],
        )


def python_itself() -> Component:
    """The interpreter, which is no package where the image of Python has it."""
    version = platform.python_version()
    licences = [{"expression": "PSF-2.0"}]
    return _component("cpython", version, f"pkg:generic/cpython@{version}", licences=licences)


def system_packages(status: str, release: Mapping[str, str]) -> Iterator[Component]:
    """A component for each package that dpkg calls installed, of its status file."""
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            name, version, arch = fields["Package"], fields["Version"], fields["Architecture"]
            system = release.get("ID", "debian")
            where = f"arch={arch}&distro={system}-{release.get('VERSION_ID', '')}".rstrip("-")
            url = f"pkg:deb/{system}/{quote(name)}@{quote(version, safe='')}?{where}"
            yield _component(name, version, url, licences=[])


def _component(name: str, version: str, url: str, licences: list[dict[str, str]]) -> Component:
    found = {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}
    return {**found, "licenses": licences} if licences else found


def release_of(text: str) -> dict[str, str]:
    """The fields of ``os-release``."""
    return {key: value.strip("\"'") for key, value in re.findall(r"^(\w+)=(.*)$", text, re.M)}


def bill(components: Iterable[Component]) -> dict[str, Any]:
    """The document; what it is about is Penstock, if that is among the components."""
    every = {one["bom-ref"]: one for one in components}
    about = [one for one in every.values() if one["purl"].startswith("pkg:pypi/penstock-server@")]
    rest = [every[ref] for ref in sorted(every) if every[ref] not in about]
    document: dict[str, Any] = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    if about:
        document["metadata"] = {"component": {**about[0], "type": "application"}}
    return {**document, "components": rest}


def _text(path: str) -> str:
    file = Path(path)
    return file.read_text(encoding="utf-8") if file.exists() else ""


def main() -> int:
    """Prints the document."""
    system = system_packages(_text(DPKG_STATUS), release_of(_text(OS_RELEASE)))
    document = bill([*python_packages(), python_itself(), *system])
    json.dump(document, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
