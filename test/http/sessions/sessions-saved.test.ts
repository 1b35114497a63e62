/** How a stop saves unpushed work, and the end of saves (api.md 3 "Saving"). */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { beforeAll, describe, expect, it } from "vitest";
import { NOTHING_TO_SAVE, notSaved, type Saved } from "../../../src/domain/save/saved.ts";
import { eventually, expectStatus, fields, makeProject, runSession } from "../../support/service/requests.ts";
import { agentToken } from "../../support/service/agent-token.ts";
import { auditRows } from "../people/audit-rows.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});

const path = (sid: string): string => `/v1/projects/${pid}/sessions/${sid}`;
const PENDING = [{ path: "big.bin", reason: "limit", count: 2 }];
const PART: Saved = { ...notSaved("The limit is reached."), state: "partial", pending: PENDING };
const WORK: Saved = { ...NOTHING_TO_SAVE, at: "2026-11-20T12:00:00.000Z", wip: "a".repeat(40), files: 1 };

/** From now on, this session's saves end so. */
const savesOf = (sid: string, saved: Saved): void => {
  const others = service.saves.scripted;
  service.saves.scripted = (request) =>
    request.sessionId === sid
      ? Effect.succeed(saved)
      : (others?.(request) ?? Effect.succeed(NOTHING_TO_SAVE));
};
const stop = (sid: string, save?: string) =>
  service.request("POST", `${path(sid)}/stop`, { ...(save !== undefined && { body: { save } }) });

describe("a stop", () => {
  it("that requires a save is refused with what is missing, and the session runs on", async () => {
    const sid = await runSession(service, pid);
    savesOf(sid, PART);
    const refused = await stop(sid, "require");
    expect(refused).toMatchObject({ status: 409 });
    expect(fields(refused)).toMatchObject({
      code: "not_saved",
      error: expect.stringContaining("turn was interrupted"),
      details: { pending: PENDING, pending_count: 2, saved: PART },
    });
    const shown = fields(await service.request("GET", path(sid)));
    expect(shown).toMatchObject({ status: "running", saved: PART, unsaved: null });
    expect(fields(await stop(sid))).toMatchObject({ status: "stopped", saved: PART });
  });

  it("that skips the save asks for none", async () => {
    const sid = await runSession(service, pid);
    expect(fields(await stop(sid, "skip"))).toMatchObject({ status: "stopped", saved: null });
    expect(service.saves.requests.filter(({ sessionId }) => sessionId === sid)).toEqual([]);
  });

  it("takes no other word", async () => {
    const sid = await runSession(service, pid);
    expect((await stop(sid, "maybe")).status).toBe(400);
    expectStatus(await stop(sid), 200);
  });
});

describe("the saves of a project", () => {
  it("hinder a restart while their node is away, unless it does without them", async () => {
    const sid = await runSession(service, pid);
    savesOf(sid, WORK);
    expectStatus(await stop(sid), 200);
    service.saves.isAway = true;
    try {
      const restart = (restore_saved: boolean) =>
        service.request("POST", `${path(sid)}/restart`, { body: { restore_saved } });
      const refused = await restart(true);
      expect([refused.status, fields(refused)["code"]]).toEqual([503, "node_away"]);
      expect(refused.headers["retry-after"]).toBeDefined();
      expectStatus(await restart(false), 202);
    } finally {
      service.saves.isAway = false;
    }
    await eventually(async () => expectStatus(await stop(sid, "skip"), 200));
  });

  it("are read by no agent, also not by that of their own session", async () => {
    const sid = await runSession(service, pid);
    const token = await agentToken(service.databaseUrl, sid);
    const asAgent = (address: string) => service.request("GET", address, { token });
    expectStatus(await asAgent(`${path(sid)}/changes`), 200);
    for (const part of ["changes", "diff"])
      expect(await asAgent(`${path(sid)}/${part}?of=saved`)).toMatchObject({ status: 403 });
    expect(await asAgent(`/v1/projects/${pid}/saves`)).toMatchObject({ status: 403 });
    expectStatus(await stop(sid), 200);
  });

  it("of another session are not left out at its end by an agent", async () => {
    const [sid, other] = [await runSession(service, pid), await runSession(service, pid)];
    const token = await agentToken(service.databaseUrl, sid);
    const end = (id: string) =>
      service.request("POST", `${path(id)}/stop`, { body: { save: "skip" }, token });
    expectStatus(await end(other), 403);
    expectStatus(await service.request("DELETE", path(other), { token }), 403);
    expectStatus(await stop(other), 200);
    expectStatus(await stop(sid), 200);
  });

  it("are listed by size, and one of an earlier sandbox can be deleted", async () => {
    const sid = await runSession(service, pid);
    const earlier = { sandboxId: randomUUID(), at: 1, files: new Map([["a.txt", "1"]]) };
    service.saves.of(sid).earlier = [earlier];
    const listed = fields(await service.request("GET", `/v1/projects/${pid}/saves`));
    expect(listed).toMatchObject({
      sessions: expect.arrayContaining([expect.objectContaining({ id: sid, bytes: 1 })]),
    });
    const id = earlier.sandboxId;
    savesOf(sid, { ...WORK, earlier: [{ id, at: "2026-11-20T11:00:00.000Z", files: 1, commits: 0 }] });
    expectStatus(await stop(sid), 200);
    for (const part of ["changes", "diff"]) {
      const compared = (save: string) => service.request("GET", `${path(sid)}/${part}?of=saved&save=${save}`);
      expectStatus(await compared(id), 200);
      expectStatus(await compared(randomUUID()), 404);
    }
    expectStatus(await service.request("DELETE", `${path(sid)}/saves/${id}`), 204);
    expectStatus(await service.request("DELETE", `${path(sid)}/saves/${id}`), 404);
    expect(fields(await service.request("GET", path(sid)))["saved"]).toMatchObject({ earlier: [] });
    const record = await auditRows(service, `&project=${pid}`);
    expect(record.filter(({ action }) => action === "session.save_deleted")).toHaveLength(1);
  });
});

