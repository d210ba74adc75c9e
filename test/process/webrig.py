"""octweb as a process, a headless Chromium that is driven over its DevTools protocol, and a plain
WebSocket for what no browser does."""
import asyncio, atexit, base64, http.client, itertools, shutil, threading
import websockets
import numpy as np
from octtest import *

if not os.path.exists(program("octweb")):
    print("ok 1 - octweb # SKIP it is not built: there is no libwebsockets or libturbojpeg")
    sys.exit(0)
M, D = 240, 200
loop = asyncio.new_event_loop()


def wait(coroutine, timeout_s=PATIENCE_S):
    return loop.run_until_complete(asyncio.wait_for(coroutine, timeout_s))


async def connect(url, **more):
    return await websockets.connect(url, max_size=None, ping_interval=None, **more)


@atexit.register
def end_tasks():
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()

    async def end():
        await asyncio.gather(*tasks, return_exceptions=True)
    loop.run_until_complete(end())


class Publisher(threading.Thread):
    """B-scans from the contract's section 5 alone; sent[n]: when, in ms since 1970."""

    def __init__(self, hz=30, shape=(M, D), dtype="uint8", flow=False):
        super().__init__(daemon=True)
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PUB)
        self.socket.linger = 0
        self.endpoint = f"tcp://127.0.0.1:{self.socket.bind_to_random_port('tcp://127.0.0.1')}"
        self.hz, self.sent, self.going, self.flow = hz, {}, True, flow
        lines, depths = shape
        rng = np.random.default_rng(1)
        depth = np.arange(depths)[None, :]
        layer = lambda at, wide: np.exp(-((depth - depths * at) / wide) ** 2)
        value = 15 + 30 * layer(0.3, 5) + 25 * layer(0.55, 9) + rng.normal(0, 3, shape)
        self.value = np.clip(value, 0, 60).astype("<f4")
        self.image = np.round(self.value / 60 * 255).astype("u1") if dtype == "uint8" else self.value
        self.dtype = dtype
        self.start()

    def run(self):
        due = time.monotonic()
        for n in itertools.count():
            if not self.going:
                break
            lines, depths = self.image.shape
            header = {"frame_num": n, "acquisition_id": "t-1", "dtype": self.dtype,
                      "dsize": self.image.nbytes, "dataset": "bscans", "compression": "none",
                      "shape": [str(lines), str(depths)], "time_ns": n, "missing_lines": 0,
                      "lo": 0.0, "hi": 60.0, "volume": n // 240, "bscan": n % 240}
            self.sent[n] = time.time() * 1e3
            self.socket.send_multipart([b"bscan", json.dumps(header).encode(),
                                        self.image.tobytes()])
            if self.flow:  # all of it flows
                header.update(dataset="analysis/flow", quantity="decorrelation", unit="",
                              axes=["line", "depth"], spacing_um=[None, None], whole=True,
                              lo=0.0, hi=1.0, dtype="uint8", dsize=self.image.size)
                self.socket.send_multipart([b"flow", json.dumps(header).encode(),
                                            np.full(self.image.shape, 255, "u1").tobytes()])
            due += 1 / self.hz
            time.sleep(max(0, due - time.monotonic()))
        self.context.destroy()

    def stop(self):
        self.going = False
        self.join()


class Web:
    """A running octweb."""

    def __init__(self, publish, control="tcp://127.0.0.1:1", *more, tokens=None, env=None):
        self.port = free_port()
        self.where = folder(f"web{self.port}")
        self.tokens = tokens or self.where + "/tokens"
        self.base = f"http://127.0.0.1:{self.port}"
        self.settings = settings(publish=dict(endpoint=publish), control=dict(endpoint=control),
                                 web=dict(endpoint=f"127.0.0.1:{self.port}", tokens=self.tokens))
        self.log_path = self.where + "/log"
        self.process = subprocess.Popen([program("octweb"), *self.settings, *map(str, more)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=open(self.log_path, "wb"),
                                        env=dict(os.environ, **(env or {})))
        atexit.register(self.process.kill)
        until(lambda: self.answers(), "octweb to listen")

    def answers(self):
        assert self.process.poll() is None, open(self.log_path).read()
        try:
            return self.get("/")[0] == 200
        except OSError:
            return False

    def get(self, path, method="GET", body=None, **headers):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def link(self, name, role):
        out, _ = ok("allow", "--web", name, "--role", role, *self.settings)
        return out.strip()

    def cookie(self, name="me", role="operate"):
        token = self.link(name, role).split("#")[1]
        status, headers, _ = self.get("/enter", "POST", token, Origin=self.base)
        assert status == 200, status
        return headers["Set-Cookie"].split(";")[0]

    def open(self, cookie=None, origin=None, **more):
        headers = {"Cookie": cookie} if cookie else {}
        return wait(connect(f"ws://127.0.0.1:{self.port}/", subprotocols=["octweb"],
                            extra_headers=headers, origin=origin or self.base, **more))

    def metric(self, name):
        text = self.get("/metrics")[2].decode()
        return float(re.search(rf"^octweb_{name} (\S+)$", text, re.M)[1])

    def rss_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)",
                             open(f"/proc/{self.process.pid}/status").read())[1]) / 1e3

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0, open(self.log_path).read()


