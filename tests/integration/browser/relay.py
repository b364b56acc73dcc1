# SPDX-License-Identifier: Apache-2.0
"""A TCP relay on a port of its own, which counts what the server sends: what a browser costs."""

import asyncio
import threading

ESTABLISHED = "01"  # in /proc/net/tcp


class Relay:
    """Between a client and HOST:PORT; `received` are bytes from the server, `most_open` connections that
    the client has had open at once."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target = host.strip("[]"), int(port)
        self.received = self.most_open = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        self.server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_):
        self._call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _end(self):
        self.server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass(self, reader, writer, counted):
        while data := await reader.read(1 << 16):
            if counted:
                self.received += len(data)
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    def _open(self):
        """By the kernel's list: of what a client has closed, the relay may not know yet."""
        listening = f":{self.server.sockets[0].getsockname()[1]:04X}"
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file]
        return sum(row[2].endswith(listening) and row[3] == ESTABLISHED for row in rows)

    async def _serve(self, reader, writer):
        self.most_open = max(self.most_open, self._open())
        try:
            from_server, to_server = await asyncio.open_connection(*self.target)
            await asyncio.gather(self._pass(reader, to_server, False),
                                 self._pass(from_server, writer, True))
            to_server.close()
        except OSError:
            pass  # one of the two is gone
        finally:
            writer.close()
