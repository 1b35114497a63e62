/** What an upstream may answer, and what the client sees of it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OK } from "../support/servers/recording.ts";
import { Front, GET, statusesIn } from "./front.ts";

let front: Front;
beforeEach(async () => {
  front = await Front.start();
});
afterEach(() => front.stop());

describe("an answer that two parsers could read differently", () => {
  it.each([
    ["a bare CR in a header", "X-A: b\rX-Split: yes\r\nContent-Length: 0"],
    ["a bare LF between headers", "X-A: b\nX-Split: yes\r\nContent-Length: 0"],
    ["a NUL in a header", "X-A: b\0c\r\nContent-Length: 0"],
    ["a folded header", "X-A: b\r\n X-Split: yes\r\nContent-Length: 0"],
    ["a length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked"],
    ["two lengths", "Content-Length: 2\r\nContent-Length: 3"],
    ["a length that is none", "Content-Length: -1"],
    ["a coding before chunked", "Transfer-Encoding: gzip, chunked"],
  ])("is no answer: %s [X15, X14]", async (_, head) => {
    front.answers(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n0\r\n\r\n`);
    const answer = await front.ask();
    expect(statusesIn(answer)).toEqual(["502"]);
    expect(answer.split("\r\n\r\n")[0]).not.toMatch(/x-split/i);
    front.answers(OK);
    expect(statusesIn(await front.ask())).toEqual(["200"]);
  });

  it("breaks off at an invalid chunk size [X15]", async () => {
    front.answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n");
    expect(await front.ask()).not.toMatch(/\r\n0\r\n\r\n$/);
  });

  it("never becomes a second answer: bytes after the first are discarded [X15]", async () => {
    front.answers(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsplit`);
    const client = front.client();
    client.send(GET);
    await client.until(({ got }) => got.includes("ok"));
    front.answers(OK);
    client.send("GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const answers = await client.all();
    expect(statusesIn(answers)).toEqual(["200", "200"]);
    expect(answers).not.toContain("split");
  });
});

describe("an informational response before an answer", () => {
  it("is passed on: 102, and the links of 103", async () => {
    front.answers(
      `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Hints\r\nLink: </a>; rel=preload\r\n\r\n${OK}`,
    );
    expect(statusesIn(await front.ask())).toEqual(["102", "103", "200"]);
  });

  it("is not sent to an HTTP/1.0 client, and an unrequested 100 is never passed on", async () => {
    front.answers(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}`);
    expect(statusesIn(await front.ask("GET / HTTP/1.0\r\nHost: x\r\n\r\n"))).toEqual(["200"]);
    expect(statusesIn(await front.ask())).toEqual(["102", "200"]);
  });

  it.each(["100 Continue", "102 Processing", "103 Early Hints\r\nLink: </a>; rel=preload"])(
    "is no answer if it never ends: %s for ever [X15]",
    async (line) => {
      const flood = `HTTP/1.1 ${line}\r\n\r\n`.repeat(1000);
      front.upstream.onBytes = (socket) => {
        const pour = (): void => {
          if (!socket.destroyed) socket.write(flood, pour);
        };
        pour();
      };
      expect(statusesIn(await front.ask()).at(-1)).toBe("502");
    },
  );

  it("is no answer if it switches protocols without a request", async () => {
    front.answers("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    expect(statusesIn(await front.ask())).toEqual(["502"]);
  });
});

describe("an answer without a body", () => {
  it.each([
    ["204 with a length and a body", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nstray"],
    [
      "304 with the length of what it stands for",
      "GET",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    ],
    ["304 with a body", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nstray"],
    ["to HEAD, with a length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
    ["to HEAD, in chunks", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"],
  ])("leaves the connection usable for the next one: %s [X15]", async (_, method, bytes) => {
    front.answers(bytes);
    const client = front.client();
    client.send(`${method} / HTTP/1.1\r\nHost: x\r\n\r\n`);
    await client.until(({ got }) => got.includes("\r\n\r\n"));
    const first = client.got;
    front.answers(OK);
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const answers = await client.all();
    expect([statusesIn(answers).length, answers.includes("stray"), answers.endsWith("\r\n\r\nok")]).toEqual([
      2,
      false,
      true,
    ]);
    if (first.startsWith("HTTP/1.1 204")) expect(first).not.toMatch(/content-length/i);
    else if (!bytes.includes("chunked")) expect(first).toMatch(/content-length: 5/i);
  });
});

describe("an answer whose upstream dies", () => {
  const HEADS = [
    ["a length", "Content-Length: 100\r\n\r\nhalf"],
    ["chunks", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
  ] as const;

  it.each(HEADS)("is broken off, with %s, however the upstream died", async (_, rest) => {
    for (const how of ["end", "reset"] as const) {
      front.answers(`HTTP/1.1 200 OK\r\n${rest}`, how);
      const client = front.client();
      client.send(GET);
      const answer = await client.all();
      expect(answer).not.toMatch(/\r\n0\r\n\r\n$/);
      // The connection is over although the client would have kept it.
      expect(client.ended).not.toBeNull();
    }
  });

  it("is broken off without a length or chunks, when its connection was reset", async () => {
    front.upstream.onBytes = (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\nhalf");
    };
    const client = front.client();
    client.send(GET);
    await client.until(({ got }) => got.includes("half"));
    for (const socket of front.upstream.sockets) socket.resetAndDestroy();
    expect(await client.all()).not.toMatch(/\r\n0\r\n\r\n$/);
  });

  it("is also an error for a client of HTTP/1.0, which treats any end as complete", async () => {
    front.upstream.onBytes = (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    };
    const client = front.client();
    client.send("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    await client.until(({ got }) => got.includes("half"));
    for (const socket of front.upstream.sockets) socket.destroy();
    await client.all();
    expect(client.ended).toBe("error");
  });
});

describe("trailers", () => {
  it("cannot contain what headers cannot contain", async () => {
    const sent = "Trailer: x-sum\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n0\r\n";
    const answer = await front.ask(
      `POST / HTTP/1.1\r\nHost: x\r\n${sent}X-Sum: 7\r\nX-Platform-User-Context: a\r\nX_Platform_User_Context: b\r\nAuthorization: c\r\n\r\n`,
    );
    expect(statusesIn(answer)).toEqual(["200"]);
    const behind = front.upstream.bytes.split("\r\n0\r\n")[1];
    expect(behind?.toLowerCase()).toBe("x-sum: 7\r\n\r\n");
  });
});
