/** Uploads to an upstream: early answers, `Expect`, clients that leave, who waits for which side and how long. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { OK } from "../support/servers/recording.ts";
import { Front, GET, statusesIn, type Client } from "./front.ts";
import { deepTest, onlyDeep } from "../support/vitest/rings.ts";

let front: Front;
afterEach(() => front.stop());

const MIB = 1024 * 1024;
/** What sockets and parsers on the way may hold; the kernel alone buffers up to 10 MiB for a connection on loopback. */
const HELD_MAX = 32 * MIB;
const post = (headers: string, path = "/") => `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
const firstConnection = async () => {
  while (front.upstream.sockets.length === 0) await once(front.upstream.server, "connection");
  const [socket] = front.upstream.sockets;
  if (socket === undefined) throw new Error("a connection came");
  return socket;
};
/** The upstream's connection once bytes of a request are on it. */
const reached = async () => {
  const socket = await firstConnection();
  while (front.upstream.bytes === "") await once(socket, "data");
  return socket;
};
const closed = async (client: Client): Promise<Client> => client.until(({ ended }) => ended !== null);

describe("an upload that is answered early", () => {
  it("gets its whole answer although the upstream hangs up, and the connection is not read for ever", async () => {
    front = await Front.start();
    front.upstream.onBytes = (socket) => {
      socket.end("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig", () => socket.destroy());
    };
    const client = front.client();
    client.send(post("Content-Length: 100000000"));
    await client.until(({ got }) => got.endsWith("\r\n\r\nbig"));
    expect(statusesIn(client.got)).toEqual(["413"]);
    const going = setInterval(() => client.send("x".repeat(1000)), 20);
    await closed(client);
    clearInterval(going);
  });

  deepTest(
    "leaves the connection usable for the next request if the rest of the upload arrives soon",
    async () => {
      front = await Front.start();
      front.upstream.onBytes = (socket) => void socket.end(OK);
      const client = front.client();
      client.send(post("Content-Length: 10"));
      await client.until(({ got }) => got.endsWith("ok"));
      client.send(`0123456789${GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")}`);
      expect(statusesIn(await client.all())).toEqual(["200", "200"]);
    },
  );
});

