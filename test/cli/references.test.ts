/** What may stand for an id, against a server with fixed lists. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isOfProject, repositoryKey } from "../../src/cli/project-here.ts";
import { runHere } from "../support/service/command-line.ts";

const id = (end: string): string => `0190f3b2-0000-7000-8000-0000${end}`;
const PROJECTS = [
  { id: id("000000a1"), name: "greeter" },
  { id: id("000000a2"), name: "twin" },
  { id: id("000000a3"), name: "Twin" },
];
/** Two pages. */
const SESSIONS = [[{ id: id("000000b1"), name: "Fix it" }], [{ id: id("000000b2"), name: null }]];

let server: Server;
let asked: string[] = [];

const answerTo = (url: URL): unknown => {
  if (url.pathname === "/v1/projects") return { projects: PROJECTS, next_cursor: null };
  const project = PROJECTS.find((one) => url.pathname === `/v1/projects/${one.id}`);
  if (project !== undefined) return project;
  if (url.pathname.endsWith("/sessions")) {
    const at = Number(url.searchParams.get("cursor") ?? 0);
    return { sessions: SESSIONS[at] ?? [], next_cursor: at === 0 ? "1" : null };
  }
  return {};
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const url = new URL(request.url ?? "", "http://server");
    asked.push(`${request.method} ${url.pathname}`);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answerTo(url)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  asked = [];
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const environment = () => ({
  PLATFORM_API_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
  PLATFORM_CLI_TOKEN: `platform_pat_${"a".repeat(43)}`,
});
const run = (...args: readonly string[]) => runHere(args, { env: environment() });

const deleted = (project: string, session: string): string =>
  `DELETE /v1/projects/${project}/sessions/${session}`;

it.each([
  ["an id, which is not looked for", id("000000b7"), id("000000b7")],
  ["the last digits of one on a later page", "000000b2", id("000000b2")],
  ["a name in any case", "fix IT", id("000000b1")],
])("takes %s", async (_, written, sid) => {
  expect(await run("sessions", "delete", written, "--project", "greeter")).toMatchObject({ code: 0 });
  expect(asked.at(-1)).toBe(deleted(id("000000a1"), sid));
});

it("takes the last digits of a project", async () => {
  await run("sessions", "delete", id("000000b1"), "--project", "000000a2");
  expect(asked.at(-1)).toBe(deleted(id("000000a2"), id("000000b1")));
});

it("refuses a name that several have with their ends, and one that none has without repeating it", async () => {
  expect(await run("projects", "show", "twin")).toEqual({
    code: 2,
    stdout: "",
    stderr: "Several have this name. Give the last digits of one: 000000a2, 000000a3.\n",
  });
  const unknown = await run("sessions", "delete", "platform_pat_SECRET", "--project", "greeter");
  expect(unknown).toEqual({
    code: 4,
    stdout: "",
    stderr: "No such session: give its id, the last 8 digits of it, or its name.\n",
  });
});

describe("what cannot be undone", () => {
  const SESSION = id("000000b1");
  const remove = async (input: string, ...more: readonly string[]) => {
    const line = ["sessions", "delete", SESSION, "--project", id("000000a1"), ...more];
    const ended = await runHere(line, { env: environment(), input, isWatched: true, isTyped: true });
    return { ...ended, isDone: asked.includes(deleted(id("000000a1"), SESSION)) };
  };

  it("is asked of a person at a terminal, and only yes does it", async () => {
    const no = await remove("n\n");
    expect(no).toMatchObject({ code: 0, isDone: false });
    expect(no.stderr).toContain(
      "Delete the session with its conversation, its log and its saved work? [y/N] ",
    );
    expect(no.stderr).toContain("Nothing was done.");
    expect(await remove("y\n")).toMatchObject({ code: 0, isDone: true });
  });

  it.each(["--yes", "--json"])("is not asked with %s", async (option) => {
    expect(await remove("", option)).toMatchObject({ code: 0, isDone: true });
  });
});

const removeProject = async (input: string, ...more: readonly string[]) => {
  const line = ["projects", "delete", id("000000a1"), ...more];
  const ended = await runHere(line, { env: environment(), input, isWatched: true, isTyped: true });
  return { ...ended, isDone: asked.includes(`DELETE /v1/projects/${id("000000a1")}`) };
};

describe("the deletion of a project", () => {
  it("waits for the project's name, or --yes", async () => {
    const mistyped = await removeProject("y\n");
    expect(mistyped).toMatchObject({ code: 0, isDone: false });
    expect(mistyped.stderr).toContain(`Type the project's name, ${PROJECTS[0]?.name}, to delete it: `);
    expect(await removeProject(`${PROJECTS[0]?.name}\n`)).toMatchObject({ isDone: true });
    expect(await removeProject("", "--yes")).toMatchObject({ isDone: true });
  });
});

it.each([
  ["https://user@example.org:8443/team/code.git/", "example.org/team/code"],
  ["git@Example.org:team/code.git", "example.org/team/code"],
  ["ssh://git@example.org/team/code", "example.org/team/code"],
])("a remote %s is the repository %s", (remote, key) => {
  expect(repositoryKey(remote)).toBe(key);
});

it.each([
  [`https://platform.example.org/v1/git/${id("000000a1")}.git`, { kind: "hosted" }, true],
  [`https://platform.example.org/v1/git/${id("000000a2")}.git`, { kind: "hosted" }, false],
  ["git@example.org:team/code.git", { kind: "git", url: "https://example.org/team/code" }, true],
  ["git@example.org:team/other.git", { kind: "git", url: "https://example.org/team/code" }, false],
  ["git@github.com:Team/code.git", { kind: "github", owner: "team", name: "code" }, true],
  [
    "https://github.example.org/team/code",
    { kind: "github", owner: "team", name: "code", api_url: "https://github.example.org/api/v3" },
    true,
  ],
] as const)("the project of a clone is known by its remote: %s", (remote, repository, isIt) => {
  expect(isOfProject(remote, { id: id("000000a1"), repository })).toBe(isIt);
});
