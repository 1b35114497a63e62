/** Cases of `local` about what other services have: one that was killed while it made a sandbox, and another installation's. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import { sandboxPaths, writeRecord } from "../../../src/sandbox/machine/disk/run-directory.ts";
import { MachineSandboxes } from "../../../src/sandbox/machine/sandboxes.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { type Case, type Subject, sandbox, specOf } from "../../conformance/sandboxes/sandbox.ts";
import { type MachineSetup, ask, machineOptions, installationOf } from "./machine-subject.ts";

/** Makes a sandbox and stops when its groups exist. @returns the files on the disk at that moment. */
const makeGroupsOf = async (setup: MachineSetup, spec: ReturnType<typeof specOf>) => {
  const installation = await installationOf(setup, machineOptions(setup, "http://127.0.0.1:1"));
  const paths = sandboxPaths(setup.runDir, spec.id);
  let record = "";
  const groupParents = installation.groupParents.map((parent) => ({
    ...parent,
    // Asked for when the group's directory is made.
    get controls(): typeof parent.controls {
      record = readFileSync(paths.record, "utf8");
      throw new Error("killed");
    },
  }));
  const sandboxes = await MachineSandboxes.open({ ...installation, groupParents });
  // Where the user can make no group there is nothing to stop at, and nothing to leave.
  if (groupParents.length > 0) await assert.rejects(sandboxes.create(spec), /killed/);
  sandboxes.close();
  return {
    paths,
    record,
    groups: installation.groupParents.map(({ directory }) => `${directory}/${spec.id}`),
  };
};

export const formerServiceCases = ({
  setup,
  subject,
}: {
  readonly setup: MachineSetup;
  readonly subject: Subject;
}): readonly Case[] => [
  {
    name: "starts again if a former service died before it started any process",
    run: Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const spec = specOf(randomUUID(), { image: subject.image });
      const paths = sandboxPaths(setup.runDir, spec.id);
      yield* Effect.promise(async () => {
        await mkdir(paths.proxy, { recursive: true });
        await writeRecord(paths, {
          version: 1,
          id: spec.id,
          sessionId: spec.sessionId,
          installationId: "0e6f1c52-conformance",
          nodeId: "node-1",
          uidBase: null,
          launcher: null,
          cgroups: [],
          egressAllow: [],
          secretNames: [],
          llmUpstream: null,
        });
      });
      yield* Effect.scoped(Effect.andThen(sandbox(spec), ask(spec.id, "/platform/health")));
      assert.equal((yield* provider.list).length, 0);
      assert.deepEqual(yield* subject.leftovers(spec.id), []);
    }).pipe(Effect.provide(subject.layer)),
  },
  {
    name: "leaves another installation's sandbox with the same id alone [I9]",
    run: Effect.gen(function* () {
      const provider = yield* SandboxProvider;
      const spec = specOf(randomUUID(), { image: subject.image });
      yield* sandbox(spec);
      const options = machineOptions(
        { ...setup, runDir: path.join(setup.runDir, "o") },
        "http://127.0.0.1:1",
      );
      yield* Effect.promise(async () => {
        const others = await MachineSandboxes.open(await installationOf(setup, options));
        await others.end(spec.id);
        await others.destroy(spec.id);
        others.close();
      });
      const own = (yield* provider.list).find(({ id }) => id === spec.id);
      assert.equal(own?.state, "running");
      yield* ask(spec.id, "/platform/health");
    }).pipe(Effect.scoped, Effect.provide(subject.layer)),
  },
  {
    name: "removes the control groups of a sandbox whose service died while it created them [I9]",
    run: Effect.gen(function* () {
      const spec = specOf(randomUUID(), { image: subject.image });
      const { paths, record, groups } = yield* Effect.promise(() => makeGroupsOf(setup, spec));
      if (groups.length === 0) return;
      // The failed attempt has cleared up behind itself, which one that is killed does not.
      yield* Effect.promise(async () => {
        await mkdir(paths.root);
        await writeFile(paths.record, record);
      });
      for (const group of groups) mkdirSync(group, { recursive: true });
      assert.notDeepEqual(yield* subject.leftovers(spec.id), []);
      const left = Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const ids = (yield* provider.list).map(({ id }) => id);
        assert.deepEqual(ids, [spec.id]);
        yield* provider.destroy(spec.id);
      });
      yield* Effect.provide(left, subject.layer);
      assert.deepEqual(yield* subject.leftovers(spec.id), []);
    }),
  },
];
