/**
 * `npm run bench:revocations [-- --tries 200]`: two nodes on one Postgres. A power is taken at one node, and everything that it
 * holds open at the other one must end: streams of a project's events, of a token that is revoked, and of a member who
 * loses her role. How long each took, and how many ended within a second, from before the request that takes the power. The last
 * line is one JSON object.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { parseArgs } from "node:util";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { guardedDirectory } from "../support/machine/guard.ts";
import { Installation, type Life } from "../support/service/process-service.ts";

const LIMIT_MS = 1000;
const STREAMS = 5;

const { values } = parseArgs({ options: { tries: { type: "string", default: "200" } } });
const tries = Number(values.tries);
if (!Number.isInteger(tries) || tries < 2) throw new Error("--tries takes whole numbers from 2");

interface Stream {
  /** The instant at which it ended. */
  readonly ended: Promise<number>;
}

/** Opens a stream of events at a node, and waits for its first bytes. */
const follow = async (life: Life, project: string, token: string): Promise<Stream> => {
  const asked = request(`${life.url}/v1/projects/${project}/events`, {
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`a stream was answered with ${answer.statusCode}`);
  const ended = new Promise<number>((resolve) => {
    const over = (): void => resolve(performance.now());
    answer.on("error", over).on("close", over);
  });
  await once(answer.resume(), "data");
  return { ended };
};

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
  PLATFORM_SANDBOX_PROVIDER: "simulated",
};
const installations = [await Installation.open(), await Installation.open()] as const;
const [here, there] = [await installations[0].start(settings), await installations[1].start(settings)];
const project = await here.project(installations[0].sample);
await here.call("PATCH", `/v1/projects/${project}`, { default_role: null });
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
    await here.call("PUT", member, { role: "viewer" });
    return { token: String(ben["token"]), take: () => here.call("DELETE", member) };
  },
};

/** @returns how long the last stream of a power took to end at the other node, ms */
const tried = async (make: () => Promise<Power>): Promise<number> => {
  const { token, take } = await make();
  const streams: Stream[] = [];
  for (let opened = 0; opened < STREAMS; opened += 1) streams.push(await follow(there, project, token));
  const began = performance.now();
  await take();
  return Math.max(...(await Promise.all(streams.map(({ ended }) => ended)))) - began;
};

const found: Record<string, { tries: number; within: number; median: number; longest: number }> = {};
for (const [name, make] of Object.entries(POWERS)) {
  const times: number[] = [];
  for (let count = 0; count < tries / 2; count += 1) times.push(await tried(make));
  const sorted = times.toSorted((one, other) => one - other).map(Math.round);
  const within = times.filter((ms) => ms <= LIMIT_MS).length;
  const [median = 0, longest = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  found[name] = { tries: times.length, within, median, longest };
  process.stdout.write(
    `${name}: ${within} of ${times.length} ended within ${LIMIT_MS} ms, median ${median} ms, longest ${longest} ms\n`,
  );
}
process.stdout.write(`${JSON.stringify({ streams: STREAMS, ...found })}\n`);
for (const life of [here, there]) await life.end("SIGTERM");
for (const installation of installations) await installation.close();
await Effect.runPromise(Scope.close(scope, Exit.void));
remove();
