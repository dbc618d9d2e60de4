"""Why a value can't be decoded, and why it can't be decoded now."""

from __future__ import annotations

from penstock.pipeline.errors import PipelineError


class Undecodable(ValueError):
    """A value that makes its entry a dead letter; the message goes on behind the field's name."""


class Unavailable(PipelineError):
    """Something that decoding needs is not there now; the batch fails and is tried again."""
