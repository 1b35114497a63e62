/** Restarts that are refused for what happened to the session or its project meanwhile (api.md 3). */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { rounds } from "../../support/vitest/rings.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({});
  pid = await makeProject(service);
});
afterAll(() => service.close());

const path = (sid: string, project = pid): string => `/v1/projects/${project}/sessions/${sid}`;
const stopped = async (project = pid): Promise<string> => {
  const sid = await runSession(service, project);
  await stopSession(service, project, sid);
  return sid;
};
const activeSessions = async (): Promise<unknown> =>
  (fields(await service.request("GET", "/v1/me"))["account"] as Fields)["active_sessions"];

describe("a restart", () => {
  it("that races a deletion leaves no hidden running session", async () => {
    const statuses = new Set<number>();
    for (let round = 0; round < rounds(2, 20); round += 1) {
      const sid = await stopped();
      const [deletion, ...restarts] = await Promise.all([
        service.request("DELETE", path(sid)),
        ...Array.from({ length: 4 }, () => service.request("POST", `${path(sid)}/restart`)),
      ]);
      expect(deletion?.status).toBe(204);
      for (const { status } of restarts) statuses.add(status);
      // The deletion takes a restart back, or ends its sandbox.
      await eventually(async () => {
        const record = await service.inside(Effect.flatMap(Sessions, ({ get }) => get(sid)));
        expect(record).toMatchObject({ status: "stopped", deletedAt: expect.any(Number) });
      });
    }
    expect([...statuses].filter((status) => ![202, 404, 409].includes(status))).toEqual([]);
    await eventually(async () => expect(await activeSessions()).toBe(0));
  });

  it("takes a body that asks for the saved work, and refuses other fields", async () => {
    const project = pid;
    const sid = await stopped();
    const refused = await service.request("POST", `${path(sid, project)}/restart`, {
      body: { restore_saved: "yes" },
    });
    expect([refused.status, fields(refused)["code"]]).toEqual([400, "invalid_request"]);
    expectStatus(
      await service.request("POST", `${path(sid, project)}/restart`, { body: { restore_saved: true } }),
      202,
    );
  });

  it("of an unknown session is 404", async () => {
    expect((await service.request("POST", `${path(randomUUID())}/restart`)).status).toBe(404);
  });
});
