/** What the rows of changes say: what a value was, and how the work of an actor ended. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestService, type TestService } from "../../support/service/service.ts";
import {
  expectStatus,
  fields,
  invitePerson,
  makeProject,
  commitTo,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { auditOf } from "./audit-rows.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({ PLATFORM_TIER_CAPS: '{"free": 1, "pro": 9, "enterprise": 9}' });
  pid = await makeProject(service, { files: { "a.txt": "a\n" } });
});
afterAll(() => service.close());

const ask = (method: string, target: string, body?: unknown) =>
  service.request(method, target, body === undefined ? {} : { body });

const slack = (part: string) => `https://hooks.slack.com/services/T0/B0/${part}`;
const requestAt = (number: string) => `/v1/projects/${pid}/change-requests/${number}`;

/** What the newest row of an action says. */
const changesOf = async (action: string) => (await auditOf(service, action))[0]?.["changes"];
const count = async (action: string) => (await auditOf(service, action)).length;

describe("a change of values", () => {
  it("of a project says what each setting was, and nothing about those that stay [T14]", async () => {
    const body = { name: "renamed", merge_role: "owner", triggers_paused: false };
    const { name } = fields(await ask("GET", `/v1/projects/${pid}`));
    expectStatus(await ask("PATCH", `/v1/projects/${pid}`, body), 200);
    expect(await changesOf("project.updated")).toEqual({
      name: { from: name, to: "renamed" },
      merge_role: { from: "member", to: "owner" },
    });
    const rows = await count("project.updated");
    expectStatus(await ask("PATCH", `/v1/projects/${pid}`, body), 200);
    expect(await count("project.updated")).toBe(rows);
    expectStatus(await ask("PATCH", `/v1/projects/${pid}`, { default_role: null }), 200);
    expect(await changesOf("project.updated")).toEqual({ default_role: { from: "member", to: null } });
  });

  it("of the account's name says both names, which everyone in it sees [T14]", async () => {
    const { name } = fields(await ask("GET", "/v1/me"))["account"] as { readonly name: string };
    expectStatus(await ask("PATCH", "/v1/account", { name: "Greeters" }), 204);
    expect(fields(await ask("GET", "/v1/me"))["account"]).toMatchObject({ name: "Greeters" });
    expect(await changesOf("account.updated")).toEqual({ name: { from: name, to: "Greeters" } });
    for (const bad of [" ", "x".repeat(101)])
      expectStatus(await ask("PATCH", "/v1/account", { name: bad }), 400);
  });

  it("of a person, or of her role in a project, says both roles [T14]", async () => {
    const ben = await invitePerson(service, "Ben");
    expectStatus(await ask("PATCH", `/v1/people/${ben.id}`, { role: "owner", name: "Ben B." }), 200);
    expect(await changesOf("person.updated")).toEqual({
      name: { from: "Ben", to: "Ben B." },
      role: { from: "member", to: "owner" },
    });
    const member = `/v1/projects/${pid}/members/${ben.id}`;
    expectStatus(await ask("PUT", member, { role: "viewer" }), 204);
    expect(await changesOf("member.set")).toEqual({ role: { from: null, to: "viewer" } });
    expectStatus(await ask("PUT", member, { role: "owner" }), 204);
    expect(await changesOf("member.set")).toEqual({ role: { from: "viewer", to: "owner" } });
    expectStatus(await ask("POST", `/v1/people/${ben.id}/deactivate`), 200);
    expectStatus(await ask("DELETE", member), 204);
    expect(await changesOf("member.removed")).toEqual({ role: { from: "owner", to: null } });
    expectStatus(await ask("DELETE", member), 204);
    expect(await count("member.removed")).toBe(1);
  });

  it("of an outbound webhook says both, but never an address that is a secret [T14]", async () => {
    const hooks = `/v1/projects/${pid}/webhooks`;
    const made = await ask("POST", hooks, {
      url: slack("canary-1"),
      format: "slack",
      events: ["queue.full"],
    });
    const { id } = fields(expectStatus(made, 201));
    const change = async (body: Fields) =>
      expectStatus(await ask("PATCH", `${hooks}/${String(id)}`, body), 200);
    await change({ events: ["session.failed", "queue.full"], status: "disabled" });
    expect(await changesOf("webhook.updated")).toEqual({
      events: { from: ["queue.full"], to: ["session.failed", "queue.full"] },
      status: { from: "enabled", to: "disabled" },
    });
    await change({ url: slack("canary-2") });
    const changes = JSON.stringify(await changesOf("webhook.updated"));
    expect(changes).toContain("hooks.slack.com");
    expect(changes).not.toContain("canary");
  });

  it("says for each of many at once what that one replaced", async () => {
    const project = await makeProject(service);
    const { name } = fields(await ask("GET", `/v1/projects/${project}`));
    const wanted = Array.from({ length: 8 }, (_, of) => `name-${of}`);
    await Promise.all(wanted.map((to) => ask("PATCH", `/v1/projects/${project}`, { name: to })));
    const rows = (await auditOf(service, "project.updated")).filter(({ target }) => target === project);
    const links = new Map(
      rows.map(({ changes }) => {
        const { from, to } = (changes as { name: { from: string; to: string } }).name;
        return [from, to] as const;
      }),
    );
    // The rows are one chain from the first name.
    const chain: string[] = [];
    for (let at = links.get(String(name)); at !== undefined; at = links.get(at)) chain.push(at);
    expect(chain.toSorted()).toEqual(wanted);
  });
});

