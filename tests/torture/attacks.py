"""What is done to the program. Each attack ends with an undisturbed run, after which every promise is checked."""

import errno
import time
from datetime import datetime, timezone

from program import Broken, PostgresDatabase

MINUTE, HOUR, YEAR = 60, 3600, 365 * 24 * 3600
# Disturbances between two checks.
PER_ROUND = 5
KILLED = 0
CALLS = [
    ("write", errno.ENOSPC),
    ("write", errno.EIO),
    ("write", KILLED),
    ("fsync", errno.EIO),
    ("fsync", KILLED),
    ("send", errno.ECONNRESET),
    ("send", KILLED),
    ("connect", errno.ECONNREFUSED),
    ("connect", KILLED),
]


def measure(pipeline):
    """How long an undisturbed run takes that has something to do."""
    pipeline.publish()
    began = time.monotonic()
    pipeline.step()
    return time.monotonic() - began


def in_rounds(pipeline, count, disturb):
    """Disturbs `count` times, and checks after every few; answers how often the disturbance met somebody."""
    met = 0
    for number in range(count):
        if number % PER_ROUND == 0:
            pipeline.begin()
        pipeline.publish()
        met += bool(disturb(number))
        pipeline.settle(pipeline.dice.choice([0, 10 * MINUTE, 10 * MINUTE]))
        if number % PER_ROUND == PER_ROUND - 1 or number == count - 1:
            pipeline.finish()
            pipeline.check()
    return met


def kill(pipeline, setup):
    """SIGKILL at random instants."""
    span = measure(pipeline)
    program = pipeline.program

    def disturb(_):
        return program.kill_after(program.start("run", "job"), pipeline.dice.uniform(0, 1.1 * span))

    met = in_rounds(pipeline, setup.kills, disturb)
    return f"{setup.kills} kills, {met} before the end"


def crowd(pipeline, setup):
    """Two to eight processes at once, and kills among them."""
    span = measure(pipeline)
    program, dice = pipeline.program, pipeline.dice

    def disturb(number):
        processes = [program.start("run", "job") for _ in range(2 + number % 7)]
        time.sleep(dice.uniform(0, span))
        killed = sum(program.kill_after(process, dice.uniform(0, span / 4)) for process in processes[::2])
        for process in processes[1::2]:
            if process.wait(timeout=180) not in (0, 3, 6):
                raise Broken(f"a process beside killed ones exits {process.returncode}")
        return killed

    met = in_rounds(pipeline, setup.crowds, disturb)
    return f"{setup.crowds} crowds of 2 to 8, kills in {met}"


def count_up(pipeline, setup):
    """The n-th write, fsync, send or connect fails, for n = 1, 2, 3 … until a run meets none."""
    tried = 0
    for call, how in CALLS:
        if call in ("write", "fsync") and isinstance(pipeline.program.database, PostgresDatabase):
            continue
        numbers, number = [], 0
        while not numbers or numbers[-1]:
            number += 1 + (pipeline.dice.randrange(2 * setup.stride - 1) if setup.stride > 1 else 0)
            if (number - 1) % PER_ROUND == 0 or pipeline.kind == "books" or not numbers:
                pipeline.begin()
            pipeline.publish()
            pipeline.step(fault=f"{call}:{number}:{how}")
            numbers.append(pipeline.program.met.exists())
            tried += 1
            pipeline.settle(10 * MINUTE)
            if len(numbers) % PER_ROUND == 0 or pipeline.kind == "books" or not numbers[-1]:
                pipeline.finish()
                try:
                    pipeline.check()
                except Broken as why:
                    raise Broken(f"{call} {number} with {errno.errorcode.get(how, 'SIGKILL')}: {why}") from why
    return f"{tried} calls failed"


