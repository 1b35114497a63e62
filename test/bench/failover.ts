/**
 * `npm run bench:failover [-- --rounds 10]`: two nodes on one Postgres, 40 sessions, the second node ended; how long a
 * caller of the first waits at the longest for the answer of a session's actor. Killed with -9, ended in order, and standing still. Prints medians and the
 * longest, in ms; the last line is one JSON object. It measures and judges nothing.
 */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { startEmbedded } from "../../src/store/postgres/embedded/embedded.ts";
import { guardedDirectory } from "../support/machine/guard.ts";
import { Installation, TOKEN, type Life } from "../support/service/process-service.ts";

const SESSIONS = 40;
const ENDS = ["SIGKILL", "SIGTERM", "SIGSTOP"] as const;
type End = (typeof ENDS)[number];

const flag = process.argv.indexOf("--rounds");
const rounds = flag === -1 ? 10 : Number(process.argv[flag + 1]);
const scope = Effect.runSync(Scope.make());
const { directory, remove } = guardedDirectory("platform-bench-");
const { url } = await Effect.runPromise(Scope.provide(startEmbedded(directory), scope));
const settings = {
  DATABASE_URL: url,
  PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
  PLATFORM_SANDBOX_PROVIDER: "simulated",
  // Actors are measured: the second node's sandboxes must still exist when it comes back.
  PLATFORM_NODE_GRACE_MS: "3600000",
};

/** Whether the session's own actor answers: only the actor refuses to restart a session that is not stopped. */
const answers = async (life: Life, target: string): Promise<boolean> => {
  const answer = await fetch(`${life.url}${target}/restart`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}` },
    signal: AbortSignal.timeout(60_000),
  });
  await answer.text();
  return answer.status === 409 || answer.status === 202;
};

/** Has every session answer. */
const allAnswer = (life: Life, targets: readonly string[]): Promise<unknown> =>
  Promise.all(
    targets.map(async (target) => {
      while (!(await answers(life, target)));
    }),
  );

/**
 * Asks for every session again and again, until each has answered to a question that was asked after `gone`.
 *
 * @returns the longest that a caller waited for an answer, in ms.
 */
const longestWait = async (
  life: Life,
  targets: readonly string[],
  gone: Promise<unknown>,
): Promise<number> => {
  let isGone = false;
  void gone.then(() => (isGone = true));
  const waits = targets.map(async (target) => {
    let longest = 0;
    for (let wasGone = false; !wasGone;) {
      wasGone = isGone;
      const asked = performance.now();
      while (!(await answers(life, target)));
      longest = Math.max(longest, performance.now() - asked);
    }
    return longest;
  });
  return Math.max(...(await Promise.all(waits)));
};

const first = await Installation.open();
const second = await Installation.open();
const here = await first.start(settings);
const project = await here.project(first.sample);
let there = await second.start(settings);
const targets: string[] = [];
for (let made = 0; made < SESSIONS; made += 1) {
  const { id } = await here.call("POST", `/v1/projects/${project}/sessions`, {});
  targets.push(`/v1/projects/${project}/sessions/${String(id)}`);
}

const end = async (how: End): Promise<number> => {
  // Both have their share again, and every actor is in memory.
  await allAnswer(here, targets);
  await allAnswer(there, targets);
  if (how === "SIGSTOP") {
    there.signal("SIGSTOP");
    const waited = await longestWait(here, targets, Promise.resolve());
    there.signal("SIGCONT");
    return waited;
  }
  const waited = await longestWait(here, targets, there.end(how));
  there = await second.start(settings);
  return waited;
};

const found: Record<string, { readonly median: number; readonly longest: number }> = {};
for (const how of ENDS) {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    times.push(await end(how));
    // The other one has taken its share back before it is ended again.
    await new Promise((resolve) => {
      setTimeout(resolve, 6000);
    });
  }
  const sorted = times.toSorted((a, b) => a - b).map(Math.round);
  found[how] = { median: sorted[Math.floor(sorted.length / 2)] ?? 0, longest: sorted.at(-1) ?? 0 };
  process.stdout.write(`${how}: median ${found[how].median} ms, longest ${found[how].longest} ms\n`);
}
process.stdout.write(`${JSON.stringify(found)}\n`);
await here.end("SIGTERM");
await there.end("SIGTERM");
for (const installation of [first, second]) await installation.close();
await Effect.runPromise(Scope.close(scope, Exit.void));
remove();
