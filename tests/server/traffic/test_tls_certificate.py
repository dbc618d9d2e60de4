"""When certificates expire, compared with what another library reads."""

from __future__ import annotations

import base64
import contextlib
import ssl
from datetime import UTC, datetime

import pytest
import trustme

from server.traffic.tls import BEGIN, END, expiry


@pytest.mark.parametrize("year", [1999, 2001, 2049, 2050, 2051, 9999])
def test_the_end_of_a_certificate_is_read_in_any_year(year: int) -> None:
    moment = datetime(year, 7, 8, 9, 10, 11, tzinfo=UTC)
    start = datetime(1998, 1, 1, tzinfo=UTC)
    issued = trustme.CA().issue_cert("example.org", not_before=start, not_after=moment)
    pem = issued.cert_chain_pems[0].bytes().decode()
    assert expiry("some text before\n" + pem) == int(moment.timestamp())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no certificate at all",
        BEGIN,
        f"{BEGIN}\n{END}",
        f"{BEGIN}\nAAAA\n{END}",
        f"{BEGIN}\n!\n{END}",
        f"{BEGIN}\nMIIB\n{END}",
    ],
)
def test_what_is_no_certificate_has_no_end(text: str) -> None:
    with pytest.raises(ValueError, match=r"certificate|base64|padd|time data"):
        expiry(text)


def test_a_certificate_that_is_cut_or_damaged_has_an_end_or_is_refused() -> None:
    whole = ssl.PEM_cert_to_DER_cert(trustme.CA().cert_pem.bytes().decode())
    for length in range(len(whole)):
        damaged = whole[:length] + bytes([whole[length] ^ 0x55]) + whole[length + 1 :]
        for data in (whole[:length], damaged):
            text = f"{BEGIN}\n{base64.b64encode(data).decode()}\n{END}"
            with contextlib.suppress(ValueError):
                assert isinstance(expiry(text), int)
