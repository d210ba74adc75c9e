#!/usr/bin/python3
"""octweb as a program: who comes in, what is sent, and what no attacker gets. The publisher is
written from the contract, section 5; docs/web.md says what is sent to browsers."""
import io
from PIL import Image
from webrig import *

publisher = Publisher()
web = Web(publisher.endpoint)


def refused(**more):
    """The HTTP status, or the error, with which no WebSocket opens."""
    try:
        wait(web.open(**more).close())
    except Exception as why:
        return getattr(why, "status_code", type(why).__name__)
    return None


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture["image"])))


@case
def without_a_token():
    """without a token there are pages, and no picture"""
    status, headers, body = web.get("/")
    assert status == 200 and b"octweb" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy, dict(headers)
    assert f"connect-src 'self' ws://127.0.0.1:{web.port};" in policy and "ws:;" not in policy
    assert "ws" not in web.get("/", Host="evil.example")[1]["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] and headers["referrer-policy"] == "no-referrer"
    assert b"http://" not in body and b"https://" not in body  # nothing of others
    for path in "/main.js", "/picture.js", "/measure.js", "/style.css", "/icon.svg":
        assert web.get(path)[0] == 200, path
    assert refused() and refused(cookie="octweb=" + 64 * "0") and refused(cookie="octweb=x")
    assert web.metric("refused_token_total") >= 3


@case
def links():
    """a link is good once; a replayed, an expired and an invented one are not"""
    token = web.link("one", "look").split("#")[1]
    text = open(web.tokens).read()
    assert token not in text and text.startswith("one look link "), text
    assert os.stat(web.tokens).st_mode & 0o777 == 0o600
    assert web.get("/enter", "POST", token)[0] == 403  # no Origin
    assert web.get("/enter", "POST", token, Origin="http://evil.example")[0] == 403
    status, headers, _ = web.get("/enter", "POST", token, Origin=web.base)
    cookie = headers["Set-Cookie"]
    assert status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
    assert cookie.startswith(f"octweb{web.port}="), cookie  # another octweb's stays
    assert "one look session " in open(web.tokens).read()
    assert web.get("/enter", "POST", token, Origin=web.base)[0] == 403
    assert web.get("/enter", "POST", 64 * "a", Origin=web.base)[0] == 403
    late = web.link("late", "look").split("#")[1]
    text = open(web.tokens).read()
    line = next(row for row in text.splitlines() if row.startswith("late"))
    with open(web.tokens, "w") as file:
        file.write(text.replace(line, line.rsplit(" ", 1)[0] + f" {int(time.time()) - 1}"))
    assert web.get("/enter", "POST", late, Origin=web.base)[0] == 403


@case
def guesses():
    """who guesses is stopped for a while; a good link of the same address is taken all the same"""
    token = web.link("guessed", "look").split("#")[1]
    wrong = lambda: web.get("/enter", "POST", os.urandom(32).hex(), Origin=web.base)[0]
    time.sleep(10.5)  # those of other cases are forgotten
    assert [wrong() for _ in range(14)] == 10 * [403] + 4 * [429]
    assert web.get("/enter", "POST", token, Origin=web.base)[0] == 200
    assert wrong() == 429
    time.sleep(10.5)
    assert wrong() == 403


@case
def pipelined():
    """requests one behind another are answered in their order, a login among them"""
    token = web.link("piped", "look").split("#")[1]
    host = f"Host: 127.0.0.1:{web.port}\r\n"
    post = f"POST /enter HTTP/1.1\r\n{host}Origin: {web.base}\r\nContent-Length: 64\r\n\r\n"
    with socket.create_connection(("127.0.0.1", web.port)) as both:
        both.sendall(f"{post}{token}GET /icon.svg HTTP/1.1\r\n{host}\r\n".encode())
        both.settimeout(PATIENCE_S)
        came = b""
        while b"</svg>" not in came:
            part = both.recv(65536)
            assert part, came
            came += part
    assert came.index(b"200") < came.index(b"set-cookie:") < came.index(b"image/svg"), came


@case
def broken_file():
    """a file of tokens that cannot be read lets nobody in, and is told of; mended, it does again"""
    cookie = web.cookie("file")
    text = open(web.tokens).read()
    with open(web.tokens, "a") as file:
        file.write("file operate session\n")
    until(lambda: "nobody is let in" in open(web.log_path).read(), "a word in the log")
    assert refused(cookie=cookie)
    status, out, err = run("octctl", "allow", "--web", "x", "--role", "look", *web.settings)
    assert status == 1 and "no line of a file of tokens" in err and out == "", err
    with open(web.tokens, "w") as file:
        file.write(text)
    until(lambda: refused(cookie=cookie) is None, "the cookie to be known again")
    assert web.cookie("other")


@case
def other_names():
    """pages of other origins and names that only lead here get nothing"""
    cookie = web.cookie("host")
    assert web.get("/", Host="evil.example:%d" % web.port)[0] == 403
    assert web.get("/", Host="127.0.0.1:1")[0] == 403
    status, headers, _ = web.get("/", Host=f"127.0.0.1:{web.port}; script-src *")
    assert status == 403 and "*" not in headers["content-security-policy"]
    assert web.get("/", Host="localhost:%d" % web.port)[0] == 200
    assert refused(cookie=cookie, origin="http://evil.example")
    assert refused(cookie=cookie, origin=f"https://127.0.0.1:{web.port}")
    assert refused(cookie=cookie) is None
    assert web.metric("refused_host_total") >= 4


@case
def the_picture():
    """what is sent is the B-scan: nearly as JPEG, to the last bit as PNG"""
    looker = Looker(web)
    hello = looker.next(lambda m: "hello" in m)["hello"]
    assert hello["role"] == "operate" and ["R", "start recording, or stop it", 1] in hello["help"]
    jpeg = looker.picture()
    assert (jpeg["lines"], jpeg["depth"], jpeg["lo"], jpeg["hi"]) == (M, D, 0, 60), jpeg
    off = lambda: np.abs(pixels(looker.picture()).astype(int) - publisher.image.T)
    until(lambda: off().mean() < 6, "the best picture")
    assert jpeg["form"] == 0 and off().max() < 60, off().max()
    looker.say(freeze=True)
    png = looker.picture(png=True)
    assert (pixels(png) == publisher.image.T).all()
    frozen = png["frame"]
    time.sleep(0.5)
    looker.say(freeze=False)
    assert looker.picture()["frame"] > frozen + 5
    looker.close()


@case
def whole_ones():
    """whole pictures are encoded for all who ask, no more than five a second"""
    lookers = [Looker(web, web.cookie(f"whole{i}", "look")) for i in range(8)]
    began, serials = time.monotonic(), []
    for looker in lookers:
        looker.say(freeze=True)
        time.sleep(0.05)
    for looker in lookers:
        serials.append(looker.picture(png=True)["serial"])
    took_s = time.monotonic() - began
    assert len(set(serials)) <= took_s / 0.2 + 2 and len(set(serials)) < 6, (serials, took_s)
    for looker in lookers:
        looker.close()


@case
def floats():
    """floating point values come within a 65,000th of their range"""
    other = Publisher(dtype="float")
    floating = Web(other.endpoint)
    looker = Looker(floating)
    looker.say(freeze=True)
    png = looker.picture(png=True)
    rgb = pixels(png).astype(int)
    level = rgb[..., 0] * 256 + rgb[..., 1]
    value = png["lo"] + (level - 1) / 65534 * (png["hi"] - png["lo"])
    assert png["form"] & 255 == 2 and np.abs(value - other.value.T).max() < 60 / 65534
    assert png["json"]["grey"] == [0, 60]
    looker.close()
    floating.stop()
    other.stop()


@case
def slow_readers():
    """who does not say what it has seen gets two pictures and no backlog; others get theirs"""
    cookie = web.cookie("slow")
    deaf, quick = Looker(web, cookie, sees=False), Looker(web, cookie)
    first = [deaf.picture() for _ in range(2)]
    try:
        deaf.next(lambda m: "image" in m, 1)
        raise AssertionError("a third picture")
    except asyncio.TimeoutError:
        pass
    frames = [quick.picture()["frame"] for _ in range(10)]
    assert frames == sorted(frames) and frames[-1] > first[-1]["frame"] + 10
    deaf.say(seen=first[0]["serial"])
    deaf.say(seen=first[1]["serial"])
    assert deaf.picture()["width"] <= first[0]["width"]
    deaf.close()
    quick.close()


@case
def narrow_link():
    """by 1 Mbit/s and 200 ms pictures are no older than a second, and others' are as good as ever"""
    large = Publisher(shape=(512, 512))
    other = Web(large.endpoint)
    narrow = Throttled(other.port, 125_000, 0.1)
    far = Looker(other, host="127.0.0.1", port=narrow.port)
    near = Looker(other, other.cookie("near"))
    widths, ages, began = [], [], time.monotonic()
    task = near.meanwhile(lambda m: "image" in m and widths.append(m["width"]))
    while time.monotonic() - began < 20:
        picture = far.picture()
        if time.monotonic() - began > 4:
            ages.append(time.time() * 1e3 - large.sent[picture["frame"]])
    seen(f"{len(ages) / 16:.1f} a second, {np.median(ages):.0f} ms old, {max(ages):.0f} at most, "
         f"{picture['width']} pixels wide")
    assert max(ages) < 1000 and len(ages) > 20
    # Under a sanitizer the near one waits for a processor.
    assert SLOW or (len(widths) > 300 and np.median(widths[100:]) == 512), widths[::20]
    task.cancel()
    for looker in far, near:
        looker.close()
    other.stop()
    large.stop()


@case
def no_reader():
    """one that reads nothing at all keeps no memory, and is gone after a while"""
    before = web.rss_mb()
    silent = [web.open(web.cookie(f"silent{i}"), max_queue=1) for i in range(3)]
    for socket in silent:
        socket.transport.pause_reading()
    time.sleep(3)
    assert web.rss_mb() < before + 40, (before, web.rss_mb())
    for socket in silent:
        socket.transport.abort()


@case
def messages():
    """messages that are none end the connection, and nothing else"""
    cookie = web.cookie("bad")
    for text in ("{", "[]", "7", "{}" * 2, "\0", '{"open":"/etc/passwd"}', '{"seen":"x"}x',
                 '{"open":"../../etc/passwd"}', '{"open":"..%2f"}', "[" * 900, b"binary",
                 "x" * 100_000):
        looker = Looker(web, cookie)
        wait(looker.socket.send(text))
        assert looker.ends(10) is not None, text[:40]
    looker = Looker(web, cookie)
    for _ in range(400):  # a flood
        with contextlib.suppress(websockets.ConnectionClosed):
            looker.say(list=False)
    assert looker.ends(10) is not None
    looker = Looker(web, cookie)
    for text in ('{"go":1e300}', '{"go":-1}', '{"key":""}', '{"key":"Q"}', '{"seen":4e9}',
                 '{"pseudonym":"a\\u0001b"}', '{"list":true}', '{"line":1}', '{"live":true}'):
        wait(looker.socket.send(text))
    assert looker.picture()["frame"] > 0
    looker.close()


@case
def paths():
    """no path leads anywhere, and nothing but a login is posted"""
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/tokens", "/main.js/..",
                 "/index.html", "/a" * 1500):
        try:
            status, _, body = web.get(path)
            assert status in (400, 403, 404, 414, 431) or body == web.get("/")[2], path
        except (http.client.HTTPException, ConnectionError):
            pass  # the connection was cut
    for body in b"", b"x" * 63, b"x" * 65, b"x" * 1_000_000:
        try:
            status = web.get("/enter", "POST", body, Origin=web.base)[0]
            assert status in (400, 403, 413), (len(body), status)
        except (http.client.HTTPException, ConnectionError):
            pass
    assert web.get("/", "DELETE")[0] in (403, 404, 405)
    assert web.get("/")[0] == 200


