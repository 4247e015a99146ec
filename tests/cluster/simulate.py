"""A day of the schedule at any size: how late sources are checked when so many workers share them.

    python3 tests/cluster/simulate.py --sources 1000000 --per-job 500 --every 3600 --workers 4

A job starts at its point of the grid, or when a worker is free for it; a worker runs four jobs at once and keeps 96 checks of
each under way, as src/engine/runner.rs and src/blogs/round.rs do. What a check costs was measured (docs/performance.md).
"""

import argparse
import heapq
import random

JOBS_AT_ONCE = 4
CHECKS_AT_ONCE = 96


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=1_000_000)
    parser.add_argument("--per-job", type=int, default=500)
    parser.add_argument("--every", type=int, default=3600, help="seconds between two checks of a source")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--cores", type=int, default=2, help="of each worker")
    parser.add_argument("--latency", type=float, default=0.3, help="seconds that a server takes to answer, in the middle")
    parser.add_argument("--cpu", type=float, default=300e-6, help="CPU seconds of a check")
    parser.add_argument("--spread", action="store_true", help="jobs have points of their own instead of the full hour")
    args = parser.parse_args()
    dice = random.Random(1)
    jobs = args.sources // args.per_job
    offsets = [dice.uniform(0, args.every) if args.spread else 0.0 for _ in range(jobs)]
    free = [0.0] * (args.workers * JOBS_AT_ONCE)
    heapq.heapify(free)
    late, busy = [], 0.0
    # While all its slots are in use, a worker's cores are shared by them.
    cpu_share = args.cores / JOBS_AT_ONCE
    for turn in range(86_400 // args.every):
        for due in sorted(turn * args.every + offset for offset in offsets):
            start = max(due, heapq.heappop(free))
            waiting = args.per_job / CHECKS_AT_ONCE * dice.lognormvariate(0, 0.5) * args.latency
            took = max(waiting, args.per_job * args.cpu / cpu_share)
            heapq.heappush(free, start + took)
            late.append(start + took - due)
            busy += took
    late.sort()
    share = busy / (86_400 * args.workers * JOBS_AT_ONCE)
    per_second = args.sources / args.every
    print(f"{args.sources:,} sources in {jobs:,} jobs every {args.every} s, {args.workers} workers: {per_second:,.0f} checks a second on average")
    print(f"a job is done {late[len(late) // 2]:,.0f} s after it was due in the middle, {late[len(late) * 99 // 100]:,.0f} s at 99 %, {late[-1]:,.0f} s at worst")
    print(f"workers are busy {share:.0%} of the day; rows of history a day: {args.sources * 86_400 // args.every:,}")


if __name__ == "__main__":
    main()
