"""Certificates that are read once for all HTTP clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from ssl import SSLContext

import pytest
from cryptography.x509 import load_der_x509_certificate
from tests.fetch.certificates import authority

from windowpane.certificates import trusted

COUNTED = """
import httpcore2
read, counted = httpcore2.default_ssl_context, []
httpcore2.default_ssl_context = lambda **given: counted.append(1) or read(**given)
from windowpane.calls.transport import Routes
from windowpane.client import Client
from windowpane.fetch.pages import Pages
from windowpane.fetch.tavily import Tavily
Routes(), Routes(timeout=None), Pages(), Tavily("key"), Client("https://127.0.0.1:1")
print(len(counted))
"""


def test_all_clients_of_a_process_share_what_they_trust() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT")}
    ran = subprocess.run([sys.executable, "-c", COUNTED], env=kept, capture_output=True, text=True, check=True)

    assert ran.stdout == "1\n"


def test_a_file_that_the_environment_names_is_trusted_alone_and_only_where_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    usual = trusted()
    made = authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_file))

    assert serials(trusted()) == [made.certificate.serial_number]
    assert trusted() is trusted()
    assert trusted(trust_env=False) is usual


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = authority(tmp_path)
    os.utime(made.ca_file, (1, 1))
    monkeypatch.setenv("SSL_CERT_FILE", str(made.ca_file))
    before = trusted()
    later = authority(tmp_path)

    assert serials(before) == [made.certificate.serial_number]
    assert serials(trusted()) == [later.certificate.serial_number]


def serials(context: SSLContext) -> list[int]:
    return [load_der_x509_certificate(each).serial_number for each in context.get_ca_certs(binary_form=True)]
