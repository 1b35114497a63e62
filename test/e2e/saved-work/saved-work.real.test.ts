/** Work that an agent has not pushed exists again when its session goes on, or it is named: the service with real sandboxes. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import { killSandbox } from "../../support/machine/processes-seeing.ts";
import { TEST_MS } from "../../support/patience.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { CHECK, WORK } from "./work-of-each-kind.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import { LOST_WORK } from "../../../src/domain/save/shown.ts";
import {
  Installation,
  type Json,
  type Life,
  LIGHT_AGENT,
  TOKEN,
} from "../../support/service/process-service.ts";
import { useRunDatabase } from "../../support/service/run-database.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const MIB = 1024 * 1024;

const shown = async (session: LiveSession): Promise<Json> => session.life.call("GET", session.path);
const runsAgain = async (session: LiveSession, body: Json = { restore_saved: true }): Promise<Json> => {
  await session.call("POST", "restart", body);
  const [, , , projectId = "", , id = ""] = session.path.split("/");
  const again = await session.life.session(projectId, id, ["running", "failed"]);
  expect(again["status"], JSON.stringify(again["failure"])).toBe("running");
  return again;
};
describe.skipIf(!sandboxesStartHere)("saved work", () => {
  let installation: Installation;
  let life: Life;
  let projectId = "";
  const database = useRunDatabase();
  beforeAll(async () => {
    installation = await Installation.open();
    life = await installation.start({
      ...database(),
      ...LIGHT_AGENT,
      PLATFORM_SAVE_EVERY_MS: "1000",
      PLATFORM_SAVES_SESSION_BYTES: String(MIB),
      PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1",
    });
    projectId = await life.project(installation.sample);
  }, TEST_MS);
  afterAll(async () => {
    await life?.end("SIGTERM");
    await installation?.close();
  }, TEST_MS);

  it("comes back byte for byte after a stop that waited for it", { timeout: TEST_MS }, async () => {
    const session = await LiveSession.startIn(life, projectId);
    await session.run(WORK);
    const { saved } = await session.call("POST", "stop", { save: "require" });
    expect(saved).toMatchObject({ state: "complete", pending: [], error: null });
    const again = await runsAgain(session);
    expect(again["restored"]).toMatchObject({ error: null, renamed: [] });
    await session.run(CHECK);
    await session.stop();
  });

  deepTest("is in a new session that begins from it", async () => {
    const session = await LiveSession.startIn(life, projectId);
    await session.run(WORK);
    await session.call("POST", "stop", { save: "require" });
    const from = { session_id: session.path.split("/").at(-1) ?? "" };
    const other = await LiveSession.startIn(life, projectId, { from });
    expect((await shown(other))["restored"]).toMatchObject({ error: null, renamed: [], skipped: [] });
    await other.run(CHECK);
    await other.run(`[ "$(git symbolic-ref --short HEAD)" = ${other.path.split("/").at(-1)} ]`);
    await other.stop();
  });

  it("can be fetched by a person, and is in no clone", { timeout: TEST_MS }, async () => {
    const session = await LiveSession.startIn(life, projectId);
    await session.run("printf 'large content' > media.bin && echo secretly > .env");
    const { saved } = await session.call("POST", "stop", { save: "require" });
    const id = session.path.split("/").at(-1) ?? "";
    const clone = mkdtempSync(path.join(tmpdir(), "fetched-"));
    try {
      const git = (...args: readonly string[]) =>
        execFileSync("git", ["-C", clone, ...args], {
          encoding: "utf8",
          stdio: ["ignore", "pipe", "ignore"],
        });
      git("clone", "-q", `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${projectId}.git`, ".");
      expect(git("ls-remote", "origin")).not.toContain("refs/wip");
      git("fetch", "-q", "origin", `refs/wip/${id}`);
      expect(git("rev-parse", "FETCH_HEAD").trim()).toBe((saved as Json)["wip"]);
      expect(git("show", "FETCH_HEAD:media.bin")).toBe("large content");
      expect(git("show", "FETCH_HEAD:.env")).toBe("secretly\n");
    } finally {
      rmSync(clone, { recursive: true, force: true });
    }
    const changes = await session.call("GET", "changes?of=saved");
    expect((changes["files_changed"] as readonly Json[]).map((file) => file["path"])).toContain(".env");
  });

  it(
    "is what the last save had after a sandbox was killed, and the page knows when that was",
    { timeout: TEST_MS },
    async () => {
      const session = await LiveSession.startIn(life, projectId);
      await session.run("echo minutes > minutes.txt");
      await vi.waitFor(async () => {
        expect((await shown(session))["saved"]).toMatchObject({ state: "complete", files: 1 });
      }, POLL);
      const { id: sandboxId } = await session.call("GET", "sandbox");
      killSandbox(String(sandboxId));
      const [, , , project = "", , id = ""] = session.path.split("/");
      const failed = await life.session(project, id, ["failed"]);
      expect(failed["saved"]).toMatchObject({ state: "partial", files: 1, error: LOST_WORK });
      expect((await runsAgain(session))["restored"]).toMatchObject({ files: 1, error: null });
      await session.run("grep -qx minutes minutes.txt");
      await session.stop();
    },
  );

  describe("of a project at another server", () => {
    let upstream: UpstreamServer;
    let elsewhere = "";
    const root = mkdtempSync(path.join(tmpdir(), "upstream-"));
    beforeAll(async () => {
      upstream = await startUpstream(root);
      const [bare, work] = [path.join(root, "kept.git"), path.join(root, "work")];
      await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
      mkdirSync(work);
      await gitOk(work, "init", "--quiet", "--initial-branch=main");
      await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", "Begin");
      await gitOk(work, "push", "--quiet", bare, "main");
      const { origin, username, password } = upstream;
      const repository = { kind: "git", url: `${origin}/kept.git`, username, password };
      const { id } = await life.call("POST", "/v1/projects", { name: "elsewhere", repository });
      elsewhere = String(id);
    }, TEST_MS);
    afterAll(async () => {
      await upstream?.close();
      rmSync(root, { recursive: true, force: true });
    });

    it("does not ask that server, and leaves nothing there", { timeout: TEST_MS }, async () => {
      const session = await LiveSession.startIn(life, elsewhere);
      await session.run("echo hours > hours.txt");
      upstream.fault = () => ({ kind: "status", status: 503 });
      const { saved } = await session.call("POST", "stop", { save: "require" });
      expect(saved).toMatchObject({ state: "complete", files: 1 });
      upstream.fault = () => null;
      expect(await gitOk(path.join(root, "kept.git"), "for-each-ref", "refs/wip")).toBe("");
      expect((await runsAgain(session))["restored"]).toMatchObject({ files: 1, error: null });
      await session.run("grep -qx hours hours.txt");
      await session.stop();
    });

    deepTest("deletes there what an earlier version saved, with its session", async () => {
      const session = await LiveSession.startIn(life, elsewhere);
      const [bare, id] = [path.join(root, "kept.git"), session.path.split("/").at(-1) ?? ""];
      await gitOk(bare, "update-ref", `refs/wip/${id}`, "refs/heads/main");
      await session.stop();
      // The mirror fetches.
      await life.call("GET", `/v1/projects/${elsewhere}/session-options`);
      await life.call("DELETE", session.path);
      await vi.waitFor(async () => expect(await gitOk(bare, "for-each-ref", "refs/wip")).toBe(""), POLL);
    });
  });
});
