"""Requests as Kafka's own message classes write them (wrong/Ask.java), each user on a connection of its own, and what of an answer counts.

What counts: every error code, every name of a topic, group or transactional id, the authorised operations, with their places. Ids, addresses and times
are each server's own.
"""

import json
import subprocess

from harness.process import spawn
from wrong.__main__ import program

from .nodes import password

NAMES = ("name", "topicName", "topic", "groupId", "transactionalId", "key", "resourceName", "entityName", "user")
# A second name of the same, a text for people, and what a group's rebalance has come to meanwhile.
LEFT_OUT = ("errorMessage", "assignment", "targetAssignment")
# Lists whose members are the version's own; that there are some counts.
COUNTED = ("configs",)
# The broker is on its way: try again.
NOT_YET = {14, 15, 16, 51}


def named(value, ids):
    """Ids of topics as their names, in keys as well."""
    for id, name in ids.items() if isinstance(value, str) else ():
        value = value.replace(id, name)
    return value


def shown(answer, ids, place=""):
    """[(place, value)] of what counts in an answer."""
    found = []
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name in ("closed", "unsent") or name.lower().endswith("errorcode") or name.endswith("AuthorizedOperations"):
                found.append((f"{place}{name}", value))
            elif name in NAMES and not isinstance(value, (dict, list)):
                found.append((f"{place}{name}", named(value, ids)))
            elif name in COUNTED:
                found.append((f"{place}{name}", bool(value)))
            elif name not in LEFT_OUT:
                found += shown(value, ids, f"{place}{name}.")
    elif isinstance(answer, list):
        rows = sorted((shown(each, ids) for each in answer), key=repr)
        if rows:
            found.append((place.rstrip("."), [row for row in rows if row]))
    return found


def codes(found):
    for place, value in found:
        if isinstance(value, list):
            for row in value:
                yield from codes(row)
        elif place.lower().endswith("errorcode"):
            yield value


class Asking:
    """The process that asks one server."""

    def __init__(self, server):
        self.server, self.ids = server, {}
        self.version, command = program()
        self.process = spawn(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, api, version, user=None, **body):
        """The answer to a request of `user`; without one, of the super user who needs no login."""
        port = self.server.sasl_port if user else self.server.port
        line = {"on": f"user {user}" if user else "stage", "port": port, "api": api, "version": version, "body": body}
        if user:
            line["login"] = [user, password(user)]
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"the process that asks has ended, at {api}")
        return json.loads(said)

    def seen(self, api, version, user, **body):
        """What counts in the answer, as one line."""
        return json.dumps(shown(self.ask(api, version, user, **body), self.ids))

    def close(self):
        self.process.kill()
        self.process.wait()
