"""Where the command finds the packages ``protocol``, ``server`` and ``storage``.

A project that has Penstock installed may have packages of these names itself. So an installed
Penstock keeps them in a folder of its own, which only a process of the command looks into, and
first of all; in a checkout they lie beside this package.
"""

from __future__ import annotations

import os
import sys


def add_packages() -> None:
    """Lets this process import the packages of the server, before others of the same names."""
    here = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(here, "_packages")
    sys.path.insert(0, inside if os.path.isdir(inside) else os.path.dirname(here))
