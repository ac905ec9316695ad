"""Groups of KIP-848, as their clients use them: Java, librdkafka and franz-go.

The coordinator assigns; a member hears of a change with its next heartbeat. Where a scenario waits for a member that is gone, or for many
steps, its group gets a shorter session and a shorter interval (`brisk`), so that Apache Kafka need not be waited for either.
"""

import threading
import time

from .driver import Driver, Failure, NotInClient, Refusal, until
from .raw import configure_group
from .scenarios import calm_delivery, everything, expect, feed, grow, scenario, settled


def speaks_new_groups(cell):
    if not cell.new_groups:
        raise NotInClient("it does not speak KIP-848's protocol")


@scenario("new group 2→5→3", quick=False)
def new_group_grow(cell):
    speaks_new_groups(cell)
    grow(cell, "server-uniform")


@scenario("new group range")
def new_group_range(cell):
    """The range assignor gives each of two members a stretch of neighbours; a topic that grows is noticed."""
    speaks_new_groups(cell)
    topic, group = cell.topic(4), cell.name("group")
    members = [cell.client().join(group, [topic], "server-range") for _ in range(2)]
    settled(cell, members, topic, 4)
    stretches = sorted(sorted(p for _, p in member.assigned) for member in members)
    expect(stretches == [[0, 1], [2, 3]], f"range gave {stretches}")
    cell.judge.call("create_partitions", name=topic, partitions=6)
    settled(cell, members, topic, 6)
    wanted = feed(cell, topic, 6, 30, "a")
    got = [value for value in everything(members, wanted) if value in set(wanted)]
    expect(len(got) == len(wanted), f"{len(wanted)} records delivered {len(got)} times")


@scenario("new group pattern", quick=False)
def new_group_pattern(cell):
    """A subscription by expression finds the topics that match, and those that come later."""
    speaks_new_groups(cell)
    first, group = cell.topic(2), cell.name("group")
    member = cell.client()
    member.call("join", group=group, topics=[], pattern=first[: first.rindex("-") + 1] + ".*", assignor="server-uniform", session_ms=10000, commit="poll")
    until(lambda: member.assigned == {(first, 0), (first, 1)}, 30, lambda: f"the topic that is there (now {member.assigned})")
    second = cell.topic(1)
    until(lambda: member.assigned == {(first, 0), (first, 1), (second, 0)}, 40, lambda: f"the topic that came (now {member.assigned})")


@scenario("new group static", quick=False)
def new_group_static(cell):
    """A static member that goes for a moment gets its partitions back, and nobody else notices."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    members = [cell.client().join(group, [topic], "server-uniform", static=f"static-{n}") for n in range(3)]
    settled(cell, members, topic, partitions)
    # On the way there every partition may have an owner for a moment, and one of them three.
    until(lambda: all(len(m.assigned) == 2 for m in members), 30, "two partitions for each")
    time.sleep(1)
    before, others = members[1].assigned, [members[0], members[2]]
    counts = [m.assign_count for m in others]
    members[1].call("leave")
    back = cell.client().join(group, [topic], "server-uniform", static="static-1")
    until(lambda: back.assigned == before, 20, lambda: f"the static member's {before} (now {back.assigned}, {back.errors[-1:]})")
    time.sleep(6)
    expect([m.assign_count for m in others] == counts, "the other members were rebalanced")


@scenario("groups migrate", quick=False)
def groups_migrate(cell):
    """A classic group, member by member to the new protocol and back, while records come: nothing is lost, nothing read by two."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    members = [cell.client().join(group, [topic], "range") for _ in range(2)]
    settled(cell, members, topic, partitions)
    for round_, assignor in enumerate(("server-uniform", "server-uniform", "range", "range")):
        everything(members, feed(cell, topic, partitions, 30, f"{round_}a"))
        leaving = members.pop(0)
        members.append(cell.client().join(group, [topic], assignor))
        settled(cell, [leaving, *members], topic, partitions, seconds=60)
        leaving.call("leave")
        settled(cell, members, topic, partitions, seconds=60)
        calm_delivery(cell, members, topic, partitions, f"{round_}b")


