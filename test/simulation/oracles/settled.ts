/** What every simulated world begins with. */
import * as Effect from "effect/Effect";
import { cataloguePin } from "../../../src/domain/connector/catalogue.ts";
import { sealSecret } from "../../../src/domain/secret/secret.ts";
import { Connectors } from "../../../src/store/ports/connectors/connectors.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Secrets } from "../../../src/store/ports/projects/secrets.ts";
import {
  commitManifest,
  makeAccount,
  makeRepository,
  newProject,
  numbered,
} from "../../support/world/world.ts";
import { HOOK_SECRET, HOOK_VALUE, manifestOf, warmManifestOf } from "../world/manifests.ts";
import { CATALOGUE, CONNECTOR, SLUG, UPSTREAM_URL } from "../world/upstream.ts";

/** Friday noon. */
export const BEGINNING = Date.UTC(2026, 10, 20, 12);
export const MASTER = { current: { version: 1, bytes: new Uint8Array(32) }, former: [] };

export const ACCOUNTS = [numbered(1), numbered(2)] as const;
export const USERS = [numbered(11), numbered(12)] as const;
/** The account of each project. */
export const PROJECTS = [
  { id: numbered(21), account: 0 },
  { id: numbered(22), account: 0 },
  { id: numbered(23), account: 1 },
] as const;
const FIRST_CAP = 3;
/** The first of two accounts. */
export const settled = Effect.gen(function* () {
  yield* makeAccount({
    accountId: ACCOUNTS[0],
    userId: USERS[0],
    tokenId: numbered(31),
    tokenHash: "0".repeat(64),
    cap: FIRST_CAP,
    now: BEGINNING,
  });
});

/** Each project has a connector whose tool asks. */
export const withConnectors = Effect.gen(function* () {
  const connectors = yield* Connectors;
  const pin = cataloguePin(CATALOGUE);
  for (const [index, { id: projectId, account }] of PROJECTS.entries()) {
    yield* commitManifest(projectId, manifestOf(index * 24) + CONNECTOR);
    const key = { projectId, slug: SLUG, url: UPSTREAM_URL };
    yield* connectors.saw(key, { catalogue: CATALOGUE, pin, protocol: "2025-11-25", at: BEGINNING });
    yield* connectors.accept(key, { pin, userId: USERS[account], now: BEGINNING });
  }
});

/** Sandboxes wait for sessions of two projects. */
export const withWarmth = Effect.gen(function* () {
  for (const [index, { id }] of PROJECTS.entries()) yield* commitManifest(id, warmManifestOf(index * 24 + 4));
});

/** Three projects, each with a repository, a manifest and a secret. */
export const withProjects = Effect.gen(function* () {
  for (const [index, project] of PROJECTS.entries()) {
    const owner = { accountId: ACCOUNTS[project.account], userId: USERS[project.account] };
    yield* makeRepository(project.id);
    yield* (yield* Projects).create(
      newProject(owner, { id: project.id, name: `project ${index}`, now: BEGINNING }),
    );
    yield* commitManifest(project.id, manifestOf(index * 24));
    const place = { projectId: project.id, name: HOOK_SECRET, version: 1 };
    const envelope = sealSecret(MASTER, place, { value: HOOK_VALUE, nonce: new Uint8Array(12) });
    yield* (yield* Secrets).put({ ...place, envelope }, { userId: owner.userId, now: BEGINNING });
  }
});
