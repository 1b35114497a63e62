/** `gvisor` on the machine's own root, with the same cases as `local`. */
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { specOf } from "../../conformance/sandboxes/sandbox.ts";
import { lacksRunsc, runsc } from "../../support/machine/runsc.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { machineSuites, SAMPLE_CASES } from "../machine/machine-harness.ts";
import {
  type MachineSetup,
  ask,
  machineOptions,
  machineSubject,
  providerOf,
} from "../machine/machine-subject.ts";
import { isDeep, onlyDeep } from "../../support/vitest/rings.ts";

machineSuites({
  image: null,
  runsc,
  lacks: lacksRunsc,
  forms: ["gvisor"],
  others: [],
  only: () => (isDeep ? null : SAMPLE_CASES),
});

const lacks = lacksRunsc ?? (sandboxesStartHere ? null : "(needs bubblewrap)");

onlyDeep(() => {
  describe.skipIf(lacks !== null)(`a change of the provider ${lacks ?? ""}`, () => {
    it.each([
      ["bubblewrap", "gvisor"],
      ["gvisor", "bubblewrap"],
    ] as const)(
      "leaves a sandbox of %s to the service with %s, which reaches and destroys it [I10]",
      async (first, later) => {
        const runDir = await mkdtemp("/tmp/platform-ch-");
        await chmod(runDir, 0o711);
        const setup = (form: MachineSetup["form"]): MachineSetup => ({
          runDir,
          nodePath: process.execPath,
          daemon: fileURLToPath(new URL("../stand-in-daemon.mjs", import.meta.url)),
          form,
          runsc,
          socket: "",
          path: process.env["PATH"] ?? "",
          planted: [],
          image: null,
          imagesDir: `${runDir}/images`,
        });
        const serviceOf = (form: MachineSetup["form"], body: Effect.Effect<void, unknown, SandboxProvider>) =>
          Effect.runPromise(
            Effect.provide(body, providerOf(setup(form), machineOptions(setup(form), "http://127.0.0.1:1"))),
          );
        const spec = specOf(randomUUID());
        try {
          await serviceOf(
            first,
            Effect.flatMap(SandboxProvider, (provider) => provider.create(spec)),
          );
          await serviceOf(
            later,
            Effect.gen(function* () {
              const provider = yield* SandboxProvider;
              const found = yield* provider.list;
              expect(found.map(({ id, state }) => [id, state])).toEqual([[spec.id, "running"]]);
              yield* ask(spec.id, "/platform/health");
              yield* provider.destroy(spec.id);
            }),
          );
          const { leftovers } = machineSubject(setup(later), "http://127.0.0.1:1");
          expect(await Effect.runPromise(leftovers(spec.id))).toEqual([]);
        } finally {
          await rm(runDir, { recursive: true, force: true });
        }
      },
    );
  });
});
