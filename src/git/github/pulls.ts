/** Pull requests through a code host's API: see PullRequests. */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { cutText } from "../../domain/text.ts";
import { GitError, type MergeRequest, type Repository } from "../port.ts";
import type { PullRequest, PullRequestsPort } from "../pull-requests.ts";
import { commitParents, pathIn, type Place } from "./refs.ts";

const Pull = Schema.Struct({
  number: Schema.Int,
  state: Schema.Literals(["open", "closed"]),
  merged_at: Schema.NullOr(Schema.String),
  merge_commit_sha: Schema.NullOr(Schema.String),
  body: Schema.NullOr(Schema.String),
  head: Schema.Struct({ sha: Schema.String }),
  base: Schema.Struct({ ref: Schema.String }),
});

/** About 25 kB each, and up to 64 KiB of text. */
const PAGE = 50;
const PAGES = 10;
const LIST_BYTES = 8 * 1024 * 1024;
/** The host's limits, in characters. */
const MAX_TITLE = 256;
const MAX_BODY = 65_536;

const toPullRequest = ({ access }: Place, pull: typeof Pull.Type): PullRequest => ({
  number: pull.number,
  // Built here and not taken from the answer, because people follow it.
  url: `${access.host.git.replace(/\.git$/, "")}/pull/${pull.number}`,
  status: pull.merged_at === null ? pull.state : "merged",
  head: pull.head.sha,
  baseRef: pull.base.ref,
  body: pull.body ?? "",
  // For an open one, the field is the host's test merge.
  mergeCommit: pull.merged_at === null ? null : pull.merge_commit_sha,
});

const list = Effect.fnUntraced(function* (place: Place, query: Readonly<Record<string, string>>) {
  const search = new URLSearchParams({ per_page: String(PAGE), ...query });
  const answer = yield* place.api(place.access, {
    method: "GET",
    path: `${pathIn(place, "pulls")}?${search}`,
    answer: Schema.Array(Pull),
    maxBytes: LIST_BYTES,
  });
  return answer.ok ? answer.value.map((pull) => toPullRequest(place, pull)) : [];
});

const open = Effect.fnUntraced(function* (place: Place) {
  const pulls: PullRequest[] = [];
  for (let page = 1; page <= PAGES; page += 1) {
    // Oldest first: a new one does not move the others to another page, so their answers stay cached.
    const openPulls = yield* list(place, {
      state: "open",
      sort: "created",
      direction: "asc",
      page: String(page),
    });
    pulls.push(...openPulls);
    if (openPulls.length < PAGE) break;
  }
  return pulls;
});

const get = Effect.fnUntraced(function* (place: Place, number: number) {
  const answer = yield* place.api(place.access, {
    method: "GET",
    path: pathIn(place, "pulls", String(number)),
    answer: Pull,
    known: [404],
  });
  return answer.ok ? toPullRequest(place, answer.value) : null;
});

/** For a missing branch, the host answers only the first two words. */
const nothingToOpen = /^Validation Failed(?: A pull request already exists.*| No commits between.*)?$/;

type CreateRequest = Parameters<PullRequestsPort["create"]>[1];

const create = Effect.fnUntraced(function* (place: Place, request: CreateRequest) {
  const { headRef: head, baseRef: base, title, body } = request;
  const answer = yield* place.api(place.access, {
    method: "POST",
    path: pathIn(place, "pulls"),
    body: { title: cutText(title, MAX_TITLE), head, base, body: cutText(body, MAX_BODY) },
    answer: Pull,
    known: [422],
  });
  if (answer.ok) return toPullRequest(place, answer.value);
  if (nothingToOpen.test(answer.message)) return null;
  return yield* new GitError({
    code: "refused",
    message: `The code host did not open a pull request for ${head}. It says: ${answer.message}`,
  });
});

const close = Effect.fnUntraced(function* (place: Place, number: number) {
  const answer = yield* place.api(place.access, {
    method: "PATCH",
    path: pathIn(place, "pulls", String(number)),
    body: { state: "closed" },
    answer: Pull,
    known: [404, 422],
    repeatable: true,
  });
  if (answer.ok) return toPullRequest(place, answer.value);
  // A merged one cannot be closed.
  return yield* get(place, number);
});

/** Merges on the host, which knows its own rules. Null if it does not merge (yet). */
export const mergePull = Effect.fnUntraced(function* (
  place: Place,
  pull: PullRequest,
  { head, message, squash }: Pick<MergeRequest, "head" | "message" | "squash">,
) {
  const [title = "", ...rest] = message.split("\n");
  const answer = yield* place.api(place.access, {
    method: "PUT",
    path: pathIn(place, "pulls", String(pull.number), "merge"),
    body: {
      sha: head,
      merge_method: squash === true ? "squash" : "merge",
      commit_title: title,
      commit_message: rest.join("\n").trim(),
    },
    answer: Schema.Struct({ sha: Schema.String }),
    known: [405, 409, 422],
  });
  if (answer.ok) return answer.value.sha;
  return yield* new GitError({
    code: answer.status === 409 ? "ref_moved" : "refused",
    message: `The code host did not merge pull request #${pull.number}. It says: ${answer.message}`,
  });
});

/** @param at the place of a project's repository, with the access to it. */
export const githubPulls = (
  at: <A>(
    repository: Repository,
    use: (place: Place) => Effect.Effect<A, GitError>,
  ) => Effect.Effect<A, GitError>,
): PullRequestsPort => ({
  ofHead: (repository, headRef) =>
    at(repository, (place) =>
      list(place, {
        state: "all",
        head: `${place.source.owner}:${headRef}`,
        sort: "created",
        direction: "desc",
      }),
    ),
  open: (repository) => at(repository, open),
  get: (repository, number) => at(repository, (place) => get(place, number)),
  create: (repository, request) => at(repository, (place) => create(place, request)),
  close: (repository, number) => at(repository, (place) => close(place, number)),
  firstParent: (repository, commit) =>
    at(repository, (place) => Effect.map(commitParents(place, commit), (parents) => parents?.[0] ?? null)),
});