def disk(pipeline, setup):
    """A disk that is full, then one that is read-only, under a daemon that is not restarted."""
    if isinstance(pipeline.program.database, PostgresDatabase):
        return None
    machine, program = pipeline.program.machine, pipeline.program
    for code in [errno.ENOSPC, errno.EROFS] * setup.disks:
        pipeline.begin()
        daemon = program.start("serve")
        try:
            time.sleep(1)
            machine.fail_writes(code)
            pipeline.publish()
            machine.step_clock(2 * MINUTE)
            time.sleep(3)
            before = len(pipeline.posts()) + len(pipeline.mails())
            machine.step_clock(2 * MINUTE)
            time.sleep(3)
            if len(pipeline.posts()) + len(pipeline.mails()) > before + 1:
                raise Broken("messages left although their results could not be recorded")
            if daemon.poll() is not None:
                raise Broken(f"`serve` ended with {daemon.returncode} on a disk that takes no writes")
            machine.fail_writes(0)
            deadline = time.monotonic() + 90
            while pipeline.missing() or pipeline.is_open():
                if time.monotonic() > deadline:
                    raise Broken("`serve` does not go on when the disk takes writes again")
                machine.step_clock(10 * MINUTE)
                time.sleep(1)
        finally:
            machine.fail_writes(0)
            daemon.terminate()
            daemon.wait(timeout=60)
        pipeline.check()
    return f"{2 * setup.disks} disks"


def cut_off(pipeline, setup):
    """PostgreSQL cut off at random instants, and restarted, in the middle of transactions."""
    if not isinstance(pipeline.program.database, PostgresDatabase):
        return None
    span = measure(pipeline)
    program, dice = pipeline.program, pipeline.dice
    restarts = 0

    def disturb(number):
        nonlocal restarts
        process = program.start("run", "job")
        time.sleep(dice.uniform(0, span))
        if number % 10 == 9:
            setup.postgres.restart()
            restarts += 1
            cut = 1
        else:
            cut = setup.proxy.cut()
        process.wait(timeout=180)
        return cut

    met = in_rounds(pipeline, setup.cuts, disturb)
    return f"{setup.cuts} cuts, {met} met a connection, {restarts} were restarts"


def clocks(pipeline, setup):
    """The clock is set by an hour and by ten years, ahead and back, while the program works; and summer time ends and begins."""
    program = pipeline.program
    program.machine = setup.machine_of_its_own(pipeline)
    program.machines = [program.machine, setup.machine]
    steps = [HOUR, -HOUR, 10 * YEAR, -10 * YEAR, -10 * YEAR, 10 * YEAR]
    # An hour before the clocks of the job's zone are set ahead, and back.
    moments = [datetime(2040, 3, 11, 6, tzinfo=timezone.utc), datetime(2040, 11, 4, 5, tzinfo=timezone.utc)]
    for step in steps * setup.steps + moments:
        if isinstance(step, datetime):
            step = int(step.timestamp() - time.time()) - program.machine.seconds
        pipeline.begin()
        pipeline.publish()
        process = program.start("run", "job")
        time.sleep(pipeline.dice.uniform(0, 0.3))
        program.machine.step_clock(step)
        process.wait(timeout=180)
        for _ in range(3):
            program.run("run-due", "-q")
            program.machine.step_clock(HOUR)
        behind = setup.machine.seconds - program.machine.seconds
        if pipeline.kind == "press" and behind > HOUR:
            # Entries that are dated in the future wait until the clock is right.
            program.machine.step_clock(behind)
        pipeline.finish()
        try:
            pipeline.check()
        except Broken as why:
            raise Broken(f"after a step of {step} s: {why}") from why
    return f"{len(steps) * setup.steps} steps, 2 changes of summer time"


def restore(pipeline, setup):
    """A backup ten minutes old is put back, while the servers remember more."""
    program = pipeline.program
    for number in range(setup.restores):
        pipeline.begin()
        pipeline.publish()
        if number % 2:
            # What waits in the backup was sent since.
            program.run("run", "job", "--no-deliver")
        else:
            pipeline.finish()
        saved = program.database.back_up(program, number)
        program.machine.step_clock(10 * MINUTE)
        pipeline.publish()
        pipeline.finish()
        program.database.restore(program, saved)
        pipeline.write_config()
        # A mail server cannot be asked what it got: docs/promises.md.
        pipeline.mails_per_book = 2
        for name, copies in pipeline.mails().items():
            pipeline.excused[name] = len(copies)
        pipeline.finish()
        pipeline.check()
    return f"{setup.restores} restores"


ATTACKS = {
    "kill": kill,
    "crowd": crowd,
    "count-up": count_up,
    "disk": disk,
    "cut-off": cut_off,
    "clocks": clocks,
    "restore": restore,
}
