/** The remote's refs, as the remote itself reports them: the agent's repository is not trusted for this. */
import * as Effect from "effect/Effect";
import type { Draft, SaveFailure } from "./draft.ts";

export interface RemoteRefs {
  /** Objects by ref: branches, tags, and this session's refs/wip. */
  readonly refs: ReadonlyMap<string, string>;
  /**
   * Objects of branches and tags that are present here. The remote has everything that they lead to. Objects behind
   * refs/wip belong to a save.
   */
  readonly known: readonly string[];
  /** Tips of the session branch and of refs/wip. Null: the ref does not exist. */
  readonly tip: string | null;
  readonly wip: string | null;
}

/** How many branches of the remote are fetched to find out whether it has a local branch's commits. */
const MAX_FETCHED = 64;
/** Session branches of others: nothing here is compared with them. */
const SESSION_BRANCH = /^refs\/heads\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const LIST_SCRIPT = `git ls-remote --quiet "$1" "refs/heads/*" "refs/tags/*" "refs/wip/$2"`;

/** $1 URL, followed by the refs. */
const FETCH_SCRIPT = `
url=$1
shift
count=$#
for ref; do set -- "$@" "+$ref:refs/got/\${ref#refs/}"; done
shift "$count"
git fetch --quiet --no-tags --no-write-fetch-head "$url" "$@"
`;

/** Lists the remote's refs, and fetches the needed objects that are missing here. `branches` are the agent's. */
export const askRemote = (
  draft: Draft,
  branches: readonly string[],
): Effect.Effect<RemoteRefs, SaveFailure> =>
  Effect.gen(function* () {
    const { repoUrl, branch, defaultBranch } = draft.settings;
    const [own, wip] = [`refs/heads/${branch}`, `refs/wip/${branch}`];
    const parameters = [repoUrl, branch];
    const refs = readRefs(yield* draft.inDraft({ name: "ls-remote", script: LIST_SCRIPT, parameters }));
    const compared = [...refs].filter(([ref]) => ref === own || !SESSION_BRANCH.test(ref));
    const objects = compared.map(([, object]) => object);
    const here = yield* presentOf(draft, objects);
    const isMissing = (ref: string): boolean => {
      const object = refs.get(ref);
      return object !== undefined && !here.has(object);
    };
    const needed = [own, wip].filter(isMissing);
    if (needed.length > 0) yield* fetch(draft, needed);
    const wanted = [...new Set([`refs/heads/${defaultBranch}`, ...branches])].filter(
      (ref) => ref !== own && isMissing(ref),
    );
    // If a branch was removed meanwhile, the fetch fails. Then the local commits count as not stored there.
    if (wanted.length > 0) yield* Effect.ignore(fetch(draft, wanted.slice(0, MAX_FETCHED)));
    const present = wanted.length + needed.length === 0 ? here : yield* presentOf(draft, objects);
    const known = compared.filter(([ref, object]) => ref !== wip && present.has(object));
    return {
      refs,
      known: known.map(([, object]) => object),
      tip: refs.get(own) ?? null,
      wip: refs.get(wip) ?? null,
    };
  });

const fetch = (draft: Draft, refs: readonly string[]): Effect.Effect<unknown, SaveFailure> =>
  draft.inDraft({
    name: "fetch",
    script: FETCH_SCRIPT,
    parameters: [draft.settings.repoUrl, ...refs.map((ref) => Buffer.from(ref, "latin1").toString())],
  });

/** Names are bytes, held as latin1 text. Peeled tags are left out. */
const readRefs = (listing: Buffer): Map<string, string> =>
  new Map(
    listing
      .toString("latin1")
      .split("\n")
      .flatMap((line) => {
        const [, object, ref] = /^([0-9a-f]{40})\t(.+)$/.exec(line) ?? [];
        return object === undefined || ref === undefined || ref.endsWith("^{}") ? [] : [[ref, object]];
      }),
  );

/** The objects among these that are present here. */
const presentOf = (draft: Draft, objects: readonly string[]): Effect.Effect<Set<string>, SaveFailure> =>
  Effect.map(describeObjects(draft, objects), (described) => new Set(described.keys()));

export interface Described {
  readonly object: string;
  readonly type: string;
}

/** Object and type of each name. Missing ones are left out. */
export const describeObjects = (
  draft: Draft,
  names: readonly string[],
): Effect.Effect<Map<string, Described>, SaveFailure> => {
  const asked = [...new Set(names)];
  if (asked.length === 0) return Effect.succeed(new Map());
  const script = 'git cat-file --batch-check="%(objectname) %(objecttype)"';
  const input = Buffer.from(asked.map((name) => `${name}\n`).join(""));
  return Effect.map(draft.inDraft({ name: "describe", script, input }), (printed) => {
    const lines = printed.toString("latin1").split("\n");
    return new Map(
      asked.flatMap((name, at) => {
        const [, object, type] = /^([0-9a-f]{40}) (commit|tree|blob|tag)$/.exec(lines[at] ?? "") ?? [];
        return object === undefined || type === undefined ? [] : [[name, { object, type }]];
      }),
    );
  });
};
