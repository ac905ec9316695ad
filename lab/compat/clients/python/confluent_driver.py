"""confluent-kafka (librdkafka) behind the runner's protocol; runs with today's and with Debian 12's."""

import time

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition, OFFSET_BEGINNING, OFFSET_END, libversion
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from protocol import Client, Digest, Refused, Unsupported, payload, serve, shown

ASSIGNORS = {"range": "range", "roundrobin": "roundrobin", "cooperative": "cooperative-sticky"}


class Confluent(Client):
    def __init__(self, bootstrap):
        super().__init__(bootstrap)
        self.consumer = None
        self._admin = None
        self.producers, self.open = {}, set()
        self.pipes, self.held, self.sharer = {}, {}, None

    def common(self):
        return {"bootstrap.servers": self.bootstrap, "log_level": 2, "reconnect.backoff.max.ms": 200}

    def admin(self):
        if self._admin is None:
            self._admin = AdminClient(self.common())
        return self._admin

    def error_name(self, error):
        if isinstance(error, KafkaException):
            return error.args[0].name()
        if isinstance(error, Refused):
            return str(error)
        return type(error).__name__

    # Records

    def op_produce(self, command):
        config = command.get("config", {})
        settings = {**self.common(), "acks": config.get("acks", "all"),
                    "compression.type": config.get("codec", "none"),
                    "enable.idempotence": config.get("idempotent", False),
                    "linger.ms": config.get("linger_ms", 5),
                    "message.max.bytes": config.get("max_bytes", 1000000),
                    "delivery.timeout.ms": config.get("delivery_ms", 30000),
                    "queue.buffering.max.messages": 1000000}
        if "batch_bytes" in config:
            settings["batch.size"] = config["batch_bytes"]
        producer = Producer(settings)
        results = [None] * len(command["records"])

        def reported(index):
            def report(error, message):
                results[index] = error.name() if error else [message.partition(), -1 if message.offset() is None else message.offset()]
            return report

        for index, record in enumerate(command["records"]):
            options = {}
            if "p" in record:
                options["partition"] = record["p"]
            if "t" in record:
                options["timestamp"] = record["t"]
            if "h" in record:
                options["headers"] = [(name, payload(value)) for name, value in record["h"]]
            try:
                producer.produce(command["topic"], payload(record.get("v")), payload(record.get("k")),
                                 on_delivery=reported(index), **options)
            except KafkaException as error:
                results[index] = error.args[0].name()
            producer.poll(0)
        if producer.flush(60) > 0:
            results = ["TIMEOUT" if result is None else result for result in results]
        return {"results": results}

    def transactional(self, command):
        key = command["txid"]
        if command.get("init"):
            self.producers.pop(key, None)
        if key not in self.producers:
            producer = Producer({**self.common(), "transactional.id": key, "transaction.timeout.ms": command.get("timeout_ms", 60000)})
            producer.init_transactions(30)
            self.producers[key] = producer
            self.open.discard(key)
        return self.producers[key]

    def op_txn(self, command):
        producer, key = self.transactional(command), command["txid"]
        if key not in self.open:
            producer.begin_transaction()
            self.open.add(key)
        results = [None] * len(command["records"])

        def reported(index):
            def report(error, message):
                # Once the producer is fenced the library's errors cannot be asked for their names.
                results[index] = "REFUSED" if error else [message.partition(), message.offset()]
            return report

        for index, record in enumerate(command["records"]):
            producer.produce(command["topic"], payload(record.get("v")), payload(record.get("k")), partition=record["p"],
                             on_delivery=reported(index))
        producer.flush(30)
        if "offsets" in command:
            wanted = command["offsets"]
            consumer = Consumer({**self.common(), "group.id": wanted["group"]})
            try:
                partitions = [TopicPartition(wanted["topic"], int(p), offset) for p, offset in wanted["offsets"].items()]
                producer.send_offsets_to_transaction(partitions, consumer.consumer_group_metadata(), 30)
            finally:
                consumer.close()
        if command["end"] == "commit":
            producer.commit_transaction(30)
        if command["end"] == "abort":
            producer.abort_transaction(30)
        if command["end"] != "open":
            self.open.discard(key)
        return {"results": results}

    # Read, process, write: a consumer and a producer for each transactional id, which stay.

    def op_pipe(self, command):
        key = command["txid"]
        if key not in self.pipes:
            consumer = self.reader({**command, "reset": "earliest", "isolation": "committed"}, **self.protocol(command))
            consumer.subscribe([command["source"]])
            self.pipes[key] = {"consumer": consumer, "producer": self.transactional(command)}
        pipe = self.pipes[key]
        got, deadline = [], time.monotonic() + 60
        while len(got) < command["count"] and time.monotonic() < deadline:
            for message in pipe["consumer"].consume(command["count"] - len(got), timeout=0.2):
                if message.error():
                    raise KafkaException(message.error())
                got.append(message)
        # As the membership stood when the records were read, not when they are committed.
        pipe["read"] = pipe["consumer"].consumer_group_metadata()
        pipe["from"] = [TopicPartition(m.topic(), m.partition(), m.offset()) for m in got[:1]]
        pipe["to"] = [TopicPartition(m.topic(), m.partition(), m.offset() + 1) for m in got[-1:]]
        pipe["producer"].begin_transaction()
        for index, message in enumerate(got):
            pipe["producer"].produce(command["topic"], message.value() + b"!", partition=(index + 1) % 2)
        pipe["producer"].flush(30)
        if command["end"] != "open":
            pipe["producer"].send_offsets_to_transaction(pipe["to"], pipe["read"], 30)
        if command["end"] == "commit":
            pipe["producer"].commit_transaction(30)
        if command["end"] == "abort":
            pipe["producer"].abort_transaction(30)
            for partition in pipe["from"]:
                pipe["consumer"].seek(partition)
        return {"read": [message.value().decode() for message in got]}

    def op_pipe_end(self, command):
        """Commits what the last step left open; where that is refused it is aborted."""
        pipe = self.pipes[command["txid"]]
        try:
            pipe["producer"].send_offsets_to_transaction(pipe["to"], pipe["read"], 30)
            pipe["producer"].commit_transaction(30)
            return {"committed": True, "told": "ok"}
        except KafkaException as refused:
            if refused.args[0].txn_requires_abort():
                pipe["producer"].abort_transaction(30)
            return {"committed": False, "told": self.error_name(refused)}

    # Share groups. No poll but by command: what a member holds is part of the story.

    def op_share_join(self, command):
        if libversion()[1] < 0x020e0000:
            raise Unsupported("KIP-932 is younger than this librdkafka")
        if command.get("acquire", "batch_optimized") != "batch_optimized":
            raise Unsupported("librdkafka acquires whole batches only")
        from confluent_kafka import ShareConsumer
        self.sharer = ShareConsumer({**self.common(), "group.id": command["group"], "max.poll.records": int(command.get("most", 500)),
                                     "share.acknowledgement.mode": command.get("mode", "explicit")})
        self.sharer.subscribe([command["topic"]])

    def op_share_poll(self, command):
        deadline, found = time.monotonic() + command["timeout_ms"] / 1000, []
        self.held = {}
        while not found and time.monotonic() < deadline:
            for message in self.sharer.poll(0.1):
                if message.error():
                    raise KafkaException(message.error())
                self.held[f"{message.partition()}:{message.offset()}"] = message
                found.append([message.partition(), message.offset(), message.delivery_count(), shown(message.value())])
        return found

    def op_share_ack(self, command):
        from confluent_kafka import AcknowledgeType
        for at, word in command["words"].items():
            if word == "renew":
                raise Unsupported("librdkafka does not renew")
            self.sharer.acknowledge(self.held[at], AcknowledgeType[word.upper()])
        told = self.sharer.commit_sync(30)
        return {partition.partition: "ok" if refused is None else self.error_name(refused) for partition, refused in told.items()}

    def op_share_leave(self, command):
        self.sharer.close()

    def reader(self, command, **more):
        limit = command.get("max_bytes", 1048576)
        return Consumer({**self.common(), "group.id": command.get("group", "compat-reader"), "enable.auto.commit": False,
                         "enable.auto.offset.store": False, "auto.offset.reset": command.get("reset", "error"),
                         "isolation.level": "read_committed" if command.get("isolation") == "committed" else "read_uncommitted",
                         "max.partition.fetch.bytes": limit, "fetch.max.bytes": max(limit, 52428800),
                         "receive.message.max.bytes": max(limit, 52428800) + 600,
                         "enable.partition.eof": False, **more})

    def op_fetch(self, command):
        consumer = self.reader(command)
        try:
            start = command.get("from", "earliest")
            wanted = []
            for number in command["parts"]:
                if start == "earliest":
                    offset = OFFSET_BEGINNING
                elif "off" in start:
                    offset = start["off"]
                else:
                    offset = start["ts"]
                wanted.append(TopicPartition(command["topic"], number, offset))
            if isinstance(start, dict) and "ts" in start:
                wanted = consumer.offsets_for_times(wanted, timeout=10)
            consumer.assign(wanted)
            records, deadline = [], time.monotonic() + command["timeout_ms"] / 1000
            while len(records) < command["count"] and time.monotonic() < deadline:
                for message in consumer.consume(500, timeout=0.2):
                    if message.error():
                        raise KafkaException(message.error())
                    headers = [[name, shown(value)] for name, value in message.headers() or []]
                    records.append([message.partition(), message.offset(), message.timestamp()[1], shown(message.key()),
                                    shown(message.value()), headers])
            return {"recs": records}
        finally:
            consumer.close()

    def op_digest(self, command):
        consumer = self.reader(command)
        try:
            consumer.assign([TopicPartition(command["topic"], number, OFFSET_BEGINNING) for number in command["parts"]])
            digests = {number: Digest() for number in command["parts"]}
            left = {int(p): end for p, end in command["ends"].items() if end > 0}
            deadline = time.monotonic() + command["timeout_ms"] / 1000
            while left and time.monotonic() < deadline:
                for message in consumer.consume(10000, timeout=0.2):
                    if message.error():
                        raise KafkaException(message.error())
                    digests[message.partition()].add(message.offset(), message.value())
                    if message.offset() + 1 >= left.get(message.partition(), 0):
                        left.pop(message.partition(), None)
            return {p: digest.told() for p, digest in digests.items()}
        finally:
            consumer.close()

    def op_offsets(self, command):
        consumer = self.reader(command)
        try:
            found = {}
            for number in command["parts"]:
                partition = TopicPartition(command["topic"], number)
                if isinstance(command["at"], dict):
                    partition.offset = command["at"]["ts"]
                    offset = consumer.offsets_for_times([partition], timeout=10)[0].offset
                    found[number] = -1 if offset == OFFSET_END else offset
                else:
                    low, high = consumer.get_watermark_offsets(partition, timeout=10)
                    found[number] = low if command["at"] == "earliest" else high
            return found
        finally:
            consumer.close()

    # Groups

    def protocol(self, command):
        if command["assignor"].startswith("server-"):
            if libversion()[1] < 0x020a0000:
                raise Unsupported("KIP-848 is younger than this librdkafka")
            # The coordinator assigns, and says how often it wants to hear of a member.
            return {"group.protocol": "consumer", "group.remote.assignor": command["assignor"].removeprefix("server-")}
        if command["assignor"] not in ASSIGNORS:
            raise Unsupported(f"librdkafka has no {command['assignor']} assignor")
        return {"partition.assignment.strategy": ASSIGNORS[command["assignor"]],
                "session.timeout.ms": command.get("session_ms", 10000), "heartbeat.interval.ms": 500}

    def op_join(self, command):
        more = self.protocol(command)
        if command.get("static"):
            more["group.instance.id"] = command["static"]
        if command.get("client"):
            more["client.id"] = command["client"]
        self.commit_polls = command.get("commit", "poll") == "poll"
        self.consumer = self.reader({**command, "reset": "earliest"}, **{**more, "enable.auto.offset.store": True})
        # An expression, to librdkafka, is a name that begins with ^.
        self.consumer.subscribe(["^" + command["pattern"]] if command.get("pattern") else command["topics"])
        self.joined = True

    def poll(self):
        messages = self.consumer.consume(100, timeout=0.1)
        self.tell_assignment((p.topic, p.partition) for p in self.consumer.assignment())
        records = []
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
            records.append([message.topic(), message.partition(), message.offset(), shown(message.value())])
        self.tell_records(records)
        if records and self.commit_polls:
            self.consumer.commit(asynchronous=False)

    def op_commit(self, command):
        self.consumer.commit(asynchronous=False)

    def op_leave(self, command):
        self.joined = False
        self.consumer.close()

    def op_committed(self, command):
        consumer = self.reader(command)
        try:
            wanted = [TopicPartition(command["topic"], number) for number in command["parts"]]
            return {p.partition: max(p.offset, -1) for p in consumer.committed(wanted, timeout=10)}
        finally:
            consumer.close()

    # Admin

    def wait(self, futures):
        return {name: future.result(20) for name, future in futures.items()}

    def op_create_topic(self, command):
        topic = NewTopic(command["name"], command["partitions"], 1, config=command.get("config", {}))
        self.wait(self.admin().create_topics([topic]))

    def op_create_partitions(self, command):
        self.wait(self.admin().create_partitions([NewPartitions(command["name"], command["partitions"])]))

    def op_delete_topic(self, command):
        self.wait(self.admin().delete_topics([command["name"]]))

    def op_list_topics(self, command):
        return sorted(self.admin().list_topics(timeout=10).topics)

    def op_describe_topic(self, command):
        topic = self.admin().list_topics(command["name"], timeout=10).topics[command["name"]]
        if topic.error:
            raise Refused(topic.error.name())
        parts = [topic.partitions[number] for number in sorted(topic.partitions)]
        return {"partitions": len(parts), "leaders": [p.leader for p in parts], "replicas": [p.replicas for p in parts]}

    def resource(self, command, **config):
        kind = ConfigResource.Type.TOPIC if command["type"] == "topic" else ConfigResource.Type.BROKER
        return ConfigResource(kind, command["name"], **config)

    def op_get_config(self, command):
        entries = next(iter(self.wait(self.admin().describe_configs([self.resource(command)])).values()))
        return {name: entry.value for name, entry in entries.items()}

    def op_set_config(self, command):
        if not hasattr(self.admin(), "incremental_alter_configs"):
            if command.get("delete"):
                raise Unsupported("no incrementalAlterConfigs in this client")
            self.wait(self.admin().alter_configs([self.resource(command, set_config=command["set"])]))
            return
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry
        entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in command.get("set", {}).items()]
        entries += [ConfigEntry(k, None, incremental_operation=AlterConfigOpType.DELETE) for k in command.get("delete", [])]
        self.wait(self.admin().incremental_alter_configs([self.resource(command, incremental_configs=entries)]))

    def op_delete_records(self, command):
        if not hasattr(self.admin(), "delete_records"):
            raise Unsupported("no deleteRecords in this client")
        wanted = [TopicPartition(command["topic"], int(p), offset) for p, offset in command["upto"].items()]
        return {p.partition: r.low_watermark for p, r in self.wait(self.admin().delete_records(wanted)).items()}

    def op_list_groups(self, command):
        if hasattr(self.admin(), "list_consumer_groups"):
            return sorted(group.group_id for group in self.admin().list_consumer_groups().result(20).valid)
        return sorted(group.id for group in self.admin().list_groups(timeout=10))

    def op_describe_group(self, command):
        if hasattr(self.admin(), "describe_consumer_groups"):
            found = self.wait(self.admin().describe_consumer_groups([command["group"]]))[command["group"]]
            return {"state": found.state.name.title().replace("_", ""), "members": len(found.members)}
        found = self.admin().list_groups(command["group"], timeout=10)[0]
        return {"state": found.state, "members": len(found.members)}

    def op_delete_group(self, command):
        if not hasattr(self.admin(), "delete_consumer_groups"):
            raise Unsupported("no deleteGroups in this client")
        self.wait(self.admin().delete_consumer_groups([command["group"]]))

    def op_cluster(self, command):
        found = self.admin().list_topics(timeout=10)
        return {"brokers": len(found.brokers), "controller": found.controller_id}


serve(Confluent)