const begin = (body: object, token?: string) =>
  service.request("POST", `/v1/projects/${pid}/sessions`, { body, ...(token !== undefined && { token }) });
const beginRefused = async (body: object) => {
  const answer = await begin(body);
  return [answer.status, fields(answer)["code"]];
};
const saved = (sid: string): void => {
  service.saves.of(sid).last = { sandboxId: randomUUID(), at: 1, files: new Map([["a.txt", "1"]]) };
};
const sizes = async () =>
  fields(await service.request("GET", `/v1/projects/${pid}/saves`))["sessions"] as readonly unknown[];

describe("a session that begins from another one", () => {
  it("has a copy of its saved work, and its commit as base", async () => {
    const sid = await runSession(service, pid);
    const { base_commit: base } = fields(await service.request("GET", path(sid)));
    saved(sid);
    const made = fields(
      expectStatus(await begin({ from: { session_id: sid }, initial_prompt: "Go on" }), 201),
    );
    expect(made).toMatchObject({ base_ref: base, base_commit: base, saved: { files: 1 } });
    const { name } = fields(await service.request("GET", path(sid)));
    const begun_from = { session_id: sid, title: name ?? "Session", at: "1970-01-01T00:00:00.001Z" };
    expect(made["metadata"]).toEqual({ begun_from });
    // Only the service says where a session began, because its agent is told that conversation.
    expect(await beginRefused({ metadata: { begun_from } })).toEqual([400, "invalid_request"]);
    const changed = async (metadata: object) =>
      await service.request("PATCH", path(String(made["id"])), { body: { metadata } });
    expectStatus(await changed({ begun_from: { ...begun_from, session_id: String(made["id"]) } }), 400);
    expect(fields(await changed({ team: "web" }))["metadata"]).toEqual({ team: "web", begun_from });
    expect(fields(await changed({ begun_from }))["metadata"]).toEqual({ begun_from });
    expectStatus(await service.request("DELETE", path(String(made["id"]))), 204);
    // The first one keeps its own.
    expect(service.saves.of(sid).last?.files.size).toBe(1);
  });

  it("has the work of the turn that it names", async () => {
    const sid = await runSession(service, pid);
    saved(sid);
    const turn = randomUUID();
    expect(fields(await service.request("GET", `${path(sid)}/saves`))).toEqual({ turns: [] });
    const from = { session_id: sid, turn_id: turn };
    expect(await beginRefused({ from })).toEqual([409, "nothing_saved"]);
    const files = new Map([
      ["a.txt", "1"],
      ["b.txt", "2"],
    ]);
    service.saves.of(sid).turns.set(turn, { sandboxId: randomUUID(), at: 1, files });
    const { turns } = fields(await service.request("GET", `${path(sid)}/saves`));
    expect(turns).toEqual([{ id: turn, at: "1970-01-01T00:00:00.001Z" }]);
    expect(fields(expectStatus(await begin({ from }), 201))).toMatchObject({
      saved: { files: 2 },
      metadata: { begun_from: from },
    });
  });

  it("needs a save, a session of the project, and no other base", async () => {
    const sid = await runSession(service, pid);
    const from = { session_id: sid };
    expect(await beginRefused({ from })).toEqual([409, "nothing_saved"]);
    saved(sid);
    expect(await beginRefused({ from, base_ref: "main" })).toEqual([400, "invalid_request"]);
    expect(await beginRefused({ from: { session_id: randomUUID() } })).toEqual([404, "not_found"]);
    // A copy for a session that does not begin is removed.
    const before = (await sizes()).length;
    expect((await beginRefused({ from, agent_name: "unknown" }))[0]).toBe(422);
    expect((await sizes()).length).toBe(before);
    service.saves.isAway = true;
    expect(await beginRefused({ from })).toEqual([503, "node_away"]);
    service.saves.isAway = false;
  });

  it("is a person's: no agent's token takes another session's saved work", async () => {
    const sid = await runSession(service, pid);
    saved(sid);
    const token = await agentToken(service.databaseUrl, sid);
    expect((await begin({ from: { session_id: sid } }, token)).status).toBe(403);
  });
});
