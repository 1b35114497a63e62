/** How change requests end (api.md 6, src/machines/change-request.ts): merged or closed. */
import { randomUUID } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { gitOk } from "../../git/git-client.ts";
import { gitStandIn } from "../../git/git-stand-in.ts";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  commitTo,
  runSession,
  webhookEntry,
  type Fields,
  type Files,
} from "../../support/service/requests.ts";

let service: TestService;
let pid = "";
let userId = "";
beforeAll(async () => {
  service = await shareService();
  userId = String((fields(await service.request("GET", "/v1/me"))["user"] as Fields)["id"]);
});
beforeEach(async () => {
  pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push") } });
});
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => service.close());

const at = (rest = ""): string => `/v1/projects/${pid}/change-requests${rest}`;
const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const merge = (number: number, body: Fields = {}): Promise<Answer> =>
  service.request("POST", at(`/${number}/merge`), { body });
const close = (number: number, token = service.token): Promise<Answer> =>
  service.request("POST", at(`/${number}/close`), { token });
const get = async (number: number): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", at(`/${number}`)), 200));

/** Pushes files to a new branch. @returns the number of its change request. */
const propose = async (branch: string, files: Files): Promise<number> => {
  await commitTo(service, pid, { branch, files });
  const answer = await service.request("POST", at(), { body: { title: "A change", head_ref: branch } });
  return Number(fields(expectStatus(answer, 201))["number"]);
};

const bare = (): string => path.join(service.dataDir, "repositories", `${pid}.git`);
const rev = (name: string): Promise<string> => gitOk(bare(), "rev-parse", name);
const filesOf = async (name: string): Promise<readonly string[]> =>
  (await gitOk(bare(), "ls-tree", "--name-only", name)).split("\n");
const messageOf = (name: string): Promise<string> => gitOk(bare(), "log", "-1", "--format=%B", name);
const slugs = async (): Promise<readonly unknown[]> =>
  listOf(await service.request("GET", `/v1/projects/${pid}/triggers`), "triggers").map(({ slug }) => slug);

/** From here on git waits before it moves the default branch: `asked` when it is about to, `go` lets it. */
const holdMerge = () => {
  const [asked, go] = ["asked", "go"].map((name) => path.join(service.importRoot, `${name}-${randomUUID()}`));
  gitStandIn(
    service.importRoot,
    `case " $* " in *" update-ref "*) touch '${asked}'; until [ -e '${go}' ]; do sleep 0.05; done ;; esac
     exec "$REAL" "$@"`,
    service.dataDir,
  );
  return {
    asked: () => eventually(() => expect(existsSync(asked ?? "")).toBe(true)),
    go: () => writeFileSync(go ?? "", ""),
  };
};

it("a squash merges as one commit that tells the title and the description, and the request knows it", async () => {
  await commitTo(service, pid, { branch: "work", files: { "a.txt": "1\n" } });
  await commitTo(service, pid, { branch: "work", files: { "a.txt": "2\n" }, from: "work" });
  const body = { title: "A change", description: "Why.", head_ref: "work" };
  const number = Number(fields(expectStatus(await service.request("POST", at(), { body }), 201))["number"]);
  const before = await rev("main");
  const merged = fields(expectStatus(await merge(number, { squash: true }), 200));
  expect(merged).toMatchObject({ status: "merged", merged_commit: await rev("main"), merged_by: userId });
  expect(await rev("main^@")).toBe(before);
  expect((await messageOf("main")).trim()).toBe(`A change (#${number})\n\nWhy.`);
  expect(await get(number)).toMatchObject({ commits_total: 2, files_changed: [{ path: "a.txt" }] });
  // Nothing leads to its commits any more.
  await gitOk(bare(), "update-ref", "-d", "refs/heads/work");
  await gitOk(bare(), "gc", "--quiet", "--prune=now");
  expect(await get(number)).toMatchObject({ commits_total: 1, files_changed: [{ path: "a.txt" }] });
  expect((await service.request("GET", at(`/${number}/diff`))).text).toContain("+2");
});

it("a second request of a branch that was squashed shows its own work alone, also once it is merged", async () => {
  const again = { title: "A change", head_ref: "work" };
  const numbers: number[] = [];
  const work = { commits_total: 1, files_changed: [{ path: "b.txt" }] };
  for (const file of ["a.txt", "b.txt"]) {
    const from = numbers.length === 0 ? {} : { from: "work" };
    await commitTo(service, pid, { branch: "work", files: { [file]: "1\n" }, ...from });
    const answer = expectStatus(await service.request("POST", at(), { body: again }), 201);
    const number = Number(fields(answer)["number"]);
    numbers.push(number);
    if (file === "b.txt") expect(await get(number)).toMatchObject({ ...work, mergeable: true });
    expectStatus(await merge(number, { squash: true }), 200);
  }
  const [first = 0, second = 0] = numbers;
  expect(await get(second)).toMatchObject(work);
  expect((await service.request("GET", at(`/${second}/diff`))).text).not.toContain("a.txt");
  expect(await get(first)).toMatchObject({ commits_total: 1, files_changed: [{ path: "a.txt" }] });
});

