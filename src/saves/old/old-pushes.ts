/** Pushes of `refs/wip/<session>` by daemons of earlier versions: into a directory of its own, and from there into the saves. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { filesystem, initBare } from "../../git/repository/building.ts";
import { oldSaveRef, refTarget } from "../../git/repository/refs.ts";
import type { GitError } from "../../git/port.ts";
import type { GitResponse, GitServeCall, SmartHttp } from "../../git/server/smart-http.ts";
import { takeOldSave } from "./old-saves.ts";
import type { SavePlace } from "../port.ts";
import type { SaveStore } from "../store.ts";

export interface OldPushOptions {
  /** The directory of the views. */
  readonly directory: string;
  readonly endpoint: SmartHttp;
  readonly store: SaveStore["Service"];
  /** The project's repository on this node. */
  readonly repository: (projectId: string) => Effect.Effect<string, GitError>;
  /** The session's newest sandbox, which pushes. */
  readonly findSandbox: (sessionId: string) => Effect.Effect<string | null>;
}

export interface OldPushes {
  readonly serve: (call: GitServeCall, place: SavePlace) => Effect.Effect<GitResponse, GitError>;
}

/** Git's answer to a push: a few lines. */
const collectBody = (body: GitResponse["body"]): Effect.Effect<Buffer, GitError> =>
  Effect.map(Stream.runCollect(body), (chunks) => Buffer.concat([...chunks]));

export const makeOldPushes = (options: OldPushOptions): OldPushes => {
  const { directory, endpoint, store } = options;

  const receive = Effect.fnUntraced(function* (call: GitServeCall, place: SavePlace) {
    const repository = yield* options.repository(place.projectId);
    const id = randomUUID();
    const path = join(directory, `${id}.git`);
    yield* Effect.addFinalizer(() => Effect.promise(() => rm(path, { recursive: true, force: true })));
    yield* initBare(path);
    yield* filesystem("Preparing for the push", async () => {
      await mkdir(join(path, "objects", "info"), { recursive: true });
      await writeFile(join(path, "objects", "info", "alternates"), `${join(repository, "objects")}\n`);
    });
    const tip = yield* refTarget(repository, `refs/heads/${place.sessionId}`);
    const { pushed: _, ...quiet } = call;
    const response = yield* endpoint.serve({ ...quiet, repository: { projectId: id } });
    const answer = yield* collectBody(response.body);
    const wip = yield* refTarget(path, oldSaveRef(place.sessionId));
    const sandboxId = yield* options.findSandbox(place.sessionId);
    if (wip !== null && sandboxId !== null) {
      const at = yield* Clock.currentTimeMillis;
      yield* takeOldSave(store, { path, place, sandboxId, wip, at, base: tip });
    }
    return { ...response, body: Stream.succeed(answer) };
  }, Effect.scoped);

  return { serve: receive };
};
