"""The form in which the policies of a group are changed."""

from __future__ import annotations

from server.config.policies import GROUP
from server.web.page.policy_form import PARTS, policy_inputs


def test_each_policy_has_a_place_and_an_example_that_it_takes() -> None:
    placed = [policy for examples in PARTS.values() for policy in examples]
    assert sorted(policy.name for policy in placed) == sorted(GROUP)
    for examples in PARTS.values():
        for policy, example in examples.items():
            assert policy.is_on({policy.name: policy.plain(example.encode())})


def test_a_field_says_what_it_is_for_and_what_holds_without_it() -> None:
    own, others = {b"ack-wait": b"30s"}, {b"max-deliveries": b"3"}
    fields = {each.label: each for each in policy_inputs(own, others)}
    assert fields["ack-wait"].value == "30s"
    assert fields["ack-wait"].part == "Trying again"
    assert fields["max-deliveries"].hint == "as of the stream or the configuration: 3"
    assert fields["dead-letter"].hint == "off; for example orders:dead"
    assert fields["dead-letter"].help == "Where dead letters go; it is made if it is not there."
    assert fields["backoff"].help == (
        "How long after the first, second, ... delivery an entry may be delivered again; the last"
        " one counts for all that follow."
    )
    assert fields["dead-letter"].part == ""
    assert [each.part for each in fields.values() if each.part] == list(PARTS)
