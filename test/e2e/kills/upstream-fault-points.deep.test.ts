/**
 * Kill -9 of the whole service between the steps of a branch, a push and a merge in a repository that another server
 * keeps (src/store/ports/faults.ts, git/upstream/external.ts E1 to E3). Afterwards that server, the mirror and the
 * tables say the same, and no temporary file is left. test/git/external/external-kills.deep.test.ts has the backend alone;
 * fault-points.deep.test.ts covers hosted repositories. `npm test` has one moment of each kind, the deep tests all of them.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { FaultPoint } from "../../../src/store/ports/faults.ts";
import { git, gitOk } from "../../git/git-client.ts";
import { startUpstream, type UpstreamServer } from "../../git/external/upstream-server.ts";
import { sessionsOf } from "../../support/service/account-view.ts";
import { ArmedService } from "../../support/service/armed-service.ts";
import { TOKEN } from "../../support/service/process-service.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";

/** Where the service dies: at a point of its own, or when the server hears of the push and before it has done it. */
const MOMENTS = ["upstream.begun", "the server's turn", "upstream.answered"] as const;
type Moment = FaultPoint | "the server's turn";

let service: ArmedService;
let upstream: UpstreamServer;
const root = mkdtempSync(path.join(tmpdir(), "upstream-"));
/** The repository at its server, a clone of it, its mirror here. */
const bare = path.join(root, "kept.git");
const work = path.join(root, "work");
let mirror = "";
let pid = "";

