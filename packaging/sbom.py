"""sbom.py METADATA LOCK TIME: prints which crates libtollbar and libtollbar-redis are made of, as
CycloneDX 1.5."""

import datetime
import json
import sys
import tomllib
import uuid

with open(sys.argv[1]) as file:
    metadata = json.load(file)
with open(sys.argv[2], "rb") as file:
    sums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.load(file)["package"]}
when = datetime.datetime.fromtimestamp(int(sys.argv[3]), datetime.timezone.utc)
packages = {p["id"]: p for p in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}


def needed(node: dict) -> list[str]:
    """What a crate is compiled from: not what its tests are, and not what only the model checker's
    build has."""
    return [
        dep["pkg"]
        for dep in node["deps"]
        if any(kind["kind"] in (None, "build") and kind["target"] != "cfg(loom)" for kind in dep["dep_kinds"])
    ]


def ref(identity: str) -> str:
    return f"pkg:cargo/{packages[identity]['name']}@{packages[identity]['version']}"


roots = [identity for identity, p in packages.items() if p["name"] in ("tollbar-c", "tollbar-redis-c")]
seen: set[str] = set()
todo = list(roots)
while todo:
    identity = todo.pop()
    if identity not in seen:
        seen.add(identity)
        todo += needed(nodes[identity])
ordered = sorted(seen, key=ref)


def component(identity: str) -> dict:
    p = packages[identity]
    described = {
        "type": "library",
        "bom-ref": ref(identity),
        "name": p["name"],
        "version": p["version"],
        "licenses": [{"expression": p["license"].replace("/", " OR ")}],
        "purl": ref(identity),
    }
    if sum_ := sums[p["name"], p["version"]]:
        described["hashes"] = [{"alg": "SHA-256", "content": sum_}]
    return described


version = packages[roots[0]]["version"]
print(
    json.dumps(
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([ref(i) for i in ordered] + [sys.argv[3]]))}",
            "version": 1,
            "metadata": {
                "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "component": {"type": "library", "bom-ref": "tollbar", "name": "tollbar", "version": version},
            },
            "components": [component(identity) for identity in ordered],
            "dependencies": [{"ref": "tollbar", "dependsOn": sorted(map(ref, roots))}]
            + [{"ref": ref(i), "dependsOn": sorted(map(ref, needed(nodes[i])))} for i in ordered],
        },
        indent=1,
    )
)
