"""What others do with the same data. Each function is run as a process of its own: `peers.py NAME DIRECTORY ADDRESS…`."""

import asyncio
import pathlib
import sqlite3
import subprocess
import sys


def aiohttp_script(directory, _, *feeds):
    """What an engineer writes in an hour: asyncio, a fast parser, SQLite."""
    import aiohttp
    import fastfeedparser

    db = sqlite3.connect(directory / "script.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS feeds (url TEXT PRIMARY KEY, etag TEXT)")
    db.execute("CREATE TABLE IF NOT EXISTS entries (url TEXT, id TEXT, title TEXT, link TEXT, PRIMARY KEY (url, id))")
    known = dict(db.execute("SELECT url, etag FROM feeds"))

    async def check(session, gate, url):
        headers = {"If-None-Match": known[url]} if url in known else {}
        async with gate, session.get(url, headers=headers) as answer:
            if answer.status == 304:
                return
            feed = fastfeedparser.parse(await answer.text())
        rows = [(url, entry.get("id"), entry.get("title"), entry.get("link")) for entry in feed.entries]
        with db:
            db.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?)", rows)
            db.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?)", (url, answer.headers.get("etag")))

    async def check_all():
        gate = asyncio.Semaphore(64)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64, force_close=True)) as session:
            await asyncio.gather(*(check(session, gate, url) for url in feeds))

    asyncio.run(check_all())


def reader(directory, turn, *feeds):
    import reader as library

    with library.make_reader(str(directory / "reader.db")) as store:
        if turn == "first":
            for url in feeds:
                store.add_feed(url)
        store.update_feeds(workers=10, scheduled=False)


def newsboat(directory, turn, *feeds):
    if turn == "first":
        (directory / "urls").write_text("\n".join(feeds) + "\n")
        (directory / "config").write_text("reload-threads 10\n")
    command = ["newsboat", "-q", "-u", "urls", "-C", "config", "-c", "cache.db", "-x", "reload"]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)


def rss2email(directory, turn, *feeds):
    command = ["r2e", "-c", str(directory / "r2e.cfg"), "-d", str(directory / "r2e.json")]
    if turn == "first":
        outlines = "".join(f'<outline type="rss" text="feed{number}" xmlUrl="{url}"/>' for number, url in enumerate(feeds))
        (directory / "feeds.opml").write_text(f'<opml version="2.0"><body>{outlines}</body></opml>')
        for words in (["new", "nobody@example.com"], ["opmlimport", str(directory / "feeds.opml")]):
            subprocess.run([*command, *words], check=True, stderr=subprocess.DEVNULL)
    subprocess.run([*command, "run", "--no-send"], check=True, stderr=subprocess.DEVNULL)


def requests_script(directory, url, projects):
    import requests

    db = commits_table(directory)
    session = requests.Session()
    for project in range(1, int(projects) + 1):
        page = 1
        while page:
            query = {"ref_name": "main", "per_page": 100, "page": page, "with_stats": "true"}
            listed = session.get(f"{url}/api/v4/projects/{project}/repository/commits", params=query).json()
            with db:
                db.executemany("INSERT OR IGNORE INTO commits VALUES (?, ?, ?, ?, ?, ?)", [row(project, commit) for commit in listed])
            page = page + 1 if len(listed) == 100 else 0


def python_gitlab(directory, url, projects):
    import gitlab

    db = commits_table(directory)
    host = gitlab.Gitlab(url, keep_base_url=True)
    for project in range(1, int(projects) + 1):
        listed = host.projects.get(project, lazy=True).commits.list(ref_name="main", with_stats="true", per_page=100, iterator=True)
        with db:
            db.executemany("INSERT OR IGNORE INTO commits VALUES (?, ?, ?, ?, ?, ?)", (row(project, commit.attributes) for commit in listed))


def commits_table(directory):
    db = sqlite3.connect(directory / "script.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE commits (project INTEGER, sha TEXT, author TEXT, at TEXT, added INTEGER, removed INTEGER, PRIMARY KEY (project, sha))")
    return db


def row(project, commit):
    stats = commit["stats"]
    return project, commit["id"], commit["author_email"], commit["committed_date"], stats["additions"], stats["deletions"]


if __name__ == "__main__":
    globals()[sys.argv[1]](pathlib.Path(sys.argv[2]), *sys.argv[3].split("\n"))
