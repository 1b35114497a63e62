/** A session's log (api.md 3): while its sandboxes live, over their ends, and afterwards. */
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readLine, type LogLine } from "../../../src/domain/session/log-line.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { readEvents, type EventReader, type SentEvent } from "../../support/service/event-stream.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  makeUserToken,
  reached,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
let sid = "";
let sandboxId = "";
const readers: EventReader[] = [];

beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
beforeEach(async () => {
  sid = await runSession(service, pid);
  sandboxId = await newestSandbox();
});
afterEach(async () => {
  for (const reader of readers.splice(0)) reader.close();
  service.daemon.log.forget();
  await stopSession(service, pid, sid);
});
afterAll(() => service.close());

const newestSandbox = (): Promise<string> =>
  service.inside(
    Effect.gen(function* () {
      return (yield* (yield* Sandboxes).newest(sid))?.id ?? "";
    }),
  );

const AT = "2026-11-20T06:52:05.045Z";
const written = (seq: number, line: string): string =>
  `${JSON.stringify({ seq, at: AT, event: "output", source: "runtime", line })}\n`;
const numbered = (seq: number, line: string): LogLine => {
  const read = readLine(written(seq, line));
  if (read === null) throw new Error("it is a line of the daemon's");
  return read;
};

/** Lets the sandbox write to its log. */
const write = (text: string, id = sandboxId) =>
  service.inside(Effect.flatMap(SimulatedSandboxes, (sandboxes) => sandboxes.write(id, text)));

const target = (query = "") => `/v1/projects/${pid}/sessions/${sid}/logs${query}`;
const text = async (): Promise<string> =>
  expectStatus(await service.request("GET", target("?follow=0")), 200).text;

const follow = async (lastEventId?: string, token = service.token): Promise<EventReader> => {
  const options = lastEventId === undefined ? { token } : { token, lastEventId };
  const reader = await readEvents(`${service.url}${target()}`, options);
  readers.push(reader);
  return reader;
};

const lineOf = ({ data }: SentEvent): string | undefined => (data as { line?: string }).line;
/** The text of each line that a reader received, and every reset. */
const told = (reader: EventReader): readonly unknown[] =>
  reader.events.filter(({ event }) => event !== "open").map((sent) => lineOf(sent) ?? sent.event);
const says = (line: string) => (event: SentEvent) => lineOf(event) === line;

describe("a session's log as text", () => {
  it("has one line for each entry, with its time and source", async () => {
    await write(
      `{"seq":1,"at":"${AT}","event":"boot","step":"listening","at_ms":45}\n${written(2, "hello")}`,
    );
    expect(await text()).toBe(
      `- sandbox simulated sandbox\n${AT} daemon boot step=listening at_ms=45\n${AT} runtime hello\n`,
    );
  });

  it("contains no control characters of a program, and reports missing lines [P09]", async () => {
    await write(`${written(1, "\u001b[2Jcleared\r\nforged")}${written(5, "later")}`);
    expect((await text()).split("\n").slice(1)).toEqual([
      `${AT} runtime ␛[2Jcleared␍␊forged`,
      `${AT} sandbox [3 lines are missing here]`,
      `${AT} runtime later`,
      "",
    ]);
  });

  it("stays when the sandboxes are gone, boot after boot", async () => {
    await write(written(1, "first boot"));
    await stopSession(service, pid, sid);
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 202);
    await reached(service, pid, sid, "running");
    await write(written(1, "second boot"), await newestSandbox());
    await stopSession(service, pid, sid);
    await eventually(async () =>
      expect((await text()).split("\n").map((line) => line.split(" ").slice(2).join(" "))).toEqual([
        "simulated sandbox",
        "first boot",
        "simulated sandbox",
        "second boot",
        "",
      ]),
    );
  });

  it("is requested with 0 and no other value", async () => {
    for (const query of ["?follow=2", "?follow=", "?follow=no"])
      expect((await service.request("GET", target(query))).status).toBe(400);
  });
});