HEADER = struct.Struct("<4sHHIIIIIIddQII")


def parse(message):
    """A picture of web/view.h: its header, its JSON and its image."""
    magic, version, kind, serial, form, width, height, lines, depth, lo, hi, frame, n, size = \
        HEADER.unpack_from(message)
    assert magic == b"OCTP" and version == 1 and len(message) == HEADER.size + n + size
    return dict(kind=kind, serial=serial, form=form, width=width, height=height, lines=lines,
                depth=depth, lo=lo, hi=hi, frame=frame, json=json.loads(message[64:64 + n]),
                image=message[64 + n:])


class Looker:
    """A browser that says what it has seen, or not."""

    def __init__(self, web, cookie=None, sees=True, **more):
        self.socket, self.sees = web.open(cookie or web.cookie(), **more), sees

    async def find(self, true):
        while True:
            came = await self.socket.recv()
            message = json.loads(came) if isinstance(came, str) else parse(came)
            if self.sees and ("image" in message or "n" in message):
                await self.socket.send(json.dumps(
                    dict(seen=message["serial"]) if "image" in message
                    else dict(heard=message["n"])))
            if true(message):
                return message

    def next(self, true, timeout_s=PATIENCE_S):
        """The next message of which true() is: a dict, of a picture with its image."""
        return wait(self.find(true), timeout_s)

    def meanwhile(self, take):
        """Goes on, whatever else the test waits for; take() gets each message."""
        return loop.create_task(self.find(lambda m: take(m) and False))

    def say(self, **message):
        wait(self.socket.send(json.dumps(message)))

    def picture(self, kind=0, png=False):
        return self.next(lambda m: m.get("kind") == kind and "image" in m
                         and bool(m["form"] & 256) == png)

    def state(self, true=lambda s: True):
        return self.next(lambda m: "recording" in m and true(m))

    def ends(self, within_s):
        began = time.monotonic()
        try:
            self.next(lambda m: False, within_s)
        except websockets.ConnectionClosed:
            return time.monotonic() - began
        except asyncio.TimeoutError:
            return None

    def close(self):
        with contextlib.suppress(websockets.ConnectionClosed):
            wait(self.socket.close())


