/**
 * The remains of a service that died between the creation of a repository and its project's row. The next service
 * finds them in its directory.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { GitBackend } from "../../../src/git/port.ts";
import { gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { commitFiles, eventually, expectStatus, fields } from "../../support/service/requests.ts";

const root = mkdtempSync(path.join(tmpdir(), "unclaimed-"));
const dataDir = path.join(root, "data");
const upstreams = path.join(root, "upstreams");
const AN_HOUR_AGO = new Date(new Date().getTime() - 3_600_000);

let upstream: UpstreamServer;
beforeAll(async () => {
  for (const directory of [dataDir, upstreams]) mkdirSync(directory);
  const [bare, clone] = [path.join(upstreams, "a.git"), path.join(root, "clone")];
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  await gitOk(root, "clone", "--quiet", bare, clone);
  await commitFiles(clone, { "README.md": "one\n" });
  await gitOk(clone, "push", "--quiet", "origin", "HEAD:refs/heads/main");
  upstream = await startUpstream(upstreams);
});
afterAll(async () => {
  await upstream.close();
  rmSync(root, { recursive: true, force: true });
});

const start = (): Promise<TestService> =>
  startTestService({ PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1", PLATFORM_DATA_DIR: dataDir });
const here = (directory: string, projectId: string): string =>
  path.join(dataDir, directory, `${projectId}.git`);

it("is removed at the start, of every kind; a hosted repository that belonged to a project is not, even with other rows", async () => {
  const [mirror, hosted, codeHosted] = [randomUUID(), randomUUID(), randomUUID()];
  const credential = { kind: "password", username: upstream.username, password: upstream.password } as const;
  const source = { kind: "git", url: `${upstream.origin}/a.git` } as const;
  const request = { importFrom: null, defaultBranch: null };
  let claimed = "";
  const first = await start();
  const makeProject = async (repository: unknown): Promise<string> =>
    String(
      fields(
        expectStatus(
          await first.request("POST", "/v1/projects", { body: { name: `made ${randomUUID()}`, repository } }),
          201,
        ),
      )["id"],
    );
  try {
    // As far as the dead service came.
    await first.inside(
      Effect.flatMap(GitBackend, ({ create }) =>
        Effect.andThen(
          create({ ...request, projectId: mirror, upstream: { source, credential } }),
          create({ ...request, projectId: hosted }),
        ),
      ),
    );
    mkdirSync(here("code-host-mirrors", codeHosted), { recursive: true });
    claimed = await makeProject({ kind: "hosted" });
    expect(existsSync(path.join(here("repositories", claimed), "unclaimed"))).toBe(false);
    utimesSync(here("repositories", claimed), AN_HOUR_AGO, AN_HOUR_AGO);
  } finally {
    await first.close();
  }
  const left = [
    here("mirrors", mirror),
    here("code-host-mirrors", codeHosted),
    path.join(here("repositories", hosted), "unclaimed"),
  ];
  for (const file of left) utimesSync(file, AN_HOUR_AGO, AN_HOUR_AGO);

  const second = await start();
  try {
    await eventually(() => expect(left.filter((file) => existsSync(file))).toEqual([]));
    expect(existsSync(here("repositories", hosted))).toBe(false);
    // Each service of these tests has a database of its own.
    expect(existsSync(here("repositories", claimed))).toBe(true);
    const removed = second.logs.filter((line) => line.includes("a repository without a project is removed"));
    expect(removed).toHaveLength(3);
  } finally {
    await second.close();
  }
});
