/** Live data as server-sent events (api.md 1 "Live data", api.md 3 "Events"). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { readEvents, type EventReader, type SentEvent } from "../../support/service/event-stream.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  eventually,
  expectStatus,
  fields,
  invitePerson,
  makeHookProject,
  makeUserToken,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service);
});
afterAll(() => service.close());

const open = (rest: string, lastEventId?: string, token = service.token): Promise<EventReader> =>
  readEvents(`${service.url}/v1/projects/${pid}${rest}/events`, {
    token,
    ...(lastEventId === undefined ? {} : { lastEventId }),
  });

interface Data {
  readonly type: string;
  readonly at: string;
  readonly project_id: string;
  readonly session_id?: string;
  readonly data: { readonly status?: string };
}
const dataOf = ({ data }: SentEvent): Data => data as Data;
const isStatus =
  (sid: string, status: string) =>
  (event: SentEvent): boolean =>
    event.event === "session.status" &&
    dataOf(event).session_id === sid &&
    dataOf(event).data.status === status;

/** The states in a session's events, in order of arrival. */
const statusesOf = (reader: EventReader, sid: string): readonly unknown[] =>
  reader.events
    .filter((event) => event.event === "session.status" && dataOf(event).session_id === sid)
    .map((event) => dataOf(event).data.status);

it("state the reader's position at once, and no earlier event", async () => {
  await runSession(service, pid);
  const reader = await open("");
  expect([reader.status, reader.headers["content-type"], reader.headers["cache-control"]]).toEqual([
    200,
    "text/event-stream",
    "no-store",
  ]);
  const first = await reader.until(() => true);
  expect([first.event, first.id]).toEqual(["open", expect.any(String)]);
  expect(reader.events).toHaveLength(1);
  reader.close();
});

it("report a session's life in order, each event once, each with its own id", async () => {
  const reader = await open("");
  await reader.until(({ event }) => event === "open");
  const sid = await runSession(service, pid);
  await stopSession(service, pid, sid);
  const last = await reader.until(isStatus(sid, "stopped"));
  expect(statusesOf(reader, sid)).toEqual(["provisioning", "running", "stopped"]);
  expect(dataOf(last)).toMatchObject({
    type: "session.status",
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    project_id: pid,
    session_id: sid,
  });
  const ids = reader.events.filter(({ event }) => event !== "open").map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(reader.events.map(({ event }) => event)).toContain("sandbox.status");
  reader.close();
});

const post = async (rest: string, body: Fields, status: number) =>
  expectStatus(await service.request("POST", `/v1/projects/${pid}/change-requests${rest}`, { body }), status);

it("report a change request that was opened, closed or merged, by its number", async () => {
  const reader = await open("");
  await reader.until(({ event }) => event === "open");
  const proposal = { title: "A feature", head_ref: "feature" };
  await post("", proposal, 201);
  await post("/1/close", {}, 200);
  await post("", proposal, 201);
  await post("/2/merge", {}, 200);
  await reader.until(({ event }) => event === "change_request.merged");
  const told = reader.events.filter(({ event }) => event?.startsWith("change_request."));
  expect(told.map((event) => [event.event, dataOf(event).data])).toEqual([
    ["change_request.opened", { number: 1, status: "open" }],
    ["change_request.closed", { number: 1, status: "closed" }],
    ["change_request.opened", { number: 2, status: "open" }],
    ["change_request.merged", { number: 2, status: "merged" }],
  ]);
  reader.close();
});

it("resume after any event without gaps or repetitions", async () => {
  const whole = await open("");
  await whole.until(({ event }) => event === "open");
  const sid = await runSession(service, pid);
  await stopSession(service, pid, sid);
  await whole.until(isStatus(sid, "stopped"));
  const all = [...whole.events];
  for (const [index, { id }] of all.entries()) {
    const reader = await open("", id ?? "");
    await eventually(() => {
      const rest = reader.events.filter(({ event }) => event !== "open");
      expect(rest.map((event) => event.id)).toEqual(all.slice(index + 1).map((event) => event.id));
    });
    // Wherever the connection breaks, the newest id that was read names what has been read.
    const [first, ...more] = reader.events;
    expect([first?.event, first?.id]).toEqual(["open", id]);
    expect(more.map(({ event }) => event)).not.toContain("reset");
    reader.close();
  }
  whole.close();
});

it("start over, and say so, after an unknown id", async () => {
  const readers = await Promise.all(
    ["x", "999999999999999999.0", "0.0'", "-1.2", "1.2.3"].map((id) => open("", id)),
  );
  await Promise.all(readers.map((reader) => reader.until(({ event }) => event === "reset")));
  const sid = await runSession(service, pid);
  await Promise.all(readers.map((reader) => reader.until(isStatus(sid, "running"))));
  await stopSession(service, pid, sid);
  for (const reader of readers) {
    expect(reader.status).toBe(200);
    reader.close();
  }
});

it("end when the reader's token has ended [T03]", async () => {
  const { id, token } = await makeUserToken(service);
  const reader = await open("", undefined, token);
  await reader.until(({ event }) => event === "open");
  expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
  await eventually(() => expect(reader.ended()).toBe(true));
});

it("refuse a token's hundred-and-first stream, and accept it again when one is closed", async () => {
  const { token } = await makeUserToken(service);
  const readers = await Promise.all(Array.from({ length: 100 }, () => open("", undefined, token)));
  expect(new Set(readers.map(({ status }) => status))).toEqual(new Set([200]));
  const refused = await service.request("GET", `/v1/projects/${pid}/events`, { token });
  expect([refused.status, fields(refused)["code"]]).toEqual([429, "too_many_streams"]);
  readers[0]?.close();
  await eventually(async () => {
    const reader = await open("", undefined, token);
    reader.close();
    expect(reader.status).toBe(200);
  });
  for (const reader of readers) reader.close();
});

it("of all projects reach readers by what their token reaches", async () => {
  const elsewhere = await makeHookProject(service);
  const listen = (token: string) => readEvents(`${service.url}/v1/events`, { token });
  const { token: bound } = await makeUserToken(service, { project_id: elsewhere });
  const [all, one] = [await listen(service.token), await listen(bound)];
  for (const reader of [all, one]) await reader.until(({ event }) => event === "open");
  const [sid, other] = [await runSession(service, pid), await runSession(service, elsewhere)];
  await all.until(isStatus(sid, "running"));
  await all.until(isStatus(other, "running"));
  await one.until(isStatus(other, "running"));
  expect(statusesOf(one, sid)).toEqual([]);
  for (const reader of [all, one]) reader.close();
});

it("of all projects end for an owner of the account who is made a member [T03]", async () => {
  const { id, token } = await invitePerson(service, "Olga", { role: "owner" });
  const reader = await readEvents(`${service.url}/v1/events`, { token });
  await reader.until(({ event }) => event === "open");
  expectStatus(await service.request("PATCH", `/v1/people/${id}`, { body: { role: "member" } }), 200);
  await eventually(() => expect(reader.ended()).toBe(true));
});
