"""The sample's manifests, against the fields that Agones' and Kubernetes' published schemas have: an API
server drops what it doesn't know in silence, and so a wrong name does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tickwire as tw
import yaml
from jsonschema import Draft202012Validator
from tickwire.samples.matchmaker import game

FOLDER = Path(tw.__file__).parent / "samples" / "matchmaker" / "kubernetes"

TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
COUNT = {"type": "integer", "minimum": 0}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
SHARE = {"anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+%$"}]}
LABELS = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63}}


def fields(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


def items(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": of}


def of(*values: str) -> dict[str, Any]:
    return {"enum": list(values)}


def resource(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = fields("name", name=NAME, namespace=NAME, labels=LABELS)
    return fields(
        "apiVersion kind metadata spec", apiVersion=of(version), kind=of(kind), metadata=metadata, spec=spec
    )


SECRET = fields("name key", name=NAME, key=TEXT)
VARIABLE = fields("name", name=TEXT, value={"type": "string"}, valueFrom=fields(secretKeyRef=SECRET))
AMOUNTS = fields(cpu=TEXT, memory=TEXT)
CONTAINER = fields(
    "name image",
    name=NAME,
    image=TEXT,
    env=items(VARIABLE),
    resources=fields(requests=AMOUNTS, limits=AMOUNTS),
    securityContext=fields(
        allowPrivilegeEscalation={"type": "boolean"},
        readOnlyRootFilesystem={"type": "boolean"},
        capabilities=fields(drop=items(TEXT)),
    ),
)
POD = fields(
    "containers",
    terminationGracePeriodSeconds=COUNT,
    containers=items(CONTAINER),
    securityContext=fields(
        runAsNonRoot={"type": "boolean"},
        runAsUser=COUNT,
        seccompProfile=fields("type", type=of("RuntimeDefault")),
    ),
)
GAME_SERVER = fields(
    "template",
    ports=items(
        fields(
            name={"type": "string"},
            portPolicy=of("Dynamic", "Static", "Passthrough", "None"),
            protocol=of("UDP", "TCP", "TCPUDP"),
            containerPort=PORT,
            hostPort=PORT,
        )
    ),
    health=fields(
        disabled={"type": "boolean"}, initialDelaySeconds=COUNT, periodSeconds=COUNT, failureThreshold=COUNT
    ),
    lists={"type": "object", "additionalProperties": fields(capacity=COUNT, values=items(TEXT))},
    template=fields("spec", metadata=fields(labels=LABELS), spec=POD),
)
SCHEMAS = {
    "fleet.yaml": resource(
        "agones.dev/v1",
        "Fleet",
        fields(
            "template",
            replicas=COUNT,
            scheduling=of("Packed", "Distributed"),
            strategy=fields(
                type=of("Recreate", "RollingUpdate"),
                rollingUpdate=fields(maxSurge=SHARE, maxUnavailable=SHARE),
            ),
            template=fields("spec", metadata=fields(labels=LABELS), spec=GAME_SERVER),
        ),
    ),
    "autoscaler.yaml": resource(
        "autoscaling.agones.dev/v1",
        "FleetAutoscaler",
        fields(
            "fleetName policy",
            fleetName=NAME,
            policy=fields(
                "type buffer",
                type=of("Buffer"),
                buffer=fields("maxReplicas", bufferSize=SHARE, minReplicas=COUNT, maxReplicas=COUNT),
            ),
        ),
    ),
    "policy.yaml": resource(
        "multicluster.agones.dev/v1",
        "GameServerAllocationPolicy",
        fields(
            "priority weight",
            priority=COUNT,
            weight=COUNT,
            connectionInfo=fields(
                "namespace",
                clusterName=TEXT,
                allocationEndpoints=items(TEXT),
                secretName=NAME,
                namespace=NAME,
                serverCa=TEXT,
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_manifest_has_the_published_fields(name: str) -> None:
    validator = Draft202012Validator(SCHEMAS[name])
    given = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    assert [error.message for error in validator.iter_errors(given)] == []


def test_the_fleet_serves_what_the_game_says() -> None:
    fleet = yaml.safe_load((FOLDER / "fleet.yaml").read_text("utf-8"))
    spec = fleet["spec"]["template"]["spec"]
    assert spec["lists"]["players"]["capacity"] == game.Attic._tickwire_room.max_clients
    (container,) = spec["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {each["name"] for each in container["env"]} == {"REDIS_URL", "GAME_KEY"}
    image = (FOLDER / "Dockerfile").read_text("utf-8")
    (port,) = spec["ports"]
    assert f"0.0.0.0:{port['containerPort']}" in image
    assert f"USER {spec['template']['spec']['securityContext']['runAsUser']}:" in image


def test_all_manifests_are_checked() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*SCHEMAS, "Dockerfile"}
