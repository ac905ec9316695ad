"""The deny matrix: every question (questions.py) by a user for each operation × resource type × pattern × permission.

All ACLs are made at the start, one set for each user; passwords are PLAIN, in the node's file. Then each user asks everything, in the same order on each
server, and the answers are compared: codes, names, authorised operations.
"""

import json
import time
from dataclasses import dataclass

from . import questions
from .asking import NOT_YET, Asking, codes, shown
from .nodes import password

LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL = 2
OPERATIONS = {2: "All", 3: "Read", 4: "Write", 5: "Create", 6: "Delete", 7: "Alter", 8: "Describe", 9: "ClusterAction", 10: "DescribeConfigs", 11: "AlterConfigs",
              12: "IdempotentWrite", 13: "CreateTokens", 14: "DescribeTokens", 15: "TwoPhaseCommit"}
# Resource type: its name, the literal name, the prefix, its operations.
RESOURCES = {
    2: ("topic", "t-one", "t-", (2, 3, 4, 5, 6, 7, 8, 10, 11)),
    3: ("group", "g-one", "g-", (2, 3, 6, 8, 10, 11)),
    4: ("cluster", "kafka-cluster", None, (2, 5, 7, 8, 9, 10, 11, 12)),
    5: ("transactional", "x-one", "x-", (2, 4, 8, 15)),
    6: ("token", "token-one", None, (2, 8)),
    7: ("user", "User:one", "User:", (2, 13, 14)),
}


@dataclass
class User:
    name: str
    # (resource type, name, pattern, operation, permission), and a host where it is not any
    acls: list
    principal: str = ""


def everything():
    return [(kind, "kafka-cluster" if kind == 4 else "*", LITERAL, ALL, ALLOW) for kind in RESOURCES]


def users(is_quick):
    """Users without ACLs, with all, and one for each form of each operation. `is_quick`: literal names alone."""
    found = [User("none", []), User("all", everything())]
    for kind, (word, name, prefix, operations) in RESOURCES.items():
        for operation in operations:
            forms = [("literal", name, LITERAL)]
            if not is_quick:
                forms += [("prefixed", prefix, PREFIXED)] if prefix else []
                forms += [("wildcard", "*", LITERAL)] if kind != 4 else []
            for form, pattern_name, pattern in forms:
                called = f"{word}-{OPERATIONS[operation]}-{form}"
                found.append(User(f"allow-{called}", [(kind, pattern_name, pattern, operation, ALLOW)]))
                found.append(User(f"deny-{called}", [*everything(), (kind, pattern_name, pattern, operation, DENY)]))
    here, elsewhere = "127.0.0.1", "10.9.8.7"
    found += [User(f"allow-host-{word}", [(2, "t-one", LITERAL, ALL, ALLOW, host)]) for word, host in (("here", here), ("elsewhere", elsewhere))]
    found += [User(f"deny-host-{word}", [*everything(), (2, "t-one", LITERAL, ALL, DENY, host)]) for word, host in (("here", here), ("elsewhere", elsewhere))]
    # A super user, whatever is denied him.
    found.append(User("admin", [(kind, "kafka-cluster" if kind == 4 else "*", LITERAL, ALL, DENY) for kind in RESOURCES]))
    return found


def open_users():
    """For a node with `allow.everyone.if.no.acl.found`: users whose ACLs leave the cluster, and names of `-other`, without any."""
    def is_narrow(user):
        return user.name == "none" or user.name.startswith("allow-") and all(acl[0] in (2, 3, 5) for acl in user.acls)
    return [user for user in users(is_quick=True) if is_narrow(user)]


ANYBODY = User("anybody", [(2, questions.ANYBODYS, LITERAL, 3, ALLOW), (2, questions.ANYBODYS, LITERAL, 10, DENY)], principal="User:*")


def create_acls(asking, found):
    creations = [{"resourceType": kind, "resourceName": name, "resourcePatternType": pattern, "principal": user.principal or f"User:{user.name}",
                  "host": host[0] if host else "*", "operation": operation, "permissionType": permission}
                 for user in (*found, ANYBODY) for kind, name, pattern, operation, permission, *host in user.acls]
    for first in range(0, len(creations), 200):
        answer = asking.ask("CreateAcls", 3, creations=creations[first:first + 200])
        refused = [result for result in answer.get("results", [{"errorCode": answer}]) if result["errorCode"]]
        if refused:
            raise RuntimeError(f"CreateAcls: {refused[0]}")
    # The last ones are in effect: then all are.
    until = time.monotonic() + 30
    wanted = {"resourceTypeFilter": 1, "resourceNameFilter": None, "patternTypeFilter": 1, "principalFilter": None, "hostFilter": None, "operation": 1, "permissionType": 1}
    while True:
        told = sum(len(resource["acls"]) for resource in asking.ask("DescribeAcls", 3, **wanted)["resources"])
        if told == len({json.dumps(creation, sort_keys=True) for creation in creations}):
            return told
        if time.monotonic() > until:
            raise RuntimeError(f"{told} ACLs of {len(creations)} are in effect after 30 s")
        time.sleep(0.1)


class Settling(Asking):
    """Asks again while the coordinators are on their way."""

    def settled(self, api, version, **body):
        until = time.monotonic() + 20
        while True:
            answer = self.ask(api, version, **body)
            found = set(codes(shown(answer, {})))
            if not found & NOT_YET or time.monotonic() > until:
                if found - {0}:
                    raise RuntimeError(f"{api} {version}: {found}")
                return answer
            time.sleep(0.1)


def play(server, found, only=None):
    """{(user, question): what was answered}"""
    begun = time.monotonic()
    server.start()
    asking = Settling(server)
    try:
        ids = questions.stage(asking)
        asked = [one for one in questions.questions(ids) if not only or only in f"{one[1]} {one[0]}"]
        acls = create_acls(asking, found)
        answers = {}
        for user in found:
            for label, api, version, body in asked:
                fields = body(user.name) if callable(body) else body
                answers[user.name, f"{api} {version} {label}".rstrip()] = asking.seen(api, version, user.name, **fields)
    finally:
        asking.close()
        server.kill()
    print(f"  {server.label}: {len(found)} users, {acls} ACLs, {len(asked)} questions of {len({api for _, api, *_ in asked})} APIs, {len(answers)} answers; {time.monotonic() - begun:.0f} s", flush=True)
    return answers


def compare(ours, theirs, explained):
    """(the same, excused, wrong): prints each question that differs once, with its users."""
    differing = {}
    for (user, question), answer in ours.items():
        other = theirs.get((user, question), "(not asked)")
        if other != answer:
            differing.setdefault((question, answer, other), []).append(user)
    same, excused, wrong = len(ours) - sum(map(len, differing.values())), 0, 0
    for (question, answer, other), names in sorted(differing.items()):
        why = explained(question)
        excused, wrong = (excused + len(names), wrong) if why else (excused, wrong + len(names))
        print(f"\n{question}{': known: ' + why if why else ''}\n    users: {len(names)}: {', '.join(names[:6])}{' …' if len(names) > 6 else ''}"
              f"\n    Barnabas:     {answer[:600]}\n    Apache Kafka: {other[:600]}")
    return same, excused, wrong


def passwords(found):
    return {user.name: password(user.name) for user in found}
