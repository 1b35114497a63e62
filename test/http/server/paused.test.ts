/** A restored copy during its pause (ground/pause.ts). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { deliver, eventually, fields, makeHookProject } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ PLATFORM_RECOVERY_INTERVAL_MS: "200" }, { isPaused: true });
});
afterAll(() => service.close());

it("says so, takes no webhook, and works when the operator lets it go", async () => {
  const pid = await makeHookProject(service);
  const ready = await service.request("GET", "/readyz", { token: null });
  expect([ready.status, fields(ready)["paused"]]).toEqual([200, true]);
  expect(fields(await service.request("GET", "/v1/me"))["paused"]).toBe(true);
  const refused = await deliver(service, `${pid}/push`);
  expect([refused.status, fields(refused)["code"], refused.headers["retry-after"]]).toEqual([
    503,
    "paused",
    expect.any(String),
  ]);
  const hook = { url: "https://receiver.example.org/x", events: ["session.stopped"] };
  const { id } = fields(await service.request("POST", `/v1/projects/${pid}/webhooks`, { body: hook }));
  const tested = await service.request("POST", `/v1/projects/${pid}/webhooks/${String(id)}/test`);
  expect([tested.status, fields(tested)["code"]]).toEqual([503, "paused"]);
  const resumed = await service.request("POST", "/v1/operator/resume", { body: {} });
  expect([resumed.status, resumed.json]).toEqual([200, { was_paused: true }]);
  await eventually(async () => expect((await deliver(service, `${pid}/push`)).status).toBe(202));
  expect(fields(await service.request("GET", "/v1/me"))["paused"]).toBe(false);
  const again = await service.request("POST", "/v1/operator/resume", { body: {} });
  expect(again.json).toEqual({ was_paused: false });
  expect(await service.request("GET", "/v1/audit?action=installation.resumed")).toMatchObject({
    json: { events: [{ outcome: "done" }] },
  });
});
