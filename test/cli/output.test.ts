/** What commands print of a service's answers, and of files that they cannot read. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runHere, type Running, serverEnvironment } from "../support/service/command-line.ts";

const PID = "0190f3b2-0000-7000-8000-000000000001";
const AT = "2026-11-20T12:00:00.000Z";

let server: Server;
let requests = 0;
let answer: RequestListener;

const saying =
  (document: unknown): RequestListener =>
  (_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));

const run = (args: readonly string[], running: Running = {}) =>
  runHere(args, { ...running, env: serverEnvironment(server, PID) });

beforeAll(async () => {
  server = createServer((request, response) => {
    requests += 1;
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  requests = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

describe("a file that cannot be read", () => {
  it.each([
    [
      ["sessions", "create", "--prompt-file", "none.md"],
      "none.md of --prompt-file cannot be read: it does not exist.",
    ],
    [
      ["sessions", "send", PID, "x", "--attach", "none.log"],
      "none.log of --attach cannot be read: it does not exist.",
    ],
    [
      ["projects", "credential", "set", "--password-file", "."],
      ". of --password-file cannot be read: it is a directory.",
    ],
  ])("is named, with its option: %j", async (args, sentence) => {
    expect(await run(args)).toEqual({ code: 2, stdout: "", stderr: `The file ${sentence}\n` });
    expect(requests).toBe(0);
  });
});

describe("lists", () => {
  it("of tokens name their people if there are several", async () => {
    const ids = [PID, PID.replace(/1$/, "2")];
    const token = (user: string) => ({ id: PID, name: "first token", origin: "user", user_id: user, project_id: null, created_at: AT, expires_at: null, last_used_at: null }); // prettier-ignore
    const serve =
      (users: readonly string[]): RequestListener =>
      (request, response) =>
        saying(
          request.url?.startsWith("/v1/people") === true
            ? {
                people: [
                  { id: ids[0], name: "ada" },
                  { id: ids[1], name: "mia" },
                ],
                next_cursor: null,
              }
            : { tokens: users.map(token), next_cursor: null },
        )(request, response);
    answer = serve(ids);
    const several = await run(["tokens", "list"]);
    expect(several.stdout).toMatch(/ PERSON +NAME\n.* ada +first token\n.* mia +first token\n$/);
    answer = serve([PID]);
    const one = await run(["tokens", "list"]);
    expect(one.stdout).not.toContain("PERSON");
  });

  it("of a project's usage show a cost without a known price as unknown", async () => {
    const used = { input_tokens: 1, cached_tokens: 0, output_tokens: 2 };
    const priced = { ...used, cost_usd: 0.5 };
    answer = saying({ from: "2026-11-01", to: "2026-11-02", days: [{ day: "2026-11-01", model: "a/b", ...used, cost_usd: 0 }, { day: "2026-11-02", model: "c/d", ...priced }], total: priced }); // prettier-ignore
    const ended = await run(["projects", "usage"]);
    expect(ended.stdout).toMatch(
      / a\/b .* unknown +agent\n.* c\/d .* \$0\.5000 +agent\ntotal .* \$0\.5000 *\n$/,
    );
  });
});

const stored = (failure: string | null) => saying({ slug: "wiki", state: failure === null ? "ready" : "failed", failure }); // prettier-ignore

describe("a connector's credential", () => {
  it("with which the tools cannot be fetched ends the command with 1, with the reason", async () => {
    answer = stored("The server answered with status 401.");
    const ended = await run(["connectors", "set-credential", "wiki"], { input: "x" });
    expect(ended).toEqual({
      code: 1,
      stdout: "wiki: failed.\n",
      stderr: "The server answered with status 401.\n",
    });
    answer = stored(null);
    expect(await run(["connectors", "set-credential", "wiki"], { input: "x" })).toMatchObject({ code: 0 });
  });
});