describe("a session's log as a stream", () => {
  it("returns existing lines, then the daemon's new ones, each line once", async () => {
    await write(`${written(1, "one")}${written(2, "two")}`);
    for (const [index, line] of ["one", "two", "three"].entries())
      service.daemon.log.say(numbered(index + 1, line));
    const reader = await follow();
    expect([reader.status, reader.headers["content-type"]]).toEqual([200, "text/event-stream"]);
    await reader.until(says("three"));
    service.daemon.log.say(numbered(4, "four"));
    const last = await reader.until(says("four"));
    expect(told(reader)).toEqual(["simulated sandbox", "one", "two", "three", "four"]);
    expect(last).toEqual({
      id: `${sandboxId}:4.0`,
      event: "line",
      data: { sandbox_id: sandboxId, at: AT, source: "runtime", line: "four" },
    });
  });

  it("resumes after any line without gaps or repetitions", async () => {
    await write(`${written(1, "one")}node: a warning\n${written(2, "two")}`);
    service.daemon.log.say(numbered(3, "three"));
    const first = await follow();
    await first.until(says("three"));
    const all = told(first);
    for (const [index, { id }] of first.events.filter(({ event }) => event === "line").entries()) {
      const again = await follow(id ?? "");
      const rest = all.slice(index + 1);
      await eventually(() => expect(told(again)).toEqual(rest));
    }
  });

  it("continues after the end of a sandbox with its last lines, and with the next one", async () => {
    await write(written(1, "one"));
    service.daemon.log.say(numbered(1, "one"));
    service.daemon.log.say(numbered(2, "two"));
    const reader = await follow();
    await reader.until(says("two"));
    // The daemon dies in the middle of it; only the provider's record has its and Node's last words.
    await write(`${written(2, "two")}${written(3, "three")}node: out of memory\n`);
    service.daemon.log.forget();
    await stopSession(service, pid, sid);
    await reader.until(says("node: out of memory"));
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 202);
    await reached(service, pid, sid, "running");
    await eventually(() =>
      expect(told(reader)).toEqual([
        "simulated sandbox",
        "one",
        "two",
        "three",
        "node: out of memory",
        "simulated sandbox",
      ]),
    );
    const ids = reader.events.filter(({ event }) => event === "line").map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.at(-1)).toBe(`${await newestSandbox()}:0.1`);
  });

  it("resumes in the kept log, after a line that the daemon had sent", async () => {
    service.daemon.log.say(numbered(1, "one"));
    const reader = await follow();
    const { id } = await reader.until(says("one"));
    reader.close();
    await write(`${written(1, "one")}${written(2, "two")}`);
    await stopSession(service, pid, sid);
    const again = await follow(id ?? "");
    await again.until(says("two"));
    expect(told(again)).toEqual(["two"]);
  });

  it("reports a reset if lines are missing, or if a place is unknown", async () => {
    await write(written(1, "one"));
    for (const number of [1, 2, 9]) service.daemon.log.say(numbered(number, `line ${number}`));
    const reader = await follow();
    await reader.until(says("line 9"));
    expect(told(reader)).toEqual(["simulated sandbox", "one", "line 2", "reset", "line 9"]);
    for (const place of ["nonsense", "01900000-0000-7000-8000-000000000000:7.0"]) {
      const lost = await follow(place);
      await lost.until(says("line 9"));
      expect(told(lost)).toEqual(["reset", "simulated sandbox", "one", "line 2", "reset", "line 9"]);
    }
  });

  it("releases the daemon when its reader leaves", async () => {
    const reader = await follow();
    await eventually(() => expect(service.daemon.log.followers).toBe(1));
    reader.close();
    await eventually(() => expect(service.daemon.log.followers).toBe(0));
  });

  it("ends with the token that opened it [T03]", async () => {
    const made = await makeUserToken(service);
    const reader = await follow(undefined, made.token);
    await reader.until(says("simulated sandbox"));
    expectStatus(await service.request("DELETE", `/v1/tokens/${made.id}`), 204);
    await eventually(() => expect(reader.ended()).toBe(true));
  });

  it("counts towards the streams that a token may have open", async () => {
    const { token } = await makeUserToken(service);
    await Promise.all(Array.from({ length: 100 }, () => follow(undefined, token)));
    const [log, events] = await Promise.all([
      service.request("GET", target(), { token }),
      service.request("GET", `/v1/projects/${pid}/events`, { token }),
    ]);
    for (const refused of [log, events])
      expect([refused.status, fields(refused)["code"]]).toEqual([429, "too_many_streams"]);
    // As text it is no stream.
    expect((await service.request("GET", target("?follow=0"), { token })).status).toBe(200);
  });
});
