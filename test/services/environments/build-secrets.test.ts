/** Builds that have secrets of their project (services/environments/building.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { describe, expect } from "vitest";
import { sealSecret } from "../../../src/domain/secret/secret.ts";
import { Keyring } from "../../../src/services/keyring.ts";
import { Secrets } from "../../../src/store/ports/projects/secrets.ts";
import { answered } from "../../support/world/actors.ts";
import { openBuildingNode } from "../../support/world/building-node.ts";
import { NOON, type World } from "../../support/world/world.ts";

/** Sets a secret of the project. */
const put = Effect.fnUntraced(function* ({ projectId, userId }: World, name: string, value: string) {
  const secrets = yield* Secrets;
  const place = { projectId, name, version: yield* secrets.nextVersion(projectId, name) };
  const envelope = sealSecret((yield* Keyring).secrets, place, { value, nonce: new Uint8Array(12) });
  yield* secrets.put({ ...place, envelope }, { userId, now: NOON });
});

describe("a build with secrets", () => {
  it.effect("gets the values that it names and no others, and its log and failure have none [E14]", () =>
    Effect.gen(function* () {
      const { site, given, output, world, inPorts, open, run, log } = yield* openBuildingNode();
      yield* inPorts(put(world, "NPM_TOKEN", "a-token-value"));
      yield* inPorts(put(world, "OTHER", "another-value"));
      const failure = { code: "step_failed", step: 1, line: 1, exit: 1, tail: "no a-token-value\n" } as const;
      site.plan = () => ({ stepsMs: 0, exportMs: 0, failure });
      output.text = "it says a-token-value\n";
      const { source } = yield* open("FROM scratch\n");
      const build = yield* open("FROM scratch\n#\n", {
        source: { ...source, key: "k2", secrets: ["NPM_TOKEN"] },
      });
      const outcome = yield* answered(Fiber.join(yield* run(build)));
      expect(given).toEqual([{ NPM_TOKEN: "a-token-value" }]);
      expect(outcome).toEqual({ type: "build.failed", failure: { ...failure, tail: "no [redacted]\n" } });
      expect((yield* log(build)).map(({ text }) => text).join("")).toContain("it says [redacted]\n");
    }),
  );

  it.effect("fails with the name of a secret that has no value, and builds nothing", () =>
    Effect.gen(function* () {
      const { given, open, run } = yield* openBuildingNode();
      const { source } = yield* open("FROM scratch\n");
      const build = yield* open("FROM scratch\n#\n", {
        source: { ...source, key: "k2", secrets: ["NPM_TOKEN"] },
      });
      expect(yield* answered(Fiber.join(yield* run(build)))).toEqual({
        type: "build.failed",
        failure: { code: "secret_missing", name: "NPM_TOKEN" },
      });
      expect(given).toEqual([]);
    }),
  );
});
