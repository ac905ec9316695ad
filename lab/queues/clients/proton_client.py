"""Qpid Proton's Python binding, as Debian has it. See PROTOCOL.md."""

import json
import sys
import time

from proton import Delivery, Endpoint, Message, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container, Copy, LinkOption, Selector


class Queue(LinkOption):
    """Tells both brokers that the address is a queue's."""

    def apply(self, link):
        end = link.target if link.is_sender else link.source
        end.capabilities.put_object(symbol("queue"))


class Client(MessagingHandler, TransactionHandler):
    def __init__(self, verb, words):
        super().__init__(prefetch=0, auto_accept=False, auto_settle=True)
        self.verb, (self.host, self.port, self.user, self.password, *self.words) = verb, words
        self.answer, self.connection = {}, None
        self.options = {}

    def on_start(self, event):
        self.container, self.reactor = event.container, event.reactor
        heartbeat = {"heartbeat": 1} if self.verb == "idle" else {}
        url = f"amqp://{self.host}:{self.port}"
        self.connection = event.container.connect(url, user=self.user, password=self.password, reconnect=False, allow_insecure_mechs=True, **heartbeat)
        getattr(self, self.verb)(*self.words)

    def end(self, **answer):
        self.answer.update(answer)
        self.connection.close()

    def on_transport_error(self, event):
        self.answer.setdefault("connected", False)
        self.answer.setdefault("error", str(event.transport.condition))

    # connect
    def connect(self):
        self.answer = {}

    def on_connection_opened(self, event):
        if self.verb == "connect":
            self.end(connected=True)

    # put
    def put(self, queue, texts, options="{}"):
        self.options, self.texts = json.loads(options), json.loads(texts)
        self.answer, self.next, self.done = {"accepted": 0, "refused": []}, 0, 0
        self.sender = self.container.create_sender(self.connection, queue, options=[Queue()])

    def on_sendable(self, event):
        if self.verb == "put":
            while self.sender.credit and self.next < len(self.texts):
                self.sender.send(message(self.texts[self.next], self.options))
                self.next += 1
        elif self.verb == "transact" and event.sender == self.sender and not self.is_begun:
            self.is_begun = True
            self.declare()
        elif self.verb == "idle" and not self.is_begun:
            self.is_begun = True
            self.sender.send(Message(body="before"))
            self.container.schedule(self.seconds, Later(lambda: self.sender.send(Message(body="after"))))
        elif self.verb == "request" and self.reply_to and not self.is_begun:
            self.is_begun = True
            self.sender.send(Message(body="ping", reply_to=self.reply_to, correlation_id="c1", durable=True))

    def settled(self, condition=None):
        if self.verb not in ("put", "idle"):
            return
        self.done += 1
        if condition is None:
            self.answer["accepted"] += 1
        else:
            self.answer["refused"].append(condition)
        if self.done == (2 if self.verb == "idle" else len(self.texts)):
            self.end()

    def on_accepted(self, event):
        self.settled()

    def on_rejected(self, event):
        condition = event.delivery.remote.condition
        self.settled(condition.name if condition else "rejected")

    def on_released(self, event):
        self.settled("released")

    def on_link_error(self, event):
        condition = event.link.remote_condition
        self.answer["refused"] = [condition.name] if self.verb in ("put", "get", "request", "transact") else condition.name
        self.end()

    # idle
    def idle(self, queue, seconds):
        self.answer, self.done, self.is_begun, self.seconds = {"accepted": 0, "refused": []}, 0, False, float(seconds)
        self.sender = self.container.create_sender(self.connection, queue, options=[Queue()])

    # get
    def get(self, queue, number, outcome, options="{}"):
        self.options, self.number, self.outcome = json.loads(options), int(number), outcome
        self.answer, self.granted, self.deadline = {"got": []}, 0, None
        choices = [Queue()] + ([Copy()] if outcome == "browse" else [])
        if selector := self.options.get("selector"):
            choices.append(Selector(selector))
        self.receiver = self.container.create_receiver(self.connection, queue, options=choices)

    def on_link_opened(self, event):
        if self.verb == "get" and event.receiver and self.receiver.remote_source.address:
            self.grant(min(self.options.get("credit", self.number), self.number))
            self.watch()
        if self.verb == "request" and event.receiver == self.served:
            self.served.flow(1)
        if self.verb == "request" and event.receiver == self.replies:
            self.reply_to = event.receiver.remote_source.address
            self.replies.flow(1)
            self.sender = self.container.create_sender(self.connection, self.queue, options=[Queue()])

    def grant(self, credit):
        self.granted += credit
        self.receiver.flow(credit)

    def watch(self):
        """Ends when nothing has come for a while."""
        self.deadline = time.monotonic() + self.options.get("wait", 3)

        def check():
            if time.monotonic() >= self.deadline:
                self.finish()
            else:
                self.container.schedule(0.1, Later(check))

        self.container.schedule(0.1, Later(check))

    def finish(self):
        if hold := self.options.pop("hold", None):
            print("holding", flush=True)
            self.deadline = time.monotonic() + hold
            self.container.schedule(hold, Later(self.end))
        elif not self.answer.get("ended"):
            self.answer.pop("ended", None)
            self.end()

    def on_message(self, event):
        if self.verb == "request":
            return self.on_request(event)
        if self.verb == "transact":
            return self.take(event)
        if len(self.answer["got"]) >= self.number:
            return event.delivery.update(Delivery.RELEASED)
        self.answer["got"].append(described(event.message))
        self.deadline = time.monotonic() + self.options.get("wait", 3)
        if pause := self.options.get("pause"):
            time.sleep(pause)
        if self.outcome == "accept":
            self.accept(event.delivery)
        elif self.outcome == "release":
            self.release(event.delivery, delivered=False)
        elif self.outcome == "modify":
            event.delivery.local.failed = True
            self.settle(event.delivery, Delivery.MODIFIED)
        elif self.outcome == "reject":
            self.reject(event.delivery)
        if len(self.answer["got"]) == self.number:
            self.finish()
        elif self.granted < self.number and self.receiver.credit == 0:
            self.grant(min(self.options.get("credit", 1), self.number - self.granted))

    # request: one connection asks and answers
    def request(self, queue):
        self.queue, self.is_begun, self.reply_to = queue, False, None
        self.served = self.container.create_receiver(self.connection, queue, name="served", options=[Queue()])
        self.replies = self.container.create_receiver(self.connection, None, dynamic=True, name="replies")

    def on_request(self, event):
        self.accept(event.delivery)
        asked = event.message
        if event.receiver == self.replies:
            return self.end(reply=asked.body)
        answer = self.container.create_sender(self.connection, asked.reply_to, name="answers")
        answer.send(Message(body=asked.body + "-pong", correlation_id=asked.correlation_id))


    # transact: one step after the other
    def transact(self, queue, steps):
        self.steps, self.left, self.is_begun, self.transaction = json.loads(steps), 0, False, None
        self.answer = {"got": [], "refused": []}
        self.receiver = self.container.create_receiver(self.connection, queue, options=[Queue()])
        self.sender = self.container.create_sender(self.connection, queue, options=[Queue()])

    def declare(self):
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event):
        self.transaction = event.transaction
        self.go_on()

    def go_on(self):
        while self.steps:
            what, *words = self.steps.pop(0)
            if what == "put":
                self.transaction.send(self.sender, Message(body=words[0], durable=True))
                continue
            if what == "get":
                self.left = words[0]
                self.receiver.flow(self.left)
                self.container.schedule(5, Later(self.give_up))
            elif what == "commit":
                self.transaction.commit()
            elif what == "rollback":
                self.transaction.abort()
            else:
                print("holding", flush=True)
                self.container.schedule(words[0], Later(self.end))
            return
        self.end()

    def give_up(self):
        if self.left:
            self.end(refused=["nothing came"])

    def take(self, event):
        self.answer["got"].append(described(event.message)["text"])
        self.transaction.accept(event.delivery)
        self.left -= 1
        if not self.left:
            self.go_on()

    def on_transaction_committed(self, event):
        self.declare() if self.steps else self.end()

    def on_transaction_aborted(self, event):
        self.declare() if self.steps else self.end()

    def on_transaction_commit_failed(self, event):
        condition = event.delivery.remote.condition
        self.end(refused=[condition.name if condition else "rejected"])

    def on_transaction_declare_failed(self, event):
        self.on_transaction_commit_failed(event)


class Later(MessagingHandler):
    def __init__(self, what):
        super().__init__()
        self.what = what

    def on_timer_task(self, event):
        self.what()


def message(text, options):
    made = Message(body=text.ljust(options.get("size", 0), "x"), durable=True)
    made.properties = options.get("properties")
    made.id, made.subject, made.group_id = options.get("id"), options.get("subject"), options.get("group")
    if ttl := options.get("ttl"):
        made.ttl = ttl / 1000
    return made


def described(message):
    body = message.body.tobytes() if isinstance(message.body, memoryview) else message.body
    text = body.decode() if isinstance(body, bytes) else body
    found = {"length": len(text), "count": message.delivery_count, "properties": message.properties, "id": message.id, "subject": message.subject}
    return {**found, "text": text} if len(text) <= 100 else found


def main(verb, *words):
    client = Client(verb, words)
    Container(client).run()
    print(json.dumps(client.answer))


main(*sys.argv[1:])
