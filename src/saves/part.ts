/**
 * Writes one part of a save: one `git fast-import`, which stores the contents as they come in one pack, and then moves the
 * session's ref in one step. A part that is given up leaves a pack that no ref names, which the next collection removes.
 */
import * as NodeStream from "@effect/platform-node/NodeStream";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { createHash } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { gitFailure } from "../git/failure.ts";
import { PLATFORM } from "../git/identity.ts";
import { feed, type GitProcess, runGit, spawnGit } from "../git/run.ts";
import {
  failedStore,
  listRefs,
  objectPath,
  objectsIn,
  storedObjects,
  SAVES_CONFIG,
  storeError,
  syncRef,
} from "./saves-repository.ts";
import type { PartWriter, Save, SaveStoreError } from "./store.ts";

/** What fills a content that broke off, so that the part goes on. Nothing names the result. */
const FILLING = Buffer.alloc(1024 * 1024);

const LINE_END = Buffer.from("\n");

const NOT_LISTED = "The content is not the one that was listed.";

const addBytes = (stdin: Writable, object: string, bytes: Buffer) => {
  const hash = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes);
  if (hash.digest("hex") !== object) return Effect.fail(failedStore(NOT_LISTED));
  return feed(stdin, Buffer.concat([Buffer.from(`blob\ndata ${bytes.length}\n`), bytes, LINE_END]));
};

/** Git reads exactly `size` bytes, whatever comes. */
const addStream = Effect.fnUntraced(function* (
  stdin: Writable,
  object: string,
  { size, bytes }: { readonly size: number; readonly bytes: Readable },
) {
  const hash = createHash("sha1").update(`blob ${size}\0`);
  let left = size;
  let isLonger = false;
  const take = (chunk: Uint8Array): Effect.Effect<void> => {
    const part = chunk.subarray(0, left);
    left -= part.length;
    isLonger ||= part.length < chunk.length;
    hash.update(part);
    return feed(stdin, part);
  };
  const fill = Effect.suspend(() =>
    Effect.whileLoop({
      while: () => left > 0,
      body: () => take(FILLING.subarray(0, left)),
      step: () => undefined,
    }),
  );
  const chunks = NodeStream.fromReadable<Uint8Array, SaveStoreError>({
    evaluate: () => bytes,
    onError: (cause) => failedStore(`The content broke off (${String(cause)}).`),
  });
  yield* feed(stdin, Buffer.from(`blob\ndata ${size}\n`));
  yield* Stream.runForEach(chunks, take).pipe(Effect.ensuring(Effect.andThen(fill, feed(stdin, LINE_END))));
  if (isLonger || hash.digest("hex") !== object) return yield* failedStore(NOT_LISTED);
});

/** Every object that a save names, once. */
const saveObjects = (save: Pick<Save, "items" | "commits">): ReadonlySet<string> =>
  new Set([...save.items, ...save.commits].flatMap(({ object }) => object ?? []));

/** The commands that make the save's commit: the last one's tree, with what differs. */
const commitCommands = (
  save: Save,
  {
    ref,
    tree,
    objects,
  }: { readonly ref: string; readonly tree: string | null; readonly objects: ReadonlySet<string> },
): readonly Buffer[] => {
  const objectIds = saveObjects(save);
  const message = Buffer.from(String(save.at));
  const json = Buffer.from(JSON.stringify(save));
  const seconds = Math.floor(save.at / 1000);
  return [
    Buffer.from(`commit ${ref}\ncommitter ${PLATFORM.name} <${PLATFORM.email}> ${seconds} +0000\n`),
    Buffer.from(`data ${message.length}\n${message.toString()}\n`),
    Buffer.from(tree === null ? "" : `M 040000 ${tree} ""\n`),
    Buffer.from(
      [...objects]
        .filter((object) => !objectIds.has(object))
        .map((object) => `D ${objectPath(object)}\n`)
        .join(""),
    ),
    Buffer.from(
      [...objectIds]
        .filter((object) => !objects.has(object))
        .map((object) => `M 100644 ${object} ${objectPath(object)}\n`)
        .join(""),
    ),
    Buffer.from(`M 100644 inline save.json\ndata ${json.length}\n`),
    json,
    Buffer.from("\ndone\n"),
  ];
};

const readTree = (path: string, commit: string): Effect.Effect<string, SaveStoreError> =>
  runGit({ repository: path, args: ["rev-parse", "--verify", `${commit}^{tree}`] }).pipe(
    Effect.mapBoth({ onFailure: storeError, onSuccess: ({ stdout }) => stdout.toString("utf8").trim() }),
  );

/** Where a part goes: the refs of its session begin with `prefix`, and `ref` is the one that it moves. */
interface PartPlace {
  readonly path: string;
  readonly prefix: string;
  readonly ref: string;
}

const finishPart = Effect.fnUntraced(function* (
  git: GitProcess,
  { path, prefix, ref, added }: PartPlace & { readonly added: ReadonlySet<string> },
  save: Save,
) {
  const [last] = yield* listRefs(path, ref);
  const tree = last === undefined ? null : yield* readTree(path, last.commit);
  const objects = last === undefined ? new Set<string>() : yield* objectsIn(path, last.commit);
  const objectIds = [...saveObjects(save)].filter((object) => !added.has(object) && !objects.has(object));
  const storedIds = yield* storedObjects(path, prefix, objectIds);
  const stranger = objectIds.find((object) => !storedIds.has(object));
  if (stranger !== undefined)
    return yield* failedStore(`The object ${stranger} is not stored for this session.`);
  for (const bytes of commitCommands(save, { ref, tree, objects })) yield* feed(git.stdin, bytes);
  git.stdin.end();
  const code = yield* git.exit;
  if (code !== 0) {
    yield* git.silent;
    return yield* storeError(gitFailure("fast-import", { stderr: git.stderr(), repository: path }));
  }
  yield* syncRef(path, ref);
});

/** Begins a part. The caller has its turn in the repository. */
export const beginPart = (place: PartPlace): Effect.Effect<PartWriter, SaveStoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const { path } = place;
    const git = yield* Effect.mapError(
      spawnGit({
        repository: path,
        args: ["fast-import", "--quiet", "--force", "--done", "--depth=0", "--date-format=raw"],
        config: SAVES_CONFIG,
      }),
      storeError,
    );
    git.stdout.resume();
    const newObjects = new Set<string>();
    const turn = Semaphore.makeUnsafe(1);
    return {
      add: (object, { size, bytes }) =>
        turn.withPermit(
          Effect.tap(
            Buffer.isBuffer(bytes)
              ? addBytes(git.stdin, object, bytes)
              : addStream(git.stdin, object, { size, bytes }),
            () => Effect.sync(() => void newObjects.add(object)),
          ),
        ),
      finish: (save) => turn.withPermit(finishPart(git, { ...place, added: newObjects }, save)),
    };
  });
