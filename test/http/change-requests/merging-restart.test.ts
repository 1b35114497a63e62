/** A merge whose database restarts at one of its steps: it is finished when the database is back (src/machines/change-request.ts). */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { FaultPoint } from "../../../src/store/ports/faults.ts";
import { gitOk } from "../../git/git-client.ts";
import { runPostgres } from "../../support/postgres/postgres.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  commitTo,
  webhookEntry,
} from "../../support/service/requests.ts";
import { sampled } from "../../support/vitest/rings.ts";

const program = fileURLToPath(new URL("../../support/programs/cut-database-main.ts", import.meta.url));

/** Where the database goes away, and whether its connections only break or it stays away. */
const CUTS = (["merge.noted", "merge.made", "merge.read"] as const).flatMap((point) =>
  (["gone", "cut"] as const).map((state) => ({ point, state })),
);
/** Before and after the merge stands in the repository. */
const SAMPLE = CUTS.filter(
  ({ point, state }) => (point === "merge.noted") === (state === "cut") && point !== "merge.read",
);

let service: TestService;
/** The address of the server that the service's database is on. */
let server = "";
let armed: { readonly point: FaultPoint; readonly state: "gone" | "cut" } | null = null;

const database = (state: "gone" | "cut" | "back"): void => {
  const name = new URL(service.databaseUrl).pathname.slice(1);
  const done = spawnSync(process.execPath, [program, server, name, state], {
    encoding: "utf8",
  });
  if (done.status !== 0) throw new Error(done.stderr);
};

beforeAll(async () => {
  server = (await Effect.runPromise(runPostgres)).url;
  service = await startTestService(
    {},
    {
      faults: (point) => {
        if (armed?.point !== point) return;
        const { state } = armed;
        armed = null;
        database(state);
      },
    },
  );
});
afterAll(() => service.close());

const isReady = () =>
  eventually(async () => expect((await service.request("GET", "/readyz", { token: null })).status).toBe(200));

it.each(sampled(CUTS, SAMPLE))(
  "is made once, and reported once, if the database restarts at $point ($state)",
  async ({ point, state }) => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
    const manifest = `${webhookEntry("push")}\n${webhookEntry("new")}`;
    await commitTo(service, pid, { branch: "work", files: { "platform.toml": manifest } });
    await commitTo(service, pid, { branch: "aside", files: { "aside.txt": "x\n" } });
    const at = `/v1/projects/${pid}/change-requests`;
    const open = async (head_ref: string): Promise<number> => {
      const answer = await service.request("POST", at, { body: { title: "A change", head_ref } });
      return Number(fields(expectStatus(answer, 201))["number"]);
    };
    const [first, number] = [await open("aside"), await open("work")];
    // The default branch goes on, so that the merge needs a commit of its own.
    expectStatus(await service.request("POST", `${at}/${first}/merge`, { body: {} }), 200);

    armed = { point, state };
    const answer = await service.request("POST", `${at}/${number}/merge`, { body: {} });
    expect(armed).toBeNull();
    if (state === "gone") {
      expect([answer.status, fields(answer)["code"]]).toEqual([503, "database_unavailable"]);
      database("back");
    } else expect([200, 503]).toContain(answer.status);
    await isReady();

    // No client asks for the merge again.
    await eventually(async () => {
      const { status } = fields(await service.request("GET", `${at}/${number}`));
      expect(status).toBe("merged");
    });
    const again = await service.request("POST", `${at}/${number}/merge`, { body: {} });
    expect([again.status, fields(again)["code"]]).toEqual([409, "not_open"]);
    const bare = path.join(service.dataDir, "repositories", `${pid}.git`);
    const merges = (await gitOk(bare, "rev-list", "--merges", "main")).split("\n");
    expect(merges).toEqual([await gitOk(bare, "rev-parse", "main")]);
    expect(fields(await service.request("GET", `${at}/${number}`))).toMatchObject({
      status: "merged",
      merged_commit: merges[0],
      files_changed_total: 1,
    });
    const triggers = listOf(await service.request("GET", `/v1/projects/${pid}/triggers`), "triggers");
    expect(triggers.map(({ slug }) => slug)).toEqual(["push", "new"]);
    const project = fields(await service.request("GET", `/v1/projects/${pid}`));
    expect(project["manifest"]).toMatchObject({ commit: merges[0], error: null });
  },
);
