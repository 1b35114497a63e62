/**
 * Two nodes on one database (api.md 10), as processes of their own: they share the work, reach what belongs to the other,
 * and take over from each other. One is stopped, killed and started again; the other one is asked all the while.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connectBare, type Bare } from "../../support/postgres/bare.ts";
import { WEBSOCKET } from "../../support/service/raw-http.ts";
import { openedAt, signedOutElsewhere } from "./open-at-nodes.ts";
import { gitOk } from "../../git/git-client.ts";
import { countedOf, eventually, sessionsOf, stopSession } from "../../support/service/account-view.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { Installation, TOKEN, type Json, type Life } from "../../support/service/process-service.ts";
import { ECHO_AGENT } from "../../support/service/sessions/echo-agent.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { deepTest } from "../../support/vitest/rings.ts";

/** A killed node may take several times longer to start on a busy machine. Beyond this its sessions fail. */
const GRACE_MS = 20_000;
/** A limit for what hangs, not a claim about speed. */
const WAIT = { timeout: WAIT_MS, interval: 50 };

interface Node {
  readonly installation: Installation;
  readonly id: string;
  life: Life;
}

let scope: Scope.Closeable;
let database: Bare;
let settings: Readonly<Record<string, string>>;
/** It has the project's repository. */
let first: Node;
let second: Node;
let project = "";
/** Its repository is the second's. */
let elsewhere = "";
/** Sandboxes that a dead node left behind. */
let orphans: readonly string[] = [];

const start = async (): Promise<Node> => {
  const installation = await Installation.open();
  const life = await installation.start(settings);
  return { installation, life, id: readFileSync(path.join(installation.dataDir, "node-id"), "utf8").trim() };
};

/** The running sessions whose sandboxes a node has. */
const sessionsOn = async ({ id }: Node): Promise<readonly string[]> => {
  const { rows } = await database.query<{ readonly id: string }>(
    `SELECT session.id FROM project_sessions AS session JOIN session_sandboxes AS sandbox ON sandbox.session_id = session.id
     WHERE session.status = 'running' AND sandbox.status = 'active' AND sandbox.node_id = $1 ORDER BY session.created_at`,
    [id],
  );
  return rows.map((row) => row.id);
};

const countSandboxes = async (sessions: readonly string[]): Promise<readonly string[]> => {
  const { rows } = await database.query<{ readonly id: string }>(
    "SELECT id FROM session_sandboxes WHERE session_id = ANY($1) AND ended_at IS NULL",
    [sessions],
  );
  return rows.map(({ id }) => id);
};

/** A sandbox's directories below any run directory of this machine. */
const directoriesOf = (sandboxId: string): readonly string[] =>
  readdirSync(tmpdir())
    .map((name) => path.join(tmpdir(), name, "s", sandboxId))
    .filter((directory) => existsSync(directory));

const target = (session: string, below = ""): string => `/v1/projects/${project}/sessions/${session}${below}`;

const create = async ({ life }: Node): Promise<string> => {
  const { id } = await life.call("POST", `/v1/projects/${project}/sessions`, {});
  return String(id);
};

/** Sees to it that each node has so many sandboxes. */
const spread = async (each: number): Promise<void> => {
  for (;;) {
    const there = await Promise.all([first, second].map(sessionsOn));
    if (there.every(({ length }) => length >= each)) return;
    const made = await Promise.all([create(first), create(second)]);
    await Promise.all(
      made.map(async (id) => {
        const { status, failure } = await first.life.session(project, id, ["running", "failed"]);
        expect([status, failure]).toEqual(["running", null]);
      }),
    );
  }
};

