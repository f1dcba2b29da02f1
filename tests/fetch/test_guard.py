from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fetch.certificates import authority
from fetch.site import ARTICLE, ARTICLE_TEXT, Names, page, redirect, running_site
from windowpane.context.fetched import Fetched
from windowpane.errors import FetchFailedError, FetchRefusedError
from windowpane.fetch.addresses import exemption
from windowpane.fetch.guard import AddressGuard, system_addresses
from windowpane.fetch.pages import Pages
from windowpane.fetch.urls import page_url


def spellings_v4(address: IPv4Address) -> list[str]:
    a, b, c, d = address.packed
    return [
        str(address),
        f"{address}.",
        str(int(address)),
        f"{int(address):#x}",
        f"{int(address):#o}".replace("0o", "0"),
        f"{a}.{b}.{c * 256 + d}",
        f"{a}.{b * 65536 + c * 256 + d}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        str(address).replace(".", "。"),
        f"[::ffff:{address}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]",
    ]


async def refuses(guard: AddressGuard, url: str) -> bool:
    try:
        parsed = page_url(url)
        guard.check(parsed)
        await guard.addresses(parsed.raw_host.decode(), parsed.port or 80)
    except FetchRefusedError:
        return True
    return False


@pytest.mark.spec("S4.60")
@settings(max_examples=40)
@given(
    st.ip_addresses(v=4).map(lambda address: IPv4Address(int(address))).filter(lambda address: not address.is_global)
)
async def test_an_ipv4_address_that_is_not_global_is_refused_in_every_spelling(address: IPv4Address) -> None:
    urls = [f"http://{host}/" for host in spellings_v4(address)]

    assert [url for url in urls if not await refuses(AddressGuard(), url)] == []


@settings(max_examples=40)
@given(
    st.ip_addresses(v=6).map(lambda address: IPv6Address(int(address))).filter(lambda address: not address.is_global)
)
async def test_an_ipv6_address_that_is_not_global_is_refused_in_every_spelling(address: IPv6Address) -> None:
    hosts = [str(address), address.exploded, address.exploded.upper(), f"{address}%25eth0", f"{address}%1"]

    assert [host for host in hosts if not await refuses(AddressGuard(), f"http://[{host}]/")] == []


@settings(max_examples=30)
@given(
    st.ip_addresses(v=4).map(lambda address: IPv4Address(int(address))).filter(lambda address: not address.is_global)
)
async def test_whatever_the_resolver_makes_of_a_spelling_is_public_or_refused(address: IPv4Address) -> None:
    passed: list[IPv4Address | IPv6Address] = []
    for host in spellings_v4(address):
        try:
            passed.extend(await AddressGuard().addresses(host.strip("[]"), 80))
        except (FetchRefusedError, OSError, UnicodeError):
            continue

    # A leading zero makes some resolvers read another number, which may be public.
    assert [found for found in passed if not found.is_global] == []


async def test_the_names_of_this_machine_are_refused() -> None:
    assert await system_addresses("localhost", 80)
    with pytest.raises(
        FetchRefusedError, match=r"^localhost is not fetched: its address is not on the public internet"
    ):
        await AddressGuard().addresses("localhost", 80)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://user@example.com/", "it holds a user name or password; give the address without"),
        ("http://example.com@127.0.0.1/", "it holds a user name or password; give the address without"),
        ("http://example.com\\@127.0.0.1/", "it holds a user name or password; give the address without"),
        ("http://0x7f.1/", "a number for a host must be written as four decimal numbers"),
        ("http://134744072/", "a number for a host must be written as four decimal numbers"),
        ("http://%31%32%37.0.0.1/", "a number for a host must be written as four decimal numbers"),
        ("http://exa%6dple.com/", "its host is not a valid name"),
        ("http://a b/", "its host is not a valid name"),
        ("http://a..b/", "its host is not a valid name"),
        ("http://[fe80::1%25eth0]/", "an address on a local network is not on the public internet"),
        ("http://example.com:22/", "port 22 is not one that pages are on; `fetch_allow` can name it, as ADDRESS:PORT"),
        ("http://example.com:0/", "port 0 is not one that pages are on; `fetch_allow` can name it, as ADDRESS:PORT"),
        ("http://example.com:-1/", "port -1 is not one that pages are on; `fetch_allow` can name it, as ADDRESS:PORT"),
        (
            "https://example.com:99999/",
            "port 99999 is not one that pages are on; `fetch_allow` can name it, as ADDRESS:PORT",
        ),
    ],
)
def test_an_address_with_a_trick_in_it_is_refused_before_anything_is_sent(url: str, why: str) -> None:
    with pytest.raises(FetchRefusedError) as refused:
        AddressGuard().check(page_url(url))

    assert str(refused.value).endswith(f" is not fetched: {why}")


@pytest.mark.parametrize(
    "url", ["http://example.com/", "https://example.com:8443/a?b", "http://8.8.8.8/", "http://a_b.example./"]
)
def test_an_ordinary_address_may_be_fetched(url: str) -> None:
    AddressGuard().check(page_url(url))


