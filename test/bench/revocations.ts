/**
 * `npm run bench:revocations [-- --tries 200]`: two nodes on one Postgres. A power is taken at one node, and everything that it
 * holds open at the other one must end: streams of events, an answer and a WebSocket of a session's agent, and a push. The powers
 * are a token that is revoked, and the role of a member. Sandboxes are real. Prints how long the last one of each kind took to
 * end, from before the request that takes the power. The last line is one JSON object.
 */
import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { guardedDirectory } from "../support/machine/guard.ts";
import { ECHO_AGENT } from "../support/service/sessions/echo-agent.ts";
import { Installation } from "../support/service/process-service.ts";
import { KINDS } from "./revocations/open.ts";

const LIMIT_MS = 1000;

const { values } = parseArgs({ options: { tries: { type: "string", default: "200" } } });
const tries = Number(values.tries);
if (!Number.isInteger(tries) || tries < 2) throw new Error("--tries takes whole numbers from 2");

interface Power {
  readonly token: string;
  readonly take: () => Promise<unknown>;
}

const scope = Effect.runSync(Scope.make());
const { directory, remove } = guardedDirectory("platform-bench-");
const { url } = await Effect.runPromise(Scope.provide(startEmbedded(directory), scope));
const settings = {
  DATABASE_URL: url,
  PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
  PLATFORM_AGENT_ADAPTER: "plain",
  PLATFORM_AGENT_COMMAND: `node -e ${ECHO_AGENT}`,
};
const installations = [await Installation.open(), await Installation.open()] as const;
const [here, there] = [await installations[0].start(settings), await installations[1].start(settings)];
const project = await here.project(installations[0].sample);
await here.call("PATCH", `/v1/projects/${project}`, { default_role: null });
const created = await here.call("POST", `/v1/projects/${project}/sessions`, {});
const session = String(created["id"]);
const { status, failure } = await here.session(project, session, ["running", "failed"]);
if (status !== "running") throw new Error(`the session failed: ${JSON.stringify(failure)}`);
const invited = await here.call("POST", "/v1/invitations", { name: "Ben" });
const code = String(invited["url"]).split("/").at(-1);
const ben = await here.call("POST", "/dashboard/invitations/accept", { code, name: "Ben" });
const member = `/v1/projects/${project}/members/${(ben["user"] as { readonly id: string }).id}`;

const POWERS: Readonly<Record<string, () => Promise<Power>>> = {
  token: async () => {
    const { id, token } = await here.call("POST", "/v1/tokens", { name: "bench" });
    return { token: String(token), take: () => here.call("DELETE", `/v1/tokens/${String(id)}`) };
  },
  role: async () => {
    await here.call("PUT", member, { role: "member" });
    return { token: String(ben["token"]), take: () => here.call("DELETE", member) };
  },
};

/** @returns how long each kind took to end at the other node, ms */
const tried = async (make: () => Promise<Power>): Promise<Readonly<Record<string, number>>> => {
  const { token, take } = await make();
  const opened = new Map<string, Promise<number>>();
  for (const [kind, open] of Object.entries(KINDS))
    opened.set(kind, (await open({ life: there, project, session, token })).ended);
  const began = performance.now();
  await take();
  const times = [...opened].map(async ([kind, ended]) => [kind, (await ended) - began] as const);
  return Object.fromEntries(await Promise.all(times));
};

const figuresOf = (times: readonly number[]) => {
  const sorted = times.toSorted((one, other) => one - other).map(Math.round);
  return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, longest: sorted.at(-1) ?? 0 };
};

const found: Record<string, unknown> = {};
for (const [name, make] of Object.entries(POWERS)) {
  const all: Readonly<Record<string, number>>[] = [];
  for (let count = 0; count < tries / 2; count += 1) all.push(await tried(make));
  const lasts = all.map((times) => Math.max(...Object.values(times)));
  const within = lasts.filter((ms) => ms <= LIMIT_MS).length;
  const kinds = Object.fromEntries(
    Object.keys(KINDS).map((kind) => [kind, figuresOf(all.map((times) => times[kind] ?? Infinity))]),
  );
  found[name] = { tries: all.length, within, ...figuresOf(lasts), kinds };
  process.stdout.write(`${name}: everything of ${within} of ${all.length} ended within ${LIMIT_MS} ms\n`);
  for (const [kind, { median, longest }] of Object.entries(kinds))
    process.stdout.write(`  ${kind}: median ${median} ms, longest ${longest} ms\n`);
}
process.stdout.write(`${JSON.stringify(found)}\n`);
await here.call("POST", `/v1/projects/${project}/sessions/${session}/stop`);
await here.session(project, session, ["stopped"]);
for (const life of [here, there]) await life.end("SIGTERM");
for (const installation of installations) await installation.close();
await Effect.runPromise(Scope.close(scope, Exit.void));
remove();
