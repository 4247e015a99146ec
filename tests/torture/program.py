"""The program under test: started with a clock and a kernel of our choice, killed, and its database looked at from outside."""

import os
import pathlib
import random
import shutil
import signal
import sqlite3
import string
import subprocess
import tempfile

# So long no command takes, however loaded the machine is: what does is taken for hung.
PATIENCE = 180


class SqliteFile:
    name = "SQLite"

    def __init__(self, directory):
        self.path = directory / "tsuzuki.db"
        self.url = f"sqlite:{self.path}"

    def rows(self, sql):
        """Asks a copy: opening the file itself would do the program's recovery for it."""
        with tempfile.TemporaryDirectory() as copy:
            for file in self.path.parent.glob("tsuzuki.db*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, copy)
            opened = sqlite3.connect(pathlib.Path(copy) / "tsuzuki.db")
            try:
                return [tuple("" if value is None else str(value) for value in row) for row in opened.execute(sql)]
            finally:
                opened.close()


    def back_up(self, program, number):
        file = program.directory / f"backup-{number}"
        if code := program.run("db", "backup", str(file)):
            raise Broken(f"`db backup` exits {code}")
        return file

    def restore(self, program, file):
        if code := program.run("db", "restore", str(file), "--yes"):
            raise Broken(f"`db restore` exits {code}")


class PostgresDatabase:
    name = "PostgreSQL"

    def __init__(self, server, through=None):
        """A database of its own on `server`; the program may be sent to it by another way, such as a proxy."""
        self.server, self.through = server, through
        self.psql = [shutil.which("psql") or "psql", "-XAtq", "-F", "\x1f", "-R", "\x1e", "-d"]
        self.make()

    def make(self):
        name = "torture_" + "".join(random.choices(string.ascii_lowercase, k=12))
        subprocess.run([*self.psql, self.server, "-c", f"CREATE DATABASE {name}"], check=True)
        base = self.server.rsplit("/", 1)[0]
        self.direct = f"{base}/{name}"
        self.url = f"{self.through or base}/{name}"

    def back_up(self, program, number):
        file = program.directory / f"backup-{number}"
        subprocess.run(["pg_dump", "-Fc", "-f", str(file), self.direct], check=True)
        return file

    def restore(self, program, file):
        self.make()
        subprocess.run(["pg_restore", "-d", self.direct, "--no-owner", str(file)], check=True)

    def rows(self, sql):
        done = subprocess.run([*self.psql, self.direct, "-c", sql], check=True, capture_output=True, text=True)
        text = done.stdout.rstrip("\n")
        return [tuple(row.split("\x1f")) for row in text.split("\x1e")] if text else []


class Program:
    """The real binary over one directory and one database."""

    def __init__(self, binary, shim, directory, database, machine, within=()):
        """`within` is a command that starts another, in surroundings of its own."""
        self.binary, self.shim, self.directory, self.database, self.machine = binary, shim, directory, database, machine
        self.within = within
        self.config = directory / "tsuzuki.toml"
        # Where time passes while nobody works: here, and on the machine of the database.
        self.machines = [machine]
        self.met = directory / "met"
        self.kernel = random.randrange(10**6, 10**9)

    def reboot(self, seconds):
        """From now on processes take themselves for those of another boot, some time later."""
        self.kernel += 1
        for machine in self.machines:
            machine.step_clock(seconds)

    def start(self, *args, fault=None):
        env = {
            **os.environ,
            "LD_PRELOAD": str(self.shim),
            "TORTURE_CLOCK": str(self.machine.path),
            "TORTURE_KERNEL": str(self.kernel),
            # Reading the machine's certificates would take longer than all the rest. Not in our directory: whatever opens
            # and closes the database beside SQLite takes its locks away.
            "SSL_CERT_FILE": "/dev/null",
            "SSL_CERT_DIR": "/dev/null",
        }
        if fault:
            self.met.unlink(missing_ok=True)
            env |= {"TORTURE_FAULT": fault, "TORTURE_MET": str(self.met)}
        log = open(self.directory / "log", "ab")
        return subprocess.Popen(
            [*self.within, self.binary, "-c", str(self.config), *args], env=env, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def run(self, *args, **how):
        """Runs a command to its end; answers its exit code, less than none when it died."""
        process = self.start(*args, **how)
        try:
            return process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Broken(f"`{' '.join(args)}` took longer than {PATIENCE} s") from None

    def kill_after(self, process, seconds):
        """Kills it that much later; answers whether it still lived."""
        try:
            process.wait(timeout=seconds)
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True

    def log_tail(self):
        log = self.directory / "log"
        return log.read_text(errors="replace")[-3000:] if log.exists() else ""


class Broken(Exception):
    """A promise that does not hold."""