@case
def roles():
    """who may only look asks octd for nothing"""
    looker = Looker(web, web.cookie("guest", "look"))
    before = web.metric("actions_total")
    for message in dict(key="R"), dict(key="Ctrl+R"), dict(key="I"), dict(pseudonym="P1"):
        looker.say(**message)
        assert "look" in looker.next(lambda m: "refused" in m)["refused"]
    assert web.metric("refused_role_total") >= 4 and web.metric("actions_total") == before
    looker.close()
    wrong = Looker(web, web.cookie("other", "operate"))
    for whom in dict(), dict(of="", was="P-9"), dict(of="a.h5", was=""):
        wrong.say(pseudonym="P1", **whom)
        assert "typed for another" in wrong.next(lambda m: "refused" in m)["refused"]
    wrong.close()


@case
def another_role():
    """another role for a name takes the one before away"""
    looker = Looker(web, web.cookie("anna", "operate"))
    looker.picture()
    cookie = web.cookie("anna", "look")
    assert looker.ends(PATIENCE_S) is not None
    again = Looker(web, cookie)
    again.say(key="R")
    assert "look" in again.next(lambda m: "refused" in m)["refused"]
    again.close()


@case
def removal():
    """a name that is taken out is out within a second, and its cookie is of no use"""
    cookie = web.cookie("gone")
    looker = Looker(web, cookie)
    looker.picture()
    stays = Looker(web, web.cookie("stays"))
    out, _ = ok("allow", "--web", "gone", "--role", "none", *web.settings)
    assert out == "gone is out\n"
    took_s = looker.ends(PATIENCE_S)
    assert took_s is not None and took_s < (5 if SLOW else 2), took_s
    seen(f"out after {took_s * 1e3:.0f} ms")
    assert refused(cookie=cookie)
    stays.picture()
    stays.close()