class Throttled(threading.Thread):
    """A narrow link to octweb: bytes a second each way, and how long they are under way."""

    def __init__(self, port, rate, delay_s, most=32768):
        super().__init__(daemon=True)
        self.to, self.rate, self.delay_s, self.most = port, rate, delay_s, most
        self.loop, self.port, self.ready = asyncio.new_event_loop(), free_port(), threading.Event()
        self.start()
        assert self.ready.wait(PATIENCE_S)

    def run(self):
        self.loop.run_until_complete(self.serve())
        self.loop.run_forever()

    async def serve(self):
        await asyncio.start_server(self.join_ends, "127.0.0.1", self.port, limit=4096)
        self.ready.set()

    async def join_ends(self, *here):
        there = await asyncio.open_connection("127.0.0.1", self.to, limit=4096)
        await asyncio.gather(self.carry(here[0], there[1]), self.carry(there[0], here[1]))

    async def carry(self, reader, writer):
        on_way, free_s = asyncio.Queue(max(1, self.most // 1024)), 0

        async def deliver():
            while (item := await on_way.get()) is not None:
                await asyncio.sleep(max(0, item[0] - time.monotonic()))
                if not writer.is_closing():
                    writer.write(item[1])
            writer.close()
        end = asyncio.ensure_future(deliver())
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1024):
                free_s = max(free_s, time.monotonic()) + len(data) / self.rate
                await on_way.put((free_s + self.delay_s, data))
                await asyncio.sleep(max(0, free_s - time.monotonic()))
        await on_way.put(None)
        await end


class Chromium:
    """A headless browser with a page of the size of a screen."""

    def __init__(self, width, height, touch=False, *more):
        name = shutil.which("chromium")
        if not name:
            raise Skip("chromium is not installed")
        self.where = folder(f"chromium{width}x{height}-{free_port()}")
        self.process = subprocess.Popen(
            [name, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
             f"--user-data-dir={self.where}", f"--window-size={width},{height}", *more,
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.where + ".log", "wb"), start_new_session=True)
        atexit.register(self.kill)
        ports = self.where + "/DevToolsActivePort"
        until(lambda: os.path.exists(ports) and open(ports).read().count("\n") >= 1, "chromium")
        port = open(ports).read().split("\n")[0]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE_S)
        connection.request("GET", "/json")
        pages = json.load(connection.getresponse())
        url = next(p["webSocketDebuggerUrl"] for p in pages if p["type"] == "page")
        self.socket = wait(connect(url))
        self.number, self.told = 0, []
        self.do("Page.enable")
        self.do("Runtime.enable")
        self.do("Log.enable")
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height,
                deviceScaleFactor=1, mobile=touch)
        self.do("Emulation.setTouchEmulationEnabled", enabled=touch)

    def do(self, method, **params):
        self.number += 1
        wait(self.socket.send(json.dumps(dict(id=self.number, method=method, params=params))))
        while True:
            answer = json.loads(wait(self.socket.recv()))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.told.append(answer)

    def js(self, expression):
        found = self.do("Runtime.evaluate", expression=expression, returnByValue=True,
                        awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def errors(self):
        """What went wrong on the page."""
        self.js("0")
        return [t for t in self.told if t["method"] == "Runtime.exceptionThrown" or
                (t["method"] == "Log.entryAdded" and t["params"]["entry"]["level"] == "error")]

    def go(self, url):
        self.do("Page.navigate", url=url)

    def until(self, expression, what=None):
        return until(lambda: self.js(expression), what or expression)

    def key(self, key, code=0, modifiers=0):
        for kind in "keyDown", "keyUp":
            self.do("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                    modifiers=modifiers)

    def mouse(self, kind, x, y):
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                buttons=1 if kind != "mouseReleased" else 0)

    def touch(self, kind, *places):
        """touchStart, touchMove: where all fingers are; touchEnd: those that are left."""
        self.do("Input.dispatchTouchEvent", type=kind,
                touchPoints=[dict(x=x, y=y, id=i) for i, (x, y) in enumerate(places)])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.do("Page.captureScreenshot")["data"]))

    def close(self):
        wait(self.socket.close())
        self.kill()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
