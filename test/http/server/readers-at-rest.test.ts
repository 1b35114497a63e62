/** What readers at rest cost the whole service. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readEvents, type EventReader } from "../../support/service/event-stream.ts";
import { eventually, makeProject, makeUserToken, runSession } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

/** Of one project's events, and of as many conversations as there are sessions. */
const READERS = 200;
const SESSIONS = 10;
/** One token may have a hundred streams open. */
const A_TOKEN = 100;
/** Statements while each connection was checked three times: of the duties, and one look of each tail. */
const STATEMENTS_MAX = 100;
/** The service's part and the test's own part of a connection are in one process. */
const HEAP_MAX = 100 * 1024;

let service: TestService;
let pid = "";
const statements: string[] = [];
beforeAll(async () => {
  service = await startTestService({}, { statement: (text) => void statements.push(text) });
  pid = await makeProject(service);
});
afterAll(() => service.close());

/** The check of all open connections, one statement a second. */
const isCheck = (text: string): boolean => text.includes("held.session");
const checks = (): number => statements.filter(isCheck).length;

const heapUsed = (): number => {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
};

it("is a bounded number of statements for all of them, and bounded memory for each [D11]", async () => {
  const sids: string[] = [];
  for (let number = 0; number < SESSIONS; number += 1)
    sids.push(await runSession(service, pid, { initial_prompt: "Begin" }));
  const tokens = [await makeUserToken(service), await makeUserToken(service)];
  const heapBefore = heapUsed();
  const readers: EventReader[] = [];
  for (let number = 0; number < READERS; number += 1) {
    const sid = sids[number % SESSIONS] ?? "";
    const target = number % 2 === 0 ? "events" : `sessions/${sid}/conversation/events`;
    const { token } = tokens[Math.floor(number / A_TOKEN)] ?? { token: "" };
    readers.push(await readEvents(`${service.url}/v1/projects/${pid}/${target}`, { token }));
  }
  await Promise.all(readers.map((reader) => reader.until(({ event }) => event === "open")));
  expect((heapUsed() - heapBefore) / READERS).toBeLessThan(HEAP_MAX);
  statements.length = 0;
  await eventually(() => expect(checks()).toBeGreaterThanOrEqual(3));
  expect(statements.length).toBeLessThan(STATEMENTS_MAX);
  for (const reader of readers) reader.close();
});
