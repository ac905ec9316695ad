"""kafka-python behind the runner's protocol; runs with today's (3.0) and with Debian 12's (2.0)."""

import logging
import os
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from protocol import Client, Digest, Refused, Unsupported, payload, serve, shown

OLD = kafka.__version__.startswith("2.0")
# The broker's version that the client is told to believe in, for what it sent in that broker's days.
AS_OF = {"api_version": tuple(map(int, os.environ["COMPAT_AS_OF"].split(".")))} if "COMPAT_AS_OF" in os.environ else {}
ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}
try:
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    ASSIGNORS["sticky"] = StickyPartitionAssignor
except ImportError:
    pass
try:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyPartitionAssignor
    ASSIGNORS["cooperative"] = CooperativeStickyPartitionAssignor
except ImportError:
    try:
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        ASSIGNORS["cooperative"] = CooperativeStickyAssignor
    except ImportError:
        pass

logging.basicConfig(level=logging.CRITICAL)


class KafkaPython(Client):
    def __init__(self, bootstrap):
        super().__init__(bootstrap)
        self.consumer = None
        self._admin = None

    def admin(self):
        if self._admin is None:
            self._admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, **AS_OF)
        return self._admin

    def error_name(self, error):
        if isinstance(error, Refused):
            return str(error)
        return getattr(error, "message", None) or type(error).__name__

    # Records

    def op_produce(self, command):
        config = command.get("config", {})
        codec = config.get("codec", "none")
        acks = config.get("acks", "all")
        settings = {"acks": acks if acks == "all" else int(acks), "compression_type": None if codec == "none" else codec,
                    "linger_ms": config.get("linger_ms", 5), "max_request_size": config.get("max_bytes", 1048576),
                    "batch_size": config.get("batch_bytes", 16384)}
        if OLD:
            if config.get("idempotent"):
                raise Unsupported("kafka-python 2.0 has no idempotent producer")
            settings["retries"] = 5
        else:
            settings["enable_idempotence"] = config.get("idempotent", False)
            settings["delivery_timeout_ms"] = config.get("delivery_ms", 30000)
            settings["request_timeout_ms"] = min(10000, settings["delivery_timeout_ms"] - 1000)
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, **settings, **AS_OF)
        futures = []
        for record in command["records"]:
            if any(value is None for _, value in record.get("h", [])):
                raise Unsupported("kafka-python cannot send a null header")
            if record.get("k") is None and record.get("v") is None:
                raise Unsupported("kafka-python sends no record without key and value")
            try:
                futures.append(producer.send(
                    command["topic"], value=payload(record.get("v")), key=payload(record.get("k")),
                    headers=[(name, payload(value)) for name, value in record["h"]] if "h" in record else None,
                    partition=record.get("p"), timestamp_ms=record.get("t")))
            except kafka.errors.KafkaError as error:
                futures.append(error)
        results = []
        for future in futures:
            try:
                if isinstance(future, Exception):
                    raise future
                found = future.get(timeout=60)
                results.append([found.partition, -1 if found.offset is None else found.offset])
            except kafka.errors.KafkaError as error:
                results.append(self.error_name(error))
        producer.close(timeout=5)
        return {"results": results}

    def reader(self, command, **more):
        limit = command.get("max_bytes", 1048576)
        settings = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": command.get("reset", "none"),
                    "max_partition_fetch_bytes": limit, **more}
        return KafkaConsumer(bootstrap_servers=self.bootstrap, **settings, **AS_OF)

    def op_fetch(self, command):
        consumer = self.reader(command)
        try:
            start = command.get("from", "earliest")
            partitions = [TopicPartition(command["topic"], number) for number in command["parts"]]
            consumer.assign(partitions)
            if start == "earliest":
                consumer.seek_to_beginning(*partitions)
            elif "off" in start:
                for partition in partitions:
                    consumer.seek(partition, start["off"])
            else:
                found = consumer.offsets_for_times({partition: start["ts"] for partition in partitions})
                ends = consumer.end_offsets(partitions)
                for partition in partitions:
                    consumer.seek(partition, found[partition].offset if found[partition] else ends[partition])
            records, deadline = [], time.monotonic() + command["timeout_ms"] / 1000
            while len(records) < command["count"] and time.monotonic() < deadline:
                for batch in consumer.poll(timeout_ms=200).values():
                    for m in batch:
                        headers = [[name, shown(value)] for name, value in m.headers or []]
                        records.append([m.partition, m.offset, m.timestamp, shown(m.key), shown(m.value), headers])
            return {"recs": records}
        finally:
            consumer.close()

    def op_digest(self, command):
        consumer = self.reader(command)
        try:
            partitions = [TopicPartition(command["topic"], number) for number in command["parts"]]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            digests = {number: Digest() for number in command["parts"]}
            left = {int(p): end for p, end in command["ends"].items() if end > 0}
            deadline = time.monotonic() + command["timeout_ms"] / 1000
            while left and time.monotonic() < deadline:
                for partition, batch in consumer.poll(timeout_ms=200, max_records=10000).items():
                    for m in batch:
                        digests[m.partition].add(m.offset, m.value)
                    if batch[-1].offset + 1 >= left.get(partition.partition, 0):
                        left.pop(partition.partition, None)
            return {p: digest.told() for p, digest in digests.items()}
        finally:
            consumer.close()

    def op_offsets(self, command):
        consumer = self.reader(command)
        try:
            partitions = [TopicPartition(command["topic"], number) for number in command["parts"]]
            if isinstance(command["at"], dict):
                found = consumer.offsets_for_times({partition: command["at"]["ts"] for partition in partitions})
                return {p.partition: o.offset if o else -1 for p, o in found.items()}
            ask = consumer.beginning_offsets if command["at"] == "earliest" else consumer.end_offsets
            return {p.partition: o for p, o in ask(partitions).items()}
        finally:
            consumer.close()

    # Groups

    def op_join(self, command):
        if command["assignor"] not in ASSIGNORS:
            raise Unsupported(f"kafka-python {kafka.__version__} has no {command['assignor']} assignor")
        more = {"group_id": command["group"], "partition_assignment_strategy": [ASSIGNORS[command["assignor"]]],
                "session_timeout_ms": command.get("session_ms", 10000), "heartbeat_interval_ms": 500}
        if command.get("static"):
            if OLD:
                raise Unsupported("kafka-python 2.0 has no static members")
            more["group_instance_id"] = command["static"]
        self.commit_polls = command.get("commit", "poll") == "poll"
        self.consumer = self.reader({**command, "reset": "earliest"}, **more)
        self.consumer.subscribe(command["topics"])
        self.joined = True

    def poll(self):
        batches = self.consumer.poll(timeout_ms=100, max_records=100)
        self.tell_assignment((p.topic, p.partition) for p in self.consumer.assignment())
        records = [[m.topic, m.partition, m.offset, shown(m.value)] for batch in batches.values() for m in batch]
        self.tell_records(records)
        if records and self.commit_polls:
            self.consumer.commit()

    def op_commit(self, command):
        self.consumer.commit()

    def op_leave(self, command):
        self.joined = False
        self.consumer.close()

    def op_committed(self, command):
        consumer = self.reader(command, group_id=command["group"])
        try:
            found = {n: consumer.committed(TopicPartition(command["topic"], n)) for n in command["parts"]}
            return {n: -1 if offset is None else offset for n, offset in found.items()}
        finally:
            consumer.close()

    # Admin

    def op_create_topic(self, command):
        self.admin().create_topics([NewTopic(name=command["name"], num_partitions=command["partitions"],
                                             replication_factor=1, topic_configs=command.get("config", {}))])

    def op_create_partitions(self, command):
        self.admin().create_partitions({command["name"]: NewPartitions(command["partitions"])})

    def op_delete_topic(self, command):
        self.admin().delete_topics([command["name"]])

    def op_list_topics(self, command):
        return sorted(self.admin().list_topics())

    def op_describe_topic(self, command):
        found = self.admin().describe_topics([command["name"]])[0]
        if found.get("error_code"):
            raise Refused(kafka.errors.for_code(found["error_code"]).message)
        pick = lambda entry, new, old: entry[new] if new in entry else entry[old]
        parts = sorted(found["partitions"], key=lambda p: pick(p, "partition_index", "partition"))
        return {"partitions": len(parts), "leaders": [pick(p, "leader_id", "leader") for p in parts],
                "replicas": [pick(p, "replica_nodes", "replicas") for p in parts]}

    def resource(self, command, configs=None):
        kind = ConfigResourceType.TOPIC if command["type"] == "topic" else ConfigResourceType.BROKER
        return ConfigResource(kind, command["name"], configs)

    def op_get_config(self, command):
        if OLD:
            answers = self.admin().describe_configs([self.resource(command)])
            answers = answers if isinstance(answers, list) else [answers]
            return {entry[0]: entry[1] for answer in answers for r in answer.resources for entry in r[4]}
        found = self.admin().describe_configs([self.resource(command)], config_filter="all")
        while not (isinstance(found, dict) and any(isinstance(v, dict) and "value" in v for v in found.values())):
            found = next(iter(found.values())) if isinstance(found, dict) else found[0]
        return {name: entry["value"] for name, entry in found.items()}

    def op_set_config(self, command):
        if command.get("set"):
            answer = self.admin().alter_configs([self.resource(command, command["set"])])
            if OLD:
                answers = answer if isinstance(answer, list) else [answer]
                refused = [entry[0] for one in answers for entry in one.resources if entry[0]]
                if refused:
                    raise Refused(kafka.errors.for_code(refused[0]).message)
            else:
                self.told(answer)
        if command.get("delete"):
            if OLD:
                raise Unsupported("no incrementalAlterConfigs in kafka-python 2.0")
            self.told(self.admin().reset_configs([self.resource(command, command["delete"])]))

    def told(self, answer):
        """kafka-python 3 hands refusals back as text, under resource type and name."""
        for resources in answer.values():
            for result in resources.values():
                if result != "OK":
                    raise Refused(result)

    def op_delete_records(self, command):
        if not hasattr(self.admin(), "delete_records"):
            raise Unsupported("no deleteRecords in this client")
        found = self.admin().delete_records({TopicPartition(command["topic"], int(p)): o for p, o in command["upto"].items()})
        low = lambda entry: entry["low_watermark"] if isinstance(entry, dict) else entry
        return {p.partition: low(entry) for p, entry in found.items()}

    def op_list_groups(self, command):
        if OLD:
            return sorted(name for name, _ in self.admin().list_consumer_groups())
        return sorted(group["group_id"] if isinstance(group, dict) else group[0] for group in self.admin().list_groups())

    def op_describe_group(self, command):
        if OLD:
            found = self.admin().describe_consumer_groups([command["group"]])[0]
            return {"state": found.state, "members": len(found.members)}
        found = self.admin().describe_groups([command["group"]])
        found = found[command["group"]] if isinstance(found, dict) else found[0]
        return {"state": found.get("group_state", found.get("state")), "members": len(found["members"])}

    def op_delete_group(self, command):
        if OLD:
            error = self.admin().delete_consumer_groups([command["group"]])[0][1]
            if error is not kafka.errors.NoError:
                raise error()
            return
        for result in self.admin().delete_groups([command["group"]]).values():
            if result is not kafka.errors.NoError and result != "OK":
                raise Refused(getattr(result, "message", None) or str(result))

    def op_cluster(self, command):
        found = self.admin().describe_cluster()
        return {"brokers": len(found["brokers"]), "controller": found["controller_id"]}


serve(KafkaPython)
