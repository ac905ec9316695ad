"""Opens AMQP connections and keeps them open: `PORT COUNT`. Says `OPEN n`, ends when standard input does.

Each logs in (ANONYMOUS), opens its connection, and sends an empty frame every ten seconds, as clients do.
"""

import asyncio
import sys

EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"


def frame(kind, code, fields):
    """A frame with a list of fields that are encoded already."""
    body = b"\x00\x53" + bytes([code, 0xC0, 1 + sum(map(len, fields)), len(fields)]) + b"".join(fields)
    return (8 + len(body)).to_bytes(4, "big") + bytes([2, kind, 0, 0]) + body


def text(tag, value):
    return bytes([tag, len(value)]) + value.encode()


async def read_frame(reader):
    head = await reader.readexactly(4)
    return await reader.readexactly(int.from_bytes(head, "big") - 4)


async def opened(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"AMQP\x03\x01\x00\x00" + frame(1, 0x41, [text(0xA3, "ANONYMOUS")]))
    await reader.readexactly(8)
    await read_frame(reader)
    outcome = await read_frame(reader)
    if outcome[6] != 0x44:
        raise ValueError(f"no outcome: {outcome}")
    writer.write(b"AMQP\x00\x01\x00\x00" + frame(0, 0x10, [text(0xA1, f"idle-{number}")]))
    await reader.readexactly(8)
    said = await read_frame(reader)
    if said[6] != 0x10:
        raise ValueError(f"not opened: {said}")
    return writer


async def main(port, count):
    writers = []
    for start in range(0, count, 50):
        writers += await asyncio.gather(*(opened(port, number) for number in range(start, min(start + 50, count))))
    print(f"OPEN {len(writers)}", flush=True)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not ended.done():
        for writer in writers:
            writer.write(EMPTY)
        await asyncio.wait([ended], timeout=10)
    closed = sum(writer.is_closing() for writer in writers)
    print(f"CLOSED {closed}", flush=True)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
