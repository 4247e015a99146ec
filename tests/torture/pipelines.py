"""What each pipeline is fed with, and what must have come of it."""

import base64
import collections
import json
import re
import socket
import urllib.request

from program import Broken

HOUR = 3600
# Books of a search; they fill two mails.
BOOKS = 12
CHANNELS = """
[app]
timezone = "America/New_York"
[web]
listen = "127.0.0.1:{port}"
[store]
url = "{url}"
[quota.google_books]
per_day = 1000000
[llm.gemini]
kind = "gemini"
api_key = "{gemini_key}"
base_url = "{gemini}"
allow_private = ["127.0.0.1"]
[channel.keys]
kind = "mastodon"
instance = "{keys}"
token = "{mastodon_token}"
max_attempts = 1000
allow_private = ["127.0.0.1"]
[channel.no_keys]
kind = "mastodon"
instance = "{no_keys}"
token = "{mastodon_token}"
max_attempts = 1000
allow_private = ["127.0.0.1"]
[channel.mail]
kind = "email"
smtp = "{smtp}"
tls = "none"
from = "a@example.com"
to = ["b@example.com"]
max_attempts = 1000
allow_private = ["127.0.0.1"]
[[job]]
name = "job"
kind = "{kind}"
every = "1m"
allow_private = ["127.0.0.1"]
"""
JOBS = {
    "press": """
feed = "{feed}"
content = ".contentsBody"
items_per_run = 40
max_retries = 1000
hold_above = 100000
deliver = ["no_keys"]
""",
    "books": """
google_books = {{ api_url = "{books}" }}
queries = ["round {round}"]
max_per_run = 40
mail_limit = 6
fallback_limit = 0
deliver = ["mail"]
""",
    "blogs": """
digest = false
hold_above = 100000
deliver = ["keys"]
[[job.blog]]
id = "site"
url = "{site}"
feed = "{site}feed.xml"
""",
    "commits": """
gitlab = "{gitlab}"
token = "{gitlab_token}"
projects = ["team/app"]
branches = ["main"]
deliver = ["no_keys"]
""",
}
# States of a message that is not over.
OPEN = ("ready", "sending", "unknown")


