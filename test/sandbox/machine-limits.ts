/** Cases about the limits of sandboxes on this machine. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { SandboxProvider } from "../../src/sandbox/port.ts";
import { type Case, sandbox, specOf } from "../conformance/sandbox.ts";
import { processesOfSandbox } from "../support/machine/processes-seeing.ts";
import type { MachineWorld } from "./machine-cases.ts";
import { ask, machineOptions, providerOf } from "./machine-subject.ts";

/** Cases about limits, each with a sandbox that has little. */
export const limitCases = ({ setup, port }: MachineWorld): readonly Case[] => {
  const mib = 1024 * 1024;
  const layer = providerOf(
    setup,
    machineOptions(setup, `http://127.0.0.1:${port}`, { memoryBytes: 256 * mib, diskBytes: 64 * mib }),
  );
  const exceeds = (name: string, code: string, script: string): Case => ({
    name,
    run: Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const spec = specOf(randomUUID(), { image: setup.image });
      yield* sandbox(spec);
      yield* ask(spec.id, "/run", { as: "agent", argv: ["sh", "-c", script], detached: true });
      assert.equal((yield* provider.awaitExit(spec.id)).code, code);
      assert.deepEqual(processesOfSandbox(spec.id), []);
    }).pipe(Effect.scoped, Effect.provide(layer)),
  });
  return [
    exceeds(
      "ends a sandbox that takes more memory than it may",
      "memory_exceeded",
      "node -e 'const kept = []; setInterval(() => kept.push(Buffer.alloc(32 << 20, 1)), 20)'",
    ),
    exceeds(
      "ends a sandbox that fills its disk",
      "disk_exceeded",
      "while :; do head -c 16777216 /dev/zero >> /workspace/fill; sleep 0.02; done",
    ),
  ];
};