it("work that a squash merged is not proposed again, and newer work counts from there", async () => {
  const id = await runSession(service, pid);
  const changesPath = `/v1/projects/${pid}/sessions/${id}/changes`;
  const changes = async () => fields(expectStatus(await service.request("GET", changesPath), 200));
  const open = () => service.request("POST", at(), { body: { title: "A change", session_id: id } });
  await commitTo(service, pid, { branch: id, files: { "a.txt": "1\n" }, from: id });
  const number = Number(fields(expectStatus(await open(), 201))["number"]);
  const merged = String(fields(expectStatus(await merge(number, { squash: true }), 200))["merged_commit"]);
  // The default branch goes on in the same file, so git alone could not tell.
  await commitTo(service, pid, { branch: "next", files: { "a.txt": "3\n" } });
  await gitOk(bare(), "update-ref", "refs/heads/main", await rev("next"));
  expect(await changes()).toMatchObject({ commits_total: 0, files_changed: [] });
  const refused = await open();
  expect([seen(refused), fields(refused)["error"]]).toEqual([
    [422, "no_changes"],
    `There is nothing to propose: main has every change of the branch ${id}, merged as ${merged.slice(0, 7)} (#${String(number)}).`,
  ]);
  await commitTo(service, pid, { branch: id, files: { "b.txt": "1\n" }, from: id });
  const work = { commits_total: 1, files_changed: [{ path: "b.txt" }] };
  expect(await changes()).toMatchObject(work);
  const second = Number(fields(expectStatus(await open(), 201))["number"]);
  // The work of the first request was changed since. Git alone would merge it again.
  expect(await get(second)).toMatchObject({ ...work, mergeable: false, conflicts: ["a.txt"] });
  const diff = async (of: number) => (await service.request("GET", at(`/${of}/diff`))).text;
  expect(await diff(second)).not.toContain("a.txt");
  expectStatus(await close(second), 200);
  // The default branch has it by another way.
  await commitTo(service, pid, { branch: "beside", files: { "b.txt": "2\n" } });
  await commitTo(service, pid, { branch: "again", files: { "b.txt": "2\n" } });
  await gitOk(bare(), "update-ref", "refs/heads/main", await rev("beside"));
  const body = { title: "Again", head_ref: "again" };
  expect(seen(await service.request("POST", at(), { body }))).toEqual([422, "no_changes"]);
  // A commit that changes no file can be proposed.
  await commitTo(service, pid, { branch: "empty", files: {} });
  const empty = { title: "Empty", head_ref: "empty" };
  expect((await service.request("POST", at(), { body: empty })).status).toBe(201);
});

