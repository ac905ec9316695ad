"""aiokafka behind the runner's protocol: one event loop, entered anew for each command and poll."""

import asyncio
import logging
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError, for_code

from protocol import Client, Refused, Unsupported, payload, serve, shown

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor}
logging.basicConfig(level=logging.CRITICAL)


class AioKafka(Client):
    def __init__(self, bootstrap):
        super().__init__(bootstrap)
        self.loop = asyncio.new_event_loop()
        self._admin = None
        self.producers, self.open = {}, set()

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def error_name(self, error):
        if isinstance(error, Refused):
            return str(error)
        return getattr(error, "message", None) or type(error).__name__

    def admin(self):
        if self._admin is None:
            async def start():
                admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
                await admin.start()
                return admin
            self._admin = self.run(start())
        return self._admin

    # Records

    def op_produce(self, command):
        return self.run(self.produce(command))

    async def produce(self, command):
        config = command.get("config", {})
        codec, acks = config.get("codec", "none"), config.get("acks", "all")
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, acks=acks if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec, enable_idempotence=config.get("idempotent", False),
            linger_ms=config.get("linger_ms", 5), max_batch_size=config.get("batch_bytes", 16384),
            max_request_size=config.get("max_bytes", 1048576), request_timeout_ms=config.get("delivery_ms", 30000))
        await producer.start()
        try:
            futures = []
            for record in command["records"]:
                options = {}
                if record.get("k") is None and record.get("v") is None:
                    raise Unsupported("aiokafka sends no record without key and value")
                if "h" in record:
                    options["headers"] = [(name, payload(value)) for name, value in record["h"]]
                try:
                    futures.append(await producer.send(
                        command["topic"], value=payload(record.get("v")), key=payload(record.get("k")),
                        partition=record.get("p"), timestamp_ms=record.get("t"), **options))
                except KafkaError as error:
                    futures.append(error)
            results = []
            for future in futures:
                try:
                    if isinstance(future, Exception):
                        raise future
                    found = await asyncio.wait_for(future, 60)
                    results.append([record_partition(found), -1 if found is None else found.offset])
                except KafkaError as error:
                    results.append(self.error_name(error))
            return {"results": results}
        finally:
            await producer.stop()

    def op_txn(self, command):
        return self.run(self.transact(command))

    async def transact(self, command):
        key = command["txid"]
        if command.get("init"):
            self.producers.pop(key, None)
        if key not in self.producers:
            producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=key,
                                        transaction_timeout_ms=command.get("timeout_ms", 60000))
            await producer.start()
            self.producers[key] = producer
            self.open.discard(key)
        producer = self.producers[key]
        if key not in self.open:
            await producer.begin_transaction()
            self.open.add(key)
        results = []
        for future in [await producer.send(command["topic"], value=payload(record.get("v")), key=payload(record.get("k")), partition=record["p"])
                       for record in command["records"]]:
            try:
                found = await asyncio.wait_for(future, 60)
                results.append([found.partition, found.offset])
            except KafkaError as error:
                results.append(self.error_name(error))
        if "offsets" in command:
            wanted = command["offsets"]
            offsets = {TopicPartition(wanted["topic"], int(p)): offset for p, offset in wanted["offsets"].items()}
            await producer.send_offsets_to_transaction(offsets, wanted["group"])
        if command["end"] == "commit":
            await producer.commit_transaction()
        if command["end"] == "abort":
            await producer.abort_transaction()
        if command["end"] != "open":
            self.open.discard(key)
        return {"results": results}

    def reader(self, command, *topics, **more):
        return AIOKafkaConsumer(*topics, bootstrap_servers=self.bootstrap, enable_auto_commit=False,
                                auto_offset_reset=command.get("reset", "none"),
                                isolation_level="read_committed" if command.get("isolation") == "committed" else "read_uncommitted",
                                max_partition_fetch_bytes=command.get("max_bytes", 1048576), **more)

    async def with_reader(self, command, work, **more):
        consumer = self.reader(command, **more)
        await consumer.start()
        try:
            partitions = [TopicPartition(command["topic"], number) for number in command["parts"]]
            return await work(consumer, partitions)
        finally:
            await consumer.stop()

    def op_fetch(self, command):
        async def work(consumer, partitions):
            start = command.get("from", "earliest")
            consumer.assign(partitions)
            if start == "earliest":
                await consumer.seek_to_beginning(*partitions)
            elif "off" in start:
                for partition in partitions:
                    consumer.seek(partition, start["off"])
            else:
                found = await consumer.offsets_for_times({partition: start["ts"] for partition in partitions})
                ends = await consumer.end_offsets(partitions)
                for partition in partitions:
                    consumer.seek(partition, found[partition].offset if found[partition] else ends[partition])
            records, deadline = [], time.monotonic() + command["timeout_ms"] / 1000
            while len(records) < command["count"] and time.monotonic() < deadline:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    for m in batch:
                        headers = [[name, shown(value)] for name, value in m.headers or []]
                        records.append([m.partition, m.offset, m.timestamp, shown(m.key), shown(m.value), headers])
            return {"recs": records}
        return self.run(self.with_reader(command, work))

    def op_offsets(self, command):
        async def work(consumer, partitions):
            if isinstance(command["at"], dict):
                found = await consumer.offsets_for_times({partition: command["at"]["ts"] for partition in partitions})
                return {p.partition: o.offset if o else -1 for p, o in found.items()}
            ask = consumer.beginning_offsets if command["at"] == "earliest" else consumer.end_offsets
            return {p.partition: o for p, o in (await ask(partitions)).items()}
        return self.run(self.with_reader(command, work))

    # Groups

    def op_join(self, command):
        if command["assignor"] not in ASSIGNORS:
            raise Unsupported(f"aiokafka has no {command['assignor']} assignor")
        more = {"group_id": command["group"], "partition_assignment_strategy": [ASSIGNORS[command["assignor"]]],
                "session_timeout_ms": command.get("session_ms", 10000), "heartbeat_interval_ms": 500}
        if command.get("static"):
            more["group_instance_id"] = command["static"]
        self.commit_polls = command.get("commit", "poll") == "poll"

        async def start():
            self.consumer = self.reader({**command, "reset": "earliest"}, *command["topics"], **more)
            await self.consumer.start()
        self.run(start())
        self.joined = True

    def poll(self):
        async def work():
            batches = await self.consumer.getmany(timeout_ms=100, max_records=100)
            self.tell_assignment((p.topic, p.partition) for p in self.consumer.assignment())
            records = [[m.topic, m.partition, m.offset, shown(m.value)] for batch in batches.values() for m in batch]
            self.tell_records(records)
            if records and self.commit_polls:
                await self.consumer.commit()
        self.run(work())

    def op_commit(self, command):
        self.run(self.consumer.commit())

    def op_leave(self, command):
        self.joined = False
        self.run(self.consumer.stop())

    def op_committed(self, command):
        async def work(consumer, partitions):
            found = {p.partition: await consumer.committed(p) for p in partitions}
            return {n: -1 if offset is None else offset for n, offset in found.items()}
        return self.run(self.with_reader(command, work, group_id=command["group"]))

    # Admin

    def told(self, answer, field):
        """aiokafka hands the response back unread: a refusal in it is raised here."""
        for entry in getattr(answer, field):
            code = next(value for value in entry if isinstance(value, int))
            if code:
                raise Refused(for_code(code).message)

    def op_create_topic(self, command):
        topic = NewTopic(command["name"], command["partitions"], 1, topic_configs=command.get("config", {}))
        self.told(self.run(self.admin().create_topics([topic])), "topic_errors")

    def op_create_partitions(self, command):
        self.run(self.admin().create_partitions({command["name"]: NewPartitions(command["partitions"])}))

    def op_delete_topic(self, command):
        self.told(self.run(self.admin().delete_topics([command["name"]])), "topic_error_codes")

    def op_list_topics(self, command):
        return sorted(self.run(self.admin().list_topics()))

    def op_describe_topic(self, command):
        found = self.run(self.admin().describe_topics([command["name"]]))[0]
        if found.get("error_code"):
            raise Refused(for_code(found["error_code"]).message)
        parts = sorted(found["partitions"], key=lambda p: p["partition"])
        return {"partitions": len(parts), "leaders": [p["leader"] for p in parts], "replicas": [p["replicas"] for p in parts]}

    def resource(self, command, configs=None):
        kind = ConfigResourceType.TOPIC if command["type"] == "topic" else ConfigResourceType.BROKER
        return ConfigResource(kind, command["name"], configs)

    def op_get_config(self, command):
        answers = self.run(self.admin().describe_configs([self.resource(command)]))
        return {entry[0]: entry[1] for answer in answers for resource in answer.resources for entry in resource[4]}

    def op_set_config(self, command):
        if command.get("delete"):
            raise Unsupported("no incrementalAlterConfigs in aiokafka")
        answers = self.run(self.admin().alter_configs([self.resource(command, command["set"])]))
        for answer in answers:
            for entry in answer.resources:
                if entry[0]:
                    raise Refused(for_code(entry[0]).message)

    def op_delete_records(self, command):
        wanted = {TopicPartition(command["topic"], int(p)): RecordsToDelete(o) for p, o in command["upto"].items()}
        return {p.partition: low for p, low in self.run(self.admin().delete_records(wanted)).items()}

    def op_list_groups(self, command):
        return sorted(entry[0] for entry in self.run(self.admin().list_consumer_groups()))

    def op_describe_group(self, command):
        answer = self.run(self.admin().describe_consumer_groups([command["group"]]))[0]
        _, _, state, _, _, members = answer.groups[0][:6]
        return {"state": state, "members": len(members)}

    def op_cluster(self, command):
        found = self.run(self.admin().describe_cluster())
        return {"brokers": len(found["brokers"]), "controller": found["controller_id"]}


def record_partition(found):
    return -1 if found is None else found.partition


serve(AioKafka)
