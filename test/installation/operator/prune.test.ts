/** `platform branches prune --merged` beside a running service (api.md 6): what goes, and everything that stays. */
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pruneMerged, type PruneWish } from "../../../src/installation/operator/prune.ts";
import { gitOk } from "../../git/git-client.ts";
import { startUpstream } from "../../git/external/upstream-server.ts";
import {
  expectStatus,
  fields,
  makeProject,
  pushFiles,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({ PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1" });
  pid = await makeProject(service, { files: {} });
});
afterAll(() => service.close());

const prune = (wish: Partial<PruneWish> = {}, dataDir = service.dataDir) =>
  Effect.runPromise(
    Effect.scoped(
      pruneMerged(
        { DATABASE_URL: service.databaseUrl, PLATFORM_DATA_DIR: dataDir },
        { projectId: pid, isDryRun: false, ...wish },
      ),
    ),
  );

const propose = async (more: Fields, id = pid): Promise<string> => {
  const body = { title: "Work", ...more };
  const answer = await service.request("POST", `/v1/projects/${id}/change-requests`, { body });
  return `/v1/projects/${id}/change-requests/${String(fields(expectStatus(answer, 201))["number"])}`;
};
const end = async (request: string, how: "merge" | "close"): Promise<void> =>
  void expectStatus(await service.request("POST", `${request}/${how}`, { body: {} }), 200);
const branches = async (): Promise<readonly string[]> => {
  const bare = path.join(service.dataDir, "repositories", `${pid}.git`);
  return (await gitOk(bare, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n");
};

describe("the branch of a session whose change request is merged", () => {
  let sid = "";
  const kept = (reason: string) => [{ project_id: pid, session_id: sid, outcome: "kept", reason }];
  const push = (file: string) =>
    pushFiles(service, pid, { branch: sid, from: sid, files: { [file]: "new\n" } });
  beforeAll(async () => {
    sid = await runSession(service, pid);
    await push("first.txt");
    await end(await propose({ session_id: sid }), "merge");
  });

  it("stays while the session is live, and in a dry run", async () => {
    expect(await prune()).toEqual(kept("the session is live"));
    await stopSession(service, pid, sid);
    const gone = [{ project_id: pid, session_id: sid, outcome: "removed", reason: null }];
    expect(await prune({ isDryRun: true })).toEqual(gone);
    expect(await branches()).toContain(sid);
  });

  it("stays while another change request of it is open, or if it has commits after the merge", async () => {
    await push("second.txt");
    expect(await prune()).toEqual(kept("it has commits that are not on main"));
    const again = await propose({ session_id: sid });
    expect(await prune()).toEqual([]);
    await end(again, "merge");
  });

  it("is removed once, however many of its requests were merged, and no user's branch is removed with it", async () => {
    await pushFiles(service, pid, { branch: "topic", files: { "topic.txt": "new\n" } });
    await end(await propose({ head_ref: "topic" }), "merge");
    const gone = [{ project_id: pid, session_id: sid, outcome: "removed", reason: null }];
    expect(await prune({ isDryRun: true })).toEqual(gone);
    expect(await prune({ projectId: null })).toEqual(gone);
    expect(await branches()).toEqual(["feature", "main", "topic"]);
    expect(await prune({ projectId: null })).toEqual([]);
  });
});

it("is left alone on other servers", async () => {
  const root = mkdtempSync(path.join(tmpdir(), "upstream-"));
  const upstream = await startUpstream(root);
  try {
    const bare = path.join(root, "kept.git");
    await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
    await gitOk(path.join(service.dataDir, "repositories", `${pid}.git`), "push", "--quiet", bare, "main");
    const { origin, username, password } = upstream;
    const repository = { kind: "git", url: `${origin}/kept.git`, username, password };
    const made = await service.request("POST", "/v1/projects", { body: { name: "elsewhere", repository } });
    const id = String(fields(expectStatus(made, 201))["id"]);
    const sid = await runSession(service, id);
    await pushFiles(service, id, { branch: sid, from: sid, files: { "elsewhere.txt": "new\n" } });
    await end(await propose({ session_id: sid }, id), "merge");
    await stopSession(service, id, sid);
    expect(await prune({ projectId: id })).toEqual([]);
    expect(await gitOk(bare, "rev-parse", sid)).toBe(await gitOk(bare, "rev-parse", "main"));
  } finally {
    await upstream.close();
    rmSync(root, { recursive: true });
  }
});

describe("an operator who prunes", () => {
  it("gets an error for an unknown project", async () => {
    await expect(prune({ projectId: "01890000-0000-7000-8000-000000000000" })).rejects.toThrow(
      "Project not found.",
    );
  });

  it("is refused as another user than the repositories' owner", async () => {
    const isRoot = process.geteuid?.() === 0;
    const directory = mkdtempSync(path.join(tmpdir(), "prune-"));
    if (isRoot) chownSync(directory, 65_534, 65_534);
    await expect(prune({}, isRoot ? directory : "/")).rejects.toThrow("Run this command as that user");
    rmSync(directory, { recursive: true });
  });
});
