/**
 * The whole life of a deleted project. It has a service of its own: its rows and its data directory are searched for everything of
 * the project.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layerStorePlace } from "../../../src/builder/buildah/layer-stores.ts";
import { SimulatedSite } from "../../../src/builder/site/simulated.ts";
import { makeSweep, removeDue } from "../../../src/duties/deletions.ts";
import { RESTORABLE_MS } from "../../../src/domain/project/deletion.ts";
import { ProjectDeletions } from "../../../src/store/ports/projects/project-deletions.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { startTestService } from "../../support/service/service.ts";
import {
  deliver,
  errorCode,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  makeUserToken,
  putSecret,
  reached,
  runSession,
  SECRET,
  SECRET_NAME,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const MANIFEST = `${webhookEntry("push")}
[[triggers]]
slug = "nightly"
type = "cron"
prompt = "Go"
cron = "0 0 2 * * *"
`;
/** The only rows that stay: the audit record, and the ids of projects that are gone. */
const STAYING = new Set(["audit_events", "deleted_projects"]);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({}, { site: new SimulatedSite().service });
});
afterAll(() => service.close());

const ask = (method: string, target: string, body?: unknown): Promise<Answer> =>
  service.request(method, `/v1/projects/${target}`, body === undefined ? {} : { body });
const asked = async (method: string, target: string, status: number, body?: unknown): Promise<Fields> =>
  fields(expectStatus(await ask(method, target, body), status));

/** A project with something of every kind. @returns its id, and those of its session and its fire */
const fill = async (name: string): Promise<readonly [string, string, string]> => {
  const pid = await makeProject(service, { name, files: { "platform.toml": MANIFEST } });
  await putSecret(service, pid, SECRET_NAME, SECRET);
  const sid = await runSession(service, pid, { base_ref: "feature" });
  expectStatus(await ask("POST", `${pid}/sessions/${sid}/attachments?name=a.txt`, "a file"), 201);
  expectStatus(
    await ask("POST", `${pid}/sessions/${sid}/messages`, { id: randomUUID(), text: "Go on." }),
    201,
  );
  await asked("POST", `${pid}/change-requests`, 201, { title: "A change", head_ref: "feature" });
  const fired = fields(expectStatus(await deliver(service, `${pid}/push`), 202));
  const { fire_id: fire } = await reached(service, pid, String(fired["session_id"]), "running");
  await makeUserToken(service, { project_id: pid });
  await invitePerson(service, `someone of ${name}`, { roles: { [pid]: "member" } });
  const events = ["session.stopped"];
  const receiver = { url: "https://example.com/hook", format: "standard", events };
  expectStatus(await ask("POST", `${pid}/webhooks`, receiver), 201);
  for (const place of [
    layerStorePlace(path.join(service.dataDir, "environments"), pid),
    path.join(service.dataDir, "packages", pid),
  ]) {
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, "file"), "something of the project");
  }
  return [pid, sid, String(fire)];
};

/** The tables that have a row with one of these ids, anywhere in it. */
const tablesWith = (ids: readonly string[]) =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      const tables = yield* sql<{ readonly name: string }>`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`;
      const found = yield* Effect.filter(tables, ({ name }) =>
        Effect.map(
          sql`SELECT 1 FROM ${sql(name)} AS row WHERE row::text ~ ${ids.join("|")} LIMIT 1`,
          (rows) => rows.length > 0,
        ),
      );
      return found.map(({ name }) => name).filter((name) => !STAYING.has(name));
    }),
  );

/** The paths of the data directory that name one of these ids. */
const pathsWith = (ids: readonly string[]): readonly string[] =>
  readdirSync(service.dataDir, { recursive: true, encoding: "utf8" }).filter((name) =>
    ids.some((id) => name.includes(id)),
  );

/** The ids of everything of the project, from its rows. */
const idsOf = async (pid: string) => {
  const sessions = listOf(await ask("GET", `${pid}/sessions?limit=200`), "sessions");
  const fires = listOf(await ask("GET", `${pid}/fires?limit=200`), "fires");
  const sandboxes = await Promise.all(
    sessions.map(({ id }) => asked("GET", `${pid}/sessions/${String(id)}/sandbox`, 200)),
  );
  return [pid, ...[...sessions, ...fires, ...sandboxes].map(({ id }) => String(id))];
};

/** The instant of the deletion has come: the service's clock stays as it is, the row's is moved. */
const passWeek = (pid: string) =>
  service.inside(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`UPDATE projects SET deletes_at = now() - interval '1 second' WHERE id = ${pid}`,
    ),
  );

