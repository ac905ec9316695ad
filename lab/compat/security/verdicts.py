"""Random ACLs and questions, decided by Apache Kafka's own class and by ours: StandardAuthorizer from the published jar, and core/security.

Both programs (clients/Verdicts.java; core/security/examples/verdicts.rs) read the same file. Its lines are words separated by tabs; `%XX` stands for a byte:

    set  SUPER_USERS ALLOW_EVERYONE                                 a new set without ACLs
    acl  TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION      numbers as in Kafka's records; ACLs count from 0
    ask  PRINCIPAL HOST OPERATION TYPE NAME                         answered: ALLOWED or DENIED
    why  as ask                                                     answered with what decided too: `super user`, `default`, or an ACL (ours: all that decide)
    any  PRINCIPAL HOST OPERATION TYPE                              answered: whether some resource of the type is allowed (authorizeByResourceType)

A seed makes one batch of sets; the same seed makes the same lines. 4.4.0 is asked about ranges of addresses as well (KIP-1276), which 4.3.1 does not know.

No name of a random ACL sorts before `*`: Apache's class searches for ever beside one (UNANSWERED). That is asked apart.
"""

import random
import subprocess
from dataclasses import dataclass, field

from compat import fetch
from harness.server import SMALL_JVM, java_words

TOPIC, GROUP, CLUSTER, TRANSACTIONAL, TOKEN, USER = TYPES = range(2, 8)
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3
ALL = 2
OPERATIONS = range(3, 16)
# A number that neither knows, as a later release may write it.
UNKNOWN = 99

# Prefixes of each other, marks, what looks like a wildcard, letters of two to four bytes: Java sorts the last two the other way round.
NAMES = ("a", "ab", "abc", "abcd", "abd", "b", "ba", "bab", "orders", "orders-", "orders-eu", "orders.eu", "orders_eu", "Orders", "*", "**", "a*", "*a", "hardcode", "hard",
         "hardcode2", "h", "kafka-cluster", "kafka-", "__consumer_offsets", "__", "User:a", "User:", "é", "éa", "ê", "aé", "a\u0301", "\uff21", "\uff21a", "\U0001f600", "\U0001f600a",
         "a\uff21", "a\U0001f600", "\uffff", "\0", "a\0", "a\0b", " ", " a", "a ", "a b", "\t", "a\tb", "%", "a%41", "n" * 249, "n" * 248, "/", "../a", "\u007f")
PRINCIPALS = ("User:*", "User:a", "User:b", "User:c", "User:A", "User:", "User:a:b", "User:CN=a,O=b", "User:é", "User: a", "Group:*", "Group:a", "*:*", "user:*", ":", ":*", "User:**",
              "User:ANONYMOUS", "Role:a b")
