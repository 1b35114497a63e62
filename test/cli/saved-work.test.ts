/** What commands say of saved work: a stop that is refused, its progress, and what a session has stored and lacks. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runHere, type Running, serverEnvironment } from "../support/service/command-line.ts";

const ID = "0190f3b2-0000-7000-8000-000000000001";
const EARLIER = "0190f3b2-0000-7000-8000-00000000000e";
const OLDER = "0190f3b2-0000-7000-8000-00000000000d";
const OLDEST = "0190f3b2-0000-7000-8000-00000000000c";
const AT = "2026-11-20T12:00:00.000Z";

type Fields = Readonly<Record<string, unknown>>;

let server: Server;
/** Requests, as "METHOD path body". */
let requests: string[] = [];
/** The answers by method and path; a watched stop waits until the session was read. */
let answers: Readonly<Record<string, readonly [status: number, document: unknown]>> = {};
let waitsForLook = false;
let waiting: (() => void) | null = null;

const serve = async (request: string, response: ServerResponse): Promise<void> => {
  const [status, document] = answers[request] ?? [404, { error: "Not found.", code: "not_found" }];
  if (request.endsWith("/stop") && waitsForLook)
    await new Promise<void>((resolve) => {
      waiting = resolve;
    });
  const [type, body] =
    typeof document === "string" ? ["text/plain", document] : ["application/json", JSON.stringify(document)];
  response.writeHead(status, { "content-type": type }).end(body);
  if (request.startsWith("GET")) waiting?.();
};

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const target = `${request.method ?? ""} ${(request.url ?? "").replace(`/v1/projects/${ID}`, "")}`;
    requests.push(`${target} ${await text(request)}`.trim());
    await serve(target, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests = [];
  answers = {};
  waitsForLook = false;
  waiting = null;
});

const run = (args: readonly string[], running: Running = {}) =>
  runHere(args, { ...running, env: serverEnvironment(server, ID) });

const saved = (of: Fields = {}): Fields => ({
  state: "complete",
  at: AT,
  wip: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246",
  files: 3,
  commits: 1,
  pending: [],
  skipped: [],
  error: null,
  node: "node-1",
  ...of,
});

const session = (of: Fields = {}): Fields => ({
  id: ID,
  status: "stopped",
  turn: { state: "idle", since: AT, waiting_for: null },
  pending_approvals: 0,
  activity: "asleep",
  waits_for: null,
  last_turn: null,
  name: null,
  failure: null,
  stop_reason: "requested",
  saved: saved(),
  restored: null,
  unsaved: null,
  base_ref: "main",
  base_commit: null,
  agent_name: "agent",
  agent_model: null,
  trigger_slug: null,
  parent_session_id: null,
  created_at: AT,
  running_at: null,
  stopped_at: AT,
  initial_prompt: null,
  warnings: [],
  ...of,
});

const PENDING = [
  { path: "dump.sql", reason: "limit" },
  { path: "out/a\u001b[2J", reason: "changes_while_it_is_read", count: 40 },
];
const STOP = `POST /sessions/${ID}/stop`;
const SESSION = `GET /sessions/${ID}`;

