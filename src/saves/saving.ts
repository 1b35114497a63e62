/**
 * One save. The daemon lists what the workspace has beside the pushed branch. Contents that are not stored yet are read in parts. Parts
 * become durable in batches, soon one after another, each with a description of the whole save.
 *
 *  V1 The result compares the listing with what is stored. No exit code and no answer of the sandbox decides it.
 *  V2 A content counts by the bytes that arrived, never by the id that the daemon gives it.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { pullsSaves } from "../domain/sandbox/daemon-protocol.ts";
import type { Redactor } from "../domain/secret/redactor.ts";
import {
  compare,
  joinSaves,
  missingParts,
  Reasons,
  Stock,
  type Part,
  type SavedContent,
} from "../domain/save/parts.ts";
import { PartQueue } from "../domain/save/part-queue.ts";
import { notBroughtBack, withoutCopies } from "../domain/save/brought-back.ts";
import type { LeftOut, Listing, ReadRequest } from "../domain/save/listing.ts";
import { isWhole, savesElsewhere, unfinishedSave, type Saved, isLacking } from "../domain/save/saved.ts";
import type { GitBackend, GitError } from "../git/port.ts";
import { withLink } from "../services/answered.ts";
import type { serviceContext } from "../services/sessions/service-context.ts";
import type { DaemonClient, DaemonUnreachable } from "../sandbox/daemon.ts";
import type { DaemonLink, SandboxProvider } from "../sandbox/port.ts";
import { BACKGROUND_SHARE } from "../domain/save/order.ts";
import type { Sessions } from "../store/ports/sessions/sessions.ts";
import { arrivingFrames, nextFrame, type ArrivedFrame } from "./arriving.ts";
import { wantedHistory } from "./history.ts";
import type { SavePlace, SaveRequest } from "./port.ts";
import type { PartWriter, Save, SaveStore, SaveStoreError, SessionSaves } from "./store.ts";
import { isEmptySave, savedWords, shownText, unreachedWords } from "./words.ts";

/** How often the workspace is listed again because something changed while it was read. */
const ROUNDS = 3;
/** How many single paths may fail before the rest waits for the next save. */
const FAILURES_MAX = 50;
const LIST_TIMEOUT_MS = 120_000;
/** A stop waits at most so long for the commit that people fetch. It has ten seconds for its answer (actors/sandboxes/work-saver.ts). */
const VIEW_MS = 8_000;
/** Reading takes at least so many times as long as the description of what was read, unless nothing is left to read. */
const READ_SHARE = 4;
/** The session's row is written at most so often while a save goes on. */
const PROGRESS_MS = 1000;

export interface SaverOptions {
  /** This node. */
  readonly nodeId: string;
  /** Where large contents wait until they are stored. */
  readonly directory: string;
  /** The masks of a project's secrets, for the names of files. */
  readonly redactor: (projectId: string) => Effect.Effect<Pick<Redactor, "redact">>;
  /** The commit by which people fetch a session's saved work. Null if the session has no saved work, or the commit cannot be made. */
  readonly viewCommit: (place: SavePlace) => Effect.Effect<string | null>;
  /** For daemons of earlier protocols, which push their saves: has one push, and takes the push in. */
  readonly saveByPush: (
    request: SaveRequest,
    daemon: { readonly link: DaemonLink; readonly context: string },
  ) => Effect.Effect<void, DaemonUnreachable>;
  /** Takes in what an earlier version saved, if the session has no other save. */
  readonly takeOldSave: (place: SavePlace) => Effect.Effect<void, GitError | SaveStoreError>;
}

export interface SaverParts {
  readonly options: SaverOptions;
  readonly store: SaveStore["Service"];
  readonly daemon: DaemonClient["Service"];
  readonly provider: SandboxProvider["Service"];
  readonly git: GitBackend["Service"];
  readonly sessions: Sessions["Service"];
  readonly sign: Effect.Success<typeof serviceContext>;
}