HOSTS = ("*", "*", "*", "127.0.0.1", "10.0.0.1", "10.1.2.3", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:7", "::1", "localhost", "", "**", "010.0.0.1")
RANGES = ("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "127.0.0.0/30", "2001:db8::/32", "::/0", "::1/128", "10.9.9.9/8", "10.0.0.0/33", "10.0.0.1/", "/8", "*/8")
ADDRESSES = ("127.0.0.1", "10.0.0.1", "10.1.2.3", "10.255.0.1", "192.168.0.9", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:7", "fe80:0:0:0:0:0:0:1")
SUPER_USERS = ("", "", "User:root", "User:a", " User:a ; Group:a", "User:*", "User:CN=a,O=b;User:é", ";;User:a:b;")
# (the most ACLs, how many sets of a hundred)
SIZES = ((0, 6), (1, 10), (3, 20), (12, 24), (60, 18), (400, 12), (2_500, 7), (10_000, 3))
ASKED_A_SET, SETS_A_SEED = 100, 50


@dataclass
class Batch:
    """One seed's lines, with the place of each question's set."""
    chance: random.Random
    has_ranges: bool
    lines: list = field(default_factory=list)

    def say(self, *words):
        self.lines.append("\t".join(escaped(str(word)) for word in words))

    def name(self, size):
        """A name of the list; in large sets mostly one of many that begin with each other."""
        if size > 60 and self.chance.random() < 0.8:
            return "".join(self.chance.choice("ab-") for _ in range(self.chance.randint(1, 4 + size.bit_length())))
        return self.chance.choice(NAMES)

    def acl(self, size):
        chance = self.chance
        kind = chance.choice((TOPIC, TOPIC, TOPIC, *TYPES)) if chance.random() > 0.005 else UNKNOWN
        name = "kafka-cluster" if kind == CLUSTER and chance.random() < 0.8 else self.name(size)
        name = name if name >= "*" and chance.random() > 0.01 else ""
        pattern = chance.choice((LITERAL, PREFIXED))
        principal = f"User:{chance.randint(1, 40)}" if size > 60 and chance.random() < 0.6 else chance.choice(PRINCIPALS)
        host = chance.choice(RANGES) if self.has_ranges and chance.random() < 0.3 else chance.choice(HOSTS)
        operation = chance.choice((ALL, *OPERATIONS)) if chance.random() > 0.01 else UNKNOWN
        return kind, name, pattern, principal, host, operation, chance.choice((ALLOW, ALLOW, DENY))

    def close_to(self, acls, size):
        """A question that an ACL is likely to hit, or nearly."""
        chance = self.chance
        kind, name, pattern, principal, host, operation, _ = chance.choice(acls) if acls and chance.random() < 0.85 else self.acl(size)
        if kind == UNKNOWN or chance.random() < 0.05:
            kind = chance.choice(TYPES)
        if pattern == PREFIXED and chance.random() < 0.7:
            name += chance.choice(("a", "b", "-", "z", "\0", "\U0001f600", "\uff21", self.name(size)))
        elif name == "*" and chance.random() < 0.9:
            name = self.name(size)
        elif name and chance.random() < 0.15:
            name = name[:-1]
        if principal == "User:*" or chance.random() < 0.2:
            principal = chance.choice(PRINCIPALS if chance.random() < 0.02 else PRINCIPALS[1:])
        if host not in ADDRESSES or chance.random() < 0.2:
            host = chance.choice(ADDRESSES)
        if operation not in OPERATIONS or chance.random() < 0.3:
            # What READ, WRITE, DELETE, ALTER and ALTER_CONFIGS imply is asked for often.
            operation = chance.choice((8, 8, 10, *OPERATIONS))
        return principal, host, operation, kind, name

    def a_set(self, most, questions):
        chance = self.chance
        size = most if most in (0, 10_000) else chance.randint(1 + most // 5, most)
        acls = list(dict.fromkeys(self.acl(size) for _ in range(size)))
        self.say("set", chance.choice(SUPER_USERS), chance.choice(("true", "false")))
        for acl in acls:
            self.say("acl", *acl)
        # Apache's class goes through all ACLs for `any`, our explanation for `why`.
        often = 1.0 if size <= 400 else 0.1
        for _ in range(questions):
            *question, name = self.close_to(acls, size)
            drawn = chance.random() / often
            if drawn < 0.08:
                self.say("any", *question)
            else:
                self.say("why" if drawn < 0.4 else "ask", *question, name)


def batch(seed, has_ranges=False, sets=SETS_A_SEED, questions=ASKED_A_SET):
    made = Batch(random.Random(f"acls {seed} {has_ranges}"), has_ranges)
    sizes, weights = zip(*SIZES)
    for _ in range(sets):
        made.a_set(made.chance.choices(sizes, weights)[0], questions)
    return made.lines


def escaped(word):
    return "".join(f"%{ord(letter):02X}" if letter in "%\t\r\n" else letter for letter in word)


@fetch.alone
def apaches(version):
    """The command that asks the class of this release."""
    _, classpath = fetch._classpath("authorizer", "authorizer.xml", (version,))
    fetch._need("javac")
    out, source = fetch.CACHE / "java" / f"verdicts-{version}", fetch.HERE / "security/clients/Verdicts.java"
    out.mkdir(parents=True, exist_ok=True)
    fresh, seal = fetch._stamp(out, source.read_text(), classpath)
    if not fresh:
        fetch._run(f"verdicts-javac-{version}", ["javac", "-nowarn", "-cp", classpath, "-d", str(out), str(source)])
        seal()
    return java_words(f"{out}:{classpath}", "Verdicts", heap="512m", flags=SMALL_JVM, level="OFF")


def ours(binary):
    program = binary.parent / "examples" / "verdicts"
    if not program.exists():
        raise fetch.Missing(f"{program} is not built: cargo build -p barnabas-security --example verdicts")
    return [str(program)]


@dataclass
class Compared:
    """What the answers to a file of cases have in common."""
    decisions: int = 0
    by_type: int = 0
    sets: int = 0
    allowed: int = 0
    # Questions for what decided, of these by an ACL, of these where both name the same ACL.
    reasons: int = 0
    by_acl: int = 0
    same_acl: int = 0
    differing: list = field(default_factory=list)


def is_same(our, their):
    """Equal answers; where ACLs decided, Apache's is among those that decide here."""
    if our == their:
        return True
    (our_verdict, _, our_why), (their_verdict, _, their_why) = our.partition("\t"), their.partition("\t")
    return our_verdict == their_verdict and their_why.isdigit() and their_why in our_why.split()


def started(command, cases, out):
    with open(cases, "rb") as given, open(out, "wb") as written:
        return subprocess.Popen(command, stdin=given, stdout=written, stderr=subprocess.PIPE)


def compare(lines, our_answers, their_answers):
    compared, set_line, acls = Compared(), "", []
    for line in lines:
        kind = line[:3]
        if kind == "set":
            compared.sets, set_line, acls = compared.sets + 1, line, []
        elif kind == "acl":
            acls.append(line)
        else:
            our, their = next(our_answers, "(no answer)").rstrip("\n"), next(their_answers, "(no answer)").rstrip("\n")
            compared.decisions += 1
            compared.by_type += kind == "any"
            compared.allowed += their.startswith("ALLOWED")
            compared.reasons += kind == "why"
            their_why = their.partition("\t")[2]
            if their_why.isdigit():
                compared.by_acl += 1
                compared.same_acl += our.partition("\t")[2].split(" ")[0] == their_why
            if not is_same(our, their):
                resource_type = line.split("\t")[4]
                compared.differing.append((line, our, their, set_line, [acl for acl in acls if acl.split("\t")[1] == resource_type]))
    return compared


def play(scratch, name, their_command, our_command, seeds, has_ranges=False, sets=SETS_A_SEED):
    """Writes the cases of these seeds, asks both, and compares."""
    cases, outs = scratch / f"{name}.cases", [scratch / f"{name}.{who}" for who in ("ours", "theirs")]
    with open(cases, "w", encoding="utf-8", newline="\n") as file:
        for seed in seeds:
            file.write("\n".join(batch(seed, has_ranges, sets)) + "\n")
    running = [started(command, cases, out) for command, out in zip((our_command, their_command), outs)]
    for process, out in zip(running, outs):
        error = process.stderr.read().decode(errors="replace")
        if process.wait():
            raise RuntimeError(f"{out.name}: {error.strip()[-600:]}")
    with open(cases, encoding="utf-8", newline="\n") as lines, open(outs[0]) as our, open(outs[1]) as their:
        found = compare((line.rstrip("\n") for line in lines), our, their)
    for path in (cases, *outs):
        path.unlink()
    return found


def label(difference):
    """What known.toml calls it: the form of what was asked, and Apache's answer."""
    line, _, their, _, of_type = difference
    kind, principal, _, operation, _, *name = line.split("\t")
    patterns = [acl.split("\t") for acl in of_type]
    form = kind
    if principal == "User:*":
        form = "principal User:*"
    elif name and name[0].startswith("*") and name[0] != "*" and any(acl[2:4] == ["*", str(LITERAL)] for acl in patterns):
        form = "name that begins with *, beside ACLs of *"
    elif kind == "any" and any(acl[2:4] == ["", str(PREFIXED)] and acl[6] in (operation, str(ALL)) and acl[7] == str(DENY) for acl in patterns):
        form = "any, beside a DENY of the empty prefix"
    return f"{form}: {their.partition(chr(9))[0]}"


# A group, `#o`, beside an ACL of another group, `#x`.
UNANSWERED = b"set\t\tfalse\nacl\t3\t#x\t3\tUser:a\t*\t3\t3\nask\tUser:b\t127.0.0.1\t3\t3\t#o\n"


def answer_within(command, cases, seconds=10):
    """What the command answers, or that it does not."""
    try:
        return subprocess.run(command, input=cases, capture_output=True, timeout=seconds).stdout.decode().strip()
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds} s"


def describe(difference):
    line, our, their, set_line, acls = difference
    shown = "".join(f"\n        {acl}" for acl in acls[:12])
    return f"\n{line!r}\n    Barnabas:     {our[:200]}\n    Apache Kafka: {their[:200]}\n    {set_line!r}{shown}"


def judged(version, program, scratch, seeds, explained):
    """(the same, excused, wrong) of these seeds, beside the class of this release. Prints each form of difference once."""
    found = play(scratch, f"authorizer-{version}", apaches(version), program, seeds, has_ranges=version >= "4.4")
    forms = {}
    for difference in found.differing:
        forms.setdefault(label(difference), []).append(difference)
    unanswered = answer_within(apaches(version), UNANSWERED), answer_within(program, UNANSWERED)
    if unanswered[0] != unanswered[1]:
        forms[f"name before *, beside an ACL of such a name: {unanswered[0]}"] = [("ask\tUser:b\t127.0.0.1\t3\t3\t#o", unanswered[1], unanswered[0], "set", ["acl 3 #x"])]
    excused = sum(len(differences) for form, differences in forms.items() if explained(form))
    wrong = sum(map(len, forms.values())) - excused
    for form, differences in sorted(forms.items()):
        why = explained(form)
        print(f"  {version}: {form}: {len(differences)} differ{'; known: ' + why if why else ''}")
        print("" if why else "".join(map(describe, differences[:3])) + "\n", end="")
    reasons = f"{found.by_acl} deciding ACLs asked for: {found.same_acl} the same, {found.by_acl - found.same_acl} another that decides as well"
    print(f"authorizer: {found.decisions + 1} decisions over {found.sets} sets of 0 to 10,000 ACLs as Apache Kafka {version}'s StandardAuthorizer makes them "
          f"({found.allowed} allowed, {found.by_type} of any resource of a type; {reasons}); {excused} differ for a known reason, {wrong} differ; seeds {seeds.start} to {seeds.stop - 1}",
          flush=True)
    return found.decisions + 1 - excused - wrong, excused, wrong


def is_mistake_noticed(version, program, scratch, explained):
    """Whether the comparison sees that a PREFIXED DENY of three letters and more counts as LITERAL."""
    found = play(scratch, "planted", apaches(version), [*program, "--planted"], range(1))
    noticed = sum(1 for difference in found.differing if not explained(label(difference)))
    print(f"authorizer: the planted mistake is {'noticed' if noticed else 'NOT noticed'}: {noticed} of {found.decisions} decisions differ", flush=True)
    return noticed > 0
