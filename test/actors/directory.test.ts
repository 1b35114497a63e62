/** What the directory holds of a project, and what becomes of the others beside one that cannot be held. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { TestClock } from "effect/testing";
import { assert, describe } from "vitest";
import { Directory, directoryLayer } from "../../src/actors/directory.ts";
import { Keyring, keyringLayer } from "../../src/actors/keyring.ts";
import { sealSecret } from "../../src/domain/secret.ts";
import { memoryStore } from "../../src/store/memory/layer.ts";
import { Projects, Secrets } from "../../src/store/port.ts";
import type { ProjectState } from "../../src/store/records.ts";
import { addProject, makeWorld, NOON, type Store } from "../conformance/store-fixture.ts";

const MANIFEST = `
[[triggers]]
slug = "on-push"
type = "webhook"
secret_env = "SIGNING"
prompt = "p"
`;

const put = Effect.fnUntraced(function* (projectId: string, userId: string, name: string) {
  const { secrets } = yield* Keyring;
  const place = { projectId, name, version: 1 };
  const envelope = sealSecret(secrets, place, { value: "value", nonce: new Uint8Array(12) });
  yield* (yield* Secrets).put({ ...place, envelope }, { userId, now: NOON });
});

/** The directory over the twin, whose states are read as `read` leaves them. */
const overStates = (read: (state: ProjectState) => ProjectState) => {
  const projects = Layer.effect(
    Projects,
    Effect.map(Projects, ({ states, ...others }) =>
      Projects.of({ ...others, states: (ids) => Effect.map(states(ids), (found) => found.map(read)) }),
    ),
  );
  return directoryLayer.pipe(
    Layer.provideMerge(projects),
    Layer.provideMerge(memoryStore),
    Layer.provideMerge(keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] })),
  );
};

const check = <E>(
  name: string,
  test: Effect.Effect<void, E, Store | Directory | Keyring>,
  read: (state: ProjectState) => ProjectState = (state) => state,
) => {
  it.effect(name, () => Effect.provide(test, overStates(read), { local: true }));
};

describe("the directory", () => {
  check(
    "opens those secrets alone that webhooks are signed with [I16]",
    Effect.gen(function* () {
      const { projectId, userId } = yield* makeWorld(1);
      yield* put(projectId, userId, "SIGNING");
      yield* put(projectId, userId, "DEPLOY_KEY");
      const good = { commit: "c1", text: MANIFEST, agents: [], bringsModel: null };
      yield* (yield* Projects).recordManifest(projectId, { commit: "c1", good, failure: null, now: NOON });
      const known = yield* (yield* Directory).refresh(projectId);
      assert.deepStrictEqual([...(known?.keys.keys() ?? [])], ["SIGNING"]);
    }),
  );

  check(
    "holds the others beside a project that it cannot hold",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const projects = yield* Projects;
      yield* projects.update(world.projectId, { name: "broken" }, NOON);
      const other = yield* addProject(world);
      const directory = yield* Directory;
      yield* TestClock.adjust("1 second");
      assert.deepStrictEqual(
        [world.projectId, other].map((id) => directory.known(id)?.project.id ?? null),
        [null, other],
      );
    }),
    (state) => (state.project.name === "broken" ? Object.assign(state, { secrets: null }) : state),
  );
});
