"""The files in `deploy/` fit the program: settings, options, paths, ports, and nothing that is sticky."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import redis
import yaml
from click.testing import CliRunner
from redis_server import free_port, until_it_answers

from ttsr_proxy.cli import main
from ttsr_proxy.config import load_settings
from ttsr_proxy.redis import RedisUrl
from ttsr_proxy.rules.model import Rule
from ttsr_proxy.triggers.compiled import compile_rule
from ttsr_proxy.web.app import ENDPOINTS
from ttsr_proxy.web.server import DRAIN_SECONDS

DEPLOY = Path(__file__).parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
PROXY = COMPOSE["services"]["proxy"]
OBJECTS = {
    (document["kind"], document["metadata"]["name"]): document
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] != "Kustomization"
}
KUSTOMIZATION = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())
PODS = {
    name: OBJECTS[kind, name]["spec"]["template"]["spec"]
    for kind, name in (("Deployment", "ttsr-proxy"), ("StatefulSet", "ttsr-proxy-redis"))
}
(CONTAINER,) = PODS["ttsr-proxy"]["containers"]
(REDIS,) = PODS["ttsr-proxy-redis"]["containers"]
KUBERNETES_ENVIRONMENT = {entry["name"]: entry.get("value", "0" * 48) for entry in CONTAINER["env"]}


def filled_in(text: str) -> str:
    """The text as Compose or Kubernetes gives it to the program, with some password for each variable."""
    return re.sub(r"\$\{\w+(:\?[^}]*)?\}|\$\(\w+\)", "5ecret" * 8, text)


@pytest.mark.parametrize("environment", [PROXY["environment"], KUBERNETES_ENVIRONMENT])
def test_the_variables_are_settings_and_put_the_state_on_the_redis_service(
    environment: dict[str, str], tmp_path: Path
) -> None:
    environ = {name: filled_in(value) for name, value in environment.items()}
    settings = load_settings(project=tmp_path, home=tmp_path, environ=environ)
    assert settings.warnings == ()
    assert isinstance(settings.state, RedisUrl)
    host = str(settings.state).removeprefix("redis://").partition(":")[0]
    assert host in COMPOSE["services"] or ("Service", host) in OBJECTS
    assert settings.library_root == Path("/state/library")
    assert settings.token is not None


@pytest.mark.parametrize("command", [PROXY["command"], CONTAINER["command"]])
def test_the_command_is_one_that_the_program_has(command: list[str]) -> None:
    assert command[:2] == ["ttsr-proxy", "serve"]
    serve = main.get_command(click.Context(main), "serve")
    assert serve is not None
    known = {option for parameter in serve.params for option in parameter.opts}
    given = dict(zip(command[2::2], command[3::2], strict=True))
    assert given == {"--host": "0.0.0.0", "--rules": "/rules"}
    assert given.keys() <= known


def test_health_is_asked_where_a_replica_without_redis_still_answers() -> None:
    served = {path for _, path, _ in ENDPOINTS}
    probes = [CONTAINER[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {probe["path"] for probe in probes} == {"/healthz"} <= served
    (port,) = CONTAINER["ports"]
    assert {probe["port"] for probe in probes} == {port["name"]}
    assert port["containerPort"] == 8787
    assert "http://127.0.0.1:8787/healthz" in PROXY["healthcheck"]["test"][-1]


def test_running_answers_may_finish() -> None:
    assert PODS["ttsr-proxy"]["terminationGracePeriodSeconds"] > DRAIN_SECONDS + 5
    assert int(PROXY["stop_grace_period"].removesuffix("s")) > DRAIN_SECONDS


@pytest.mark.parametrize("name", PODS)
def test_pods_run_without_root_and_without_a_disk_that_they_do_not_need(name: str) -> None:
    pod = PODS[name]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    claims = OBJECTS.get(("StatefulSet", name), {"spec": {}})["spec"].get("volumeClaimTemplates", ())
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes | {
        claim["metadata"]["name"] for claim in claims
    }
    assert "limits" in container["resources"]


def test_the_pod_runs_as_the_user_of_the_image() -> None:
    dockerfile = (DEPLOY.parent / "Dockerfile").read_text()
    assert f"--uid {PODS['ttsr-proxy']['securityContext']['runAsUser']} " in dockerfile


def test_services_lead_to_the_pods_and_nothing_is_sticky() -> None:
    for (kind, name), document in OBJECTS.items():
        if kind == "Service":
            workload = OBJECTS.get(("Deployment", name)) or OBJECTS[("StatefulSet", name)]
            assert document["spec"]["selector"] == workload["spec"]["template"]["metadata"]["labels"]
            assert document["spec"].get("sessionAffinity", "None") == "None"
    assert not re.search(r"ip_hash|sticky|hash ", (DEPLOY / "compose/nginx.conf").read_text())
    assert OBJECTS["Deployment", "ttsr-proxy"]["spec"]["replicas"] == PROXY["deploy"]["replicas"] == 2
    allowed = OBJECTS["NetworkPolicy", "ttsr-proxy-redis"]["spec"]["ingress"][0]["from"]
    assert allowed == [{"podSelector": OBJECTS["Deployment", "ttsr-proxy"]["spec"]["selector"]}]


def test_no_name_becomes_a_variable_that_looks_like_a_setting() -> None:
    assert ("Service", "ttsr") not in OBJECTS


def test_every_file_is_in_the_kustomization_and_every_volume_exists() -> None:
    files = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == files
    assert {image["name"] for image in KUSTOMIZATION["images"]} == {CONTAINER["image"]}
    (rules,) = [volume["configMap"] for volume in PODS["ttsr-proxy"]["volumes"] if "configMap" in volume]
    assert ("ConfigMap", rules["name"]) in OBJECTS
    named = {mount.partition(":")[0] for s in COMPOSE["services"].values() for mount in s["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])
    assert all((DEPLOY / "compose" / name).exists() for name in named if name.startswith("."))


def _rules() -> dict[str, str]:
    files = {path.name: path.read_text() for path in (DEPLOY / "compose/rules").glob("*.md")}
    return {**files, **OBJECTS["ConfigMap", "ttsr-proxy-rules"]["data"]}


@pytest.mark.parametrize(("name", "content"), _rules().items())
def test_the_rules_are_rules(name: str, content: str) -> None:
    rule = Rule.from_markdown(name, content)
    assert rule.warnings == ()
    assert rule.condition
    compile_rule(rule)


def test_a_config_maps_volume_is_a_rule_directory_and_a_change_of_it_is_live(tmp_path: Path) -> None:
    """The kubelet keeps the files in a hidden directory and swaps the link to it."""
    mounted = tmp_path / "rules"
    (tmp_path / "project/.git").mkdir(parents=True)

    def write(version: str, condition: str) -> None:
        (mounted / version).mkdir(parents=True)
        (mounted / version / "one.md").write_text(f"---\ncondition: {condition}\n---\nDo not.\n")
        (mounted / "new").symlink_to(version)
        (mounted / "new").rename(mounted / "..data")
        if not (mounted / "one.md").is_symlink():
            (mounted / "one.md").symlink_to("..data/one.md")

    def listed() -> list[Any]:
        environ = {"TTSR_BUILTIN_RULES": "0", "HOME": str(tmp_path)}
        arguments = ["rules", "list", "--json", "--project", str(tmp_path / "project"), "--rules"]
        done = CliRunner(env=environ).invoke(main, [*arguments, str(mounted)])
        return [rule for rule in json.loads(done.stdout)["rules"] if rule["provider"] != "builtin-defaults"]

    write("..2026_01_01", "first")
    assert [(rule["name"], rule["state"]) for rule in listed()] == [("one", "active")]
    write("..2026_01_02", "second")
    (mounted / "..2026_01_01/one.md").unlink()
    assert [(rule["name"], rule["state"]) for rule in listed()] == [("one", "active")]


@pytest.mark.redis
@pytest.mark.parametrize("command", [COMPOSE["services"]["redis"]["command"], REDIS["command"]])
def test_redis_takes_its_options(command: list[str], tmp_path: Path) -> None:
    port = free_port()
    options = [str(tmp_path) if option == "/data" else filled_in(option) for option in command[1:]]
    process = subprocess.Popen(
        [command[0], *options, "--port", str(port), "--bind", "127.0.0.1"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    try:
        with redis.Redis(port=port, password="5ecret" * 8) as client:
            until_it_answers(client)
            assert client.config_get("appendonly") == {"appendonly": "yes"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            assert int(client.config_get("maxmemory")["maxmemory"]) == 1 << 30
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_takes_its_configuration(tmp_path: Path) -> None:
    path = DEPLOY / "compose/nginx.conf"
    command = ["nginx", "-t", "-e", str(tmp_path / "error.log"), "-c", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
