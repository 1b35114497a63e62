/** Kill -9 between the steps of a branch's creation and of a push: server and mirror agree afterwards. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LifeOrder } from "./external-life.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";
import { git, gitOk } from "../git-client.ts";
import type { Fault } from "./upstream-server.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect);
let world: ExternalWorld;
beforeAll(async () => {
  world = await run(Scope.provide(makeExternalWorld(), scope));
});
afterAll(() => run(Scope.close(scope, Exit.void)));

let projectId = "";
let base = "";
let there = "";
/** The mirrors of the process that dies; the next life takes them over. */
let directory = "";
beforeEach(async () => {
  projectId = randomUUID();
  directory = join(world.root, `mirrors-${projectId}`);
  await run(world.backend.create({ projectId, importFrom: null, defaultBranch: "main" }));
  base = await run(world.backend.resolveBase({ projectId }, "main"));
  there = join(world.upstreams, `${projectId}.git`);
});
afterEach(() => {
  world.server.fault = () => null;
});

const lives = new Set<ChildProcess>();
afterEach(() => {
  for (const life of lives) life.kill("SIGKILL");
  lives.clear();
});

const begin = (make: LifeOrder["make"]): ChildProcess => {
  const order: LifeOrder = { directory, projectId, upstream: world.upstreamOf(projectId), make };
  const program = fileURLToPath(new URL("external-life.ts", import.meta.url));
  const life = spawn(process.execPath, [program, JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  lives.add(life);
  return life;
};

/** Where the process is killed: when the server hears a request, before or after it has done what it asks. */
const STEPS = {
  "before the push is begun": ["service=git-receive-pack", { kind: "die", afterBytes: 0 }],
  "while the server receives it": ["/git-receive-pack", { kind: "die", afterBytes: 50 }],
  "when the server has it": ["/git-receive-pack", { kind: "mute" }],
  "when the server has it and says so": ["/git-receive-pack", null],
} as const satisfies Readonly<Record<string, readonly [string, Fault | null]>>;

/** Kills the life at the step; told when it is done. */
const killAt = (life: ChildProcess, step: string, fault: Fault | null): void => {
  world.server.fault = (target) => {
    if (!target.endsWith(step)) return null;
    life.kill("SIGKILL");
    return fault;
  };
};

const list = (bare: string) => gitOk(bare, "for-each-ref", "--format=%(refname) %(objectname)");

/** What refs the server and the mirror of the killed process hold, after the next life's first question. */
const agreement = async () => {
  const mirror = join(directory, `${projectId}.git`);
  expect(await list(mirror)).toBe(await list(there));
  expect(await gitOk(mirror, "fsck", "--strict", "--no-dangling")).toBe("");
};

const killsAt = (step: string, fault: Fault | null): void => {
  it("leaves a branch that the next process creates [G12]", async () => {
    const make = { branch: randomUUID(), commit: base };
    const life = begin(make);
    killAt(life, step, fault);
    await once(life, "exit");
    world.server.fault = () => null;
    const [code] = (await once(begin(make), "exit")) as [number | null];
    expect(code).toBe(0);
    expect(await gitOk(there, "rev-parse", `refs/heads/${make.branch}`)).toBe(base);
    await agreement();
  });

  it("leaves a push that is complete or that can be repeated as a whole [G12]", async () => {
    const session = randomUUID();
    await run(world.backend.createBranch({ projectId }, { branch: session, commit: base }));
    const serve = async (): Promise<[ChildProcess, string]> => {
      const life = begin({ serve: session });
      const [line] = (await once(life.stdout ?? process.stdin, "data")) as [Buffer];
      return [life, line.toString("utf8").trim()];
    };
    const [life, url] = await serve();
    const work = join(world.root, `work-${projectId}`);
    mkdirSync(work);
    await gitOk(work, "clone", "--quiet", "--branch", session, url, ".");
    writeFileSync(join(work, "work.txt"), "work\n");
    await gitOk(work, "add", ".");
    await gitOk(work, "commit", "--quiet", "-m", "Work");
    const gone = once(life, "exit");
    killAt(life, step, fault);
    expect((await git(work, "push", "origin", "HEAD")).code).not.toBe(0);
    await gone;
    world.server.fault = () => null;
    const [, again] = await serve();
    await gitOk(work, "push", "--quiet", again, "HEAD");
    expect(await gitOk(there, "rev-parse", `refs/heads/${session}`)).toBe(
      await gitOk(work, "rev-parse", "HEAD"),
    );
    await agreement();
  });
};

describe.each(Object.entries(STEPS))("a process that is killed %s", (_name, [step, fault]) =>
  killsAt(step, fault),
);
