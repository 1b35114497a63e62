/**
 * The manifests of docs/use/triggers.md and docs/use/webhooks.md as they stand, against a sender that behaves as GitHub
 * does: it also reports the branches that the service creates, their pushes, their pull requests and their deletion.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeProject,
  putSecret,
  SECRET,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await shareService();
});
afterAll(() => service.close());

const pageText = (name: string) =>
  readFileSync(new URL(`../../../docs/use/${name}`, import.meta.url), "utf8");
const block = (text: string, pattern: RegExp): string => {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) throw new Error(`The page has no block ${String(pattern)}`);
  return found;
};
const MANIFEST = block(pageText("triggers.md"), /cat > platform\.toml <<'END'\n(.*?)^END$/ms);
const FILTERS = [...pageText("webhooks.md").matchAll(/^```toml\n(\[webhooks.*?)^```$/gms)].map(
  ([, text]) => text,
);
/** The page's trigger with another of the documented filters, or with none. */
const withFilter = (filter = "") => MANIFEST.replace(/\[webhooks\.on-push\]\n(?:.+\n)*/, filter);

const NONE = "0".repeat(40);
const [OLD, NEW] = ["1".repeat(40), "2".repeat(40)];

class GitHub {
  readonly #pid: string;
  constructor(pid: string) {
    this.#pid = pid;
  }

  async send(event: string, payload: Fields): Promise<Fields> {
    const body = JSON.stringify({
      repository: { full_name: "octo/hello" },
      sender: { login: "octocat", id: 1 },
      ...payload,
    });
    const headers = {
      "x-github-event": event,
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": `sha256=${hmac(body)}`,
    };
    const answer = await deliver(service, `${this.#pid}/on-push`, { body, headers });
    return fields(answer);
  }

  push(branch: string, commit: Fields = {}) {
    const head = { id: NEW, message: "Say hello" };
    const ref = `refs/heads/${branch}`;
    return this.send("push", {
      ref,
      before: OLD,
      after: NEW,
      created: false,
      deleted: false,
      forced: false,
      head_commit: head,
      ...commit,
    });
  }

  /** GitHub's deliveries while a session works, and after the merge of its pull request. */
  async echoes(branch: string): Promise<readonly Fields[]> {
    const repo = { full_name: "octo/hello" };
    const pull = {
      number: 7,
      user: { id: 1 },
      head: { ref: branch, sha: NEW, repo },
      base: { ref: "main", repo },
    };
    return [
      await this.send("create", { ref: branch, ref_type: "branch" }),
      await this.push(branch, { before: NONE, created: true, head_commit: { id: OLD, message: "Before" } }),
      await this.push(branch),
      await this.send("pull_request", { action: "opened", number: 7, pull_request: pull }),
      await this.send("pull_request", { action: "synchronize", number: 7, pull_request: pull }),
      await this.send("delete", { ref: branch, ref_type: "branch" }),
      await this.push(branch, { after: NONE, deleted: true, head_commit: null }),
    ];
  }
}

const makeDocumented = async (manifest: string) => {
  const pid = await makeProject(service, { files: { "platform.toml": manifest } });
  await putSecret(service, pid, "GITHUB_WEBHOOK_SECRET", SECRET);
  const listing = await service.request("GET", `/v1/projects/${pid}/triggers`);
  expect(listOf(expectStatus(listing, 200), "errors")).toEqual([]);
  return { pid, github: new GitHub(pid) };
};
const sessionCount = async (pid: string) =>
  listOf(await service.request("GET", `/v1/projects/${pid}/sessions`), "sessions").length;

it.each([
  ["as it stands", MANIFEST],
  ["without its filter", withFilter()],
  ["with the filter of events", withFilter(FILTERS[0])],
])(
  "a push to main starts one session, and its merge the second: the documented trigger %s",
  async (_, manifest) => {
    const { pid, github } = await makeDocumented(manifest);
    const fired = await github.push("main");
    expect(fired).toMatchObject({ status: "fired" });
    const echoes = await github.echoes(String(fired["session_id"]));
    for (const echo of echoes) expect(echo).toMatchObject({ status: "skipped" });
    expect(await sessionCount(pid)).toBe(1);
    expect(await github.push("main")).toMatchObject({ status: "fired" });
    expect(await sessionCount(pid)).toBe(2);
  },
);

it("a person's push to a session's branch fires where the documented filter asks for it", async () => {
  const { github } = await makeDocumented(withFilter(FILTERS[1]));
  const { session_id: branch } = await github.push("main");
  expect(await github.push(String(branch))).toMatchObject({ status: "fired" });
  expect(await github.push(String(branch), { sender: { login: "service[bot]" } })).toMatchObject({
    status: "skipped",
    reason: "filtered",
  });
});
