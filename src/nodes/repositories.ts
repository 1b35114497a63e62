/**
 * The backend of hosted repositories with several nodes. Each repository is in the data directory of the node that
 * created it, and that node performs all operations on it. While the node is unreachable, they fail with `away`.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { Keyring } from "../services/keyring.ts";
import { GitBackend, GitError } from "../git/port.ts";
import { nodeCaller } from "./call.ts";
import { LocalParts } from "./local.ts";
import { NodeMap } from "./map.ts";
import { decodePage } from "./tree-page.ts";

/** Git's own limits end large merges and comparisons sooner (git/run.ts). */
const TIMEOUT_MS = 10 * 60_000;

type Backend = GitBackend["Service"];
/** Operations that the repository's node performs. */
export type RepositoryOperation = Exclude<keyof Backend, "create" | "checkUpstream">;

const decodeError = Schema.decodeUnknownEffect(GitError);

const away = (why: string) =>
  new GitError({
    code: "away",
    message: `The node that stores the repository cannot be reached. Try again. (${why})`,
  });

const make = Effect.gen(function* () {
  const { repositories: own } = yield* LocalParts;
  const map = yield* NodeMap;
  const { nodes: keys } = yield* Keyring;
  const call = nodeCaller({ map, keys });

  const ask = Effect.fnUntraced(function* (operation: RepositoryOperation, args: readonly unknown[]) {
    const [repository] = args as [{ readonly projectId: string }];
    const place = yield* Effect.mapError(map.repositoryPlace(repository.projectId), () =>
      away("the database cannot be reached"),
    );
    if (place.is === "here") return null;
    if (place.is !== "there") return yield* away("no response");
    const answer = yield* Effect.mapError(
      call(place, { operation: `git.${operation}`, given: args }, TIMEOUT_MS),
      ({ message }) => away(message),
    );
    if (!answer.ok) return yield* Effect.flatMap(Effect.orDie(decodeError(answer.error)), Effect.fail);
    return answer;
  });

  /** Performs the operation on the repository's node. `read` decodes the result from JSON. */
  const dispatch =
    <Given extends readonly unknown[], A>(
      operation: RepositoryOperation,
      here: (...args: Given) => Effect.Effect<A, GitError>,
      read: (value: unknown) => A = (value) => value as A,
    ) =>
    (...args: Given): Effect.Effect<A, GitError> =>
      Effect.flatMap(ask(operation, args), (answer) =>
        answer === null ? here(...args) : Effect.succeed(read(answer.value)),
      );

  return GitBackend.of({
    create: (request) =>
      Effect.map(own.create(request), (repository) => ({ ...repository, nodeId: map.self })),
    checkUpstream: own.checkUpstream,
    setDefaultBranch: dispatch("setDefaultBranch", own.setDefaultBranch),
    remove: dispatch("remove", own.remove),
    resolveBase: dispatch("resolveBase", own.resolveBase),
    branchTip: dispatch("branchTip", own.branchTip),
    removeOldSave: dispatch("removeOldSave", own.removeOldSave),
    hasChanges: dispatch("hasChanges", own.hasChanges),
    branches: dispatch("branches", own.branches),
    createBranch: dispatch("createBranch", own.createBranch),
    commitFile: dispatch("commitFile", own.commitFile),
    readFile: dispatch("readFile", own.readFile, (value) =>
      value === null ? null : new Uint8Array(Buffer.from(String(value), "base64")),
    ),
    pack: dispatch("pack", own.pack, (value) =>
      value === null ? null : new Uint8Array(Buffer.from(String(value), "base64")),
    ),
    objectIds: dispatch("objectIds", own.objectIds),
    readTree: dispatch("readTree", own.readTree, decodePage),
    paths: dispatch("paths", own.paths),
    compare: dispatch("compare", own.compare),
    diff: dispatch("diff", own.diff),
    merge: dispatch("merge", own.merge),
  });
});

/** Dispatches over this node's own repositories. */
export const nodeRepositories = Layer.effect(GitBackend, make);
