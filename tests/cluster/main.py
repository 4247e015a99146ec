"""Several workers on one PostgreSQL: every check and every bulk target once, whatever happens to a worker; and how much more
several do than one. Started by scripts/cluster."""

import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "torture"))
from outside import Machine
from program import Broken, PostgresDatabase, Program

HOUR = 3600


class Server:
    """A benchmark that serves as a process of its own."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip()

    def end(self):
        self.process.kill()
        self.process.wait()


class Loopback:
    """Everything on this machine: sites on thousands of loopback addresses, workers that are only processes."""

    network, own = "127.0.0.0/8", "127.0.0.1"

    def host(self, number):
        number += 257
        return f"127.{number >> 16}.{number >> 8 & 255}.{number & 255}"

    def within(self, _):
        return ()


class Namespaces:
    """Workers in the network namespaces that scripts/cluster has made; everything else is in one besides, and so are we."""

    network, own = "10.128.0.0/9", "10.128.0.1"

    def __init__(self, name):
        self.name = name

    def host(self, number):
        number += 257
        return f"10.{128 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"

    def within(self, number):
        return ("ip", "netns", "exec", f"{self.name}-{number % 4}")


class Cluster:
    """Workers that take themselves for machines of their own: another kernel, another clock, their own config file."""

    def __init__(self, args, config, directory):
        self.args, self.config, self.directory = args, config, directory
        self.database = PostgresDatabase(args.postgres)
        self.workers = []

    def start(self, count, *command, clock=0):
        for number in range(count):
            directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
            machine = Machine(directory / "machine")
            machine.step_clock(clock if number == count - 1 else 0)
            within = self.args.place.within(number)
            program = Program(self.args.binary, self.args.shim, directory, self.database, machine, within)
            program.config.write_text(f'[store]\nurl = "{self.database.url}"\n{self.config}')
            self.workers.append((program, program.start(*command)))

    def wait(self, seconds, is_done):
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                raise Broken(f"not done after {seconds} s: {self.workers[0][0].log_tail()}")
            time.sleep(0.2)

    def end(self):
        for _, process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for _, process in self.workers:
            process.wait(timeout=60)
        self.workers = []

    def count(self, sql):
        return int(self.database.rows(sql)[0][0])


def blogs(place, jobs, each, port):
    """Jobs of that many blogs that run once: not again within the year, whatever the clock of a worker says."""
    text = ""
    for job in range(jobs):
        text += f'[[job]]\nname = "job-{job}"\nkind = "blogs"\ncron = "0 0 1 1 *"\nallow_private = ["{place.network}"]\nblog = [\n'
        for number in range(job * each, (job + 1) * each):
            at = f"http://{place.host(number)}:{port}"
            text += f'  {{ id = "blog-{number}", url = "{at}/", feed = "{at}/feed.xml" }},\n'
        text += "]\n"
    return text


def migrate(cluster):
    cluster.start(1, "db", "migrate")
    cluster.workers.pop()[1].wait()


def checks(args, work):
    """Every blog is checked once, although one worker dies, one freezes, and one has a clock that is an hour ahead."""
    jobs, each = args.jobs, args.checks // args.jobs
    server = Server(args.blogs, "serve", "50")
    try:
        cluster = Cluster(args, blogs(args.place, jobs, each, server.ready), work)
        migrate(cluster)
        began = time.monotonic()
        cluster.start(4, "serve", clock=HOUR)
        done = lambda: cluster.count("SELECT COUNT(DISTINCT blog_id) FROM check_history")
        cluster.wait(300, lambda: done() > jobs * each // 8)
        workers = cluster.count("SELECT COUNT(DISTINCT lease_owner) FROM blog_chunks")
        cluster.workers[0][1].kill()
        cluster.workers[1][1].send_signal(signal.SIGSTOP)
        lost = time.monotonic()
        cluster.wait(600, lambda: done() >= jobs * each)
        took, after = time.monotonic() - began, time.monotonic() - lost
        # A site that timed out makes a run end as `partly`.
        ended = "SELECT COUNT(*) FROM events WHERE code IN ('success', 'partly') AND subject LIKE 'job:%'"
        cluster.wait(180, lambda: cluster.count(ended) >= jobs)
        cluster.workers[1][1].send_signal(signal.SIGCONT)
        time.sleep(5)
        runs = cluster.count(ended)
        cluster.end()
        rows = cluster.count("SELECT COUNT(*) FROM check_history")
        asked = int(urllib.request.urlopen(f"http://127.0.0.1:{server.ready}/asked").read())
    finally:
        server.end()
    if (rows, runs, workers) != (jobs * each, jobs, 4):
        raise Broken(f"{rows} rows of {jobs * each} checks, {runs} ends of {jobs} runs, {workers} workers had a part")
    return (
        f"{rows:,} checks of {jobs} jobs written once by 4 workers in {took:.0f} s, {after:.0f} s of them after the losses; "
        f"{asked - rows} sites asked again, whose worker was killed or frozen meanwhile"
    )


def bulk(args, work):
    """Every branch is collected once by four workers that join one run; one dies, one freezes."""
    targets, each = 500, 40
    server = Server(args.commits, "serve", str(targets), str(each), args.place.own)
    try:
        config = f'[[job]]\nname = "code"\nkind = "commits"\nallow_private = ["{args.place.own}"]\ngitlab = "{server.ready}"\ngroup = "team"\nconcurrency = 4\n'
        cluster = Cluster(args, config, work)
        migrate(cluster)
        began = time.monotonic()
        cluster.start(4, "bulk", "start", "--join", clock=HOUR)
        ended = lambda: cluster.count("SELECT COUNT(*) FROM bulk_collection_results WHERE status <> 'pending'")
        cluster.wait(120, lambda: ended() > targets // 8)
        cluster.workers[0][1].kill()
        cluster.workers[1][1].send_signal(signal.SIGSTOP)

        def is_over():
            if not cluster.count("SELECT COUNT(*) FROM bulk_collection_runs WHERE status = 'running'"):
                return True
            # A command ends when no branch is free. What the lost ones had is free a minute later, for whoever comes then.
            if all(process.poll() is not None for _, process in cluster.workers[2:]):
                cluster.start(1, "bulk", "start", "--join")
            return False

        cluster.wait(600, is_over)
        took = time.monotonic() - began
        cluster.end()
        good = cluster.count("SELECT COUNT(*) FROM bulk_collection_results WHERE status = 'success'")
        new = cluster.count("SELECT CAST(SUM(new_commits_count) AS BIGINT) FROM bulk_collection_results")
        runs = cluster.count("SELECT COUNT(*) FROM bulk_collection_runs")
    finally:
        server.end()
    if (good, new, runs) != (targets, targets * each, 1):
        raise Broken(f"{good} targets in {runs} runs, {new} new commits instead of {targets * each}")
    return f"{targets} targets once in {took:.0f} s, {new:,} commits"


def throughput(args, work):
    """How much faster several workers are than one at a single job, with servers that take most of a second to answer."""
    walls = {}
    for count in (1, 2, 4):
        server = Server(args.blogs, "serve", "900")
        directory = work / str(count)
        directory.mkdir()
        try:
            cluster = Cluster(args, blogs(args.place, 1, args.slow, server.ready), directory)
            migrate(cluster)
            cluster.start(count, "serve")
            done = lambda: cluster.count("SELECT COUNT(*) FROM check_history")
            # A daemon begins a job some seconds after its time, the same for all.
            cluster.wait(60, lambda: done() > 0)
            began, before = time.monotonic(), done()
            cluster.wait(600, lambda: done() >= args.slow)
            walls[count] = (time.monotonic() - began) / (args.slow - before)
            cluster.end()
        finally:
            server.end()
    figures = ", ".join(f"{count} × {1 / wall:.0f} a second ({walls[1] / wall:.2f} ×)" for count, wall in walls.items())
    return f"{args.slow:,} checks of one job, servers that take 0.9 s: {figures}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__)
    parser.add_argument("--checks", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=4, help="so many jobs share the checks")
    parser.add_argument("--slow", type=int, default=6_000, help="checks whose throughput is measured")
    parser.add_argument("--only", choices=["checks", "bulk", "throughput"])
    for given in ("binary", "shim", "postgres", "blogs", "commits"):
        parser.add_argument(f"--{given}", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--machines", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.place = Namespaces(args.machines) if args.machines else Loopback()
    broken = 0
    for test in (checks, bulk, throughput):
        if args.only in (None, test.__name__):
            with tempfile.TemporaryDirectory(prefix="cluster-") as work:
                try:
                    print(f"{test.__name__}: {test(args, pathlib.Path(work))}", flush=True)
                except Broken as why:
                    broken += 1
                    print(f"{test.__name__}: BROKEN: {why}", flush=True)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