/** The outcomes and reasons of an action on a target, the newest first. */
const endsOf = async (action: string, target: string) =>
  (await auditOf(service, action))
    .filter((row) => row["target"] === target)
    .map(({ outcome, changes }) => [outcome, (changes as Fields)["why"]]);

describe("the work of an actor", () => {
  it("has a second row with its end, for sessions [T14]", async () => {
    const sid = await runSession(service, pid);
    const at = `/v1/projects/${pid}/sessions/${sid}`;
    expect(await endsOf("session.created", sid)).toEqual([
      ["done", undefined],
      ["begun", undefined],
    ]);
    expectStatus(await ask("POST", `/v1/projects/${pid}/sessions`, {}), 429);
    const [refused, asked] = await auditOf(service, "session.created");
    expect(refused).toMatchObject({ outcome: "refused", changes: { why: "session_cap_reached" } });
    expect(asked).toMatchObject({ outcome: "begun", request_id: refused?.["request_id"] });
    await stopSession(service, pid, sid);
    expect(await endsOf("session.stop", sid)).toEqual([
      ["done", undefined],
      ["begun", undefined],
    ]);
    const other = await runSession(service, pid);
    expectStatus(await ask("POST", `${at}/restart`), 429);
    expect(await endsOf("session.restart", sid)).toEqual([
      ["refused", "session_cap_reached"],
      ["begun", undefined],
    ]);
    await stopSession(service, pid, other);
    expectStatus(await ask("DELETE", at), 204);
    expect(await endsOf("session.delete", sid)).toEqual([
      ["done", undefined],
      ["begun", undefined],
    ]);
  });

  it("has a second row with its end, for merges [T14]", async () => {
    const open = async (branch: string, text: string) => {
      await commitTo(service, pid, { branch, files: { "a.txt": text } });
      const body = { title: branch, head_ref: branch };
      return String(
        fields(expectStatus(await ask("POST", `/v1/projects/${pid}/change-requests`, body), 201))["number"],
      );
    };
    const [one, other] = [await open("one", "one\n"), await open("other", "other\n")];
    expectStatus(await ask("POST", `${requestAt(one)}/merge`, {}), 200);
    expect(await endsOf("change_request.merge", `#${one}`)).toEqual([
      ["done", undefined],
      ["begun", undefined],
    ]);
    expectStatus(await ask("POST", `${requestAt(other)}/merge`, {}), 409);
    expect(await endsOf("change_request.merge", `#${other}`)).toEqual([
      ["refused", "conflict"],
      ["begun", undefined],
    ]);
    expectStatus(await ask("POST", `${requestAt(other)}/close`, {}), 200);
    expect(await endsOf("change_request.close", `#${other}`)).toEqual([
      ["done", undefined],
      ["begun", undefined],
    ]);
  });
});
