from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.errors import InvalidSettingError
from windowpane.fetch.addresses import Exemption, exemption, is_exempt, is_public


@given(st.ip_addresses())
def test_an_address_that_is_not_global_is_never_public(address: IPv4Address | IPv6Address) -> None:
    assert address.is_global or not is_public(address)


@given(st.ip_addresses(v=4).map(lambda address: IPv4Address(int(address))))
def test_an_ipv4_address_in_the_clothes_of_ipv6_is_never_public(address: IPv4Address) -> None:
    number = int(address)
    dressed = [
        IPv6Address(0xFFFF << 32 | number),  # mapped
        IPv6Address(number),  # compatible
        IPv6Address(0xFFFF << 48 | number),  # translated
        IPv6Address(0x2002 << 112 | number << 80 | 1),  # 6to4
        IPv6Address(0x64FF9B << 96 | number),  # NAT64
        IPv6Address(0x64FF9B0001 << 80 | number),  # NAT64 of a local network
        IPv6Address(0x20010000 << 96 | (number ^ 0xFFFFFFFF)),  # Teredo
    ]

    assert [is_public(form) for form in dressed] == [False] * len(dressed)


@pytest.mark.parametrize(
    "text",
    [
        *("0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254"),
        *("168.63.129.16", "169.254.169.254", "172.31.255.255", "192.0.0.192", "192.168.1.1", "198.18.0.1"),
        *("192.88.99.1", "224.0.0.1", "239.255.255.255", "255.255.255.255", "240.0.0.1"),
        *("::", "::1", "fd00:ec2::254", "fc00::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1"),
        *("2001::1", "2606:4700:4700::1111%eth0", "3fff::1", "4000::1", "100::1"),
    ],
)
def test_addresses_of_machines_and_their_neighbours_are_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::64"])
def test_addresses_of_sites_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("10.0.0.0/8", Exemption(ip_network("10.0.0.0/8"))),
        ("127.0.0.1:8080", Exemption(ip_network("127.0.0.1/32"), 8080)),
        ("[::1]:8080", Exemption(ip_network("::1/128"), 8080)),
        ("fd00::/8", Exemption(ip_network("fd00::/8"))),
        (" 192.168.1.7 ", Exemption(ip_network("192.168.1.7/32"))),
    ],
)
def test_an_exemption_is_a_network_or_an_address_with_a_port(text: str, meant: Exemption) -> None:
    assert exemption(text) == meant


@pytest.mark.parametrize("text", ["", "wiki.corp", "10.0.0.1/8", "127.0.0.1:0", "127.0.0.1:70000", "[::1]:x", "a:1"])
def test_anything_else_is_no_exemption(text: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"fetch_allow: .* is neither a network such as"):
        exemption(text)


def test_an_exemption_without_a_port_opens_the_usual_ports_only() -> None:
    network = (exemption("10.0.0.0/8"),)

    assert is_exempt(ip_address("10.9.9.9"), 80, network, frozenset({80}))
    assert not is_exempt(ip_address("10.9.9.9"), 22, network, frozenset({80}))
    assert not is_exempt(ip_address("11.0.0.1"), 80, network, frozenset({80}))
