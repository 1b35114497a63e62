/**
 * What the service reads from a repository when it starts a session: the base commit, a commit's manifest, and whether
 * an agent's file exists.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { agentFile, DEFAULT_AGENT } from "../domain/sandbox/agent.ts";
import { MANIFEST_FILE, MANIFEST_LIMIT_BYTES, parseManifest } from "../domain/manifest/manifest.ts";
import { GitBackend, type GitError, type Repository } from "../git/port.ts";

/** The repository has no such branch, tag or commit (api.md 3: 422 `unknown_base_ref`). */
export class UnknownBaseRef extends Schema.TaggedError<UnknownBaseRef>()("UnknownBaseRef", {
  baseRef: Schema.String,
  message: Schema.String,
}) {}

/** The repository has no file for this agent at that commit (api.md 3: 422 `unknown_agent`). */
export class UnknownAgent extends Schema.TaggedError<UnknownAgent>()("UnknownAgent", {
  path: Schema.String,
}) {}

/** An agent's definition is a page of text. A larger file does not count. */
const AGENT_FILE_LIMIT = 1024 * 1024;

/** The commit at which a session's branch starts. */
export const baseCommit = Effect.fnUntraced(function* (
  repository: Repository,
  baseRef: string,
): Effect.fn.Return<string, UnknownBaseRef | GitError, GitBackend> {
  const git = yield* GitBackend;
  return yield* Effect.catchTag(git.resolveBase(repository, baseRef), "GitError", (error) =>
    Effect.fail(
      error.code === "unknown_ref" ? new UnknownBaseRef({ baseRef, message: error.message }) : error,
    ),
  );
});

/** The manifest's text at a commit. Null if the commit has none. */
export const manifestText = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
): Effect.fn.Return<Uint8Array | null, GitError, GitBackend> {
  const git = yield* GitBackend;
  return yield* git.readFile(repository, { commit, path: MANIFEST_FILE, maxBytes: MANIFEST_LIMIT_BYTES });
});

/** A file's text at the commit. Null if the path is missing, not a file, or too large. */
export const fileText = Effect.fnUntraced(function* (
  repository: Repository,
  request: { readonly commit: string; readonly path: string; readonly maxBytes: number },
): Effect.fn.Return<string | null, GitError, GitBackend> {
  const git = yield* GitBackend;
  const bytes = yield* Effect.catchIf(
    git.readFile(repository, request),
    (error) => error.code === "not_a_file" || error.code === "file_too_large",
    () => Effect.succeed(null),
  );
  return bytes === null ? null : Buffer.from(bytes).toString("utf8");
});

/** Whether the commit has a file for the agent, small enough to be a definition. A link or a folder does not count. */
export const hasAgentFile = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  path: string,
): Effect.fn.Return<boolean, GitError, GitBackend> {
  return (yield* fileText(repository, { commit, path, maxBytes: AGENT_FILE_LIMIT })) !== null;
});

/** Refuses an agent without a file at the commit; `default` needs none (spec 2.4, api.md 3 "Agents"). */
export const requireAgent = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  agent: string,
): Effect.fn.Return<void, UnknownAgent | GitError, GitBackend> {
  if (agent === DEFAULT_AGENT) return;
  const text = yield* manifestText(repository, commit);
  const path = agentFile(parseManifest(text ?? new Uint8Array()).configDir, agent);
  if (!(yield* hasAgentFile(repository, commit, path))) return yield* new UnknownAgent({ path });
});