/** Why a part was not stored. `isOver`: no other part can be stored now either. */
const toFailure = (
  error: SaveStoreError | DaemonUnreachable,
): { readonly reason: string; readonly isOver: boolean } => {
  if (error._tag === "DaemonUnreachable") return { reason: "not_read", isOver: false };
  return error.code === "full"
    ? { reason: "no_room_on_node", isOver: true }
    : { reason: "not_stored", isOver: false };
};

const FRAME_REASONS = {
  whole: "not_stored",
  changed: "changes_while_it_is_read",
  missing: "gone_while_it_was_read",
  unreadable: "unreadable",
  failed: "not_read",
} as const;

export class Saving {
  readonly #request: SaveRequest;
  readonly #parts: SaverParts;
  readonly #reasons = new Reasons();
  #saves: SessionSaves = { last: null, earlier: [] };
  #stock = new Stock([]);
  /** When the sandbox was asked for its listing, ms since the epoch. Null if it has not answered. */
  #lookedAt: number | null = null;
  /** The content that this save continues. */
  #former: SavedContent | null = null;
  /** Whether this sandbox has brought back everything that the former ones left. */
  #hasAll = false;
  /** The nodes that gave older saves to this sandbox. */
  #givers: readonly string[] = [];
  /** The rest of that, if this sandbox has brought back a part. Null if all or nothing is, or if it is not known. */
  #notBack: readonly LeftOut[] | null = null;
  /** What the session said of its saves before this one. */
  #row: Saved | null = null;
  #listing: Listing | null = null;
  #error: string | null = null;
  #failures = 0;
  #notedAt = 0;
  /** How long the last description took, ms. */
  #describedInMs = 0;

  constructor(request: SaveRequest, parts: SaverParts) {
    this.#request = request;
    this.#parts = parts;
  }

