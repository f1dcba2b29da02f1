"""Tool servers of other programs: `mcp.json` in its dialects, and `server.json` of the MCP registry.

No server is started for this, so how many tools one brings is found out when it connects: `always_up_to` lets those
of a server with many be selected, message by message, instead of sending all of them with every request.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from windowpane.agents.importers.base import Finding, FoundServer, NotTaken
from windowpane.agents.importers.texts import plain_json, text_of

MOST_ALWAYS = 10
"""An imported server that brings more tools has them selected."""

SERVER_FILES = (
    "mcp.json", ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", "claude_desktop_config.json", ".roo/mcp.json",
    ".kiro/settings/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json", "mcp_config.json", "cline_mcp_settings.json",
    ".gemini/settings.json",
)  # fmt: skip
REGISTRY_FILE = "server.json"

FOREIGN = ("alwaysAllow", "autoApprove", "timeout", "trust", "includeTools", "excludeTools", "description", "gallery")
"""Settings of other programs that mean nothing here."""

RUNNERS: Mapping[str, tuple[str, str]] = {"npm": ("npx", "@"), "pypi": ("uvx", "=="), "nuget": ("dnx", "@")}
"""What runs a package of a registry, and how its version is written."""

OLD_TRANSPORT = (
    "it speaks SSE, the transport before streamable HTTP: use the server's newer address (often /mcp in the place of "
    "/sse), or a command: `npx -y mcp-remote URL`"
)


def servers_in(root: Path, path: Path) -> Iterator[Finding]:
    """Return the servers that a file lists under `mcpServers` or `servers`. Comments in it do no harm."""
    table = _table(root, path)
    if isinstance(table, NotTaken):
        yield table
        return
    servers: Any = table.get("mcpServers") or table.get("servers")
    if not isinstance(servers, dict):
        if path.name != "settings.json":
            yield NotTaken(str(path), "it lists no servers under `mcpServers` or `servers`")
        return
    for name, entry in cast("dict[str, Any]", servers).items():
        yield _server(root, f"{path} {name}", name, entry)


def registered_in(root: Path, path: Path) -> Iterator[Finding]:
    """Return the server that a `server.json` of the MCP registry describes; nothing for another program's file."""
    table = _table(root, path)
    if isinstance(table, NotTaken) or "modelcontextprotocol" not in str(table.get("$schema", "")):
        return
    full = str(table.get("name", ""))
    name, source = full.rpartition("/")[2] or path.parent.name or "server", f"{path} {full}".strip()
    remotes = [each for each in _tables(table.get("remotes")) if _kind(each) != "sse"]
    packages = _tables(table.get("packages"))
    runnable = [body for package in packages if (body := _command(package)) is not None]
    if runnable:
        yield FoundServer(source, name, _limited(runnable[0]), "as the registry runs it")
    elif remotes:
        headers = {str(each.get("name", "")): _input(each) for each in _tables(remotes[0].get("headers"))}
        body = {"url": str(remotes[0].get("url", "")), **({"headers": headers} if headers else {})}
        yield FoundServer(source, name, _limited(body), "at the address that the registry names")
    elif table.get("remotes"):
        yield NotTaken(source, OLD_TRANSPORT)
    else:
        kinds = ", ".join(sorted({str(_either(each, "registryType", "registry_type")) for each in packages})) or "none"
        yield NotTaken(
            source, f"its packages ({kinds}) cannot be run by npx, uvx, dnx or docker; write a command yourself"
        )


def _table(root: Path, path: Path) -> dict[str, Any] | NotTaken:
    text = text_of(root, path)
    if isinstance(text, NotTaken):
        return text
    try:
        body: Any = json.loads(plain_json(text))
    except ValueError as error:
        return NotTaken(str(path), f"it is not JSON: {error}")
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _server(root: Path, source: str, name: str, entry: Any) -> FoundServer | NotTaken:
    if not isinstance(entry, dict):
        return NotTaken(source, "it is not described by a table")
    body = {key: value for key, value in cast("dict[str, Any]", entry).items() if key not in FOREIGN}
    if "${input:" in json.dumps(body):
        return NotTaken(source, "it asks for something when it starts (`${input:…}`); use an environment variable")
    if "httpUrl" in body:
        body["url"] = body.pop("httpUrl")
    elif _kind(body) == "sse":
        return NotTaken(source, OLD_TRANSPORT)
    if "command" in body and "cwd" not in body:
        # Other programs start servers in the project's folder, and relative arguments mean that one.
        where = {**body, "cwd": str(root.resolve())}
        return FoundServer(source, name, _limited(where), "it runs in the folder it came from")
    return FoundServer(source, name, _limited(body))


def _kind(body: Mapping[str, Any]) -> str:
    stated = body.get("type") or body.get("transport")
    if isinstance(stated, str):
        return stated
    return "sse" if str(body.get("url", "")).rstrip("/").endswith("/sse") else ""


def _limited(body: dict[str, Any]) -> dict[str, Any]:
    return body if "include" in body else {**body, "always_up_to": MOST_ALWAYS}


def _command(package: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, name = _either(package, "registryType", "registry_type"), str(package.get("identifier", ""))
    version = str(package.get("version") or "")
    if kind == "oci":
        command, identity = "docker", ("run", "-i", "--rm", name if ":" in name or not version else f"{name}:{version}")
    elif kind in RUNNERS:
        runner, joint = RUNNERS[kind]
        command = str(_either(package, "runtimeHint", "runtime_hint") or runner)
        identity = (*(("-y",) if command == "npx" else ()), f"{name}{joint}{version}" if version else name)
    else:
        return None
    before = _arguments(_either(package, "runtimeArguments", "runtime_arguments"))
    after = _arguments(_either(package, "packageArguments", "package_arguments"))
    variables = _tables(_either(package, "environmentVariables", "environment_variables"))
    env = {str(each.get("name", "")): _input(each) for each in variables if _is_needed(each)}
    args = [*before, *(each for each in identity if each not in before), *after]
    return {"command": command, "args": args, **({"env": env} if env else {})}


def _arguments(listed: Any) -> list[str]:
    found: list[str] = []
    for each in _tables(listed):
        if not _is_needed(each):
            continue
        if each.get("type") == "named":
            found.append(str(each.get("name", "")))
        if value := _input(each):
            found.append(value)
    return found


def _is_needed(each: Mapping[str, Any]) -> bool:
    return bool(_either(each, "isRequired", "is_required") or each.get("value") or each.get("default"))


def _input(each: Mapping[str, Any]) -> str:
    """Return the value of an argument, a header or a variable; without one, a variable of the environment."""
    stated = each.get("value") or each.get("default")
    if isinstance(stated, str) and "{" not in stated:
        return stated
    name = str(each.get("name") or _either(each, "valueHint", "value_hint") or "VALUE")
    return f"${{{''.join(letter if letter.isalnum() else '_' for letter in name).strip('_').upper()}}}"


def _either(table: Mapping[str, Any], *names: str) -> Any:
    return next((table[name] for name in names if name in table), None)


def _tables(listed: Any) -> list[dict[str, Any]]:
    found: list[Any] = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [cast("dict[str, Any]", each) for each in found if isinstance(each, dict)]