const ask = async ({ life }: Node, below: string, method = "GET") => {
  const answer = await fetch(`${life.url}${below}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    ...(method === "GET" ? {} : { body: "{}" }),
  });
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), text: await answer.text() };
};

/** What comes back over an upgraded connection to the session's agent. */
const echoed = async ({ life }: Node, session: string, text: string): Promise<string> => {
  const headers = { authorization: `Bearer ${TOKEN}`, ...WEBSOCKET };
  const asked = request(`${life.url}${target(session, "/runtime/socket")}`, { headers, agent: false });
  asked.end();
  const [, socket] = (await once(asked, "upgrade")) as [IncomingMessage, Socket];
  socket.write(text);
  const [heard] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return heard.toString();
};

const remote = ({ life }: Node): string => `${life.url.replace("//", `//x:${TOKEN}@`)}/v1/git/${project}.git`;

/** Uses of each node's sandboxes and events through each node. */
const opensEverywhere = async (authorization: string): Promise<readonly Readable[]> => {
  const opened: Readable[] = [];
  for (const node of [first, second]) {
    for (const owner of [first, second]) {
      const [session = ""] = await sessionsOn(owner);
      opened.push(await openedAt(node, target(session, "/runtime/endless"), { authorization }));
      opened.push(await openedAt(node, target(session, "/runtime/socket"), { authorization, ...WEBSOCKET }));
    }
    opened.push(await openedAt(node, `/v1/projects/${project}/events`, { authorization }));
  }
  return opened;
};

describe.runIf(sandboxesStartHere)("two nodes on one database", () => {
  beforeAll(async () => {
    scope = Effect.runSync(Scope.make());
    const url = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope));
    database = await connectBare(url);
    settings = {
      DATABASE_URL: url,
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_AGENT_ADAPTER: "plain",
      PLATFORM_AGENT_COMMAND: `node -e ${ECHO_AGENT}`,
      PLATFORM_NODE_GRACE_MS: String(GRACE_MS),
    };
    first = await start();
    second = await start();
    project = await first.life.project(first.installation.sample);
    elsewhere = await second.life.project(second.installation.sample);
    await spread(2);
  }, TEST_MS);
  afterAll(async () => {
    second?.life.signal("SIGCONT");
    for (const node of [first, second]) {
      if (node === undefined) continue;
      const left = await sessionsOn(node);
      await Promise.all(left.map((id) => stopSession(first.life, project, id)));
    }
    for (const node of [first, second]) await node?.life.end("SIGTERM");
    for (const node of [first, second]) await node?.installation.close();
    await database?.end();
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }, TEST_MS);

  it(
    "relay requests and upgraded connections to sandboxes of either node, through either node",
    async () => {
      for (const owner of [first, second]) {
        const [session = ""] = await sessionsOn(owner);
        for (const node of [first, second]) {
          const below = `/runtime/asked?of=${node.id}`;
          expect(await ask(node, target(session, below))).toMatchObject({
            status: 200,
            text: `agent:/asked?of=${node.id}`,
          });
          expect(await echoed(node, session, "over two nodes")).toBe("over two nodes");
        }
      }
    },
    TEST_MS,
  );

  deepTest(
    "cut a token's connections on both nodes when it is revoked on either [T03]",
    async () => {
      for (const revoker of [first, second]) {
        const made = await first.life.call("POST", "/v1/tokens", { name: "to be revoked" });
        const opened = await opensEverywhere(`Bearer ${String(made["token"])}`);
        await revoker.life.call("DELETE", `/v1/tokens/${String(made["id"])}`);
        await vi.waitFor(() => expect(opened.filter(({ closed }) => !closed)).toHaveLength(0), WAIT);
      }
    },
    TEST_MS,
  );

  deepTest(
    "cut a member's use of sandboxes on both nodes when she becomes a viewer on either, and refuse the next [T03]",
    async () => {
      for (const changer of [first, second]) {
        const wish = { name: "Ben", projects: [{ project_id: project, role: "member" }] };
        await first.life.call("PATCH", `/v1/projects/${project}`, { default_role: null });
        const invited = await first.life.call("POST", "/v1/invitations", wish);
        const code = String(invited["url"]).split("/").at(-1);
        const { user, token } = await second.life.call("POST", "/dashboard/invitations/accept", {
          code,
          name: "Ben",
        });
        const authorization = `Bearer ${String(token)}`;
        const opened = await opensEverywhere(authorization);
        const member = `/v1/projects/${project}/members/${(user as { readonly id: string }).id}`;
        await changer.life.call("PUT", member, { role: "viewer" });
        const events = opened.filter((_, place) => place % 5 === 4);
        const uses = opened.filter((_, place) => place % 5 !== 4);
        await vi.waitFor(() => expect(uses.filter(({ closed }) => !closed)).toHaveLength(0), WAIT);
        // A viewer goes on reading.
        expect(events.map(({ closed }) => closed)).toEqual([false, false]);
        for (const node of [first, second]) {
          const [session = ""] = await sessionsOn(node);
          const asked = await fetch(`${node.life.url}${target(session, "/runtime/session")}`, {
            headers: { authorization },
          });
          expect(asked.status).toBe(403);
        }
        await changer.life.call("DELETE", member);
        await vi.waitFor(() => expect(opened.filter(({ closed }) => !closed)).toHaveLength(0), WAIT);
      }
    },
    TEST_MS,
  );

  deepTest(
    "know each other's browsers and one-time links, and a sign-out on either cuts both [T03]",
    async () => {
      const cut = { isCut: true, statuses: [401, 401] };
      expect(await signedOutElsewhere(first, second, project)).toEqual(cut);
      expect(await signedOutElsewhere(second, first, project)).toEqual(cut);
    },
    TEST_MS,
  );

  deepTest(
    "return the same log of a sandbox, through either node",
    async () => {
      for (const owner of [first, second]) {
        const [session = ""] = await sessionsOn(owner);
        const logs = await Promise.all(
          [first, second].map((node) => node.life.text(target(session, "/logs?follow=0"))),
        );
        expect(logs[0]).not.toBe("");
        expect(logs[1]).toBe(logs[0]);
      }
    },
    TEST_MS,
  );

  deepTest(
    "serve git for the other node's repository, and read and compare in it",
    async () => {
      const { directory } = second.installation;
      await gitOk(directory, "clone", "--quiet", remote(second), "clone");
      const clone = path.join(directory, "clone");
      await gitOk(clone, "checkout", "--quiet", "-b", "through-the-second");
      await gitOk(clone, "commit", "--quiet", "--allow-empty", "-m", "Come from the second node");
      await gitOk(clone, "push", "--quiet", "origin", "through-the-second");
      const tip = await gitOk(clone, "rev-parse", "HEAD");
      expect(await gitOk(directory, "ls-remote", remote(first), "refs/heads/through-the-second")).toContain(
        tip,
      );
      const wish = { head_ref: "through-the-second", title: "Through the second" };
      const { number } = await second.life.call("POST", `/v1/projects/${project}/change-requests`, wish);
      const found = await second.life.call(
        "GET",
        `/v1/projects/${project}/change-requests/${String(number)}`,
      );
      expect((found["commits"] as readonly Json[]).map(({ sha }) => sha)).toEqual([tip]);
      const wrong = await second.life
        .call("POST", `/v1/projects/${project}/sessions`, { base_ref: "no-such-branch" })
        .catch((error: unknown) => String(error));
      expect(wrong).toContain("unknown_base_ref");
    },
    TEST_MS,
  );

  deepTest(
    "lose nothing when one stands still and continues: its actors answer on the other one meanwhile",
    async () => {
      const [kept = "", stopped = ""] = await sessionsOn(first);
      const there = await sessionsOn(second);
      second.life.signal("SIGSTOP");
      await eventually(async () => {
        expect((await stopSession(first.life, project, stopped))["status"]).toBe("stopped");
      }).finally(() => second.life.signal("SIGCONT"));
      await eventually(async () => expect(await ask(second, "/readyz")).toMatchObject({ status: 200 }));
      await eventually(async () => {
        for (const id of [kept, ...there])
          expect(await ask(first, target(id, "/runtime/"))).toMatchObject({ status: 200 });
      });
      expect(await sessionsOn(second)).toEqual(there);
      expect(await sessionsOn(first)).toContain(kept);
      const { said, counted } = await countedOf(second.life, [project]);
      expect(said).toEqual(counted);
    },
    TEST_MS,
  );

  deepTest(
    "answer 503 for a killed node's sessions, and adopt its sandboxes at its return",
    async () => {
      const [session = ""] = await sessionsOn(second);
      const there = await sessionsOn(second);
      const begun = await second.life.call("POST", `/v1/projects/${elsewhere}/sessions`, {});
      const stopped = String(begun["id"]);
      await second.life.session(elsewhere, stopped, ["running", "failed"]);
      await stopSession(second.life, elsewhere, stopped);
      await second.life.end("SIGKILL");
      const asked = [
        [target(session, "/runtime/"), "GET"],
        [target(session, "/logs?follow=0"), "GET"],
        [`/v1/git/${elsewhere}.git/info/refs?service=git-upload-pack`, "GET"],
        [`/v1/projects/${elsewhere}/sessions`, "POST"],
        // Its sandbox has nothing to clone, with or without saved work.
        [`/v1/projects/${elsewhere}/sessions/${stopped}/restart`, "POST"],
      ] as const;
      for (const [below, method] of asked) {
        const { status, retryAfter, text } = await ask(first, below, method);
        expect([below, status, retryAfter, (JSON.parse(text) as Json)["code"]]).toEqual([
          below,
          503,
          "1",
          "node_away",
        ]);
      }
      second.life = await second.installation.start(settings);
      await eventually(async () => {
        for (const id of there)
          expect(await ask(first, target(id, "/runtime/"))).toMatchObject({ status: 200 });
      });
      expect(await sessionsOn(second)).toEqual(there);
    },
    TEST_MS,
  );

  deepTest(
    "start and stop everything through one node after the other was killed, and fail the killed node's sessions [I9, I10]",
    async () => {
      await spread(2);
      const [mine, lost] = await Promise.all([sessionsOn(first), sessionsOn(second)]);
      orphans = await countSandboxes(lost);
      await second.life.end("SIGKILL");
      // Their actors are anywhere: half of them were on the one that is gone.
      const stops = await Promise.all(
        mine.map((id) => eventually(() => stopSession(first.life, project, id))),
      );
      expect(stops.map(({ status }) => status)).toEqual(mine.map(() => "stopped"));
      const made = await create(first);
      expect((await first.life.session(project, made, ["running", "failed"]))["status"]).toBe("running");
      for (const id of lost) {
        const { status, failure } = await first.life.session(project, id, ["failed", "stopped"]);
        expect([status, (failure as Json)["code"]]).toEqual(["failed", "sandbox_lost"]);
      }
      const live = (await sessionsOf(first.life, project)).filter(({ status }) => status === "running");
      expect(live.map(({ id }) => id)).toEqual([made]);
      const { said, counted } = await countedOf(first.life, [project]);
      expect(said).toEqual(counted);
    },
    TEST_MS,
  );

  deepTest(
    "remove a dead node's remaining sandboxes at its return",
    async () => {
      expect(orphans.flatMap(directoriesOf)).toHaveLength(orphans.length);
      second.life = await second.installation.start(settings);
      await vi.waitFor(() => expect(orphans.flatMap(directoriesOf)).toEqual([]), WAIT);
    },
    TEST_MS,
  );
});
