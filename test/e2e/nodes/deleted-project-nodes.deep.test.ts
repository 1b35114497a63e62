/** A deleted project on two real nodes. The one that has its files is away when its rows go, and removes them when it comes back. */
import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { administer } from "../../support/postgres/databases.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import { Installation, type Json, type Life, LIGHT_AGENT } from "../../support/service/process-service.ts";

const WAIT = { timeout: WAIT_MS, interval: 100 };

interface Node {
  readonly installation: Installation;
  life: Life;
}

describe.skipIf(!sandboxesStartHere)("a deleted project", () => {
  let scope: Scope.Closeable;
  let database = "";
  let settings: Readonly<Record<string, string>>;
  let far: Node;
  let near: Node;

  const start = async (): Promise<Node> => {
    const installation = await Installation.open();
    return { installation, life: await installation.start(settings) };
  };
  const filesOf = (node: Node, pid: string): readonly string[] =>
    readdirSync(node.installation.dataDir, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.includes(pid),
    );

  beforeAll(async () => {
    scope = Effect.runSync(Scope.make());
    database = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope));
    settings = {
      ...LIGHT_AGENT,
      DATABASE_URL: database,
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_SAVE_EVERY_MS: "700",
    };
    far = await start();
    near = await start();
  }, TEST_MS);
  afterAll(async () => {
    for (const node of [far, near]) await node?.life.end("SIGTERM");
    for (const node of [far, near]) await node?.installation.close();
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }, TEST_MS);

  it(
    "leaves no file on a node that was away, and all files of another project",
    { timeout: 2 * TEST_MS },
    async () => {
      const { sample } = far.installation;
      const [doomed, other] = [await far.life.project(sample), await far.life.project(sample)];
      const target = `/v1/projects/${doomed}`;
      const session = await LiveSession.startIn(far.life, doomed);
      await session.run("echo kept > kept.txt");
      await vi.waitFor(async () => {
        const { saved } = await far.life.call("GET", session.path);
        expect(saved).toMatchObject({ state: "complete", files: 1 });
      }, WAIT);
      expect(await near.life.call("DELETE", target)).toMatchObject({ status: "deleted" });
      await vi.waitFor(async () => {
        const found: Json = await far.life.call("GET", session.path);
        expect(found).toMatchObject({ status: "stopped", saved: { state: "complete", files: 1 } });
      }, WAIT);
      const [files, others] = [filesOf(far, doomed), filesOf(far, other)];
      expect(files).toEqual(expect.arrayContaining([`repositories/${doomed}.git`, `saves/${doomed}.git`]));

      await far.life.end("SIGTERM");
      const passed = `UPDATE projects SET deletes_at = now() - interval '1 second' WHERE id = '${doomed}'`;
      await Effect.runPromise(administer(database, passed));
      // The duty's first round comes with the start.
      await near.life.end("SIGTERM");
      near.life = await near.installation.start(settings);
      await vi.waitFor(async () => await expect(near.life.call("GET", target)).rejects.toThrow("404"), WAIT);
      expect(filesOf(far, doomed)).toEqual(files);

      far.life = await far.installation.start(settings);
      await vi.waitFor(() => expect(filesOf(far, doomed)).toEqual([]), WAIT);
      expect(filesOf(far, other)).toEqual(others);
      expect(await far.life.call("GET", `/v1/projects/${other}`)).toMatchObject({ status: "active" });
    },
  );
});
