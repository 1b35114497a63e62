/** Cases about the limits of sandboxes on this machine. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import { readRecord, sandboxPaths } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { type Case, sandbox, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import type { MachineWorld } from "./machine-cases.ts";
import { ask, installationOf, machineOptions, providerOf } from "./machine-subject.ts";

/** Cases about limits, each with a sandbox that has little. */
export const limitCases = ({ setup, port }: MachineWorld): readonly Case[] => {
  const mib = 1024 * 1024;
  const options = machineOptions(setup, `http://127.0.0.1:${port}`, {
    memoryBytes: 256 * mib,
    diskBytes: 64 * mib,
    cpus: 1,
  });
  const layer = providerOf(setup, options);
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
    {
      name: "gives all processes of a sandbox the processors that it may use, and all sandboxes less weight than the service's group beside them, where control groups can",
      run: Effect.gen(function* () {
        const { controls } = yield* Effect.promise(() => installationOf(setup, options));
        if (!controls.has("cpu")) return;
        const spec = specOf(randomUUID(), { image: setup.image });
        yield* sandbox(spec);
        yield* ask(spec.id, "/run", { as: "agent", argv: ["sh", "-c", "exec sleep 300"], detached: true });
        const record = yield* Effect.promise(() => readRecord(sandboxPaths(setup.runDir, spec.id)));
        const groups = record?.container?.cgroups ?? record?.cgroups ?? [];
        const limits = groups.flatMap((directory) =>
          ["cpu.cfs_quota_us", "cpu.max"].flatMap((file) => {
            const path = join(directory, file);
            return existsSync(path) ? [{ directory, limit: readFileSync(path, "utf8").trim() }] : [];
          }),
        );
        assert.deepEqual(
          limits.map(({ limit }) => limit.split(" ")[0]),
          ["100000"],
        );
        const group = limits[0]?.directory ?? "";
        // An engine places its groups itself.
        if (record?.container === undefined) {
          const parent = dirname(group);
          // Beside the service's own group they weigh less than it, and inside of it as much as one of its threads.
          const isInside = readFileSync(join(dirname(parent), "cgroup.procs"), "utf8")
            .split("\n")
            .includes(String(process.pid));
          const weights: readonly [string, number][] = [
            ["cpu.shares", isInside ? 1024 : 256],
            ["cpu.weight", isInside ? 100 : 25],
          ];
          const files = weights.filter(([file]) => existsSync(join(parent, file)));
          assert.deepEqual(
            files.map(([file]) => Number(readFileSync(join(parent, file), "utf8"))),
            files.map(([, weight]) => weight),
          );
        }
        const members = new Set(
          readFileSync(join(group, "cgroup.procs"), "utf8").trim().split("\n").map(Number),
        );
        // This machine sees gVisor instead of the processes inside.
        const processes =
          setup.runtime === "runsc" ? [record?.launcher?.pid ?? 0] : processesOfSandbox(spec.id);
        assert.ok(processes.length > (setup.runtime === "runsc" ? 0 : 2));
        assert.deepEqual(
          processes.filter((pid) => !members.has(pid)),
          [],
        );
      }).pipe(Effect.scoped, Effect.provide(layer)),
    },
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
    exceeds(
      "ends a sandbox that fills its disk with files that it removed and keeps open",
      "disk_exceeded",
      'node -e \'const fs = require("node:fs"); setInterval(() => {' +
        'const fd = fs.openSync("/workspace/gone", "w"); fs.unlinkSync("/workspace/gone");' +
        "fs.writeSync(fd, Buffer.alloc(16 << 20, 1)); }, 20)'",
    ),
  ];
};
