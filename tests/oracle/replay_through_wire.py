"""Replays scripts through a running parameter server, with the client of deploy/examples/python_client.

    replay_through_wire.py SOURCE_ROOT PS_BINARY FOLDER

Starts the ps, tells it every script of kind training and cluster in FOLDER, and ends it. Prints each script that
differs, the worst difference of each kind and optimizer, and "N passed, N failed". The other kinds have no server.
Needs deploy/examples/python_client/requirements.txt.
"""
import gzip
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

import grpc

SOURCE_ROOT = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE_ROOT / "deploy/examples/python_client"))

import lockstep_client  # noqa: E402
from wire.comparison import Comparison  # noqa: E402
from wire.replays import REPLAYS, TRAINING_REPLICAS  # noqa: E402

MOST_SHOWN = 3


def read_scripts(folder):
    """[(place, script)], by file and line."""
    scripts = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.name.endswith(".json"):
            scripts.append((path.name, json.loads(path.read_text())))
        elif path.name.endswith((".jsonl", ".jsonl.gz")):
            opened = gzip.open(path, "rt") if path.name.endswith(".gz") else open(path)
            with opened as lines:
                for number, line in enumerate(lines, 1):
                    script = json.loads(line)
                    scripts.append((f"{path.name}:{number} ({script.get('name', '')})", script))
    return scripts


def make_cluster(workers):
    ports = []
    sockets = [socket.socket() for _ in range(workers + 2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
        ports.append(one.getsockname()[1])
    for one in sockets:
        one.close()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    return {"ps": addresses[:1], "chief": addresses[1:2], "worker": addresses[2:]}


def about(script):
    way = {True: " sparse", False: " dense"}.get(script.get("sparse"), "")
    return f"{script['kind']} {script['optimizer']}{way}"


class Report:
    def __init__(self):
        self.passed = self.failed = 0
        self.worst = {}

    def add(self, place, script, comparison):
        key = about(script)
        self.worst[key] = max(self.worst.get(key, 0), comparison.worst_share)
        if not comparison.differences:
            self.passed += 1
            return
        self.failed += 1
        print(place)
        for difference in comparison.differences[:MOST_SHOWN]:
            print(f"  {difference}")

    def close(self):
        for key, share in sorted(self.worst.items()):
            print(f"{key:40s} worst difference / tolerance {share:.3g}")
        print(f"{self.passed} passed, {self.failed} failed")


def replay(protos, cluster, scripts, report):
    # One client for all scripts would mix numbers of replicas; epochs keep them apart on the server.
    epoch = 0
    for place, script in scripts:
        workers = script.get("total_num_replicas", TRAINING_REPLICAS)
        ps = lockstep_client.ParameterServer(protos, cluster, workers, epoch=epoch)
        comparison = Comparison()
        try:
            REPLAYS[script["kind"]](ps, protos, script, comparison)
        except grpc.RpcError as error:
            comparison.differences.append(f"log entry {comparison.entry}: {error.code().name}: {error.details()}")
        except (LookupError, grpc.FutureTimeoutError) as error:
            comparison.differences.append(f"log entry {comparison.entry}: {error!r}")
        epoch = ps.epoch
        ps.close()
        report.add(place, script, comparison)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    binary, folder = sys.argv[2:]
    scripts = read_scripts(folder)
    replayed = [(place, script) for place, script in scripts if script["kind"] in REPLAYS]
    if len(replayed) < len(scripts):
        print(f"{len(scripts) - len(replayed)} scripts are of kinds without a server: not replayed here")
    protos = lockstep_client.load_protos(SOURCE_ROOT)
    report = Report()
    with tempfile.TemporaryDirectory() as scratch:
        spec = make_cluster(TRAINING_REPLICAS)
        spec_file = pathlib.Path(scratch) / "cluster.json"
        spec_file.write_text(json.dumps(spec))
        with open(pathlib.Path(scratch) / "ps.log", "w") as log:
            server = subprocess.Popen([binary, f"--cluster={spec_file}", "--task_index=0"], stdout=log, stderr=log)
        try:
            replay(protos, lockstep_client.Cluster(spec), replayed, report)
        finally:
            server.terminate()
            server.wait()
    report.close()
    return 1 if report.failed or not replayed else 0


if __name__ == "__main__":
    sys.exit(main())
