/**
 * What git's smart HTTP protocol says about saved work, in front of the project's repository, which never has any of it:
 *
 *  - A person's `git fetch origin refs/wip/<session id>` by protocol 2 is answered from a view (view.ts). It asks for refs with this
 *    prefix first, and then for their commit.
 *  - A push of `refs/wip/<session id>` by the session's own sandbox goes into a directory of its own, and from there into the saves.
 *    Daemons of earlier versions save so. The repository and its server get no part of it.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Pull from "effect/Pull";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { parseUuid } from "../../domain/ids.ts";
import type { GitError } from "../../git/port.ts";
import { inflate } from "../../git/server/inflated.ts";
import type { GitResponse, GitServeCall, SmartHttp } from "../../git/server/smart-http.ts";
import type { OldPushes } from "../old/old-pushes.ts";
import type { SavePlace } from "../port.ts";
import { viewId, type Views } from "./view.ts";

/** The commands of a request, before wishes and packs that may be long. */
const HEAD_BYTES = 64 * 1024;

/** The lines of a request up to the first flush. Null if no flush has come yet. */
export const headLines = (bytes: Buffer): readonly string[] | null => {
  const lines: string[] = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = Number.parseInt(bytes.toString("latin1", at, at + 4), 16);
    if (length === 0 || Number.isNaN(length)) return lines;
    const end = at + Math.max(length, 4);
    if (end > bytes.length) return null;
    if (length > 4) lines.push(bytes.toString("latin1", at + 4, end).replace(/\n$/, ""));
    at = end;
  }
  return null;
};

type Body = GitServeCall["body"];

/** Reads the beginning of a body. `body` is the whole of it. */
const peekLines = Effect.fnUntraced(function* (body: Body) {
  const scope = yield* Scope.make();
  const pull = yield* Scope.provide(Stream.toPull(body), scope);
  const chunks: Uint8Array[] = [];
  let lines: readonly string[] | null = null;
  let isOver = false;
  for (let size = 0; lines === null && !isOver && size < HEAD_BYTES;) {
    const next = yield* Pull.catchDone(pull, () => Effect.succeed(null));
    if (next === null) isOver = true;
    else chunks.push(...next);
    size = chunks.reduce((sum, { length }) => sum + length, 0);
    lines = headLines(Buffer.concat(chunks));
  }
  const rest = isOver ? Stream.empty : Stream.fromPull(Effect.succeed(pull));
  const whole = Stream.fromIterable(chunks).pipe(
    Stream.concat(rest),
    Stream.ensuring(Scope.close(scope, Exit.void)),
  );
  return { lines: lines ?? [], body: whole };
});

const WIP = "refs/wip/";

/** The session whose saved work a request for refs wishes. */
const wishedSession = (lines: readonly string[]): string | null => {
  if (lines[0] !== "command=ls-refs") return null;
  for (const line of lines) {
    const id = line.startsWith(`ref-prefix ${WIP}`)
      ? parseUuid(line.slice(`ref-prefix ${WIP}`.length))
      : null;
    if (id !== null) return id;
  }
  return null;
};

const wishedCommit = (lines: readonly string[]): string | null =>
  lines[0] === "command=fetch"
    ? (lines.map((line) => /^want ([0-9a-f]{40})$/.exec(line)?.[1]).find((commit) => commit !== undefined) ??
      null)
    : null;

/** Whether the push is one of the session's saved work alone. */
const isOwnSave = (lines: readonly string[], sessionId: string): boolean =>
  lines.length === 1 &&
  new RegExp(`^[0-9a-f]{40} [0-9a-f]{40} ${WIP}${sessionId}(?:\\0|$)`).test(lines[0] ?? "");

export interface DoorParts {
  readonly views: Views;
  /** The smart protocol over the views. */
  readonly viewEndpoint: SmartHttp;
  readonly oldPushes: OldPushes;
  /** The other node that has the session's saves. Null if none has, or this one. */
  readonly elsewhere: (place: SavePlace) => Effect.Effect<string | null>;
}

/** An answer that git shows as the server's sentence. */
const sentence = (text: string): GitResponse => {
  const line = `ERR ${text}\n`;
  const length = (Buffer.byteLength(line) + 4).toString(16).padStart(4, "0");
  return {
    status: 200,
    headers: { "content-type": "application/x-git-upload-pack-result", "cache-control": "no-cache" },
    body: Stream.succeed(Buffer.from(`${length}${line}`)),
  };
};

/** The endpoint of all repositories, with what is said of saved work. */
export const withSavedWork = (repositories: SmartHttp, parts: DoorParts): SmartHttp => {
  const { views, viewEndpoint, oldPushes, elsewhere } = parts;

  /** The commit of the view that the request is about. Null if it is about the repository. */
  const openView = Effect.fnUntraced(function* (call: GitServeCall, lines: readonly string[]) {
    const { projectId } = call.repository;
    const sessionId = wishedSession(lines);
    if (sessionId !== null) return (yield* views.open({ projectId, sessionId }))?.commit ?? null;
    const commit = wishedCommit(lines);
    return commit === null ? null : ((yield* views.find(projectId, commit))?.commit ?? null);
  });

  const findNode = (call: GitServeCall, lines: readonly string[]) => {
    const sessionId = wishedSession(lines);
    return sessionId === null
      ? Effect.succeed(null)
      : elsewhere({ projectId: call.repository.projectId, sessionId });
  };

  const serve = Effect.fnUntraced(function* (call: GitServeCall): Effect.fn.Return<GitResponse, GitError> {
    const { writer } = call.policy;
    const isFetch = call.service === "git-upload-pack";
    if (isFetch ? call.mayFetchSaves !== true : writer.kind !== "session")
      return yield* repositories.serve(call);
    const isPlain = call.contentEncoding === undefined || call.contentEncoding.toLowerCase() === "identity";
    const peek = yield* Effect.catch(peekLines(isPlain ? call.body : inflate(call.body)), () =>
      Effect.succeed(null),
    );
    if (peek === null) return yield* repositories.serve({ ...call, body: Stream.empty });
    const { lines, body } = peek;
    const same = { ...call, body, contentEncoding: undefined };
    if (isFetch) {
      // A copy that this node still has of a former time is not the session's work any more.
      const node = yield* findNode(call, lines);
      if (node !== null)
        return sentence(`The node ${node} has this session's saved work. Fetch it from that node's address.`);
      const commit = yield* openView(call, lines);
      if (commit === null) return yield* repositories.serve(same);
      return yield* viewEndpoint.serve({ ...same, repository: { projectId: viewId(commit) } });
    }
    return writer.kind === "session" && isOwnSave(lines, writer.sessionId)
      ? yield* oldPushes.serve(same, { projectId: call.repository.projectId, sessionId: writer.sessionId })
      : yield* repositories.serve(same);
  });

  return { advertise: repositories.advertise, serve };
};
