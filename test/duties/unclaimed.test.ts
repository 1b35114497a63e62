/**
 * Repositories that a failed creation left without a project, beside those of projects and those that are being
 * created.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Logger from "effect/Logger";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Creations, makeCreations } from "../../src/duties/unclaimed.ts";
import { builtInPlace, initBare } from "../../src/git/repository/building.ts";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { type KeptHere, KeptRepositories } from "../../src/git/kept.ts";
import { keptHosted, keptMirrors } from "../../src/git/repository/kept-here.ts";
import { GitBackend, GitError } from "../../src/git/port.ts";
import { memoryStore } from "../twins/store/layer.ts";
import { Projects } from "../../src/store/ports/projects/projects.ts";
import { makeWorld, NOON } from "../support/world/world.ts";
import { makeExternalWorld } from "../git/external/external-setup.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(effect.pipe(Scope.provide(scope), Effect.provide(Logger.layer([]))));

const root = mkdtempSync(join(tmpdir(), "unclaimed-"));
const AN_HOUR_AGO = new Date(new Date().getTime() - 3_600_000);

/** One directory with what makes repositories in it. */
interface Shelf {
  readonly directory: string;
  readonly backend: GitBackend["Service"];
  readonly kept: KeptHere;
  /** The file whose age is the age of the repository. */
  readonly aged: string;
}
let hosted: Shelf;
let mirrors: Shelf;
let projects: Projects["Service"];
let write: (projectId: string) => Promise<unknown>;

beforeAll(async () => {
  const store = await run(Layer.build(memoryStore));
  const { accountId, userId } = await run(Effect.provideContext(makeWorld(1), store));
  projects = Context.get(store, Projects);
  write = (projectId) =>
    run(
      projects.create({
        id: projectId,
        accountId,
        name: `made ${randomUUID()}`,
        repository: { kind: "hosted" },
        defaultBranch: "main",
        createdBy: userId,
        now: NOON,
      }),
    );
  const directory = join(root, "repositories");
  const backend = Context.get(await run(Layer.build(hostedBackend({ directory }))), GitBackend);
  hosted = { directory, backend, kept: keptHosted(directory), aged: "unclaimed" };
  const world = await run(makeExternalWorld());
  const kept = keptMirrors(world.mirrors, world.backend);
  mirrors = { directory: world.mirrors, backend: world.backend, kept, aged: "" };
});
afterAll(async () => {
  await run(Scope.close(scope, Exit.void));
  rmSync(root, { recursive: true, force: true });
});

const pathOf = ({ directory }: Shelf, projectId: string): string => join(directory, `${projectId}.git`);
const isThere = (shelf: Shelf, projectId: string): boolean => existsSync(pathOf(shelf, projectId));
const age = (shelf: Shelf, projectId: string): void =>
  utimesSync(join(pathOf(shelf, projectId), shelf.aged), AN_HOUR_AGO, AN_HOUR_AGO);
const makeIn = (shelf: Shelf, projectId: string) =>
  shelf.backend.create({ projectId, importFrom: null, defaultBranch: "main" });

/** A repository that a creation has left behind, an hour ago unless it is told to be new. */
const leave = async (shelf: Shelf, { isNew = false } = {}): Promise<string> => {
  const projectId = randomUUID();
  await run(makeIn(shelf, projectId));
  if (!isNew) age(shelf, projectId);
  return projectId;
};

/** A creation that has its repository, for long already, and waits until it may write its row. */
const waiting = (shelf: Shelf) => {
  const projectId = randomUUID();
  const [placed, mayWrite] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()];
  const making = Effect.gen(function* () {
    yield* makeIn(shelf, projectId);
    age(shelf, projectId);
    yield* Deferred.succeed(placed, undefined);
    yield* Deferred.await(mayWrite);
    yield* Effect.promise(() => write(projectId));
  });
  return { projectId, placed, mayWrite, making };
};

/** The duty over what a test has of the ports. */
const creationsOver = (
  kept: readonly KeptHere[],
  store: Projects["Service"] = projects,
): Promise<Creations["Service"]> =>
  run(
    makeCreations.pipe(Effect.provideService(Projects, store), Effect.provideService(KeptRepositories, kept)),
  );
const looked = async (): Promise<void> => {
  const { look } = await creationsOver([hosted.kept, mirrors.kept]);
  await run(look);
};

/** As if it had taken an hour. */
const buildSlowly = (aside: string) =>
  Effect.andThen(
    initBare(aside),
    Effect.sync(() => utimesSync(aside, AN_HOUR_AGO, AN_HOUR_AGO)),
  );

const SHELVES = [
  ["a hosted repository", () => hosted],
  ["a mirror", () => mirrors],
] as const;

