"""The files in `deploy/`: everything they name is there, in them or in the product."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi import FastAPI

from windowpane.server.routes.health import router
from windowpane.settings import Settings
from windowpane.wiring import open_store

ROOT = Path(__file__).parents[1]
COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "deploy" / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
OBJECTS: list[Any] = [
    found
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for found in yaml.safe_load_all(file.read_text())
]
OURS = {f"WINDOWPANE_{name.upper()}" for name in Settings.model_fields}


def of_kind(*kinds: str) -> dict[str, Any]:
    return {found["metadata"]["name"]: found for found in OBJECTS if found["kind"] in kinds}


def pods() -> Iterator[tuple[Any, Any]]:
    """Yield what runs pods, with the pod that it runs."""
    for found in of_kind("Deployment", "StatefulSet").values():
        yield found, found["spec"]["template"]


def containers() -> Iterator[Any]:
    for _, pod in pods():
        yield from pod["spec"]["containers"]


def named(text: str) -> set[str]:
    return set(re.findall(r"WINDOWPANE_[A-Z_]+", text))


@pytest.mark.spec("S4.84", "S4.85")
def test_every_variable_of_ours_is_a_setting() -> None:
    files = [DOCKERFILE, *(file.read_text() for file in (ROOT / "deploy").rglob("*.y*ml"))]

    assert set().union(*(named(text) for text in files)) - OURS == set()


def test_the_settings_have_values_that_can_be_used() -> None:
    given = {
        **COMPOSE["services"]["windowpane"]["environment"],
        **of_kind("ConfigMap")["windowpane"]["data"],
        **dict(re.findall(r"(WINDOWPANE_[A-Z_]+)=(\S+)", DOCKERFILE)),
    }
    given.pop("WINDOWPANE_STORE_URL")

    settings = Settings.model_validate(
        {name.removeprefix("WINDOWPANE_").lower(): value for name, value in given.items()}
    )

    assert (settings.host, settings.port, settings.require_token) == ("0.0.0.0", 8470, True)


@pytest.mark.spec("S4.23", "S4.84")
def test_the_stores_are_named_by_urls_that_name_stores() -> None:
    variable, store_url = r"\$\(\w+\)|\$\{[^${}]*\}", r"(?:postgresql|redis)://[^\s}]+"
    texts = [re.sub(variable, "secret", file.read_text()) for file in (ROOT / "deploy").rglob("*.y*ml")]
    urls = [url for text in texts for url in re.findall(store_url, text)]

    assert len(urls) >= 3
    for url in urls:
        open_store(url)


def test_what_kubernetes_objects_refer_to_is_defined_beside_them() -> None:
    secrets, maps = of_kind("Secret"), of_kind("ConfigMap")
    for container in containers():
        for source in container.get("envFrom", ()):
            assert source.get("configMapRef", {}).get("name", "windowpane") in maps
            assert source.get("secretRef", {}).get("name", "windowpane-keys") in secrets
        for variable in container.get("env", ()):
            if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
                assert reference["key"] in secrets[reference["name"]]["stringData"]
            known = {one["name"] for one in container["env"]}
            assert set(re.findall(r"\$\((\w+)\)", variable.get("value", ""))) <= known
    for owner, pod in pods():
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
        claims = {claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", ())}
        mounted = {mount["name"] for one in pod["spec"]["containers"] for mount in one.get("volumeMounts", ())}
        assert mounted == volumes.keys() | claims
        for volume in volumes.values():
            if "configMap" in volume:
                items = {item["key"] for item in volume["configMap"]["items"]}
                assert items == maps[volume["configMap"]["name"]]["data"].keys()
            if "secret" in volume:
                assert volume["secret"]["secretName"] in secrets


def test_services_and_budgets_choose_pods_that_there_are_and_ports_that_these_open() -> None:
    labels = [(pod["metadata"]["labels"], pod) for _, pod in pods()]
    for service in of_kind("Service").values():
        (pod,) = [pod for label, pod in labels if service["spec"]["selector"].items() <= label.items()]
        open_ports = {port["name"] for one in pod["spec"]["containers"] for port in one["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= open_ports
    for budget in of_kind("PodDisruptionBudget").values():
        assert any(budget["spec"]["selector"]["matchLabels"].items() <= label.items() for label, _ in labels)
    for owner, pod in pods():
        assert owner["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    for scaler in of_kind("HorizontalPodAutoscaler").values():
        assert scaler["spec"]["scaleTargetRef"]["name"] in of_kind("Deployment")
    hosts = set(re.findall(r"@([\w-]+):5432", (ROOT / "deploy" / "kubernetes" / "windowpane.yaml").read_text()))
    assert hosts <= of_kind("Service").keys()


def test_probes_ask_for_paths_that_the_server_answers() -> None:
    app = FastAPI()
    app.include_router(router)
    asked = {
        container[probe]["httpGet"]["path"]
        for container in containers()
        for probe in ("readinessProbe", "livenessProbe", "startupProbe")
        if "httpGet" in container.get(probe, {})
    }
    asked |= set(re.findall(r"127\.0\.0\.1:8470(/\w+)", DOCKERFILE))

    assert asked == {"/healthz", "/readyz"}
    assert asked <= app.openapi()["paths"].keys()


def test_a_pod_has_more_time_to_stop_than_its_turns_have() -> None:
    grace_s = int(of_kind("ConfigMap")["windowpane"]["data"]["WINDOWPANE_GRACE_S"])
    compose = COMPOSE["services"]["windowpane"]

    assert of_kind("Deployment")["windowpane"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace_s
    assert int(compose["stop_grace_period"].removesuffix("s")) > int(compose["environment"]["WINDOWPANE_GRACE_S"])


@pytest.mark.spec("S4.21", "S4.22", "S4.80", "S4.81", "S4.82", "S4.83")
def test_compose_runs_several_workers_and_keeps_what_must_stay_in_named_volumes() -> None:
    services = COMPOSE["services"]
    used = {
        volume.partition(":")[0]: name for name, service in services.items() for volume in service.get("volumes", ())
    }

    assert used == {"data": "windowpane", "postgres": "postgres", "valkey": "valkey"}
    assert used.keys() == COMPOSE["volumes"].keys()
    assert int(services["windowpane"]["environment"]["WINDOWPANE_WORKERS"]) >= 2
    assert "--appendonly yes" in " ".join(services["valkey"]["command"])
    assert {service["restart"] for service in services.values()} == {"unless-stopped"}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        assert set(service["networks"]) <= COMPOSE["networks"].keys()
    (data,) = re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"data:{data}" in services["windowpane"]["volumes"]
    assert f"WINDOWPANE_DATA={data}" in DOCKERFILE
    assert f"install --directory --owner windowpane {data}" in DOCKERFILE


def test_what_others_can_reach_needs_a_token_and_nobody_is_root() -> None:
    assert COMPOSE["services"]["windowpane"]["environment"]["WINDOWPANE_REQUIRE_TOKEN"] == "true"
    assert COMPOSE["services"]["windowpane"]["ports"] == ["127.0.0.1:8470:8470"]
    assert of_kind("ConfigMap")["windowpane"]["data"]["WINDOWPANE_REQUIRE_TOKEN"] == "true"
    assert re.search(r"^USER windowpane$", DOCKERFILE, re.MULTILINE)
    pod = of_kind("Deployment")["windowpane"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == int(re.findall(r"--uid (\d+)", DOCKERFILE)[0])


def test_every_image_has_a_version_and_the_dockerfile_copies_what_there_is() -> None:
    images = [service["image"] for service in COMPOSE["services"].values()]
    images += [container["image"] for container in containers()]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert [image for image in images if ":" not in image or image.endswith(":latest")] == []
    for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source
