/** A boot that fails with arbitrary last bytes of the agent runtime: the session fails, and gives the reason. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  reached,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
afterAll(() => service.close());

const activeSessions = async (): Promise<unknown> =>
  (fields(await service.request("GET", "/v1/me"))["account"] as Fields)["active_sessions"];

it("fails the session with a readable message if the daemon's text contains NUL and half an emoji [I22]", async () => {
  service.daemon.become({ failed: "the runtime ended: \0 no fuel 🚀 cut \ud83d" });
  const answer = await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
  const sid = String(fields(expectStatus(answer, 201))["id"]);
  const { failure } = await reached(service, pid, sid, "failed");
  const message = "the runtime ended:  no fuel 🚀 cut \ufffd";
  expect(failure).toMatchObject({ code: "clone_failed", message });
  expect(await activeSessions()).toBe(0);
  const sandbox = await eventually(async () => {
    const now = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/sandbox`));
    expect(now).toMatchObject({ status: "error", failure: { message } });
    return now;
  });
  // Other files' sessions are in the shared service's log.
  const own = service.logs.filter((line) => line.includes(sid) || line.includes(String(sandbox["id"])));
  expect(own.filter((line) => /work crashed|left undone|cannot be reached/.test(line))).toEqual([]);
  expect(own).not.toEqual([]);
});
