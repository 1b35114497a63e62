/** How a row becomes a request, against a server that answers with what it was asked. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { choices, endpoint } from "../../src/cli/endpoint/endpoint.ts";
import { runHere, serverEnvironment } from "../support/service/command-line.ts";

const PROJECT = "0190f3b2-0000-7000-8000-000000000001";
const OTHER = "0190f3b2-0000-7000-8000-0000000000ff";
const directory = mkdtempSync(path.join(tmpdir(), "endpoint-"));
const file = path.join(directory, "text");
let server: Server;

beforeAll(async () => {
  writeFileSync(file, "From a file.\n");
  server = createServer((request, response) => {
    void text(request).then((body) =>
      response.end(JSON.stringify({ request: `${request.method} ${request.url}`, body })),
    );
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server.close();
  rmSync(directory, { recursive: true });
});

const shows = (value: unknown) => JSON.stringify(value);
const COMMANDS = [
  endpoint("POST /v1/projects/:pid/change-requests", {
    name: "propose",
    about: "Propose",
    options: {
      title: { value: "TEXT", about: "" },
      description: { value: "TEXT", about: "" },
      "description-file": { value: "FILE", about: "", sets: "description", from: "file" },
      session: { value: "ID", about: "", sets: "session_id" },
    },
    shows,
  }),
  endpoint("PATCH /v1/projects/:pid", {
    name: "change",
    about: "Change",
    takes: ["[PROJECT]"],
    options: {
      status: { value: "STATUS", about: "" },
      paused: { about: "", sets: "triggers_paused" },
      active: { about: "", sets: "triggers_paused", to: false },
      mine: { about: "", sets: null },
    },
    shows,
  }),
  endpoint("PUT /v1/projects/:pid/members/:id", {
    name: "give",
    about: "Give",
    takes: ["PERSON", "ROLE"],
    done: "given",
  }),
  endpoint("GET /v1/projects/:pid/fires", {
    name: "fires",
    about: "List",
    rows: "fires",
    columns: { FIRE: "id" },
    none: "None.",
  }),
  endpoint("POST /v1/projects/:pid/webhooks", {
    name: "add",
    about: "Add",
    takes: ["[URL]"],
    options: {
      "url-file": { value: "FILE", about: "", sets: "url", from: "line" },
      events: { value: "EVENTS", about: "" },
    },
    shows,
  }),
];

const run = (...line: readonly string[]) =>
  runHere(line, { env: serverEnvironment(server, PROJECT), commands: COMMANDS });

it.each([
  [
    ["propose", "--title", "A", "--description-file", file],
    "POST /v1/projects/P/change-requests",
    { title: "A", description: "From a file.\n" },
  ],
  [["change", "--status", "archived"], "PATCH /v1/projects/P", { status: "archived" }],
  [["change", OTHER, "--active"], "PATCH /v1/projects/O", { triggers_paused: false }],
  [["give", OTHER, "viewer"], "PUT /v1/projects/P/members/O", { role: "viewer" }],
  [["fires", "--limit", "2", "--cursor", "x"], "GET /v1/projects/P/fires?limit=2&cursor=x", null],
  [
    ["add", "--url-file", file, "--events", "session.failed, fire.failed"],
    "POST /v1/projects/P/webhooks",
    { url: "From a file.", events: ["session.failed", "fire.failed"] },
  ],
])("%j asks for %s", async (line, request, body) => {
  const { stdout, code } = await run(...line, "--json");
  const asked = JSON.parse(stdout) as { readonly request: string; readonly body: string };
  expect([code, asked.request.replace(PROJECT, "P").replace(OTHER, "O")]).toEqual([0, request]);
  expect(asked.body === "" ? null : JSON.parse(asked.body)).toEqual(body);
});

it.each([
  [["propose"], "--title is missing."],
  [
    ["propose", "--title", "A", "--description", "B", "--description-file", file],
    "Give --description or --description-file, not both.",
  ],
  [
    ["propose", "--title", "A", "--session", "1"],
    "--session must be an id of 36 characters, such as 0190f3b2-….",
  ],
  [["change"], "Give --status, --paused or --active."],
  [["change", "--status", "old"], "--status must be one of active, archived."],
  [["give", OTHER, "queen"], "ROLE must be one of viewer, member, owner."],
  [["fires", "--limit", "0"], "--limit must be a number of 1 or more."],
  [["add", "--events", "session.failed"], "Give URL or --url-file."],
  [["add", "x", "--events", "session.failed,no"], /^Each of --events must be one of session\.waiting, /],
])("%j is a mistake", async (line, sentence) => {
  const { stderr, stdout, code } = await run(...line);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr.trimEnd()).toEqual(typeof sentence === "string" ? sentence : expect.stringMatching(sentence));
});

it("fails for an option that the API does not know", async () => {
  const row = { name: "x", about: "", options: { colour: { value: "C", about: "" } }, done: "" };
  const commands = [endpoint("PATCH /v1/projects/:pid", row)];
  const { stderr, code } = await runHere(["x"], { env: serverEnvironment(server, PROJECT), commands });
  expect([code, stderr]).toEqual([1, expect.stringContaining("PATCH /v1/projects/:pid takes no colour")]);
});

it("has the words that a field may be", () => {
  expect(choices("GET /v1/projects/:pid/change-requests", "status")).toEqual(["open", "merged", "closed"]);
});