class Pipeline:
    def __init__(self, kind, world, program, dice):
        self.kind, self.world, self.program, self.dice = kind, world, program, dice
        self.round = 0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.expected = []
        # Copies of a mail that had arrived when its sender died before it could write so.
        self.excused = {}
        # How often a book may stand in another mail: once more for every backup from before it was mailed.
        self.mails_per_book = 1

    def begin(self):
        """A round: what was published before is over."""
        self.round += 1
        self.write_config()
        self.expected = []
        if self.kind == "books":
            self.expected = self.world.ask("publish", "books", BOOKS)
        elif self.kind in ("press", "blogs"):
            self.world.ask("withdraw", self.kind)

    def write_config(self):
        values = {**self.world.addresses, "kind": self.kind, "round": self.round, "url": self.program.database.url, "port": self.port}
        self.program.config.write_text((CHANNELS + JOBS[self.kind]).format(**values))

    def publish(self):
        # A search is not added to while it is read: positions would move. Pages of one host are fetched slowly.
        if self.kind != "books":
            self.expected += self.world.ask("publish", self.kind, 1 if self.kind == "press" else 2)

    def step(self, **how):
        return self.program.run("run", "job", **how)

    def settle(self, seconds):
        """Lets servers finish with what the dead sent, and notes which mails may come again. Then the machine is started anew
        some time later, or, if that is none, goes on."""
        self.world.ask("settle")
        if self.kind == "books" and self.round:
            copies = self.mails()
            for (key,) in self.rows("SELECT key FROM outbox WHERE channel = 'mail' AND state = 'sending'"):
                name = f"<{key[:40]}@example.com>"
                self.excused[name] = len(copies.get(name, ()))
        if seconds:
            self.program.reboot(seconds)

    def finish(self):
        """Works undisturbed until nothing is left to do; what was put off may wait for hours."""
        for _ in range(30):
            self.settle(5 * HOUR)
            self.step()
            if not self.is_open() and not self.missing():
                break
            if self.kind == "books" and self.rows("SELECT 1 FROM outbox WHERE state = 'held'"):
                # A mail whose second sender was cut off, too, waits for a person.
                self.program.run("delivery", "approve", "--job", "job")
        self.world.ask("settle")

    def rows(self, sql):
        return self.program.database.rows(sql)

    def is_open(self):
        states = {state for (state,) in self.rows("SELECT DISTINCT state FROM outbox")}
        if self.kind == "commits" and self.rows("SELECT 1 FROM bulk_collection_runs WHERE status = 'running'"):
            return True
        if self.kind == "books" and self.rows("SELECT COUNT(*) FROM delivery_items") != [(str(BOOKS * self.round),)]:
            return True
        return bool(states & set(OPEN))

    def posts(self):
        return self.world.ask("posts")

    def mails(self):
        """The ISBNs in each copy, by Message-ID."""
        mails = collections.defaultdict(list)
        for mail in self.world.ask("mails"):
            plain = mail["data"].split("Content-Transfer-Encoding: base64", 1)[1].split("--", 1)[0]
            text = base64.b64decode("".join(plain.split())).decode()
            mails[mail["id"]].append(set(re.findall(r"\b9784\d{9}\b", text)))
        return mails

    def missing(self):
        """What was published and has reached nobody, or is not stored."""
        if self.kind == "commits":
            return self.commits_on_host() - self.commits_stored()
        if self.kind == "books":
            mailed = set().union(*(copy for copies in self.mails().values() for copy in copies), set())
            return set(self.expected) - mailed
        told = {word for post in self.posts() for word in re.findall(r"n\d+n", post["text"])}
        return set(self.expected) - told

    def commits_on_host(self):
        shas, page = set(), 1
        while page:
            url = f"{self.world.addresses['gitlab']}/api/v4/projects/1/repository/commits?ref_name=main&per_page=100&page={page}"
            request = urllib.request.Request(url, headers={"PRIVATE-TOKEN": self.world.addresses["gitlab_token"]})
            with urllib.request.urlopen(request) as answer:
                listed = json.load(answer)
            shas |= {commit["id"] for commit in listed}
            page = page + 1 if listed else 0
        return shas

    def commits_stored(self):
        return {sha for (sha,) in self.rows("SELECT sha FROM commits WHERE branch_name = 'main' AND unreachable_since IS NULL")}

    def check(self):
        """Nothing lost, nothing twice beyond the written windows, nothing to repair."""
        if missing := self.missing():
            raise Broken(f"{len(missing)} things are lost, such as {sorted(missing)[:3]}")
        if code := self.program.run("db", "check"):
            raise Broken(f"`db check` exits {code}")
        self.check_messages()
        if self.kind == "books":
            self.check_books()
        if self.kind == "commits":
            self.check_commits()

    def check_messages(self):
        copies = collections.Counter(post["key"] for post in self.posts())
        if twice := [key for key, count in copies.items() if count > 1]:
            raise Broken(f"{len(twice)} posts were made twice")
        links = collections.Counter(link for post in self.posts() for link in set(re.findall(r"n\d+n", post["text"])))
        if twice := [link for link, count in links.items() if count > 1]:
            raise Broken(f"{len(twice)} things were posted twice, such as {twice[:3]}")
        for name, mails in self.mails().items():
            if len(mails) > 1 + self.excused.get(name, 0):
                raise Broken(f"a mail came {len(mails)} times, {self.excused.get(name, 0)} excused")
        for state, count in self.rows("SELECT state, COUNT(*) FROM outbox GROUP BY state"):
            # A post without a link of its own cannot be looked for: it is held for a person, as is promised.
            if state != "sent" and not (state == "held" and self.kind == "commits"):
                raise Broken(f"{count} messages are {state}")

    def check_books(self):
        by_book = collections.defaultdict(set)
        for name, copies in self.mails().items():
            for isbn in set().union(*copies):
                by_book[isbn].add(name)
        if twice := [isbn for isbn, names in by_book.items() if len(names) > self.mails_per_book]:
            raise Broken(f"{len(twice)} books stand in more than {self.mails_per_book} mail(s)")
        [(stored,)] = self.rows("SELECT COUNT(*) FROM books")
        [(read,)] = self.rows("SELECT SUM(start_index) FROM collect_cursor")
        [(told,)] = self.rows("SELECT COUNT(*) FROM delivery_items")
        if not stored == read == told == str(BOOKS * self.round):
            raise Broken(f"{BOOKS * self.round} books: {stored} stored, cursors at {read}, {told} delivered")

    def check_commits(self):
        if strange := self.commits_stored() - self.commits_on_host():
            raise Broken(f"{len(strange)} commits were made up")
        for open_parents, walking in self.rows("SELECT COALESCE(open_parents, -1), COALESCE(walking_head, '') FROM branches"):
            if open_parents != "0" or walking:
                raise Broken(f"the branch is not closed: {open_parents} open parents, walking {walking or 'nothing'}")