describe("platform sessions stop", () => {
  it.each([
    [[], "require"],
    [["--try"], "try"],
    [["--now"], "skip"],
  ])("with %j asks for a stop that treats unsaved work so: %s", async (options, save) => {
    answers = { [STOP]: [200, session()] };
    expect(await run(["sessions", "stop", ID, ...options])).toMatchObject({
      code: 0,
      stdout: `${ID} Asleep\n`,
    });
    expect(requests).toEqual([`${STOP} {"save":"${save}"}`]);
  });

  it("refuses to be told both at once, and sends nothing", async () => {
    const ended = await run(["sessions", "stop", ID, "--try", "--now"]);
    expect(ended).toEqual({ code: 2, stdout: "", stderr: "Give --try or --now, not both.\n" });
    expect(requests).toEqual([]);
  });

  const refusal = {
    error: "The session runs on, because 41 paths are not saved.",
    code: "not_saved",
    details: {
      pending: PENDING,
      saved: saved({ state: "partial", pending: PENDING, error: "The project is at its limit." }),
    },
  };

  it("ends with 9 if work cannot be saved, and names each path with its reason and what to do", async () => {
    answers = { [STOP]: [409, refusal] };
    expect(await run(["sessions", "stop", ID])).toEqual({
      code: 9,
      stdout: "",
      stderr: [
        "The session runs on, because not everything could be saved: The project is at its limit.",
        "  dump.sql: no room within the limits",
        "  out/a\\x1b[2J and 39 more: changes while it is read",
        "If the agent was in a turn, the turn was interrupted.",
        `\`platform sessions stop ${ID}\` tries again.`,
        `\`platform sessions stop ${ID} --try\` saves what it can, and stops. The rest is lost.`,
        "",
      ].join("\n"),
    });
  });

  it("ends with 9 if the sandbox was lost before its work was saved", async () => {
    const failure = { code: "sandbox_lost", message: "the sandbox has ended", at: AT };
    answers = { [STOP]: [200, session({ status: "failed", activity: "failed", failure })] };
    expect(await run(["sessions", "stop", ID])).toEqual({
      code: 9,
      stdout: "",
      stderr: [
        "The session failed before its work was saved: the sandbox has ended",
        "Changes since the last save, at 2026-11-20 12:00:00Z, are lost.",
        `\`platform sessions show ${ID}\` says what is saved.`,
        "",
      ].join("\n"),
    });
    expect(await run(["sessions", "stop", ID, "--now"])).toMatchObject({ code: 0, stdout: `${ID} Failed\n` });
  });

  it("gives a program the refusal as it is", async () => {
    answers = { [STOP]: [409, refusal] };
    const ended = await run(["sessions", "stop", ID, "--json"]);
    expect([ended.code, ended.stdout, JSON.parse(ended.stderr)]).toEqual([9, "", refusal]);
  });

  it("says what is lost with a stop that saves what it can, and with one that saves nothing", async () => {
    const part = saved({ state: "partial", pending: PENDING, error: "The limit of the project is reached." });
    answers = { [STOP]: [200, session({ saved: part })] };
    expect((await run(["sessions", "stop", ID, "--try"])).stderr).toBe(
      "Not all work is saved: The limit of the project is reached.\n" +
        "  dump.sql: no room within the limits\n" +
        "  out/a\\x1b[2J and 39 more: changes while it is read\n",
    );
    expect((await run(["sessions", "stop", ID, "--now"])).stderr).toBe(
      "This stop saved nothing. Changes since the last save are lost.\n",
    );
  });

  it("names what no save takes, but for ignored files", async () => {
    const skipped = [
      { path: "a.log", reason: "ignored", count: 9 },
      { path: "locked.txt", reason: "unreadable" },
    ];
    answers = { [STOP]: [200, session({ saved: saved({ skipped }) })] };
    expect((await run(["sessions", "stop", ID])).stderr).toBe(
      "No save takes these:\n  locked.txt: unreadable\n",
    );
  });

  it("shows a person at a terminal how many paths are left, and removes the line at the end", async () => {
    waitsForLook = true;
    answers = { [STOP]: [200, session()], [SESSION]: [200, session({ saved: saved({ pending: PENDING }) })] };
    const ended = await run(["sessions", "stop", ID], { isWatched: true });
    expect(ended.stderr).toBe("\r\u001b[2KSaving unpushed work … 41 paths are left.\r\u001b[2K");
    expect(ended.stdout).toBe(`${ID} Asleep\n`);
  });

  it("does not read the session for a pipe or a program", async () => {
    answers = { [STOP]: [200, session()], [SESSION]: [200, session()] };
    await run(["sessions", "stop", ID]);
    await run(["sessions", "stop", ID, "--json"], { isWatched: true });
    expect(requests.filter((request) => request.startsWith("GET"))).toEqual([]);
  });
});

describe("the words for saved work", () => {
  const show = async (of: Fields): Promise<string> => {
    answers = { [SESSION]: [200, session(of)] };
    const { stdout } = await run(["sessions", "show", ID]);
    return stdout.slice(stdout.search(/^(?:saved|restored) /m), stdout.indexOf("base "));
  };
  const words = async (of: Fields): Promise<string> =>
    (await show({ saved: saved(of) })).replace(/ {2,}/g, " ");

  it.each<[string, Fields, readonly string[]]>([
    ["all is saved", {}, ["saved complete at 2026-11-20 12:00:00Z: 3 changed files, commits of 1 branch"]],
    [
      "all is pushed",
      { at: null, wip: null, files: 0, commits: 0, node: null },
      ["saved nothing, all was pushed"],
    ],
    [
      "some paths are missing",
      { state: "partial", pending: PENDING, error: "The time was over.", commits: 2 },
      [
        "saved not all: The time was over.",
        " stored: 3 changed files, commits of 2 branches at 2026-11-20 12:00:00Z",
        "not saved dump.sql: no room within the limits",
        " out/a\\x1b[2J and 39 more: changes while it is read",
      ],
    ],
    [
      "a save goes on",
      { state: "partial", pending: [{ path: "big.bin", reason: "not_stored_yet" }], error: null },
      ["saved so far: a save stores one part after the other", " stored: 3 changed files"],
    ],
    [
      "the first save failed",
      { state: "failed", at: null, wip: null, files: 0, commits: 0, node: null, error: "The disk is full." },
      ["saved the last save failed: The disk is full.", " stored: nothing"],
    ],
    [
      "a later save failed",
      { state: "failed", error: "The disk is full." },
      ["saved the last save failed: The disk is full.", " stored: 3 changed files, commits of 1 branch at"],
    ],
    [
      "ignored files are left, and earlier saves wait",
      {
        skipped: [{ path: "node_modules/", reason: "ignored", count: 4012 }],
        earlier: [{ id: EARLIER, at: AT, files: 2, commits: 0 }],
      },
      [
        "skipped node_modules/ and 4011 more: ignored by git",
        "saved on node node-1",
        `earlier saves ${EARLIER} at 2026-11-20 12:00:00Z: 2 changed files`,
      ],
    ],
  ])("say that %s", async (_, of, lines) => {
    const said = await words(of);
    for (const line of lines) expect(said).toContain(line);
  });

  it("say what came back, under which names, and what did not", async () => {
    const restored = {
      wip: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246",
      commits: 2,
      files: 5,
      refs: ["saved/work", "stash"],
      renamed: [{ path: "a.txt", as: "a.txt.saved" }],
      skipped: [{ path: "b/.git/config", reason: "refused_path" }],
      error: null,
    };
    expect(await show({ saved: null, restored: { ...restored, commits: 0 } })).toMatch(/ 5 changed files$/m);
    expect((await show({ saved: null, restored })).replaceAll(/ {2,}/g, " ")).toBe(
      "restored 5 changed files, 2 commits on the session's branch\n branches: saved/work, stash\n a.txt as a.txt.saved\n" +
        "not restored b/.git/config: git refuses to check out this path\n",
    );
  });

  it("are one word in the list", async () => {
    const partial = saved({ state: "partial", pending: PENDING });
    answers = {
      "GET /sessions": [
        200,
        { sessions: [session(), session({ saved: null }), session({ saved: partial })], next_cursor: null },
      ],
    };
    const { stdout } = await run(["sessions", "list"]);
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/)[3])).toEqual([
      "SAVED",
      "complete",
      "-",
      "41 missing",
      undefined,
    ]);
  });
});