describe("a merge", () => {
  it("fast-forwards the default branch to the head, and the request shows it", async () => {
    const number = await propose("work", { "a.txt": "a\n" });
    const [head, open] = [await rev("work"), await get(number)];
    const merged = fields(expectStatus(await merge(number), 200));
    expect(merged).toMatchObject({ number, status: "merged", merged_commit: head, merged_by: userId });
    expect(merged["merged_at"]).toBe(merged["updated_at"]);
    expect([await rev("main"), await rev("work")]).toEqual([head, head]);
    expect(listOf(await service.request("GET", at("?status=merged")), "change_requests")).toEqual([
      { ...merged, review_asked: null },
    ]);
    // A merged request is shown as it was, although the branches are now equal.
    expect(await get(number)).toEqual({ ...open, ...merged, mergeable: false });
    expect((await service.request("GET", at(`/${number}/diff`))).text).toContain("+a");
  });

  it("otherwise makes a merge commit, by default under the number and the title", async () => {
    const [one, two, three] = [
      await propose("one", { "1.txt": "1\n" }),
      await propose("two", { "2.txt": "2\n" }),
      await propose("three", { "3.txt": "3\n" }),
    ];
    for (const number of [one, two]) expectStatus(await merge(number), 200);
    expect(await messageOf("main")).toBe("Merge change request #2: A change");
    const merged = fields(expectStatus(await merge(three, { message: "Take three\n\nAll of it." }), 200));
    expect(merged["merged_commit"]).toBe(await rev("main"));
    expect(await messageOf("main")).toBe("Take three\n\nAll of it.");
    expect(await filesOf("main")).toEqual(["1.txt", "2.txt", "3.txt", "README.md", "platform.toml"]);
    expect((await get(two))["files_changed"]).toEqual([{ path: "2.txt", additions: 1, deletions: 0 }]);
  });

  it("reads the manifest again, with its triggers", async () => {
    const manifest = `${webhookEntry("push")}\n${webhookEntry("new")}`;
    const number = await propose("manifest", { "platform.toml": manifest });
    expect(await slugs()).toEqual(["push"]);
    expectStatus(await merge(number), 200);
    expect(await slugs()).toEqual(["push", "new"]);
  });

  it("in conflict is 409 with the paths, moves nothing and succeeds once they are resolved", async () => {
    const [one, two] = [
      await propose("one", { "README.md": "left\n", "a.txt": "left\n", "one.txt": "fine\n" }),
      await propose("two", { "README.md": "right\n", "a.txt": "right\n", "two.txt": "fine\n" }),
    ];
    expectStatus(await merge(one), 200);
    const main = await rev("main");
    const refused = await merge(two);
    expect(seen(refused)).toEqual([409, "merge_conflict"]);
    expect(fields(refused)["details"]).toEqual({ paths: ["README.md", "a.txt"] });
    expect(fields(refused)["error"]).toContain("README.md, a.txt");
    expect([await rev("main"), (await get(two))["status"]]).toEqual([main, "open"]);
    await gitOk(bare(), "update-ref", "refs/heads/two", main);
    await commitTo(service, pid, { branch: "two", files: { "README.md": "both\n" }, from: "two" });
    expectStatus(await merge(two), 200);
    expect(await gitOk(bare(), "show", "main:README.md")).toBe("both");
  });

  it("or a close of a merged or closed one is 409, of an unknown one 404", async () => {
    const [one, two] = [await propose("one", { a: "1\n" }), await propose("two", { b: "2\n" })];
    expectStatus(await merge(one), 200);
    expectStatus(await close(two), 200);
    const main = await rev("main");
    expect(seen(await merge(one))).toEqual([409, "not_open"]);
    expect(seen(await merge(two))).toEqual([409, "not_open"]);
    expect(seen(await merge(99))).toEqual([404, "not_found"]);
    expect(seen(await close(one))).toEqual([409, "not_open"]);
    expect(seen(await close(99))).toEqual([404, "not_found"]);
    expect(await rev("main")).toBe(main);
  });

  it("of a branch without its own commits is refused, and a request for it is as well", async () => {
    const outer = await propose("outer", { a: "1\n" });
    await gitOk(bare(), "branch", "inner", "outer");
    const body = { title: "The same", head_ref: "inner" };
    const inner = Number(fields(expectStatus(await service.request("POST", at(), { body }), 201))["number"]);
    expectStatus(await merge(outer), 200);
    expect(seen(await merge(inner))).toEqual([422, "no_changes"]);
    expect((await get(inner))["status"]).toBe("open");
    await gitOk(bare(), "branch", "behind", "main~1");
    const behind = { title: "Behind", head_ref: "behind" };
    expect(seen(await service.request("POST", at(), { body: behind }))).toEqual([422, "no_changes"]);
    expectStatus(await close(inner), 200);
  });

  it("of a missing branch is 409", async () => {
    const number = await propose("work", { a: "1\n" });
    await gitOk(bare(), "branch", "-D", "work");
    expect(seen(await merge(number))).toEqual([409, "ref_gone"]);
    expectStatus(await close(number), 200);
  });

  it("with a wrong message is 400, and does not happen", async () => {
    const number = await propose("work", { a: "1\n" });
    expect(seen(await merge(number, { message: "" }))).toEqual([400, "invalid_request"]);
    expect((await get(number))["status"]).toBe("open");
  });

  it("completes if its caller has left", async () => {
    const number = await propose("work", { a: "1\n" });
    const held = holdMerge();
    const gone = new AbortController();
    const request = fetch(`${service.url}${at(`/${number}/merge`)}`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.token}`, "content-type": "application/json" },
      body: "{}",
      signal: gone.signal,
    });
    const refused = expect(request).rejects.toThrow();
    await held.asked();
    gone.abort();
    await refused;
    // The service knows of the disconnect when it answers another request of the same client.
    expectStatus(await service.request("GET", "/v1/me"), 200);
    held.go();
    await eventually(async () => expect((await get(number))["status"]).toBe("merged"));
  });

  it("that is under way is shown as open, cannot be closed, and answers each caller", async () => {
    const number = await propose("work", { a: "1\n" });
    const held = holdMerge();
    const merges = [merge(number), merge(number)];
    await held.asked();
    expect((await get(number))["status"]).toBe("open");
    expect(seen(await close(number))).toEqual([409, "merge_unfinished"]);
    held.go();
    const answers = await Promise.all(merges);
    for (const answer of answers)
      expect(fields(expectStatus(answer, 200))).toMatchObject({ status: "merged", merged_by: userId });
    expect(seen(await close(number))).toEqual([409, "not_open"]);
  });
});

describe("a close", () => {
  it("ends a request and leaves its branch, which may have another one", async () => {
    const number = await propose("work", { a: "1\n" });
    const [main, head] = [await rev("main"), await rev("work")];
    const closed = fields(expectStatus(await close(number), 200));
    expect(closed).toMatchObject({ number, status: "closed", merged_commit: null, merged_at: null });
    expect([await rev("main"), await rev("work")]).toEqual([main, head]);
    expect(fields(expectStatus(await close(number), 200))).toEqual(closed);
    expect((await get(number))["mergeable"]).toBe(false);
    const again = await service.request("POST", at(), { body: { title: "Again", head_ref: "work" } });
    expect(again.status).toBe(201);
  });
});
