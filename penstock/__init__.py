"""The tools of Penstock; its server is in the packages ``protocol``, ``storage`` and ``server``.

The tools are the command line, import and export, pipelines, and the pytest plugin.
"""

from __future__ import annotations

import os
import sys


def add_packages() -> None:
    """Let this process import the packages of the server, before others of the same names.

    A project that has Penstock installed may have packages of these names itself. So an installed
    Penstock keeps them in a folder of its own, which only a process of the command looks into, and
    first of all; in a checkout they lie beside this package.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(here, "_packages")
    sys.path.insert(0, inside if os.path.isdir(inside) else os.path.dirname(here))