describe.each(SHELVES)("%s", (_, shelfOf) => {
  it("without a project is removed, with everything in it", async () => {
    const id = await leave(shelfOf());
    await looked();
    expect(isThere(shelfOf(), id)).toBe(false);
    expect(readdirSync(shelfOf().directory).filter((name) => name.includes(id))).toEqual([]);
  });

  it("of a project stays, however old it is", async () => {
    const id = await leave(shelfOf());
    await write(id);
    await looked();
    expect(isThere(shelfOf(), id)).toBe(true);
    await looked();
    expect(isThere(shelfOf(), id)).toBe(true);
  });

  it("that just got its name stays: a writer that is gone may still have sent its row", async () => {
    const id = await leave(shelfOf(), { isNew: true });
    await looked();
    expect(isThere(shelfOf(), id)).toBe(true);
    age(shelfOf(), id);
    await looked();
    expect(isThere(shelfOf(), id)).toBe(false);
  });

  it("that is being created stays, however long it waits for its row", async () => {
    const shelf = shelfOf();
    const creations = await creationsOver([shelf.kept]);
    const { projectId, placed, mayWrite, making } = waiting(shelf);
    const maker = await run(Effect.forkScoped(creations.during(projectId, making)));
    await run(Deferred.await(placed));
    await run(creations.look);
    expect(isThere(shelf, projectId)).toBe(true);
    await run(Deferred.succeed(mayWrite, undefined));
    await run(Fiber.join(maker));
    await run(creations.look);
    expect(isThere(shelf, projectId)).toBe(true);
  });

  it("that is begun while a check lists the repositories stays", async () => {
    const shelf = shelfOf();
    const projectId = randomUUID();
    const placed = Deferred.makeUnsafe<void>();
    const making = Effect.gen(function* () {
      yield* makeIn(shelf, projectId);
      age(shelf, projectId);
      yield* Deferred.succeed(placed, undefined);
      yield* Effect.never;
    });
    let begin: Effect.Effect<unknown, never, Scope.Scope> = Effect.void;
    const unclaimed = (ageMs: number) =>
      Effect.andThen(Scope.provide(begin, scope), shelf.kept.unclaimed(ageMs));
    const creations = await creationsOver([{ ...shelf.kept, unclaimed }]);
    begin = Effect.andThen(Effect.forkScoped(creations.during(projectId, making)), Deferred.await(placed));
    await run(creations.look);
    expect(isThere(shelf, projectId)).toBe(true);
  });

  it("whose row is written while a check reads the rows stays", async () => {
    const shelf = shelfOf();
    const left = await leave(shelf);
    const { projectId, placed, mayWrite, making } = waiting(shelf);
    let finish: Effect.Effect<unknown> = Effect.void;
    const unheld = (ids: readonly string[]) => Effect.tap(projects.unheld(ids), () => finish);
    const creations = await creationsOver([shelf.kept], { ...projects, unheld });
    const maker = await run(Effect.forkScoped(creations.during(projectId, making)));
    await run(Deferred.await(placed));
    // The rows were read before this one existed; by the time of the answer no creation is in progress any more.
    finish = Effect.andThen(Deferred.succeed(mayWrite, undefined), Fiber.await(maker));
    await run(creations.look);
    expect([isThere(shelf, projectId), isThere(shelf, left)]).toEqual([true, false]);
  });

  it("of a failed creation is no longer in progress", async () => {
    const shelf = shelfOf();
    const creations = await creationsOver([shelf.kept]);
    const projectId = randomUUID();
    const making = Effect.andThen(makeIn(shelf, projectId), Effect.fail("the database is gone" as const));
    expect(await run(Effect.flip(creations.during(projectId, making)))).toBe("the database is gone");
    await run(creations.look);
    expect(isThere(shelf, projectId)).toBe(true);
    age(shelf, projectId);
    await run(creations.look);
    expect(isThere(shelf, projectId)).toBe(false);
  });
});

describe("a hosted repository", () => {
  it("that belonged to a project stays if its row is gone: the database may be an older one", async () => {
    const creations = await creationsOver([hosted.kept]);
    const projectId = randomUUID();
    await run(
      creations.during(
        projectId,
        Effect.andThen(
          makeIn(hosted, projectId),
          Effect.promise(() => write(projectId)),
        ),
      ),
    );
    const other = await creationsOver([hosted.kept], { ...projects, unheld: (ids) => Effect.succeed(ids) });
    for (const name of ["", ...readdirSync(pathOf(hosted, projectId))])
      utimesSync(join(pathOf(hosted, projectId), name), AN_HOUR_AGO, AN_HOUR_AGO);
    await run(other.look);
    expect(isThere(hosted, projectId)).toBe(true);
  });

  it("whose creator died after it wrote the row is assigned to its project by the next check", async () => {
    const id = await leave(hosted);
    await write(id);
    await looked();
    const other = await creationsOver([hosted.kept], { ...projects, unheld: (ids) => Effect.succeed(ids) });
    await run(other.look);
    expect(isThere(hosted, id)).toBe(true);
  });
});

it("a repository's age is counted from its naming, however long it was built", async () => {
  const id = randomUUID();
  await run(builtInPlace(mirrors.directory, pathOf(mirrors, id), buildSlowly));
  await looked();
  expect(isThere(mirrors, id)).toBe(true);
});

it("a repository that cannot be removed is left to the next check, and blocks nothing else", async () => {
  const left = [await leave(mirrors), await leave(mirrors)];
  let isStuck = true;
  const remove: KeptHere["remove"] = (repository) => {
    if (!isStuck) return mirrors.kept.remove(repository);
    isStuck = false;
    return Effect.fail(new GitError({ code: "git_failed", message: "the disk is busy" }));
  };
  const { look } = await creationsOver([{ ...mirrors.kept, remove }]);
  await run(look);
  expect(left.filter((id) => isThere(mirrors, id))).toHaveLength(1);
  await run(look);
  expect(left.filter((id) => isThere(mirrors, id))).toEqual([]);
});
