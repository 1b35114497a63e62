/** What may stand for an id, against a server with fixed lists. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { commands } from "../../src/assembly/commands.ts";
import { isOfProject, repositoryKey } from "../../src/cli/project-here.ts";
import { resolveId } from "../../src/cli/references.ts";
import type { Client } from "../../src/cli/client.ts";
import { EXIT, Failure } from "../../src/cli/failure.ts";
import { ID_KINDS, type IdKind } from "../../src/cli/words.ts";
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
  if (url.pathname.endsWith("/change-requests/7")) return { number: 7, base_ref: "main", warnings: [] };
  if (url.pathname.endsWith("/saves")) return { turns: [{ id: id("000000c1"), at: "" }], bytes: 0 };
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

/** A client whose lists, whatever they are of, have one thing. */
const having = (only: string): Client => {
  const one = [{ id: only, fire_id: only, project_id: PROJECTS[0]?.id }];
  const of = (name: string | symbol): unknown => {
    if (name === "next_cursor") return null;
    return name === "saved" ? { earlier: one } : one;
  };
  const value = new Proxy({}, { get: (_, name) => of(name) });
  return { call: () => Promise.resolve({ value }) } as unknown as Client;
};

it.each(ID_KINDS)("takes the last digits of each kind of id: %s", async (kind) => {
  const api = having(id("000000d1"));
  const scope = { api: () => api, project: () => Promise.resolve(PROJECTS[0]?.id ?? "") };
  const before = { NUMBER: "7" };
  expect(await resolveId("000000d1", kind, { scope, before })).toBe(id("000000d1"));
});

it("looks for an actor among people, and then among sessions, and without people among sessions alone", async () => {
  const scope = (people: () => unknown) => ({
    api: () =>
      ({
        call: (route: string) =>
          route === "GET /v1/people"
            ? Promise.resolve().then(people)
            : Promise.resolve({
                value: { sessions: [{ id: id("000000b1"), name: "Fix it" }], next_cursor: null },
              }),
      }) as unknown as Client,
    project: () => Promise.reject(new Error("no project")),
  });
  const listed = scope(() => ({
    value: { people: [{ id: id("000000e1"), name: "ada" }], next_cursor: null },
  }));
  expect(await resolveId("Ada", "ACTOR", { scope: listed })).toBe(id("000000e1"));
  expect(await resolveId("fix it", "ACTOR", { scope: listed })).toBe(id("000000b1"));
  const forbidden = scope(() => {
    throw new Failure(EXIT.unauthorised, "forbidden", { message: "No." });
  });
  expect(await resolveId("000000b1", "ACTOR", { scope: forbidden })).toBe(id("000000b1"));
});

it("looks for a fire in the queue, which has people's requests, and then among the project's fires", async () => {
  const pid = id("000000a1");
  const queued = [
    { fire_id: id("000000f1"), project_id: id("000000a2") },
    { fire_id: id("000000f2"), project_id: pid },
  ];
  const scope = {
    api: () =>
      ({
        call: (route: string) =>
          Promise.resolve({
            value:
              route === "GET /v1/queue"
                ? { queue: queued, next_cursor: null }
                : { fires: [{ id: id("000000f3") }], next_cursor: null },
          }),
      }) as unknown as Client,
    project: () => Promise.resolve(pid),
  };
  expect(await resolveId("000000f2", "FIRE", { scope })).toBe(id("000000f2"));
  expect(await resolveId("000000f3", "FIRE", { scope })).toBe(id("000000f3"));
  await expect(resolveId("000000f1", "FIRE", { scope })).rejects.toThrow(
    "No such fire: give its id, or the last 8 digits of it.",
  );
});

it("looks for a turn in the session that the option before it names", async () => {
  const line = ["sessions", "create", "--turn", "000000c1", "--from", "fix it", "--project", "greeter"];
  await run(...line);
  expect(asked).toContain(`GET /v1/projects/${id("000000a1")}/sessions/${id("000000b1")}/saves`);
  expect(asked.at(-1)).toBe(`POST /v1/projects/${id("000000a1")}/sessions`);
});

describe("the words of all usages", () => {
  /** Words that are no ids of the service. */
  const OTHERS = new Set(
    (
      "ACTION ACTIVITIES BRANCH CHOICE CLIENT COMMIT COUNT CURSOR DAY DIRECTORY DOLLARS EFFORT EVENT EVENTS FILE FORMAT HOST " +
      "INSTANT JSON KIND KINDS LINE LINES MODE MODEL MODELS N NAME NUMBER OWNER/NAME PATH PIN PLACE PORT PROVIDER/MODEL REF ROLE RUNTIME " +
      "SHELL SIDE SLUG STATE STATUS TEXT TIME TOKENS TYPE URL WORDS ZONE me " +
      // Of a GitHub App, and of a message that is about to be sent.
      "ID UUID"
    ).split(" "),
  );
  const used = new Set(
    commands.flatMap(({ takes, options }) =>
      takes
        .map((name) => name.replaceAll(/[[\]]/g, ""))
        .concat(Object.values(options).flatMap(({ value }) => value ?? [])),
    ),
  );

  it("name a kind of id whose last digits are taken, or no id", () => {
    const kinds: ReadonlySet<string> = new Set<IdKind>(ID_KINDS);
    expect([...used].filter((word) => !kinds.has(word) && !OTHERS.has(word))).toEqual([]);
    expect([...kinds].filter((word) => !used.has(word))).toEqual([]);
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

  /** The line, the question, and the call that it asks about. */
  const ASKED: readonly (readonly [string, string, string])[] = [
    ["sessions stop SESSION --now", "Changes since the last one are lost.", "POST SESSION/stop"],
    ["sessions stop SESSION --try", "That work is lost.", "POST SESSION/stop"],
    ["cr merge 7", "Merge #7 into main?", "POST PROJECT/change-requests/7/merge"],
    ["cr close 7", "Close #7 without merging it?", "POST PROJECT/change-requests/7/close"],
    ["triggers cancel SESSION", "It leaves the queue and does not start.", "DELETE PROJECT/fires/ID"],
  ];
  const PROJECT = `/v1/projects/${id("000000a1")}`;
  it.each(ASKED)("is asked before `platform %s`: %s", async (words, question, call) => {
    const line = [...words.replace("SESSION", SESSION).split(" "), "--project", id("000000a1")];
    const made = call
      .replace("SESSION", `${PROJECT}/sessions/${SESSION}`)
      .replace("PROJECT", PROJECT)
      .replace("ID", SESSION);
    const no = await runHere(line, { env: environment(), input: "n\n", isWatched: true, isTyped: true });
    expect(no.stderr).toContain(`${question} [y/N] `);
    expect(asked).not.toContain(made);
    await runHere(line, { env: environment(), input: "y\n", isWatched: true, isTyped: true });
    expect(asked).toContain(made);
  });

  it("is not asked of what loses nothing", async () => {
    const line = ["sessions", "stop", SESSION, "--project", id("000000a1")];
    const ended = await runHere(line, { env: environment(), isWatched: true, isTyped: true });
    expect(ended.stderr).not.toContain("[y/N]");
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
