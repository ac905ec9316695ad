"""What lies on the nodes' disks after a clean stop, batch by batch, as history events for A16.

Reads the headers of Kafka's segment files: base offset 8, length 4, leader epoch 4, magic 1, CRC 4, attributes 2, last
offset delta 4. The CRC is the batch's own, checked by whoever reads the records; here replicas are compared.
"""

import struct

HEADER = struct.Struct(">qiibIhi")
CHUNK = 400


def batches(directory):
    """(base, last, crc, epoch) of every batch of a partition's directory, in order."""
    for path in sorted(directory.glob("*.log")):
        with open(path, "rb") as file:
            position = 0
            while True:
                file.seek(position)
                head = file.read(HEADER.size)
                if len(head) < HEADER.size:
                    break
                base, length, epoch, magic, crc, _, delta = HEADER.unpack(head)
                # Zeros after the end of a segment that was preallocated, or rubbish: the end.
                if length < HEADER.size - 12 or magic != 2:
                    break
                yield [base, base + delta, crc, epoch]
                position += 12 + length


def tell(node, data, topics, ends, say):
    """Writes down every replica of `topics` that this node has; answers how many batches."""
    total = 0
    for topic, count in topics.items():
        for partition in range(count):
            directory = data / f"{topic}-{partition}"
            if not directory.is_dir():
                continue
            chunk = []
            fixed = {"node": node, "topic": topic, "p": partition, "end": ends.get((topic, partition))}
            for batch in batches(directory):
                chunk.append(batch)
                total += 1
                if len(chunk) == CHUNK:
                    say("replica", "ok", batches=chunk, **fixed)
                    chunk = []
            say("replica", "ok", batches=chunk, **fixed)
    return total