describe("an upload with Expect: 100-continue", () => {
  const expecting = post("Content-Length: 3\r\nExpect: 100-continue\r\nConnection: close");

  it("gets the upstream's refusal, and its body is not sent", async () => {
    front = await Front.start();
    front.answers("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
    expect(statusesIn(await front.ask(expecting))).toEqual(["417"]);
    expect(front.upstream.bytes).toMatch(/expect: 100-continue[^]*\r\n\r\n$/i);
  });

  deepTest(
    "gets the upstream's 100 Continue once, however often it is sent, and then the answer",
    async () => {
      front = await Front.start();
      front.upstream.onBytes = (socket, soFar) => {
        socket.write(soFar.endsWith("abc") ? OK : "HTTP/1.1 100 Continue\r\n\r\n".repeat(3));
      };
      const client = front.client();
      client.send(expecting);
      await client.until(({ got }) => got !== "");
      client.send("abc");
      expect(statusesIn(await client.all())).toEqual(["100", "200"]);
    },
  );

  deepTest("gets an error if nothing listens", async () => {
    const gone = await Front.start();
    const { port } = gone.upstream;
    await gone.stop();
    front = await Front.start({ port });
    expect(statusesIn(await front.ask(expecting))).toEqual(["502"]);
  });
});

onlyDeep(() => {
  describe("a client that leaves ends its request", () => {
    const phases: readonly (readonly [string, string, string])[] = [
      ["before the answer", GET, ""],
      ["amid the answer", GET, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"],
      ["amid its upload", `${post("Content-Length: 9")}half`, ""],
      ["amid chunks", `${post("Transfer-Encoding: chunked")}4\r\nhalf\r\n`, ""],
      [
        "amid upload and answer",
        `${post("Content-Length: 9")}half`,
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
      ],
      ["before it may send", post("Content-Length: 9\r\nExpect: 100-continue"), ""],
      [
        "amid a handshake",
        GET.replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
        "",
      ],
    ];
    it.each(phases)("%s, by a reset, an end, or half an end", async (_, sent, answered) => {
      front = await Front.start();
      for (const leave of ["resetAndDestroy", "destroy", "end"] as const) {
        front.upstream.onBytes = (socket) => socket.write(answered);
        front.upstream.sockets.length = 0;
        front.upstream.connections.length = 0;
        const client = front.client();
        client.send(sent);
        const socket = await reached();
        if (answered !== "") await client.until(({ got }) => got.includes("half"));
        const left = once(socket, "close");
        client.socket[leave]();
        await left;
      }
    });
  });
});

describe("deadlines", () => {
  it("a silent upstream is answered with 504, once, without a retry [X16]", async () => {
    front = await Front.start({ answerMs: 100 });
    front.upstream.onBytes = () => undefined;
    const answer = await front.ask();
    expect([statusesIn(answer), answer.includes('"upstream_timeout"')]).toEqual([["504"], true]);
    expect(answer).not.toMatch(/\.ts|\bat \S+:\d+/);
    expect(front.upstream.connections).toHaveLength(1);
    expect(
      statusesIn(await front.ask(post("Content-Length: 3\r\nExpect: 100-continue\r\nConnection: close"))),
    ).toEqual(["504"]);
  });

  deepTest("an upstream that does not accept the connection in time is answered with 504 [X16]", async () => {
    // Listens and never takes a connection: once its short queue is full, the next ones hang.
    const program = `const s = require("net").createServer(); s.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      require("fs").writeSync(1, s.address().port + "\\n"); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); })`;
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const [line] = (await once(child.stdout, "data")) as [Buffer];
      const port = Number(line.toString());
      const filling = Array.from({ length: 8 }, () =>
        connect(port, "127.0.0.1").on("error", () => undefined),
      );
      await Promise.race(filling.map((socket) => once(socket, "connect")));
      front = await Front.start({ port, connectMs: 100 });
      expect(statusesIn(await front.ask())).toEqual(["504"]);
      for (const socket of filling) socket.destroy();
    } finally {
      child.kill("SIGKILL");
    }
  });

  deepTest("a body that stops arriving is answered with 408, and the upstream's request ends", async () => {
    front = await Front.start({ bodyMs: 100 });
    const client = front.client();
    front.upstream.onBytes = () => undefined;
    client.send(`${post("Content-Length: 9")}half`);
    const gone = once(await reached(), "close");
    const answer = await client.all();
    expect([statusesIn(answer), answer.includes('"body_timeout"')]).toEqual([["408"], true]);
    await gone;
  });

  deepTest("a body that the upstream does not read does not count as late", async () => {
    front = await Front.start({ bodyMs: 100 });
    const client = front.client();
    client.send(post(`Content-Length: ${HELD_MAX}`));
    const socket = await reached();
    front.upstream.onBytes = () => undefined;
    socket.pause();
    client.socket.write(Buffer.alloc(HELD_MAX));
    // Ten limits pass while nothing moves; each is measured by the answer to another request that is late.
    const late = Array.from({ length: 10 }, (_, index) => index);
    for (const _ of late) {
      const slow = front.client();
      slow.send(`${post("Content-Length: 9", "/late")}half`);
      expect(statusesIn(await slow.all())).toEqual(["408"]);
    }
    expect(client.ended).toBeNull();
    front.upstream.onBytes = () => undefined;
    let came = 0;
    socket.on("data", (chunk: Buffer) => {
      came += chunk.length;
      if (came >= HELD_MAX - MIB) socket.write(OK);
    });
    socket.resume();
    await client.until(({ got }) => got.includes("ok"));
  });

  deepTest("an answer that has begun has no time limit", async () => {
    front = await Front.start({ answerMs: 100, bodyMs: 100 });
    front.upstream.onBytes = (socket, soFar) => {
      if (!soFar.includes("/late"))
        socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    };
    const client = front.client();
    client.send(GET);
    await client.until(({ got }) => got.includes("\r\n\r\n"));
    const [stream] = front.upstream.sockets;
    for (let round = 0; round < 5; round += 1) {
      expect(
        statusesIn(await front.ask("GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")),
      ).toEqual(["504"]);
    }
    stream?.write("data: 1\n\n");
    await client.until(({ got }) => got.includes("data: 1"));
  });
});

describe("back-pressure", () => {
  deepTest("an endless answer is not buffered while its client does not read [X15]", async () => {
    front = await Front.start();
    const block = Buffer.alloc(64 * 1024, "x");
    let poured = 0;
    front.upstream.onBytes = (socket, soFar) => {
      if (soFar.includes("/small")) return void socket.write(OK);
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const chunk = Buffer.concat([Buffer.from("10000\r\n"), block, Buffer.from("\r\n")]);
      const pour = (): void => {
        while (!socket.destroyed && socket.write(chunk)) poured += block.length;
        poured += block.length;
        if (!socket.destroyed) socket.once("drain", pour);
      };
      pour();
    };
    const client = front.client({ reads: false });
    client.send(GET);
    await firstConnection();
    // All bytes that could flow have flowed when no more arrive during so many other requests.
    let [before, still] = [-1, 0];
    while (still < 50) {
      still = poured === before ? still + 1 : 0;
      before = poured;
      await front.ask("GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
    expect(poured).toBeGreaterThan(0);
    expect(poured).toBeLessThan(HELD_MAX);
    // It goes on as soon as it is read, and on.
    client.read();
    await client.until(({ bytes }) => bytes > 10 * HELD_MAX);
  });

  it("an upload of 100 MiB arrives whole, and is not buffered while the upstream does not read it [X15]", async () => {
    front = await Front.start();
    front.upstream.onBytes = (socket, soFar) => {
      if (soFar.includes("/small")) socket.write(OK);
    };
    const whole = 100 * MIB;
    const client = front.client();
    client.send(post(`Content-Length: ${whole}`, "/upload"));
    const upload = await reached();
    upload.removeAllListeners("data").pause();
    const block = Buffer.alloc(MIB);
    const sentHash = createHash("sha256");
    let sent = 0;
    const pour = (): void => {
      while (sent < whole) {
        block.fill((sent / MIB) & 255);
        sentHash.update(block);
        sent += MIB;
        if (!client.socket.write(Buffer.from(block))) return void client.socket.once("drain", pour);
      }
    };
    pour();
    let [before, still] = [-1, 0];
    while (still < 50) {
      still = sent === before ? still + 1 : 0;
      before = sent;
      await front.ask("GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
    expect(sent).toBeLessThan(HELD_MAX);
    const hash = createHash("sha256");
    let came = 0;
    upload.on("data", (chunk: Buffer) => {
      hash.update(chunk);
      came += chunk.length;
      if (came === whole) upload.write(OK);
    });
    upload.resume();
    await client.until(({ got }) => got.includes("ok"));
    expect(hash.digest("hex")).toBe(sentHash.digest("hex"));
  });
});
