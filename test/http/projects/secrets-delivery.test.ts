/** A changed secret reaches the project's running sessions after their turn (api.md 5), through the whole service. */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { verifyUserContext } from "../../../src/domain/sandbox/user-context.ts";
import { Sandboxes } from "../../../src/store/ports/sessions/sandboxes.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import type { AskedEnv } from "../../support/service/sessions/scripted-daemon.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  putSecret,
  runSession,
  sandboxEnvironment,
  stopSession,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  // The secrets that its daemons get are counted.
  service = await startTestService({ PLATFORM_TIER_CAPS: '{"free": 1000}' });
});
beforeEach(async () => {
  pid = await makeProject(service);
  service.daemon.forgetEnvs();
});
afterAll(() => service.close());

const revisionOf = async (): Promise<string> =>
  String(fields(await service.request("GET", `/v1/projects/${pid}/secrets`))["revision"]);

/**
 * Waits until so many changes were sent and nothing is left to send.
 * @returns them without their contexts, each once: one whose answer is late is sent again.
 */
const sent = async (count: number): Promise<readonly Omit<AskedEnv, "context">[]> => {
  await eventually(async () => {
    expect(changes().size).toBe(count);
    const outdated = Effect.flatMap(Sandboxes, (sandboxes) => sandboxes.outdated("test-node"));
    expect(await service.inside(outdated)).toEqual([]);
  });
  return [...changes().values()];
};

/** The changes that were sent, by content. */
const changes = (): ReadonlyMap<string, Omit<AskedEnv, "context">> =>
  new Map(
    service.daemon.envs.map(({ revision, env }) => [JSON.stringify([revision, env]), { revision, env }]),
  );

describe("a changed secret", () => {
  it("is sent to the running sessions of its project, with a context that their daemons accept", async () => {
    await putSecret(service, pid, "BEFORE", "from the boot");
    const sid = await runSession(service, pid);
    const other = await makeProject(service);
    await runSession(service, other);
    await putSecret(service, pid, "AFTER", "first value");
    expect(await sent(1)).toEqual([{ revision: await revisionOf(), env: { AFTER: "first value" } }]);
    const { PLATFORM_TOKEN: token = "" } = await sandboxEnvironment(service, sid);
    const [asked] = service.daemon.envs;
    // oxlint-disable-next-line no-restricted-properties -- the service reads the machine's clock
    const expected = { token, sessionId: sid, nowMs: Date.now() };
    expect(verifyUserContext([asked?.context ?? ""], expected)).toMatchObject({
      success: { user_id: "service", session_id: sid, role: "service" },
    });

    await putSecret(service, pid, "AFTER", "second value");
    expect((await sent(2)).at(-1)).toEqual({ revision: await revisionOf(), env: { AFTER: "second value" } });
    const removal = await service.request("DELETE", `/v1/projects/${pid}/secrets/BEFORE`);
    expectStatus(removal, 204);
    expect((await sent(3)).at(-1)).toEqual({ revision: await revisionOf(), env: { BEFORE: null } });
  });

  it("waits while a turn is in progress, and is then sent with later changes", async () => {
    await runSession(service, pid);
    service.daemon.become("busy");
    await putSecret(service, pid, "ONE", "first value");
    await putSecret(service, pid, "TWO", "value of two");
    await putSecret(service, pid, "ONE", "second value");
    const before = service.daemon.asked();
    await eventually(() => expect(service.daemon.asked()).toBeGreaterThan(before + 2));
    expect(service.daemon.envs).toEqual([]);
    service.daemon.become("ready");
    expect(await sent(1)).toEqual([
      { revision: await revisionOf(), env: { ONE: "second value", TWO: "value of two" } },
    ]);
  });

  it("is sent again if its answer was lost", async () => {
    await runSession(service, pid);
    service.daemon.loseAnswers(1);
    await putSecret(service, pid, "ONE", "a value");
    await sent(1);
    expect(service.daemon.envs.length).toBeGreaterThan(1);
  });

  it("is not sent to a stopped session, whose next boot includes it", async () => {
    const sid = await runSession(service, pid);
    await stopSession(service, pid, sid);
    const still = await runSession(service, pid);
    await putSecret(service, pid, "ONE", "a value");
    await sent(1);
    const { PLATFORM_TOKEN: token = "" } = await sandboxEnvironment(service, still);
    // oxlint-disable-next-line no-restricted-properties -- the service reads the machine's clock
    const expected = { token, sessionId: still, nowMs: Date.now() };
    expect(verifyUserContext([service.daemon.envs[0]?.context ?? ""], expected)._tag).toBe("Success");
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 202);
    await eventually(async () => {
      const names = (await sandboxEnvironment(service, sid))["PLATFORM_PROJECT_SECRET_NAMES"];
      expect(names).toBe("ONE");
    });
    expect(changes().size).toBe(1);
  });

  it("is in no line of the log [S06]", async () => {
    await runSession(service, pid);
    service.daemon.loseAnswers(1);
    await putSecret(service, pid, "ONE", "a canary of a value");
    await sent(1);
    const log = service.logs.join("\n");
    expect(log).toContain("secrets delivered");
    expect(log).toContain("secrets could not be delivered");
    expect(log).not.toContain("a canary of a value");
  });
});