describe("commands around saves", () => {
  it("say after a restart where to see what came back, if something could come back and is to", async () => {
    const restart = `POST /sessions/${ID}/restart`;
    const hint = `Once it runs, \`platform sessions show ${ID}\` says what came back.\n`;
    answers = { [restart]: [200, session({ status: "provisioning" })] };
    expect((await run(["sessions", "restart", ID])).stderr).toBe(hint);
    expect((await run(["sessions", "restart", ID, "--no-restore"])).stderr).toBe("");
    answers = { [restart]: [200, session({ saved: null })] };
    expect((await run(["sessions", "restart", ID])).stderr).toBe("");
  });

  it("list sizes by session, and delete an earlier save", async () => {
    answers = {
      "GET /saves": [
        200,
        {
          bytes: 3_500_000,
          sessions: [{ id: ID, name: "Fix it", status: "stopped", bytes: 3_500_000 }],
          away: ["b2"],
        },
      ],
      [`DELETE /sessions/${ID}/saves/${EARLIER}`]: [200, {}],
    };
    expect((await run(["sessions", "saves"])).stdout).toMatch(
      new RegExp(
        `^SESSION +SIZE +STATUS +NAME\n${ID} +4 MiB +stopped +Fix it\nNot counted: node b2 cannot be reached now.\n$`,
      ),
    );
    expect((await run(["sessions", "forget-save", ID, EARLIER])).stdout).toBe(`${EARLIER} deleted\n`);
    expect((await run(["sessions", "forget-save", ID, ID])).code).toBe(4);
  });

  it("list the turns with what was asked, and begin a session from one", async () => {
    answers = {
      [`GET /sessions/${ID}/saves`]: [
        200,
        { turns: [OLDEST, OLDER, EARLIER].map((id) => ({ id, at: "2026-11-20T11:00:00.000Z" })) },
      ],
      [`GET /sessions/${ID}/conversation?limit=200`]: [
        200,
        { items: [{ id: EARLIER, content: [{ type: "text", text: "Fix it" }] }] },
      ],
      // It is older than the newest items. The oldest one is gone.
      [`GET /sessions/${ID}/items/${OLDER}/text`]: [200, "Begin"],
      "POST /sessions?queue=true": [201, session()],
    };
    expect((await run(["sessions", "turns", ID])).stdout).toBe(
      `TURN                                  SAVED              MESSAGE\n${OLDEST}  2026-11-20 11:00Z\n${OLDER}  2026-11-20 11:00Z  Begin\n${EARLIER}  2026-11-20 11:00Z  Fix it\n`,
    );
    expect((await run(["sessions", "create", "--turn", EARLIER])).code).toBe(2);
    expect((await run(["sessions", "create", "--from", ID, "--turn", EARLIER])).code).toBe(0);
    expect(requests.at(-1)).toContain(`{"from":{"session_id":"${ID}","turn_id":"${EARLIER}"}}`);
  });

  it("print the differences of the newest save, or of an earlier one", async () => {
    await run(["sessions", "diff", ID, "--saved"]);
    await run(["sessions", "diff", ID, "--save", EARLIER]);
    expect(requests).toEqual([
      `GET /sessions/${ID}/diff?of=saved`,
      `GET /sessions/${ID}/diff?of=saved&save=${EARLIER}`,
    ]);
    expect((await run(["sessions", "diff", ID, "--saved", "--pushed"])).code).toBe(2);
  });
});
