"""Two hosts with addresses of their own on one machine: network namespaces, joined by a cable."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ADDRESSES = ("10.213.77.1", "10.213.77.2")
CABLE = "cable"  # what the network device is called on both hosts
PORT = "29411"


class Hosts:
    """Two hosts; what runs on one of them sees only its own network."""

    def __init__(self) -> None:
        self.names = tuple(f"labelonce-{os.getpid()}-{number}" for number in (0, 1))

    def start(self, number: int, script: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start torchrun for one process on a host; the processes find each other by the first host's address."""
        launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(number)]
        launch += ["--nproc-per-node", "1", "--master-addr", ADDRESSES[0], "--master-port", PORT]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": CABLE}
        with log.open("wb") as sink:
            command = ["ip", "netns", "exec", self.names[number], *launch, *script]
            return subprocess.Popen(command, stdout=sink, stderr=sink, env=environment)

    def run(self, script: Sequence[str], folder: Path) -> None:
        """Run a script on both hosts to its end."""
        logs = [folder / f"host-{number}.log" for number in (0, 1)]
        running = [self.start(number, script, log) for number, log in enumerate(logs)]
        for process, log in zip(running, logs, strict=True):
            assert process.wait(600) == 0, log.read_text()

    def kill(self, number: int) -> None:
        """Kill every process of a host at once."""
        found = subprocess.run(["ip", "netns", "pids", self.names[number]], capture_output=True, text=True, check=True)
        for pid in map(int, found.stdout.split()):
            os.kill(pid, 9)


@contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Make two hosts, and remove them again; where that is not allowed, raise an OSError that says why."""
    hosts = Hosts()
    first, second = hosts.names
    try:
        for name in hosts.names:
            _ip("netns", "add", name)
        _ip("link", "add", CABLE, "netns", first, "type", "veth", "peer", "name", CABLE, "netns", second)
        for name, address in zip(hosts.names, ADDRESSES, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", CABLE)
            for device in ("lo", CABLE):
                _ip("-n", name, "link", "set", device, "up")
        yield hosts
    finally:
        for number, name in enumerate(hosts.names):
            if Path("/run/netns", name).exists():
                hosts.kill(number)
                _ip("netns", "delete", name)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")
