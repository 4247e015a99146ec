"""Measures tsuzuki, other programs and bare loops on the same loopback data, and prints a table. Started by scripts/bench."""

import argparse
import datetime
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
FEED_PEERS = {"aiohttp_script": 10_000, "reader": 1_000, "newsboat": 1_000, "rss2email": 100}
COMMIT_PEERS = ["requests_script", "python_gitlab"]
TURNS = ["first", "304", "5 %"]


class Failed(Exception):
    """A program that did not do its work."""


def measure(command, **how):
    """CPU seconds, seconds, and peak MiB of a command and of what it starts."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, **how)
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise Failed(f"{command[:3]} failed: {said[-500:]}")
    return used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss / 1024


class Server:
    """A benchmark that serves as a process of its own."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def host(number):
    number += 257
    return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def line(what, who, size, figures, bare):
    cpu, wall, peak = figures
    ratio = f"{cpu / bare[0]:.2f}" if bare else ""
    print(f"| {what} | {who} | {cpu / size * 1e6:,.0f} | {wall / size * 1e6:,.0f} | {peak:.0f} | {ratio} |", flush=True)


def feeds(args, size, work):
    """First run, nothing changed, every twentieth feed changed."""
    with Server(args.blogs, "serve") as server:
        port = server.ready
        addresses = [f"http://{host(number)}:{port}/feed.xml" for number in range(size)]
        bare = work / "bare"
        bare.mkdir()
        for turn in range(args.turns):
            (work / f"ours-{turn}").mkdir()
        limits = {
            "first": best(measure_bare(args, "bare-first", port, size) for _ in range(args.turns)),
            "304": best(measure_bare(args, "bare-304", port, size) for _ in range(args.turns)),
        }
        for name, figures in limits.items():
            line(f"{size:,} feeds, {name}", "bare loop", size, figures, figures)
        found = {turn: [] for turn in TURNS}
        for turn in range(args.turns):
            directory = work / f"ours-{turn}"
            blogs = "".join(
                f'  {{ id = "blog-{number}", url = "http://{host(number)}:{port}/", feed = "{address}" }},\n'
                for number, address in enumerate(addresses)
            )
            text = f'[[job]]\nname = "blogs"\nkind = "blogs"\nallow_private = ["127.0.0.0/8"]\nblog = [\n{blogs}]\n'
            (directory / "tsuzuki.toml").write_text(text)
            for name in TURNS:
                if name == "5 %":
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/publish").read()
                found[name].append(measure([args.binary, "-q", "-c", str(directory / "tsuzuki.toml"), "run", "blogs", "--no-deliver"]))
        for name in TURNS:
            line(f"{size:,} feeds, {name}", "tsuzuki", size, best(found[name]), limits.get(name))
        for peer, largest in FEED_PEERS.items():
            if size > largest or not is_there(peer):
                continue
            directory = work / peer
            directory.mkdir()
            for name in TURNS:
                if name == "5 %":
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/publish").read()
                command = [args.python, str(HERE / "peers.py"), peer, str(directory), "\n".join([name, *addresses])]
                if size > 1_000:
                    # One argument may have 128 KiB.
                    (directory / "addresses").write_text(command[-1])
                    command = [args.python, "-c", RUN_FROM_FILE, str(HERE), peer, str(directory)]
                measure_peer(f"{size:,} feeds, {name}", peer, command, size, limits.get(name))


RUN_FROM_FILE = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import peers
directory = pathlib.Path(sys.argv[3])
getattr(peers, sys.argv[2])(directory, *(directory / "addresses").read_text().split("\\n"))
"""


def measure_peer(what, peer, command, size, bare):
    """A line for somebody else's program; one that fails has none, and costs the others nothing."""
    try:
        line(what, peer.replace("_", " "), size, measure(command), bare)
    except Failed as failed:
        print(f"{what}: {failed}", file=sys.stderr)


def measure_bare(args, name, port, size):
    with tempfile.TemporaryDirectory() as directory:
        return measure([args.blogs, name, directory, str(port), str(size)])


def best(turns):
    return min(turns)


def is_there(peer):
    return peer not in ("newsboat", "rss2email") or shutil.which({"newsboat": "newsboat", "rss2email": "r2e"}[peer])


def commits(args, projects, each, work):
    with Server(args.commits, "serve", str(projects), str(each)) as server:
        url, size = server.ready, projects * each
        bare = best(measure([args.commits, "bare", url, str(projects), str(each)]) for _ in range(args.turns))
        line(f"{size:,} commits", "bare loop", size, bare, bare)
        ours = []
        for turn in range(args.turns):
            directory = work / f"commits-{turn}"
            directory.mkdir()
            text = f'[[job]]\nname = "code"\nkind = "commits"\nallow_private = ["127.0.0.1"]\ngitlab = "{url}"\ngroup = "team"\nconcurrency = 4\n'
            (directory / "tsuzuki.toml").write_text(text)
            ours.append(measure([args.binary, "-q", "-c", str(directory / "tsuzuki.toml"), "run", "code"]))
        line(f"{size:,} commits", "tsuzuki", size, best(ours), bare)
        for peer in COMMIT_PEERS:
            directory = work / peer
            directory.mkdir()
            command = [args.python, str(HERE / "peers.py"), peer, str(directory), f"{url}\n{projects}"]
            measure_peer(f"{size:,} commits", peer, command, size, bare)


def start_up(args, work):
    """A command on an existing database, and a daemon that waits."""
    directory = work / "start"
    directory.mkdir()
    config = directory / "tsuzuki.toml"
    with __import__("socket").create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config.write_text(f'[web]\nlisten = "127.0.0.1:{port}"\n[[job]]\nname = "b"\nkind = "blogs"\nenabled = false\nblog = [{{ id = "a", url = "https://example.com" }}]\n')
    daemon = subprocess.Popen([args.binary, "-c", str(config), "serve"], stderr=subprocess.DEVNULL)
    time.sleep(5)
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    daemon.send_signal(signal.SIGTERM)
    daemon.wait()
    print(f"| idle | `tsuzuki serve` after 5 s | | | {resident:.0f} | |")
    command = [args.binary, "-c", str(config), "status"]
    measure(command)
    _, wall, peak = best((figures[1], figures[1], figures[2]) for figures in (measure(command) for _ in range(20)))
    print(f"| start-up | `tsuzuki status` | | {wall * 1e3:.0f} ms | {peak:.0f} | |")


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--sizes", default="100,1000,10000", help="feeds, comma-separated")
    parser.add_argument("--turns", type=int, default=3, help="the best of so many counts, for us and for bare loops")
    for given in ("binary", "blogs", "commits", "python"):
        parser.add_argument(f"--{given}", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = int(open("/proc/meminfo").readline().split()[1]) / 2**20
    print(f"{datetime.date.today()}, {os.cpu_count()} × {cpu}, {memory:.0f} GB, load {os.getloadavg()[0]:.1f} at the start\n")
    print("| what | who | CPU µs each | wall µs each | peak MiB | CPU beside the bare loop |\n|---|---|---|---|---|---|")
    for size in map(int, args.sizes.split(",")):
        with tempfile.TemporaryDirectory() as work:
            feeds(args, size, pathlib.Path(work))
    with tempfile.TemporaryDirectory() as work:
        commits(args, 10, 5_000, pathlib.Path(work))
        start_up(args, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
