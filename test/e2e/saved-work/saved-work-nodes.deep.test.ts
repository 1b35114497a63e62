/** Saved work on a node that dies with it and comes back, of a project whose repository is at another server. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import { killSandbox } from "../../support/machine/processes-seeing.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { LiveSession } from "../../support/service/sessions/live-session.ts";
import {
  Installation,
  type Json,
  type Life,
  LIGHT_AGENT,
  TOKEN,
} from "../../support/service/process-service.ts";

/** A node counts as dead after so long, ms. One that starts on a busy machine is silent for less. */
const GRACE_MS = 20_000;
const WAIT = { timeout: WAIT_MS, interval: 100 };

interface Node {
  readonly installation: Installation;
  readonly id: string;
  life: Life;
}

const shown = (session: LiveSession): Promise<Json> => session.life.call("GET", session.path);

/** Has the agent write a file, and waits until it is saved. @returns what the session says of its saves */
const worked = async (session: LiveSession, name: string): Promise<Json> => {
  await session.run(`echo ${name} > ${name}.txt`);
  return await vi.waitFor(async () => {
    const { saved } = await shown(session);
    expect(saved).toMatchObject({ state: "complete", files: 1 });
    return saved as Json;
  }, WAIT);
};

const restart = async (session: LiveSession, restore_saved: boolean): Promise<Json> => {
  await session.call("POST", "restart", { restore_saved });
  return await vi.waitFor(async () => {
    const found = await shown(session);
    expect(found["status"], JSON.stringify(found["failure"])).toBe("running");
    return found;
  }, WAIT);
};

describe.skipIf(!sandboxesStartHere)("saved work on a node that dies", () => {
  let scope: Scope.Closeable;
  let upstream: UpstreamServer;
  let settings: Readonly<Record<string, string>>;
  let far: Node;
  let near: Node;
  let project = "";
  const root = mkdtempSync(path.join(tmpdir(), "upstream-"));

  const start = async (): Promise<Node> => {
    const installation = await Installation.open();
    const life = await installation.start(settings);
    const id = readFileSync(path.join(installation.dataDir, "node-id"), "utf8").trim();
    return { installation, life, id };
  };

  beforeAll(async () => {
    scope = Effect.runSync(Scope.make());
    settings = {
      ...LIGHT_AGENT,
      DATABASE_URL: await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope)),
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1,localhost",
      PLATFORM_SAVE_EVERY_MS: "700",
      PLATFORM_NODE_GRACE_MS: String(GRACE_MS),
    };
    far = await start();
    near = await start();
    upstream = await startUpstream(root);
    const [bare, work] = [path.join(root, "kept.git"), path.join(root, "work")];
    await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
    mkdirSync(work);
    await gitOk(work, "init", "--quiet", "--initial-branch=main");
    await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", "Begin");
    await gitOk(work, "push", "--quiet", bare, "main");
    const { origin, username, password } = upstream;
    const repository = { kind: "git", url: `${origin}/kept.git`, username, password };
    project = String((await far.life.call("POST", "/v1/projects", { name: "kept", repository }))["id"]);
  }, TEST_MS);
  afterAll(async () => {
    for (const node of [far, near]) await node?.life.end("SIGTERM");
    for (const node of [far, near]) await node?.installation.close();
    await upstream?.close();
    rmSync(root, { recursive: true, force: true });
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }, TEST_MS);

  /** A session whose sandbox and saves are on that node. It has written a file. */
  const workedOn = async (node: Node, name: string) => {
    for (;;) {
      const session = await LiveSession.startIn(node.life, project);
      if ((await session.call("GET", "sandbox"))["node_id"] === node.id) {
        const saved = await worked(session, name);
        if (saved["node"] === node.id) return { session, saved };
      }
      await session.call("POST", "stop", { save: "skip" });
    }
  };

  it("stays named, is not passed over, and comes back with its node", { timeout: 2 * TEST_MS }, async () => {
    const { session: left, saved } = await workedOn(far, "left");
    const { session: whole } = await workedOn(far, "whole");
    const sandboxes = await Promise.all(
      [left, whole].map(async (session) => String((await session.call("GET", "sandbox"))["id"])),
    );
    await far.life.end("SIGKILL");
    for (const id of sandboxes) killSandbox(id);

    const atNear = left.at(near.life);
    await atNear.call("POST", "stop", { save: "try" }).catch(() => undefined);
    await vi.waitFor(async () => {
      for (const session of [atNear, whole.at(near.life)])
        expect(["failed", "stopped"]).toContain((await shown(session))["status"]);
    }, WAIT);
    const { node, sandbox, at, files } = saved;
    expect((await shown(atNear))["saved"]).toMatchObject({ node, sandbox, at, files });
    await expect(atNear.call("POST", "restart", { restore_saved: true })).rejects.toThrow("node_away");

    await restart(atNear, false);
    await atNear.run("[ ! -e left.txt ] && echo new > new.txt");
    const { saved: newer } = await atNear.call("POST", "stop", { save: "require" });
    const earlier = { id: sandbox, at, files, node };
    expect(newer).toMatchObject({ files: 1, node: near.id, earlier: [earlier] });

    far.life = await far.installation.start(settings);
    await vi.waitFor(async () => {
      await whole.at(near.life).call("POST", "restart", { restore_saved: true });
    }, WAIT);
    await vi.waitFor(async () => {
      expect((await shown(whole.at(near.life)))["status"]).toBe("running");
    }, WAIT);
    await whole.at(near.life).run("grep -qx whole whole.txt");

    const id = left.path.split("/").at(-1) ?? "";
    const clone = path.join(root, "clone");
    await gitOk(root, "init", "--quiet", clone);
    const address = `${far.life.url}/v1/git/${project}.git`.replace("://", `://x:${TOKEN}@`);
    await gitOk(clone, "fetch", "--quiet", address, `refs/wip/${id}`);
    expect(await gitOk(clone, "show", "FETCH_HEAD:left.txt")).toBe("left");

    expect((await restart(atNear, true))["restored"]).toMatchObject({
      files: 2,
      skipped: [],
      error: null,
      nodes: [far.id],
    });
    await atNear.run("grep -qx new new.txt && grep -qx left left.txt");
    const { saved: all } = await atNear.call("POST", "stop", { save: "require" });
    expect(all).toMatchObject({ state: "complete", files: 2 });
    expect((all as Json)["earlier"]).toBeUndefined();
    await restart(atNear, true);
    await atNear.run("grep -qx new new.txt && grep -qx left left.txt");

    await atNear.call("POST", "stop", { save: "skip" });
    await atNear.life.call("DELETE", atNear.path);
    const saves = path.join(far.installation.dataDir, "saves", `${project}.git`);
    await vi.waitFor(
      async () => expect(await gitOk(saves, "for-each-ref", `refs/saves/${id}`)).toBe(""),
      WAIT,
    );
    await whole.at(near.life).call("POST", "stop", { save: "skip" });
  });
});