const statusOf = async (pid: string): Promise<unknown> => (await asked("GET", pid, 200))["status"];
const statuses = async (pid: string) =>
  listOf(await ask("GET", `${pid}/sessions?limit=200`), "sessions").map(({ status }) => status);
const audited = async (pid: string): Promise<readonly unknown[]> =>
  listOf(await service.request("GET", `/v1/audit?project=${pid}&limit=200`), "events")
    .map(({ action }) => action)
    .filter((action) => /^project\.(?:deleted|restored|removed)$/.test(String(action)));

describe("a deleted project", () => {
  it("starts nothing, says why at every door, and comes back until its week is over", async () => {
    const [pid, sid] = await fill("first");
    const before = new Date().getTime();
    const deleted = await asked("DELETE", pid, 202);
    expect(deleted["status"]).toBe("deleted");
    const due = new Date(String(deleted["deletes_at"])).getTime() - before - RESTORABLE_MS;
    expect(due).toBeGreaterThanOrEqual(0);
    expect(await asked("DELETE", pid, 202)).toMatchObject({ deletes_at: deleted["deletes_at"] });
    // Running sessions stop, and their work is saved.
    await eventually(async () => expect(new Set(await statuses(pid))).toEqual(new Set(["stopped"])));
    expect(await asked("GET", `${pid}/sessions/${sid}`, 200)).toMatchObject({ stop_reason: "requested" });
    const doors = [
      ["POST", `${pid}/sessions`, {}],
      ["POST", `${pid}/sessions/${sid}/restart`, {}],
      ["POST", `${pid}/triggers/push/fire`, {}],
      ["POST", `${pid}/environment/builds`, undefined],
      ["PATCH", pid, { status: "active" }],
    ] as const;
    for (const [method, target, body] of doors) {
      const answer = expectStatus(await ask(method, target, body), 409);
      expect([target, errorCode(answer)]).toEqual([target, "project_not_active"]);
      expect(answer.text).toContain(
        `The project is deleted, and will be gone at ${String(deleted["deletes_at"])}`,
      );
    }
    expectStatus(await deliver(service, `${pid}/push`), 404);
    await eventually(async () =>
      expect(listOf(await ask("GET", `${pid}/webhook-refusals`), "webhook_refusals")[0]).toMatchObject({
        code: "not_found",
        reason: "project_deleted",
      }),
    );
    expect(errorCode(await ask("POST", `${await makeProject(service)}/restore`))).toBe("not_deleted");
    const name = { name: " FIRST ", repository: { kind: "hosted" } };
    const same = expectStatus(await service.request("POST", "/v1/projects", { body: name }), 409);
    expect(errorCode(same)).toBe("name_taken");
    expect(await asked("POST", `${pid}/restore`, 200)).toMatchObject({ status: "active", deletes_at: null });
    expectStatus(await ask("POST", `${pid}/sessions`, {}), 201);
    expect(await audited(pid)).toEqual(["project.restored", "project.deleted"]);
  });

  it("is gone after its week, with its rows and its files; another project stays", async () => {
    const [pid] = await fill("second");
    const [other] = await fill("third");
    const ids = await idsOf(pid);
    const [tables, paths] = [await tablesWith([other]), pathsWith([other])];
    // The test would find what is left.
    expect(await tablesWith(ids)).toEqual(expect.arrayContaining(["projects", "tokens", "fires", "events"]));
    expect(pathsWith(ids).length).toBeGreaterThan(1);
    const layers = layerStorePlace(path.join(service.dataDir, "environments"), pid);
    expect(existsSync(layers)).toBe(true);
    await asked("DELETE", pid, 202);
    await eventually(async () => expect(new Set(await statuses(pid))).toEqual(new Set(["stopped"])));
    await passWeek(pid);
    expect(errorCode(expectStatus(await ask("POST", `${pid}/restore`), 409))).toBe("being_removed");
    await eventually(async () => {
      await service.inside(removeDue);
      expectStatus(await ask("GET", pid), 404);
    });
    expect(pathsWith(ids).length).toBeGreaterThan(1);
    await service.inside(Effect.flatten(makeSweep));
    expect(await tablesWith(ids)).toEqual([]);
    expect([pathsWith(ids), existsSync(layers)]).toEqual([[], false]);
    expect(await service.inside(Effect.flatMap(ProjectDeletions, ({ gone }) => gone))).toEqual([pid]);
    expect((await audited(pid)).toSorted()).toEqual(["project.deleted", "project.removed"]);
    expect(await statusOf(other)).toBe("active");
    expect([await tablesWith([other]), pathsWith([other])]).toEqual([tables, paths]);
    expectStatus(await deliver(service, `${other}/push`), 202);
    // Its name is free.
    await makeProject(service, { name: "second" });
  });
});