def brisk(cell, group, session_ms=6000):
    configure_group(cell.server.port, group, {"consumer.session.timeout.ms": session_ms, "consumer.heartbeat.interval.ms": 1000})
    return group


@scenario("new group dies", quick=False)
def new_group_dies(cell):
    """kill -9 of one of three: the others take over when its session has ended, from the committed offsets on."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), brisk(cell, cell.name("group")), 6
    members = [cell.client().join(group, [topic], "server-uniform") for _ in range(3)]
    settled(cell, members, topic, partitions)
    first = feed(cell, topic, partitions, 60, "a")
    everything(members, first)
    time.sleep(0.5)
    dead, alive = members[0], members[1:]
    dead.kill()
    begun = time.monotonic()
    second = feed(cell, topic, partitions, 60, "b")
    settled(cell, alive, topic, partitions, seconds=30)
    expect(time.monotonic() - begun > 2, "the dead member's partitions moved before its session could have ended")
    got = everything(alive, second)
    expect(len([v for v in got if v in set(second)]) == len(second), "a record was delivered twice after the takeover")


@scenario("new group frozen", quick=False)
def new_group_frozen(cell):
    """A member that stands still for longer than its session is fenced: what it had goes to the others, and it comes back as a new one."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), brisk(cell, cell.name("group")), 6
    members = [cell.client().join(group, [topic], "server-uniform") for _ in range(3)]
    settled(cell, members, topic, partitions)
    everything(members, feed(cell, topic, partitions, 30, "a"))
    time.sleep(0.5)
    frozen, others = members[0], members[1:]
    frozen.freeze()
    settled(cell, others, topic, partitions, seconds=30)
    wanted = feed(cell, topic, partitions, 30, "b")
    everything(others, wanted)
    frozen.thaw()
    settled(cell, members, topic, partitions, seconds=40)
    calm_delivery(cell, members, topic, partitions, "c")


@scenario("new group two topics", quick=False)
def new_group_two_topics(cell):
    """Members of one group with different subscriptions: nobody gets what it did not ask for, and what both want is shared."""
    speaks_new_groups(cell)
    first, second, group = cell.topic(4), cell.topic(4), brisk(cell, cell.name("group"), 30000)
    both = cell.client().join(group, [first, second], "server-uniform")
    one = cell.client().join(group, [second], "server-uniform")
    wanted = {(topic, number) for topic in (first, second) for number in range(4)}

    def shared():
        mine, others = both.assigned or set(), one.assigned or set()
        return mine | others == wanted and not mine & others and others and all(topic == second for topic, _ in others)
    until(shared, 30, lambda: f"two topics shared (now {both.assigned} and {one.assigned})")
    cell.tell("partitions of the one that wants both", len(both.assigned))


@scenario("new group held id", quick=False)
def new_group_held_id(cell):
    """Two members under one static name: the second is refused, the first goes on."""
    speaks_new_groups(cell)
    topic, group = cell.topic(2), brisk(cell, cell.name("group"), 30000)
    first = cell.client().join(group, [topic], "server-uniform", static="one")
    settled(cell, [first], topic, 2)
    second = cell.client().join(group, [topic], "server-uniform", static="one")
    until(lambda: second.errors, 40, lambda: f"a word of refusal for the second (it has {second.assigned})")
    words = " ".join(second.errors).upper().replace("_", "").replace(" ", "")
    expect("UNRELEASED" in words or "INSTANCE" in words, f"the second was told {second.errors[:2]}")
    expect(not second.assigned, f"the second has {second.assigned}")
    wanted = feed(cell, topic, 2, 20, "a")
    expect(sorted(everything([first], wanted)) == sorted(wanted), "the first does not go on")


