"""What the types of collections have in common."""

from __future__ import annotations

from itertools import permutations

import pytest

from storage.engine.limits import StreamLimits
from storage.types.collection import Collection
from storage.types.hash import Hash
from storage.types.list import ListValue
from storage.types.set import SetValue
from storage.types.sorted_set import SortedSet

TYPES = (Hash, ListValue, SetValue, SortedSet)


@pytest.mark.parametrize("order", list(permutations((*TYPES, Collection), 2)))
@pytest.mark.parametrize("kind", TYPES)
def test_a_value_is_of_its_own_type_and_a_collection_whatever_was_asked_before(
    kind: type[Collection], order: tuple[type[Collection], ...]
) -> None:
    value = kind(StreamLimits().collections)
    for each in order:
        assert isinstance(value, each) == (each in (kind, Collection))
