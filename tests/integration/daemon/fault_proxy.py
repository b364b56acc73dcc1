# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that does to a connection what networks do, driven by lines on its standard input.

    pass            bytes go through (how it begins)
    delay SECONDS   each piece is that late, both ways together; order is kept
    hold            nothing goes through, and nothing is lost: `pass` delivers it (a partition)
    cut             all connections are reset, once
    refuse          as cut, and new connections too are reset, until another line
    tear BYTES      of the next pieces that the server sends, that many bytes come, then a reset;
                    until another line
    split           of each piece the first byte comes, and the rest 1 ms later
    bytes           nothing changes; it answers how many came so far, to the server and from it

It ends with its standard input.

A process of its own: a test that measures must not wait for it."""

import asyncio
import os
import socket
import struct
import subprocess
import sys

PIECE = 65536


class Proxy:
    """What the program does."""

    def __init__(self, port, host):
        self.target, self.host = port, host
        self.mode, self.value = "pass", 0.0
        self.moved = [0, 0]
        self.changed = asyncio.Event()
        self.writers = set()

    async def serve(self):
        server = await asyncio.start_server(self.connection, self.host, 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).decode().split():
            if line[0] == "bytes":
                print(*self.moved, flush=True)
                continue
            self.tell(line[0], float(line[1]) if len(line) > 1 else 0.0)
            print("done", flush=True)
        os._exit(0)  # with its connections as they are: nobody is to hear of cancelled tasks

    def tell(self, mode, value):
        if mode in ("cut", "refuse"):
            for writer in list(self.writers):
                reset(writer)
        if mode != "cut":
            self.mode, self.value = mode, value
        self.changed.set()
        self.changed = asyncio.Event()

    async def connection(self, reader, writer):
        self.writers.add(writer)
        other = None
        try:
            if self.mode == "refuse":
                reset(writer)
                return
            back, other = await asyncio.open_connection("127.0.0.1", self.target)
            self.writers.add(other)
            pumps = [asyncio.ensure_future(self.pump(reader, other, False)),
                     asyncio.ensure_future(self.pump(back, writer, True))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in pumps:
                pump.cancel()
        except OSError:
            pass
        finally:
            for each in (writer, other):
                if each is not None:
                    self.writers.discard(each)
                    each.close()

    async def pump(self, reader, writer, answers):
        """One direction; pieces wait in a queue, so that a delay does not slow the reading."""
        queue = asyncio.Queue()
        deliver = asyncio.ensure_future(self.deliver(queue, writer, answers))
        try:
            while data := await reader.read(PIECE):
                self.moved[answers] += len(data)
                late = self.value / 2 if self.mode == "delay" else 0
                queue.put_nowait((asyncio.get_running_loop().time() + late, data))
            queue.put_nowait((0, b""))
            await deliver
        except OSError:
            pass
        finally:
            deliver.cancel()

    async def deliver(self, queue, writer, answers):
        while True:
            due, data = await queue.get()
            if not data:
                return
            await asyncio.sleep(max(due - asyncio.get_running_loop().time(), 0))
            while self.mode == "hold":
                await self.changed.wait()
            if self.mode == "tear" and answers:
                writer.write(data[:int(self.value)])
                await writer.drain()
                reset(writer)
                return
            if self.mode == "split":
                writer.write(data[:1])
                data = data[1:]
                await asyncio.sleep(0.001)
            writer.write(data)
            await writer.drain()


def reset(writer):
    """Ends a connection with an RST, so that the peer knows at once."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:  # else it has just ended by itself
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class FaultProxy:
    """The test's side: `with FaultProxy(port) as proxy: proxy.tell("delay", 0.2)`.

    It listens on `host`, and connects to that port of loopback."""

    def __init__(self, port, host="127.0.0.1"):
        self.target, self.host = port, host
        self.process = self.port = None

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen([sys.executable, __file__, str(self.target), self.host],
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def tell(self, mode, *value):
        self.process.stdin.write(" ".join(map(str, (mode, *value))) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def bytes(self):
        """How many came so far, to the server and from it."""
        self.process.stdin.write("bytes\n")
        self.process.stdin.flush()
        return tuple(map(int, self.process.stdout.readline().split()))

    @property
    def url(self):
        return f"redis://{self.host}:{self.port}"


if __name__ == "__main__":
    asyncio.run(Proxy(int(sys.argv[1]), sys.argv[2]).serve())
