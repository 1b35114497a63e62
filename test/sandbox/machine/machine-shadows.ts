/** Cases of `local` about the agent's programs: they are the agent's alone, whatever their names. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { type Case, sandbox, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { type MachineSetup, ask, machineOptions, runIn, providerOf } from "./machine-subject.ts";

/** The programs of launcher, PID 1, daemon and the way to the agent, and those that the daemon's scripts call. */
const OURS = (
  "node platform platform-agent platform-entrypoint " +
  "bwrap env hostname ip mount pivot_root prlimit setpriv sh unshare " +
  "cat cp find git grep mkdir mkfifo rm sed sort touch tr xargs"
).split(" ");

const SHADOW = "#!/bin/sh\necho shadowed\nexit 99\n";

const makeShadows = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = await mkdtemp(join(tmpdir(), "shadows-"));
    await chmod(directory, 0o755);
    await Promise.all(OURS.map((name) => writeFile(join(directory, name), SHADOW, { mode: 0o755 })));
    return directory;
  }),
  (directory) => Effect.promise(() => rm(directory, { recursive: true })),
);

/** Says where each of these programs is found; a name that is found nowhere says nothing. */
const WHERE = `for name in ${OURS.join(" ")}; do command -v "$name" || :; done`;

export const shadowCases = (setup: MachineSetup): readonly Case[] => [
  {
    name: "keeps its own programs apart from the agent's, whatever their names",
    run: Effect.gen(function* () {
      const directory = yield* makeShadows;
      const agentBinaries = OURS.map((name) => join(directory, name));
      const layer = providerOf(setup, { ...machineOptions(setup, "http://127.0.0.1:1"), agentBinaries });
      yield* Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: setup.image });
        yield* sandbox(spec);
        const health = JSON.parse(yield* ask(spec.id, "/platform/health")) as { readonly pid: number };
        const running = yield* runIn(spec.id, "daemon", `tr '\\0' ' ' < /proc/${health.pid}/cmdline`);
        assert.match(running.stdout, /^\/opt\/platform\/lib\/node /);
        for (const as of ["daemon", "agent"] as const) {
          const found = yield* runIn(spec.id, as, WHERE);
          assert.equal(found.code, 0, found.stderr);
          assert.ok(!found.stdout.includes("/opt/platform/bin"), found.stdout);
        }
        const version = yield* runIn(spec.id, "agent", "node --version; git --version");
        assert.ok(version.stdout.startsWith(`${process.version}\n`), version.stdout);
        assert.ok(!version.stdout.includes("shadowed"), version.stdout);
        const { agentPath } = JSON.parse(yield* ask(spec.id, "/settings")) as { readonly agentPath: string };
        const agents = yield* runIn(spec.id, "agent", `PATH=${agentPath}; node --version`);
        assert.deepEqual([agents.code, agents.stdout], [99, "shadowed\n"]);
      }).pipe(Effect.scoped, Effect.provide(layer));
    }).pipe(Effect.scoped),
  },
];
