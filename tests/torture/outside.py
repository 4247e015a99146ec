"""The world outside (examples/world.rs) as a process, and the machine that it stands on."""

import json
import os
import struct
import subprocess


class Machine:
    """What faults.c makes of the machine, also of running processes: how wrong its clock is, and whether its disk takes writes."""

    def __init__(self, path):
        self.path = path
        self.seconds, self.errno = 0, 0
        # A file that is there is mapped by others, and must not become shorter.
        if not path.exists():
            path.write_bytes(bytes(16))
        self.write()

    def step_clock(self, seconds):
        self.seconds += seconds
        self.write()

    def fail_writes(self, errno):
        self.errno = errno
        self.write()

    def write(self):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<qq", self.seconds * 10**9, self.errno))


class World:
    """Servers that publish on request and keep what reaches them."""

    def __init__(self, binary, shim, machine):
        env = {**os.environ, "LD_PRELOAD": str(shim), "TORTURE_CLOCK": str(machine.path)}
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.addresses = self.ask("addresses")

    def ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the world ended at {order}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()