  /** Never fails, and ends soon after its limit. */
  get result(): Effect.Effect<Saved> {
    const { sessionId, limitMs, isBackground } = this.#request;
    return Effect.andThen(this.#readRow, this.#run).pipe(
      Effect.timeoutOrElse({
        duration: limitMs,
        orElse: () => Effect.sync(() => this.#noteError(`It did not finish within ${limitMs} ms.`)),
      }),
      Effect.catch(({ message }) => Effect.sync(() => this.#noteError(message))),
      Effect.andThen(Effect.suspend(() => this.#words(!isBackground))),
      Effect.tap((saved) => this.#note(saved)),
      Effect.tap(({ state, files, commits, pending, error }) =>
        Effect.logInfo("work saved", {
          session: sessionId,
          state,
          files,
          commits,
          pending: pending.length,
          error,
        }),
      ),
    );
  }

  /**
   * Names everything that the workspace has beside the pushed branch, because the node with the saves does not answer. The last save
   * of the session stays.
   *
   * @param error why no save can be made
   */
  unreached(error: string): Effect.Effect<Saved> {
    return Effect.gen({ self: this }, function* () {
      const { options, sessions } = this.#parts;
      const { sessionId, projectId } = this.#request;
      const listing = yield* Effect.option(Effect.flatMap(this.#link, ({ link }) => this.#list(link)));
      const last = yield* Effect.orElseSucceed(
        Effect.map(sessions.get(sessionId), (session) => session?.saved ?? null),
        () => null,
      );
      if (listing._tag === "None") return unfinishedSave(last, error);
      const comparison = compare(listing.value, { stock: this.#stock, former: null, reasons: this.#reasons });
      const pending = comparison.pending.map(({ path }) => ({ path, reason: "node_away" }));
      const outcome = { last, pending, skipped: listing.value.left, error };
      return unreachedWords(outcome, yield* options.redactor(projectId));
    }).pipe(Effect.tap((saved) => this.#note(saved)));
  }

  get #readRow() {
    return Effect.map(this.#parts.sessions.get(this.#request.sessionId), (session) => {
      this.#row = session?.saved ?? null;
    });
  }

  #noteError(message: string): void {
    this.#error ??= message;
  }

  /** The daemon of the sandbox, and whether it is of a protocol that lists. One of an earlier protocol pushes its saves. */
  get #link() {
    return Effect.gen({ self: this }, function* () {
      const { provider, daemon } = this.#parts;
      const link = yield* withLink(provider, this.#request.sandboxId);
      const protocol = yield* daemon.health(link).pipe(
        Effect.map((health) => health.protocol),
        // One that is too old for everything else still saves before it ends.
        Effect.catchTag("DaemonOutdated", (outdated) => Effect.succeed(outdated.protocol)),
      );
      return { link, pulls: pullsSaves(protocol) };
    });
  }

  get #run() {
    return Effect.gen({ self: this }, function* () {
      const { link, pulls } = yield* this.#link;
      if (!pulls)
        return yield* this.#parts.options.saveByPush(this.#request, { link, context: yield* this.#context });
      yield* this.#open;
      for (let round = 1; round <= ROUNDS; round += 1) {
        const askedAt = yield* Clock.currentTimeMillis;
        this.#listing = yield* this.#list(link);
        this.#lookedAt = askedAt;
        if (yield* this.#storeParts(link, missingParts(this.#listing, this.#stock))) break;
      }
      yield* this.#close;
      yield* this.#storeHistory(link);
    });
  }

  get #context(): Effect.Effect<string> {
    return this.#parts.sign(this.#request.sandboxId, this.#request.sessionId);
  }

  /** Finds what is stored, and sets an earlier sandbox's save aside unless this sandbox has its work. */
  get #open() {
    return Effect.gen({ self: this }, function* () {
      const { store, sessions, options } = this.#parts;
      const { sessionId, sandboxId } = this.#request;
      this.#saves = yield* store.load(this.#request);
      const session = yield* sessions.get(sessionId);
      if (this.#saves.last === null && isOfEarlierVersion(session?.saved ?? null)) {
        yield* Effect.ignore(options.takeOldSave(this.#request));
        this.#saves = yield* store.load(this.#request);
      }
      const { last } = this.#saves;
      const restoration = session?.sandboxId === sandboxId ? session.restored : null;
      this.#hasAll = isWhole(restoration);
      this.#givers = restoration?.nodes ?? [];
      this.#notBack = this.#hasAll || restoration?.error !== null ? null : restoration.skipped;
      if (this.#hasAll) this.#former = joinSaves(all(this.#saves));
      else if (last?.sandboxId === sandboxId) this.#former = last;
      else if (!isEmptySave(last)) {
        yield* store.setAside(this.#request);
        this.#saves = yield* store.load(this.#request);
      }
      this.#stock = new Stock(all(this.#saves));
    });
  }

  #list(link: DaemonLink) {
    return Effect.gen({ self: this }, function* () {
      const { git, daemon } = this.#parts;
      const { projectId, sessionId, baseCommit, limitMs } = this.#request;
      // A server that is away does not hinder a save: then the files are compared with the last known commit.
      const tip = yield* Effect.catchTag(git.branchTip({ projectId }, sessionId), "GitError", () =>
        Effect.succeed(this.#saves.last?.base ?? null),
      );
      const scope = { pushed: tip ?? baseCommit, base: baseCommit, share: this.#share };
      const timeoutMs = Math.min(limitMs, LIST_TIMEOUT_MS);
      return yield* daemon.saving.listing(link, yield* this.#context, { request: scope, timeoutMs });
    });
  }

  /** Stores what is missing. @returns whether the workspace stood still meanwhile */
  #storeParts(link: DaemonLink, parts: readonly Part[]): Effect.Effect<boolean, SaveStoreError> {
    return Effect.gen({ self: this }, function* () {
      const totalBytes = parts.reduce((sum, { bytes }) => sum + bytes, 0);
      const queue = new PartQueue(parts, {
        room: totalBytes === 0 ? 0 : yield* this.#parts.store.room(this.#request, totalBytes),
        hasNoRoom: (part) => this.#reasons.note(part, "limit"),
      });
      let isStill = true;
      for (let part = queue.next(); part !== undefined; part = queue.next()) {
        const batch = [part];
        const outcome = yield* Effect.result(this.#storeBatch(link, batch, queue));
        if (outcome._tag === "Success") isStill &&= outcome.success.isStill;
        const error = outcome._tag === "Failure" ? outcome.failure : outcome.success.error;
        if (error === null) continue;
        const failedParts = outcome._tag === "Failure" ? batch : batch.slice(-1);
        const { reason, isOver } = toFailure(error);
        for (const one of failedParts) this.#reasons.note(one, reason);
        this.#noteError(error.message);
        if (queue.retry(failedParts)) this.#failures += 1;
        if (isOver || this.#failures >= FAILURES_MAX) return true;
      }
      return isStill;
    });
  }

  /**
   * Stores parts until they are worth the time for a description of the whole save. Then they are durable. If it fails, all of them are lost.
   *
   * @param batch its first part. Others join it
   * @returns whether each path still had the listed content, and why the last part was not read. Null if it was
   */
  #storeBatch(
    link: DaemonLink,
    batch: Part[],
    queue: PartQueue,
  ): Effect.Effect<
    { readonly isStill: boolean; readonly error: DaemonUnreachable | null },
    SaveStoreError | DaemonUnreachable
  > {
    const storing = Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const began = yield* Clock.currentTimeMillis;
        const writer = yield* this.#parts.store.part(this.#request);
        let isStill = true;
        let error: DaemonUnreachable | null = null;
        for (let part = batch[0]; part !== undefined;) {
          const outcome = yield* Effect.result(this.#storePart(link, part, writer));
          if (outcome._tag === "Success") isStill &&= outcome.success;
          else if (outcome.failure._tag === "DaemonUnreachable" && batch.length > 1) error = outcome.failure;
          else return yield* outcome.failure;
          const tookMs = (yield* Clock.currentTimeMillis) - began;
          const isDue = error !== null || tookMs >= READ_SHARE * this.#describedInMs;
          part = isDue ? undefined : queue.another();
          if (part !== undefined) batch.push(part);
        }
        yield* this.#describe(writer);
        yield* this.#progress;
        return { isStill, error };
      }),
    );
    return Effect.suspend(() => {
      const before = this.#stock.copy();
      return Effect.onError(storing, () => Effect.sync(() => void (this.#stock = before)));
    });
  }

  /** Makes what was written durable, as the session's last save. */
  #describe(writer: PartWriter): Effect.Effect<void, SaveStoreError> {
    return Effect.gen({ self: this }, function* () {
      const began = yield* Clock.currentTimeMillis;
      const last = yield* this.#present;
      yield* writer.finish(last);
      this.#saves = { ...this.#saves, last };
      this.#describedInMs = (yield* Clock.currentTimeMillis) - began;
    });
  }

  /** Stores the runtime's own record of the conversation, whole or not at all. The work is safe by then. Never fails. */
  #storeHistory(link: DaemonLink): Effect.Effect<void> {
    const { store } = this.#parts;
    const storing = Effect.gen({ self: this }, function* () {
      const [listing, { sandboxId }] = [this.#listing, this.#request];
      const history = yield* store.history(this.#request);
      const at = this.#lookedAt ?? 0;
      const save = listing === null ? null : wantedHistory(listing, history, { sandboxId, at });
      if (save === null) return;
      this.#stock = new Stock([...all(this.#saves), ...(history === null ? [] : [history])]);
      const parts = missingParts(save, this.#stock);
      const totalBytes = parts.reduce((sum, { bytes }) => sum + bytes, 0);
      if (totalBytes > 0 && (yield* store.room(this.#request, totalBytes)) < totalBytes) return yield* noRoom;
      const writer = yield* store.historyPart(this.#request);
      for (const part of parts) yield* this.#storePart(link, part, writer);
      // One that changed meanwhile comes with the next save.
      if (save.items.every((item) => this.#stock.has(item))) yield* writer.finish(save);
    });
    return Effect.suspend(() => {
      const before = this.#stock;
      return Effect.scoped(storing).pipe(
        Effect.ensuring(Effect.sync(() => (this.#stock = before))),
        Effect.catch(({ message }) =>
          Effect.logWarning("history not saved", { session: this.#request.sessionId, message }),
        ),
      );
    });
  }

  /** @returns whether each path still had the listed content */
  #storePart(
    link: DaemonLink,
    part: Part,
    writer: PartWriter,
  ): Effect.Effect<boolean, SaveStoreError | DaemonUnreachable> {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const { options, daemon } = this.#parts;
        const body = yield* daemon.saving.read(link, yield* this.#context, this.#readRequest(part));
        const isOver = new AbortController();
        const frames = arrivingFrames(body, options.directory, isOver.signal);
        yield* Effect.addFinalizer(() =>
          Effect.promise(async () => {
            isOver.abort();
            await frames.return(undefined).catch(() => undefined);
          }),
        );
        let isStill = true;
        for (const item of part.type === "items" ? part.items : [{ object: null, size: part.bytes }]) {
          const frame = yield* nextFrame(frames, item.size);
          isStill = (yield* this.#keep(writer, frame, { part, listed: item.object })) && isStill;
        }
        return isStill;
      }),
    );
  }

  get #share(): number {
    return this.#request.isBackground ? BACKGROUND_SHARE : 1;
  }

  #readRequest(part: Part): ReadRequest {
    const share = this.#share;
    if (part.type === "items") {
      const items = part.items.flatMap(({ kind, path, object }) =>
        object === null ? [] : [{ kind, path, object }],
      );
      return { share, items };
    }
    const { repository, ref, commit } = part.commits;
    // A repository inside the workspace is stored with all its history.
    const knownCommits = repository === "" ? [this.#listing?.base, this.#request.baseCommit] : [];
    const without = [...new Set(knownCommits.filter((one) => typeof one === "string"))];
    return { share, items: [], commits: { repository, ref, commit, without } };
  }

  /** V2. @returns whether the sandbox still had what it listed */
  #keep(
    writer: PartWriter,
    { content, end, remove }: ArrivedFrame,
    { part, listed }: { readonly part: Part; readonly listed: string | null },
  ): Effect.Effect<boolean, SaveStoreError> {
    return Effect.gen({ self: this }, function* () {
      const isListed = content !== null && (part.type === "commits" || content.object === listed);
      if (!isListed) {
        const partEnd = content === null ? end : "changed";
        if (part.type === "commits") this.#reasons.note(part, FRAME_REASONS[partEnd]);
        else this.#reasons.noteObject(listed, FRAME_REASONS[partEnd]);
        return partEnd === "unreadable" || partEnd === "failed";
      }
      yield* writer.add(content.object, { size: content.size, bytes: content.bytes() });
      if (part.type === "commits") this.#stock.addPack(part.commits, content.object);
      else this.#stock.addObject(content.object);
      return true;
    }).pipe(Effect.ensuring(Effect.promise(remove)));
  }

  /** The missing paths, by comparison (V1). Null if nothing could be listed. */
  get #compared() {
    const listing = this.#listing;
    return listing === null
      ? null
      : {
          listing,
          ...compare(listing, { stock: this.#stock, former: this.#former, reasons: this.#reasons }),
        };
  }

  /** The save as it is now. */
  get #present(): Effect.Effect<Save> {
    return Effect.gen({ self: this }, function* () {
      const comparison = this.#compared;
      if (comparison === null) return yield* Effect.die(new Error("nothing was listed"));
      const { listing, items, commits, pending, skipped } = comparison;
      const { base, head, heads } = listing;
      const at = yield* Clock.currentTimeMillis;
      const { sandboxId } = this.#request;
      return { sandboxId, at, base, head, heads, items, commits, pending, skipped };
    });
  }

  /** Stores what no part has: paths that are gone or clean again, and why others are missing. */
  get #close() {
    return Effect.gen({ self: this }, function* () {
      const { store } = this.#parts;
      const { turn } = this.#request;
      const present = yield* this.#present;
      const { last } = this.#saves;
      // A session can begin from a turn whose work is all pushed, too.
      const isNeeded = last !== null || !isEmptySave(present) || turn !== null;
      if (isNeeded && !isSame(last, present))
        yield* Effect.scoped(Effect.flatMap(store.part(this.#request), (writer) => this.#describe(writer)));
      // From now on, this save has what came back of them, and what the agent has changed of it since.
      if (this.#hasAll) yield* this.#forget(this.#saves.earlier);
      else if (present.pending.length === 0) yield* this.#forgetBroughtBack(present);
      if (turn !== null) yield* store.keepTurn(this.#request, turn);
    });
  }

  #forget(saves: readonly Save[]) {
    const ids = saves.map(({ sandboxId }) => sandboxId);
    return this.#parts.store.forgetEarlier(this.#request, ids);
  }

  /** Earlier saves keep only what did not come back, and what the present one does not have. */
  #forgetBroughtBack(present: Save): Effect.Effect<void, SaveStoreError> {
    return Effect.gen({ self: this }, function* () {
      const { store, options } = this.#parts;
      const { earlier } = this.#saves;
      if (earlier.length === 0) return;
      const displayPath = shownText(yield* options.redactor(this.#request.projectId));
      const left = this.#notBack === null ? null : notBroughtBack(earlier, this.#notBack, displayPath);
      const rest = (left ?? earlier).map((save) => withoutCopies(save, present));
      yield* this.#forget(rest.filter((save) => isEmptySave(save)));
      for (const [at, save] of rest.entries())
        if (!isEmptySave(save) && countItems(save) < countItems(earlier[at]))
          yield* store.replaceEarlier(this.#request, save);
    });
  }

  get #progress(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const now = yield* Clock.currentTimeMillis;
      if (now - this.#notedAt < PROGRESS_MS) return;
      this.#notedAt = now;
      yield* this.#note(yield* this.#said(this.#saves, null));
    });
  }

  #note(saved: Saved): Effect.Effect<void> {
    const { sessionId, sandboxId } = this.#request;
    return Effect.ignore(this.#parts.sessions.noteSaved(sessionId, { sandboxId, saved }));
  }

  /** Null if it takes longer, and is made when a person fetches it. */
  get #viewCommit(): Effect.Effect<string | null> {
    return Effect.timeoutOrElse(this.#parts.options.viewCommit(this.#request), {
      duration: VIEW_MS,
      orElse: () => Effect.succeed(null),
    });
  }

  #words(withCommit: boolean): Effect.Effect<Saved> {
    return Effect.gen({ self: this }, function* () {
      const { store } = this.#parts;
      const saves = yield* Effect.catch(store.load(this.#request), () => Effect.succeed(this.#saves));
      // The work is on a node that does not answer, and the sandbox does not either: what the session says of it stays true.
      const { node = null } = this.#row ?? {};
      if (this.#listing === null && node !== null && node !== this.#parts.options.nodeId)
        return unfinishedSave(this.#row, this.#error ?? "");
      const isNothing = isEmptySave(saves.last) && saves.earlier.length === 0;
      return yield* this.#said(saves, withCommit && !isNothing ? yield* this.#viewCommit : null);
    });
  }

  #said(saves: SessionSaves, wip: string | null): Effect.Effect<Saved> {
    const { options } = this.#parts;
    const comparison = this.#compared;
    const pending: readonly LeftOut[] | null = comparison?.pending ?? null;
    const { sandboxId } = this.#request;
    const { nodeId } = options;
    const elsewhere = savesElsewhere(this.#row, {
      nodeId,
      sandboxId,
      hasAll: this.#hasAll,
      isLacking: comparison === null || isLacking(comparison),
      givers: this.#givers,
    });
    const outcome = {
      ...saves,
      pending,
      error: this.#error,
      wip,
      nodeId,
      elsewhere,
      lookedAt: this.#lookedAt,
    };
    return Effect.map(options.redactor(this.#request.projectId), (redactor) => savedWords(outcome, redactor));
  }
}

const noRoom = Effect.fail({ message: "there is no room within the limits" });

/** A save of an earlier version has a commit on refs/wip, and no one noted its time. */
const isOfEarlierVersion = (saved: Saved | null): boolean =>
  saved !== null && saved.wip !== null && saved.at === null;

/** All saves of a session, oldest first. */
const all = ({ earlier, last }: SessionSaves): readonly Save[] => [
  ...earlier,
  ...(last === null ? [] : [last]),
];

const countItems = (save?: Save): number => (save ? save.items.length + save.commits.length : 0);

/** Whether two saves have the same, whenever they were made. */
const isSame = (one: Save | null, other: Save): boolean =>
  one !== null && JSON.stringify({ ...one, at: 0 }) === JSON.stringify({ ...other, at: 0 });
