/**
 * The world of a test: an account with its slots, its user and token, and a project with its repository and manifest. It is built
 * over any store and any backend, twin or real, by the layers that the test provides.
 */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { Manifests } from "../../../src/services/projects/manifests.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import { Accounts } from "../../../src/store/ports/people/accounts.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";

/** The instant at which a world begins, unless the test names another one. */
export const NOON = Date.UTC(2026, 10, 20, 12);
export const BOOT_MS = 120_000;
export const PAST_BOOT = NOON + BOOT_MS;

export interface World {
  readonly accountId: string;
  readonly userId: string;
  readonly projectId: string;
  readonly tokenHash: string;
}

/** What a test may choose of an account. */
export interface AccountWish {
  /** Slots of the account. */
  readonly cap: number;
  readonly accountId?: string;
  readonly userId?: string;
  readonly tokenId?: string;
  readonly tokenHash?: string;
  readonly now?: number;
}

/** What a test may choose of a world. */
export interface WorldWish extends AccountWish {
  readonly projectId?: string;
}

export const hash = (): string => randomUUID().replaceAll("-", "").repeat(2);

/** An id that a person can read in a failure. */
export const numbered = (number: number): string =>
  `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** Ids and an instant for tests on a test clock, which begins at 0. */
export const NUMBERED = {
  accountId: numbered(1),
  userId: numbered(2),
  tokenId: numbered(3),
  tokenHash: "0".repeat(64),
  projectId: numbered(4),
  now: 0,
} as const;

/** An account with its user and the user's first token. */
export const makeAccount = Effect.fnUntraced(function* ({ cap, now = NOON, ...chosen }: AccountWish) {
  const account = {
    accountId: chosen.accountId ?? randomUUID(),
    userId: chosen.userId ?? randomUUID(),
    tokenHash: chosen.tokenHash ?? hash(),
  };
  const tokenId = chosen.tokenId ?? randomUUID();
  yield* (yield* Identity).bootstrap({ ...account, tokenId, tier: "free", cap, now });
  return account;
});

/** A hosted project as the store gets it. */
/** One more person of the world's account. @returns her id */
export const addPerson = Effect.fnUntraced(function* ({ accountId }: Pick<World, "accountId">, name = "Ben") {
  const id = randomUUID();
  yield* (yield* Accounts).createUser({ id, accountId, name, role: "member", now: NOON });
  return id;
});

export const newProject = (
  { accountId, userId }: Pick<World, "accountId" | "userId">,
  {
    id = randomUUID(),
    name = `shop ${id}`,
    now = NOON,
  }: { readonly id?: string; readonly name?: string; readonly now?: number } = {},
) => ({
  id,
  accountId,
  name,
  repository: { kind: "hosted" as const },
  defaultBranch: "main",
  createdBy: userId,
  now,
});

/** A project in the store alone. @returns its id. */
export const addProject = Effect.fnUntraced(function* (
  owner: Pick<World, "accountId" | "userId">,
  now: number = NOON,
) {
  const project = newProject(owner, { now });
  yield* (yield* Projects).create(project);
  return project.id;
});

/** An account and one project, in the store alone. */
export const makeWorld = Effect.fnUntraced(function* (wish: number | WorldWish) {
  const {
    projectId = randomUUID(),
    now = NOON,
    ...account
  } = typeof wish === "number" ? { cap: wish } : wish;
  const owner = yield* makeAccount({ ...account, now });
  yield* (yield* Projects).create(newProject(owner, { id: projectId, now }));
  return { ...owner, projectId } satisfies World;
});

/** Makes the repository of a project. */
export const makeRepository = Effect.fnUntraced(function* (projectId: string) {
  yield* (yield* GitBackend).create({ projectId, importFrom: null, defaultBranch: "main" });
});

/** An account and one project with its repository. */
export const makeWorldWithRepository = Effect.fnUntraced(function* (wish: number | WorldWish) {
  const world = yield* makeWorld(wish);
  yield* makeRepository(world.projectId);
  return world;
});

/** Commits a manifest to the default branch of a simulated repository. */
export const commitManifest = Effect.fnUntraced(function* (projectId: string, text: string) {
  const repositories = yield* SimulatedRepositories;
  yield* repositories.commit(
    { projectId },
    { branch: "main", onto: null, files: { "platform.toml": text }, subject: "manifest" },
  );
});

/** The manifest of the project is `text` now, and the service has read it. */
export const pushManifest = Effect.fnUntraced(function* (projectId: string, text: string) {
  yield* commitManifest(projectId, text);
  const project = yield* (yield* Projects).get(projectId);
  if (project !== null) yield* (yield* Manifests).sync(project);
});

/** The account as the store shows it. */
export const accountOf = Effect.fnUntraced(function* (world: World) {
  return yield* (yield* Identity).account(world.accountId);
});
