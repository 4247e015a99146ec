"""Runs attacks against pipelines on both databases and prints one table. Started by scripts/torture."""

import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import traceback
from urllib.parse import urlsplit

from attacks import ATTACKS
from outside import Machine, World
from pipelines import JOBS, Pipeline
from program import Broken, PostgresDatabase, Program, SqliteFile
from proxy import Proxy


class Postgres:
    """The server that scripts/torture started."""

    def __init__(self, args):
        self.url, self.directory = args.postgres, args.postgres_dir
        self.port = urlsplit(args.postgres).port
        self.env = {**os.environ, "LD_PRELOAD": args.shim, "TORTURE_CLOCK": args.machine}

    def restart(self):
        subprocess.run(["scripts/postgres", "restart", self.directory], check=True, env=self.env)


class Setup:
    """How much of everything, and what attacks share."""

    def __init__(self, args, machine):
        is_small = args.ci
        self.kills = args.kills
        self.crowds = max(args.kills // 10, 3)
        self.cuts = max(args.kills // 5, 10)
        # In a small run every few calls, chosen at random; otherwise every one.
        self.stride = 25 if is_small else 1
        self.disks, self.steps, self.restores = (1, 1, 2) if is_small else (5, 3, 10)
        self.machine = machine
        self.postgres = Postgres(args)
        self.proxy = Proxy(self.postgres.port)

    def machine_of_its_own(self, pipeline):
        machine = Machine(pipeline.program.directory / "machine")
        machine.step_clock(self.machine.seconds)
        return machine


def attack(name, kind, database, args, setup, directory):
    """One line of the table."""
    dice = random.Random(f"{args.seed} {name} {kind} {database}")
    world = World(args.world, args.shim, setup.machine)
    if database == "sqlite":
        place = SqliteFile(directory)
    else:
        through = f"postgres://tsuzuki@127.0.0.1:{setup.proxy.port}" if name == "cut-off" else None
        place = PostgresDatabase(setup.postgres.url, through)
    program = Program(args.binary, args.shim, directory, place, setup.machine)
    pipeline = Pipeline(kind, world, program, dice)
    began = time.monotonic()
    try:
        pipeline.begin()
        pipeline.step()
        pipeline.finish()
        pipeline.check()
        what = ATTACKS[name](pipeline, setup)
        found = None
    except (Broken, subprocess.TimeoutExpired) as why:
        what, found = "", str(why)
    except Exception:
        what, found = "", traceback.format_exc()
    finally:
        world.end()
    if found:
        sys.stderr.write(f"\n{name} {kind} {database} (seed {args.seed}): {found}\n{program.log_tail()}\n")
    return what, found, time.monotonic() - began


def attack_line(name, kind, database, args):
    """Prints a line; answers whether a promise did not hold."""
    with tempfile.TemporaryDirectory(prefix="torture-") as directory:
        os.chmod(directory, 0o755)
        directory = pathlib.Path(directory)
        setup = Setup(args, Machine(pathlib.Path(args.machine) if database == "postgres" else directory / "clock"))
        what, found, seconds = attack(name, kind, database, args, setup, directory)
    if what is None:
        return False
    said = found.strip().splitlines()[-1] if found else "nothing"
    print(f"| {name} | {kind} | {database} | {what} | {said} | {seconds:.0f} |", flush=True)
    return bool(found)


def attack_all(args):
    """Answers how many promises did not hold."""
    lines = [(name, kind) for name in args.attack or ATTACKS for kind in args.pipeline or JOBS]
    broken = 0
    # PostgreSQL has one clock for all, so its lines come one after the other; those of SQLite go on beside them, two at a time.
    with concurrent.futures.ThreadPoolExecutor(1) as one, concurrent.futures.ThreadPoolExecutor(2) as two:
        pools = {"sqlite": two, "postgres": one}
        running = [
            pools[database].submit(attack_line, name, kind, database, args)
            for name, kind in lines
            for database in args.database or pools
        ]
        for ended in concurrent.futures.as_completed(running):
            broken += ended.result()
            if broken and args.expect_broken:
                one.shutdown(cancel_futures=True)
                two.shutdown(cancel_futures=True)
                break
    return broken


def main():
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--ci", action="store_true", help="a small run: 50 kills each")
    parser.add_argument("--kills", type=int, help="kills for each pipeline and database (1000; with --ci 50)")
    parser.add_argument("--attack", action="append", choices=ATTACKS, help="only this one; may be repeated")
    parser.add_argument("--pipeline", action="append", choices=JOBS, help="only this one; may be repeated")
    parser.add_argument("--database", action="append", choices=["sqlite", "postgres"], help="only this one")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats a run's dice")
    parser.add_argument("--expect-broken", action="store_true", help="succeed only if a promise is found broken")
    for given in ("binary", "world", "shim", "postgres", "postgres-dir", "machine"):
        parser.add_argument(f"--{given}", required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.kills = args.kills or (50 if args.ci else 1000)
    print("| attack | pipeline | database | done | found | seconds |\n|---|---|---|---|---|---|", flush=True)
    broken = attack_all(args)
    print(f"\nseed {args.seed}: {'nothing is broken' if not broken else f'{broken} lines are broken'}")
    return int(not broken) if args.expect_broken else int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