def few():
    try:
        return web.metric("connections") < 60
    except (OSError, http.client.HTTPException):
        return False  # there is no room for who asks


@case
def crowd():
    """a thousand connections that say nothing keep nobody out for long, and no memory"""
    looker = Looker(web, web.cookie("crowd"))
    before = web.rss_mb()
    with Crowd(f"tcp://127.0.0.1:{web.port}", 1000):
        frames = [looker.picture()["frame"] for _ in range(10)]
        assert frames == sorted(frames)
        began = time.monotonic()
        until(few, "those that say nothing to be cut")
        seen(f"room again after {time.monotonic() - began:.1f} s")
        assert web.rss_mb() < before + (300 if SLOW else 60), (before, web.rss_mb())
    assert web.metric("refused_connections_total") > 500
    looker = Looker(web, web.cookie("later"))
    half = socket.create_connection(("127.0.0.1", web.port))  # a slow writer
    half.sendall(b"GET / HTTP/1.1\r\nHo")
    half.settimeout(PATIENCE_S)
    assert half.recv(1000).startswith((b"", b"HTTP/1.1 4"))
    looker.picture()
    looker.close()


@case
def starts():
    """it says what to set where it may not listen, and makes a certificate where there is none"""
    status, _, err = run("octweb", "--set", "web.endpoint=0.0.0.0:8430")
    assert status == 2 and "web.certificate" in err and err.count("\n") == 1, err
    status, _, err = run("octweb", "--set", "web.endpoint=nonsense")
    assert status == 2 and "ADDRESS:PORT" in err, err
    status, _, err = run("octweb", *web.settings)
    assert status == 1 and "in use" in err, err
    cert, key = at("web.crt"), at("web.key")
    log = at("tls.log")
    port = free_port()
    tls = subprocess.Popen(
        [program("octweb"), *settings(
            publish=dict(endpoint=publisher.endpoint), control=dict(endpoint="tcp://127.0.0.1:1"),
            web=dict(endpoint=f"0.0.0.0:{port}", certificate=cert, certificate_key=key,
                     tokens=at("tls-tokens"), names="octd.lab, eye, [fd00::8], 192.0.2.7"))],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(log, "wb"))
    try:
        until(lambda: "https://" in open(log).read(), "octweb by TLS")
        said = re.search("fingerprint ([0-9A-F:]{95})", open(log).read())[1]
        import hashlib, ssl
        common = settings(web=dict(endpoint=f"localhost:{port}", certificate=cert,
                                   certificate_key=key, tokens=at("tls-tokens")))
        link = ok("allow", "--web", "tls", "--role", "look", *common)[0].strip()
        assert link.startswith(f"https://localhost:{port}/#"), link
        names = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", cert],
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        for name in ("DNS:octd.lab,", "DNS:eye,", "IP Address:FD00:0:0:0:0:0:0:8",
                     "IP Address:192.0.2.7"):
            assert name in names, names
        context = ssl.create_default_context(cafile=cert)
        with socket.create_connection(("127.0.0.1", port)) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as wrapped:
            sum_ = hashlib.sha256(wrapped.getpeercert(True)).hexdigest().upper()
            wrapped.sendall(f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            assert wrapped.recv(100).startswith(b"HTTP/1.1 200")
        assert said.replace(":", "") == sum_
        secure = http.client.HTTPSConnection("localhost", port, context=context)
        secure.request("POST", "/enter", link.split("#")[1],
                       {"Origin": f"https://localhost:{port}"})
        cookie = secure.getresponse().headers["Set-Cookie"]
        assert "; Secure" in cookie and cookie.startswith(f"__Host-octweb{port}="), cookie
        there = wait(connect(f"wss://localhost:{port}/", ssl=context, subprotocols=["octweb"],
                             origin=f"https://localhost:{port}",
                             extra_headers={"Cookie": cookie.split(";")[0]}))
        while isinstance(wait(there.recv()), str):
            pass  # until a picture comes
        wait(there.close())
        assert os.stat(key).st_mode & 0o777 == 0o600
    finally:
        tls.terminate()
        assert tls.wait(PATIENCE_S) == 0


@case
def by_octctl():
    """octctl web starts it with its own configuration, and prints a link that lets in"""
    port, tokens = free_port(), at("octctl-tokens")
    process = subprocess.Popen(
        [program("octctl"), "web", *settings(
            publish=dict(endpoint=publisher.endpoint), control=dict(endpoint="tcp://127.0.0.1:1"),
            web=dict(endpoint=f"127.0.0.1:{port}", tokens=tokens))],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(at("octctl.log"), "wb"))
    atexit.register(process.kill)
    link = process.stdout.readline().decode().strip()
    base = f"http://127.0.0.1:{port}"
    assert link.startswith(base + "/#"), link
    other = Web.__new__(Web)
    other.port, other.base, other.process, other.log_path = port, base, process, at("octctl.log")
    until(other.answers, "octweb to listen")
    status, headers, _ = other.get("/enter", "POST", link.split("#")[1], Origin=base)
    assert status == 200
    looker = Looker(other, headers["Set-Cookie"].split(";")[0])
    assert looker.picture()["lines"] == M
    looker.close()
    other.stop()


@case
def it_ends():
    """it ends when it is told to, with browsers that look"""
    looker = Looker(web, web.cookie("last"))
    looker.picture()
    web.stop()
    publisher.stop()


main()
