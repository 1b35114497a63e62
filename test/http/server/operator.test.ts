/** The service itself, for its operator (api.md 9). Who may read it: routes.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DUTY_NAMES } from "../../../src/services/duties.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeAccount,
  makeProject,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const show = async (): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", "/v1/operator"), 200));

describe("the service's state", () => {
  it("names its version, its node, its database and every background duty", async () => {
    const state = await show();
    expect(state).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      node_id: expect.any(String),
      queues: { fires: { waiting: 0, oldest_at: null } },
      ownerless_sessions: 0,
      // Its examination is this process's, and another file of the worker may have made one.
      sandboxes: { provider: "simulated" },
    });
    expect((state["duties"] as Fields[]).map(({ name }) => name)).toEqual(DUTY_NAMES);
  });

  it("counts the sandboxes of the node and the boots of the day", async () => {
    const pid = await makeProject(service);
    await runSession(service, pid);
    await eventually(async () => {
      expect((await show())["boots"]).toMatchObject({
        started: 1,
        failures: [],
        waited: { count: 1 },
        booted: { count: 1 },
      });
    });
  });

  it("lists the actors that moved, each once, with its state and its last event", async () => {
    const sid = await runSession(service, await makeProject(service));
    const actors = (await show())["actors"] as Fields[];
    const own = actors.filter(({ kind, id }) => kind === "session" && id === sid);
    expect(own).toMatchObject([{ state: "running", event: expect.any(String), commands: expect.any(Array) }]);
    expect(actors.map(({ at }) => at)).toEqual(
      actors
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    );
  });

  it("does not count a running session's sandbox as work that waits", async () => {
    await runSession(service, await makeProject(service));
    // The outbox has the watch over the sandbox as long as the sandbox lives.
    await eventually(async () => {
      expect((await show())["queues"]).toMatchObject({ commands: { waiting: 0, oldest_at: null } });
    });
  });

  it("has the result of the last examination of the sandboxes", async () => {
    const found = fields(expectStatus(await service.request("POST", "/v1/operator/doctor"), 200));
    expect(found).toMatchObject({ provider: "simulated", usable: true });
    expect((await show())["sandboxes"]).toMatchObject({ doctor: found });
  });

  it("is shown to the first account alone, and `/v1/me` says so", async () => {
    const token = await makeAccount(service);
    const refused = await service.request("GET", "/v1/operator", { token });
    expect([refused.status, fields(refused)["code"]]).toEqual([403, "forbidden"]);
    expect((await service.request("POST", "/v1/operator/doctor", { token })).status).toBe(403);
    expect((await service.request("GET", "/metrics", { token })).status).toBe(403);
    expect((await service.request("POST", "/v1/operator/resume", { token })).status).toBe(403);
    const operators = await Promise.all(
      [service.token, token].map(
        async (shown) =>
          Object(fields(await service.request("GET", "/v1/me", { token: shown }))["account"])
            .operator as unknown,
      ),
    );
    expect(operators).toEqual([true, false]);
  });
});