@scenario("new group bad pattern", quick=False)
def new_group_bad_pattern(cell):
    """An expression that is none (RE2) is refused by the coordinator; the group is none the worse."""
    speaks_new_groups(cell)
    topic, group = cell.topic(2), cell.name("group")
    member = cell.client()
    try:
        member.call("join", group=group, topics=[], pattern="t-(", assignor="server-uniform", session_ms=10000, commit="poll")
    except Refusal as refused:
        raise NotInClient(f"it looks at expressions itself ({refused.name})") from None
    until(lambda: member.errors, 30, "a word of refusal")
    expect(any(word in " ".join(member.errors).upper() for word in ("REGULAR", "REGEX", "EXPRESSION", "MISSING")), f"it was told {member.errors[:2]}")
    other = cell.client().join(group, [topic], "server-uniform")
    settled(cell, [other], topic, 2)


@scenario("new group commits", quick=False)
def new_group_commits(cell):
    """What a member has committed is where the next one begins; a group that nobody is in can be moved, one that is used cannot."""
    speaks_new_groups(cell)
    topic, group = cell.topic(2), brisk(cell, cell.name("group"), 30000)
    first = feed(cell, topic, 2, 40, "a")
    one = cell.client().join(group, [topic], "server-uniform", commit="none")
    expect(sorted(everything([one], first)) == sorted(first), "first reader: not each value once")
    one.call("commit")
    found = cell.judge.call("describe_group", group=group)
    expect(found["state"] == "Stable" and found["members"] == 1, f"with a member: {found}")
    try:
        cell.judge.call("delete_group", group=group)
        raise Failure("deleting a group with members was not refused")
    except Refusal as refused:
        expect("EMPTY" in str(refused).upper(), f"deleting a group with members: {refused}")
    one.call("leave")
    until(lambda: cell.judge.call("describe_group", group=group)["state"] == "Empty", 10, "the group empty")
    expect(cell.judge.committed(group, topic, [0, 1]) == {0: 20, 1: 20}, f"committed {cell.judge.committed(group, topic, [0, 1])}")
    second = feed(cell, topic, 2, 30, "b")
    two = cell.client().join(group, [topic], "server-uniform")
    got = everything([two], second)
    expect(sorted(got) == sorted(second), f"resumed reader saw {len(got)} values, {len(set(got) & set(first))} of them old")


class Load:
    """Records that come all the time, from an independent client of its own."""

    def __init__(self, cell, topic, partitions):
        self.topic, self.partitions, self.sent, self.ended, self.failed = topic, partitions, [], False, None
        self.driver = Driver(cell.judge_command, cell.server.address, cell.logs / f"load-{topic}.log")
        cell.drivers.append(self.driver)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.ended:
            begin = len(self.sent)
            values = [f"load {n}" for n in range(begin, begin + 10)]
            try:
                self.driver.produce(self.topic, [{"p": n % self.partitions, "k": None, "v": value} for n, value in zip(range(begin, begin + 10), values)])
            except (Failure, Refusal) as failed:
                self.failed = failed
                return
            self.sent += values
            time.sleep(0.05)

    def end(self):
        self.ended = True
        self.thread.join(60)
        if self.failed:
            raise self.failed
        return self.sent


@scenario("groups migrate loaded", quick=False)
def groups_migrate_loaded(cell):
    """From classic to KIP-848 and back, a member at a time, while records come without a pause: every one of them is read."""
    speaks_new_groups(cell)
    topic, group, partitions = cell.topic(6), cell.name("group"), 6
    brisk(cell, group, 30000)
    everyone = [cell.client().join(group, [topic], "range") for _ in range(2)]
    members = list(everyone)
    settled(cell, members, topic, partitions)
    load = Load(cell, topic, partitions)
    for assignor in ("server-uniform", "server-uniform", "range", "range"):
        leaving = members.pop(0)
        members.append(cell.client().join(group, [topic], assignor))
        everyone.append(members[-1])
        settled(cell, [leaving, *members], topic, partitions, seconds=60)
        leaving.call("leave")
        settled(cell, members, topic, partitions, seconds=60)
    sent = load.end()
    expect(len(sent) >= 200, f"only {len(sent)} records came meanwhile")
    everything(everyone, sent, seconds=40)
    calm_delivery(cell, members, topic, partitions, "calm")