beforeAll(async () => {
  upstream = await startUpstream(root);
  await gitOk(root, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  mkdirSync(work);
  await gitOk(work, "init", "--quiet", "--initial-branch=main");
  await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", "Begin");
  await gitOk(work, "push", "--quiet", bare, "main");
  service = await ArmedService.open({ PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1" });
  const { origin, username, password } = upstream;
  const repository = { kind: "git", url: `${origin}/kept.git`, username, password };
  const { id } = await service.life.call("POST", "/v1/projects", {
    name: `elsewhere ${randomUUID()}`,
    repository,
  });
  pid = String(id);
  mirror = path.join(service.installation.dataDir, "mirrors", `${pid}.git`);
}, TEST_MS);
afterAll(async () => {
  await service.close();
  await upstream.close();
  rmSync(root, { recursive: true, force: true });
}, TEST_MS);
afterEach(() => {
  upstream.fault = () => null;
});

const remote = (): string => `${service.life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${pid}.git`;
/** The server's commit under the name; empty if the ref does not exist. */
const tip = async (ref: string): Promise<string> =>
  (await git(bare, "rev-parse", "--verify", "--quiet", ref)).stdout.trim();

/** Has the service die at the moment while `act` is under way. @returns when it is up again. */
const killedAt = async (moment: Moment, act: () => Promise<unknown>): Promise<void> => {
  if (moment !== "the server's turn") {
    const { died, restarted } = await service.arm(moment);
    const acted = Promise.allSettled([act()]);
    expect(await died).toEqual([`SIGKILL at ${moment}`, "SIGKILL"]);
    await Promise.all([acted, restarted]);
    return;
  }
  const killed = Promise.withResolvers<void>();
  upstream.fault = (target) => {
    if (!target.endsWith("/git-receive-pack")) return null;
    upstream.fault = () => null;
    service.kill().then(killed.resolve, killed.reject);
    return null;
  };
  await Promise.all([Promise.allSettled([act()]), killed.promise]);
};

const filesIn = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, encoding: "utf8" });

/** What git, or a service in the middle of something, leaves lying when it is killed. */
const leftovers = (): readonly string[] =>
  filesIn(path.dirname(mirror)).filter((name) =>
    /\.lock$|(?:^|\/)tmp_[^/]*$|(?:^|\/)\.(?:building|removing|key)-/.test(name),
  );
/** A look from outside may have to wait for what the killed service had started, or for its successor. */
const soon = (check: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(check, { timeout: WAIT_MS, interval: 50 });

const refs = (repository: string) => gitOk(repository, "for-each-ref", "--format=%(refname) %(objectname)");

/** Mirror and server have the same refs, the mirror is whole and not locked, and no credential lies in it [G05]. */
const expectAgreement = async (): Promise<void> => {
  // A question, so that the mirror is the server's of now.
  await gitOk(work, "ls-remote", remote());
  expect(await refs(mirror)).toBe(await refs(bare));
  expect(await gitOk(mirror, "fsck", "--strict", "--no-dangling")).toBe("");
  await soon(() => expect(leftovers().filter((name) => name.endsWith(".lock"))).toEqual([]));
  const files = filesIn(mirror).filter((name) => statSync(path.join(mirror, name)).isFile());
  expect(files).toContain("config");
  expect(files.filter((name) => name === "FETCH_HEAD" || name.startsWith("logs/"))).toEqual([]);
  const telling = files.filter((name) => readFileSync(path.join(mirror, name)).includes(upstream.password));
  expect(telling).toEqual([]);
};

/** A branch with the default branch's tip and one commit more. @returns its tip. */
const commitTo = async (branch: string): Promise<string> => {
  await gitOk(work, "fetch", "--quiet", bare, "main");
  await gitOk(work, "checkout", "--quiet", "-B", branch, "FETCH_HEAD");
  await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", `On ${branch}`);
  return gitOk(work, "rev-parse", "HEAD");
};
const push = () => git(work, "push", remote(), "HEAD");
const at = (rest = ""): string => `/v1/projects/${pid}/change-requests${rest}`;
const propose = async (branch: string): Promise<string> => {
  const { number } = await service.life.call("POST", at(), { title: branch, head_ref: branch });
  return at(`/${Number(number)}`);
};

describe.each(MOMENTS)("a service that is killed over another server's repository at %s", (moment) => {
  it(
    "of a new branch starts the session on it, at the commit of its row [I7, I8, G12]",
    async () => {
      const known = new Set((await sessionsOf(service.life, pid)).map(({ id }) => id));
      await killedAt(moment, () => service.life.call("POST", `/v1/projects/${pid}/sessions`, {}));
      const [id = "", ...more] = (await sessionsOf(service.life, pid))
        .map((session) => session.id)
        .filter((found) => !known.has(found));
      expect(more).toEqual([]);
      const session = await service.life.session(pid, id, ["running", "failed"]);
      expect(session).toMatchObject({ status: "running", base_commit: await tip("main") });
      expect(await tip(id)).toBe(await tip("main"));
      await expectAgreement();
    },
    TEST_MS,
  );
});

/** Proposes a branch beside which the default branch has moved, so that its merge has a commit of its own. */
const proposal = async () => {
  const branch = `topic-${randomUUID()}`;
  const head = await commitTo(branch);
  await gitOk(work, "push", "--quiet", remote(), "HEAD");
  await commitTo("aside");
  await gitOk(work, "push", "--quiet", bare, "HEAD:main");
  return { head, main: await tip("main"), request: await propose(branch) };
};

const merges = (): Promise<string> => gitOk(bare, "rev-list", "--count", "--merges", "main");

describe("a service that is killed over another server's repository", () => {
  it.each<Moment>([...MOMENTS, "merge.made"])(
    "at %s of a merge merges once after the restart, without another request [I17]",
    async (moment) => {
      const { head, main, request } = await proposal();
      const before = Number(await merges());
      await killedAt(moment, () => service.life.call("POST", `${request}/merge`, {}));
      await soon(async () =>
        expect(await service.life.call("GET", request)).toMatchObject({ status: "merged" }),
      );
      const merged = await tip("main");
      expect(await gitOk(bare, "log", "-1", "--format=%P", "main")).toBe(`${main} ${head}`);
      expect(await service.life.call("GET", request)).toMatchObject({
        status: "merged",
        merged_commit: merged,
      });
      await expect(service.life.call("POST", `${request}/merge`, {})).rejects.toThrow("not_open");
      expect([Number(await merges()), await tip("main")]).toEqual([before + 1, merged]);
      await expectAgreement();
    },
    TEST_MS,
  );
});

describe.each(MOMENTS)("a service that is killed over another server's repository at %s", (moment) => {
  it(
    "of a push to a session's branch allows the push again, and the request shows it [G12]",
    async () => {
      const [session] = await sessionsOf(service.life, pid);
      const branch = session?.id ?? "";
      const before = await tip(branch);
      await gitOk(work, "fetch", "--quiet", bare, branch);
      await gitOk(work, "checkout", "--quiet", "-B", branch, "FETCH_HEAD");
      await gitOk(work, "commit", "--quiet", "--allow-empty", "-m", `Pushed at ${moment}`);
      const head = await gitOk(work, "rev-parse", "HEAD");
      const pushed = Promise.withResolvers<number>();
      await killedAt(moment, async () => pushed.resolve((await push()).code));
      expect(await pushed.promise).not.toBe(0);
      if (moment === "upstream.begun") expect(await tip(branch)).toBe(before);
      // What the killed service had asked for may be done only now.
      else await soon(async () => expect(await tip(branch)).toBe(head));
      await expectAgreement();
      expect((await push()).code).toBe(0);
      expect(await tip(branch)).toBe(head);
      const request = await propose(branch);
      expect(await service.life.call("GET", request)).toMatchObject({ head_commit: head });
      await service.life.call("POST", `${request}/close`);
      await expectAgreement();
    },
    TEST_MS,
  );
});

describe("after all these kills", () => {
  it(
    "no quarantine, no partial pack, no lock and no process is left",
    async () => {
      // The last one began right after a push was killed: what lay there was too young to be swept at once.
      await soon(() => expect(leftovers()).toEqual([]));
      expect(await service.end()).toEqual({ code: 0, left: [] });
    },
    TEST_MS,
  );
});
