/** Required secrets without a value (`[env] required`): sessions start all the same, with a warning. */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  makeProject,
  putSecret,
  runSession,
  SECRET,
  SECRET_NAME,
  stopSession,
  webhookEntry,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const requiring = (...names: readonly string[]): Promise<string> =>
  makeProject(service, {
    files: { "platform.toml": `[env]\nrequired = ${JSON.stringify(names)}\n${webhookEntry("push")}` },
  });
const create = async (pid: string) =>
  fields(expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} }), 201));
const restart = async (pid: string, sid: string) =>
  fields(expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/restart`), 202));
const listing = async (pid: string) =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/triggers`), 200));
const missing = (message: string) => [{ code: "secret_missing", message }];
const NEEDED = missing(
  "The manifest requires the secret NEEDED, but it has no value. Set it with `platform secrets set NEEDED`.",
);
/** The operator's lines about this. */
const logged = (named: string): readonly string[] =>
  service.logs.filter((line) => line.includes("required secrets have no value") && line.includes(named));

describe("a project that requires a secret without a value", () => {
  it("warns at the creation and the restart of a session, and in the listing of triggers", async () => {
    const pid = await requiring("NEEDED");
    const session = await create(pid);
    const sid = String(session["id"]);
    expect(session["warnings"]).toEqual(NEEDED);
    expect((await listing(pid))["warnings"]).toEqual(NEEDED);
    await stopSession(service, pid, sid);
    expect((await restart(pid, sid))["warnings"]).toEqual(NEEDED);
    await stopSession(service, pid, sid);

    await putSecret(service, pid, "NEEDED", "a value");
    expect((await restart(pid, sid))["warnings"]).toEqual([]);
    expect((await create(pid))["warnings"]).toEqual([]);
    expect((await listing(pid))["warnings"]).toEqual([]);
  });

  it("has a line in the operator's log for each session that starts without it", async () => {
    const pid = await requiring("NEEDED", SECRET_NAME);
    await putSecret(service, pid, SECRET_NAME, SECRET);
    const sid = await runSession(service, pid);
    expect(logged(sid)).toEqual([expect.stringContaining("NEEDED")]);
    expect(logged(sid)[0]).toContain(pid);
    expectStatus(await deliver(service, `${pid}/push`), 202);
    await eventually(() => expect(logged(pid)).toHaveLength(2));
    await putSecret(service, pid, "NEEDED", "a value");
    await runSession(service, pid);
    expect(logged(pid)).toHaveLength(2);
  });
});

it("has a line in the operator's log for a fire that waits at the account's cap", async () => {
  const pid = await requiring("NEEDED");
  await putSecret(service, pid, SECRET_NAME, SECRET);
  await runSession(service, pid);
  const { account } = (await service.request("GET", "/v1/me")).json as { account: { id: string } };
  await service.inside(Effect.flatMap(Identity, ({ setTier }) => setTier(account.id, "free", 1)));
  expect(fields(await deliver(service, `${pid}/push`))).toMatchObject({ status: "queued" });
  await eventually(() => expect(logged(pid)).toHaveLength(2));
  expect(logged(pid)[1]).toContain("fire");
});