async def test_a_name_with_a_public_and_a_private_address_is_refused_altogether() -> None:
    guard = AddressGuard(resolve=Names({"both.test": [["93.184.215.14", "10.0.0.7"]]}))

    with pytest.raises(FetchRefusedError) as refused:
        await guard.addresses("both.test", 80)

    assert "10.0.0.7" not in str(refused.value)


async def test_an_exempt_address_is_exempt_on_its_own_port_only() -> None:
    guard = AddressGuard(allow=(exemption("127.0.0.1:9000"),))

    assert await guard.addresses("127.0.0.1", 9000) == (IPv4Address("127.0.0.1"),)
    for host, port in (("127.0.0.1", 80), ("127.0.0.2", 9000), ("8.8.8.8", 9000)):
        with pytest.raises(FetchRefusedError):
            await guard.addresses(host, port)


async def test_a_name_is_resolved_once_and_the_connection_goes_to_that_address() -> None:
    async with (
        running_site({"/": page(ARTICLE)}) as site,
        running_site({"/": page("<p>private</p>")}, host="127.0.0.2", port=site.port) as private,
    ):
        names = Names({"news.test": [["127.0.0.1"], ["127.0.0.2"]]})

        fetched = await Pages(site.guard(names)).fetch_page(f"http://news.test:{site.port}/")

        assert fetched == Fetched(
            kind="page",
            url=f"http://news.test:{site.port}/",
            title="Tea is rising",
            site_name="The Daily Cup",
            content=ARTICLE_TEXT,
        )
        assert names.asked == ["news.test"]
        assert [visit.headers["host"] for visit in site.visits] == [f"news.test:{site.port}"]
        assert private.visits == []


async def test_a_name_that_turns_private_before_the_redirect_is_refused() -> None:
    async with (
        running_site({"/": redirect("/next")}) as site,
        running_site({"/next": page("<p>private</p>")}, host="127.0.0.2", port=site.port) as private,
    ):
        names = Names({"news.test": [["127.0.0.1"], ["127.0.0.2"]]})

        with pytest.raises(FetchRefusedError, match=r"^news\.test is not fetched"):
            await Pages(site.guard(names)).fetch_page(f"http://news.test:{site.port}/")

        assert (names.asked, private.visits) == (["news.test", "news.test"], [])


@pytest.mark.parametrize(
    "to",
    [
        *("http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest/", "http://metadata.test/"),
        *(
            "file://example.com/secret",
            "ftp://example.com/",
            "gopher://127.0.0.1:6379/_INFO",
            "http://127.0.0.2:{port}/",
        ),
        *("http://0x7f000002:{port}/", "//user@127.0.0.1:{port}/", "http://127.0.0.1:22/", "http://[::1]:{port}/"),
        *("data:text/html,hello", "javascript:alert(1)"),
    ],
)
async def test_a_redirect_to_a_place_that_is_not_public_is_refused(to: str) -> None:
    routes = {"/": page("")}
    async with (
        running_site(routes) as site,
        running_site({"/": page("<p>private</p>")}, host="127.0.0.2", port=site.port) as private,
    ):
        routes["/"] = redirect(to.replace("{port}", str(site.port)))

        with pytest.raises(FetchRefusedError):
            await Pages(site.guard(Names({"metadata.test": [["169.254.169.254"]]}))).fetch_page(f"{site.url}/")

        assert ([visit.path for visit in site.visits], private.visits) == (["/"], [])


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_site({}) as proxy, running_site({"/": page(ARTICLE)}) as site:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, proxy.url)

        fetched = await Pages(site.guard()).fetch_page(f"{site.url}/")

        assert (fetched.title, proxy.visits) == ("Tea is rising", [])


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with running_site({"/": page(ARTICLE)}) as site:
        guard = AddressGuard(
            allow=(exemption(f"127.0.0.1:{site.port}"), exemption(f"127.0.0.9:{site.port}")),
            resolve=Names({"news.test": [["127.0.0.9", "127.0.0.1"]]}),
        )

        assert (await Pages(guard).fetch_page(f"http://news.test:{site.port}/")).title == "Tea is rising"


async def test_a_safe_connection_is_made_to_the_checked_address_under_the_name_of_the_site(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    asked: list[str | None] = []
    server = ours.server_context("news.test")
    server.sni_callback = lambda _, name, __: asked.append(name)
    async with running_site({"/": page(ARTICLE)}, ssl_context=server) as site:
        names = Names({"news.test": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]})
        pages = Pages(site.guard(names), ssl_context=ours.client_context())

        fetched = await pages.fetch_page(f"https://news.test:{site.port}/")
        with pytest.raises(FetchFailedError, match="its certificate is not valid for this address"):
            await pages.fetch_page(f"https://other.test:{site.port}/")
        with pytest.raises(FetchFailedError, match="its certificate is not valid for this address"):
            await Pages(site.guard(names)).fetch_page(f"https://news.test:{site.port}/")

        assert (fetched.title, asked[:2]) == ("Tea is rising", ["news.test", "other.test"])


async def test_a_name_that_nobody_knows_cannot_be_reached() -> None:
    with pytest.raises(FetchFailedError, match="its site cannot be reached; check the address"):
        await Pages(AddressGuard(resolve=Names({}))).fetch_page("http://nowhere.test/")
