/**
 * Every project with its triggers, held in memory. The receiver needs no database before it checks a signature, and the
 * scheduler needs none to find due triggers (api.md 4 "Admission", "Webhook").
 *
 *  Y1 Each project has a version, and admission refuses a decision that used an older one (`stale`). So the directory
 *     may lag, but never decides.
 *  Y2 A change is known at once in the process that made it (`refresh`), and within a second elsewhere: by the commit's
 *     signal, or the poll behind it.
 *  Y3 An older version never replaces a newer one.
 *  Y4 A caller that misses an entry asks for one more look before it answers so. Concurrent callers share a look, so a
 *     flood of misses costs one statement now and then, and no memory.
 */
import { createHash, type KeyObject } from "node:crypto";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { deliveredNames } from "../domain/manifest/required-secrets.ts";
import type { ManifestError } from "../domain/manifest/manifest-error.ts";
import type { Agents } from "../domain/agents/agents.ts";
import { offeredAgents } from "../domain/manifest/manifest-agents.ts";
import { parseManifest, withAgents, type Manifest } from "../domain/manifest/manifest.ts";
import { visibleCharacters, unsealSecret, invisibleCharacters } from "../domain/secret/secret.ts";
import { signatureKey } from "../domain/trigger/signature.ts";
import type { TriggerDefinition } from "../domain/trigger/trigger.ts";
import { StoreError } from "../store/ports/journal.ts";
import {
  Projects,
  type GoodManifest,
  type Project,
  type ProjectState,
} from "../store/ports/projects/projects.ts";
import type { SealedSecret } from "../store/ports/projects/secrets.ts";
import { HeldTriggers, UnpackedTriggers } from "./triggers/held-triggers.ts";
import type { OfferedRuntimes } from "../domain/runtimes/runtimes.ts";
import { Runtimes } from "./projects/runtimes.ts";
import { Keyring } from "./keyring.ts";
import { DUTIES } from "./duties.ts";
import { dutyRound, runDuty } from "./duty.ts";

const POLL_MS = DUTIES.directory.periodMs;
/** How many projects are loaded together. */
const PAGE = 200;
/** Pause between two looks that callers ask for. */
const LOOK_PAUSE = "20 millis";
/** A look that takes longer fails. Its callers answer that the database is unavailable. */
const LOOK_DEADLINE = "5 seconds";

export interface ReadManifest {
  /** Unpacked anew at each access. */
  readonly triggers: readonly TriggerDefinition[];
  readonly errors: readonly ManifestError[];
  readonly env: Manifest["env"];
  /** Those that its tables define. */
  readonly agents: Agents;
  readonly executor: Manifest["executor"];
  /** How many sandboxes wait for a session. */
  readonly warm: number;
  /** The commit that the triggers were read from. */
  readonly commit: string | null;
  readonly syncedAt: number | null;
  /** True if the triggers come from an earlier commit, because the newest manifest is invalid. */
  readonly stale: boolean;
}

/** A project as the directory holds it. */
export interface KnownProject {
  readonly project: Project;
  readonly manifest: ReadManifest;
  readonly triggers: Pick<HeldTriggers, "get" | "size">;
  /**
   * The keys that sign webhooks, by the secret's name. Secrets that are unset or empty are left out (threats.md W30).
   */
  readonly keys: ReadonlyMap<string, SigningKeys>;
  readonly secretNames: readonly string[];
  /** Of the secrets that sandboxes get. */
  readonly deliveredNames: readonly string[];
  /** The tier of the project's account. */
  readonly tier: string;
  /** Whether the repository configures a model provider. Null if that was not looked up. */
  readonly bringsModel: boolean | null;
}

/** The keys of one secret. */
export interface SigningKeys {
  readonly current: KeyObject;
  /** The keys of the previous value, which stay valid until an instant. */
  readonly previous: { readonly key: KeyObject; readonly until: number } | null;
  /** The current value without its unseen characters, and what they are. Never decides. */
  readonly seen: { readonly key: KeyObject; readonly unseen: readonly string[] } | null;
}

export class Directory extends Context.Service<
  Directory,
  {
    /** The project as last loaded. Null if it is unknown. Makes no request. */
    readonly known: (projectId: string) => KnownProject | null;
    readonly all: () => Iterable<KnownProject>;
    /** Loads one project now. */
    readonly refresh: (projectId: string) => Effect.Effect<KnownProject | null, StoreError>;
    /** One more look. Once it completes, everything that was committed before the call is held. */
    readonly caughtUp: Effect.Effect<void, StoreError>;
    /** Ids of projects whose version changed since the last call. Waits for at least one. Supports one waiter. */
    readonly news: Effect.Effect<readonly string[]>;
  }
>()("platform/services/Directory") {}

/** The parts of a manifest that are read later. The rest is not held: a service may hold a million triggers. */
interface HeldManifest extends Pick<Manifest, "env" | "executor" | "warm" | "errors"> {
  readonly triggers: HeldTriggers;
  readonly agents: Agents;
  /** The secrets that sign webhooks. */
  readonly keyNames: ReadonlySet<string>;
}

interface Parsed {
  /** The commit that it was read from. Null if there is no good reading. */
  readonly commit: string | null;
  /** Of everything that it was parsed from: the text itself is not held. */
  readonly digest: string;
  readonly manifest: HeldManifest;
}

const heldParts = (
  { triggers, env, agents, executor, warm, errors }: Manifest,
  { unpacked, offered }: Pick<Former, "unpacked" | "offered">,
): HeldManifest => ({
  agents: offeredAgents(agents, offered).agents,
  triggers: new HeldTriggers(triggers, unpacked),
  keyNames: new Set(triggers.flatMap((trigger) => (trigger.type === "webhook" ? [trigger.secretEnv] : []))),
  env,
  executor,
  warm,
  errors,
});

interface Former {
  readonly reading: Parsed | undefined;
  readonly offered: OfferedRuntimes;
  readonly unpacked: UnpackedTriggers;
}

/** Parses a good reading's text into triggers. The same reading is not parsed twice. */
const toParsed = (good: GoodManifest | null, { reading: former, ...parts }: Former): Parsed => {
  if (good === null)
    return { commit: null, digest: "", manifest: heldParts(parseManifest(new Uint8Array()), parts) };
  const { commit, text, agents } = good;
  const digest = createHash("sha256")
    .update(JSON.stringify([commit, agents]))
    .update(text)
    .digest("hex");
  if (former?.digest === digest) return former;
  const { offered } = parts;
  const manifest = withAgents(parseManifest(Buffer.from(text)), { files: new Set(agents), offered });
  return { commit, digest, manifest: heldParts(manifest, parts) };
};

const toReading = (
  { project, manifestFailure }: ProjectState,
  { commit, manifest }: Parsed,
): ReadManifest => ({
  get triggers() {
    return manifest.triggers.all;
  },
  env: manifest.env,
  agents: manifest.agents,
  executor: manifest.executor,
  warm: manifest.warm,
  commit,
  syncedAt: project.manifest.syncedAt,
  stale: manifestFailure !== null,
  errors: manifestFailure === null ? manifest.errors : [{ slug: null, index: null, ...manifestFailure }],
});

const seenKey = (value: string): SigningKeys["seen"] => {
  const unseen = invisibleCharacters(value);
  const key = unseen.length === 0 ? null : signatureKey(visibleCharacters(value));
  return key === null ? null : { key, unseen };
};

/** Opens the secrets that the triggers sign with, and no others. */
const signatureKeys = (
  { secrets }: ProjectState,
  names: ReadonlySet<string>,
  keyring: Keyring["Service"],
): ReadonlyMap<string, SigningKeys> => {
  const openValue = (secret: SealedSecret): string =>
    Result.getOrElse(unsealSecret(keyring.secrets, secret, secret.envelope), () => "");
  const openKey = (secret: SealedSecret): KeyObject | null => signatureKey(openValue(secret));
  return new Map(
    secrets.flatMap((secret) => {
      if (!names.has(secret.name)) return [];
      const value = openValue(secret);
      const current = signatureKey(value);
      if (current === null) return [];
      const { previous } = secret;
      const key = previous === null ? null : openKey({ ...secret, ...previous });
      const keys = {
        current,
        previous: previous === null || key === null ? null : { key, until: previous.until },
        seen: seenKey(value),
      };
      return [[secret.name, keys] as const];
    }),
  );
};

/** Looks that callers ask for. Callers that ask during a look share the next one, which begins after they asked. */
const sharedLooks = Effect.fnUntraced(function* (look: Effect.Effect<void, StoreError>) {
  let request = Deferred.makeUnsafe<void, StoreError>();
  const isAsked = Latch.makeUnsafe(false);
  const inTime = Effect.timeoutOrElse(look, {
    duration: LOOK_DEADLINE,
    orElse: () => Effect.fail(new StoreError({ operation: "directory", cause: new Error("it hangs") })),
  });
  const round = Effect.gen(function* () {
    yield* isAsked.await;
    isAsked.closeUnsafe();
    const callers = request;
    request = Deferred.makeUnsafe<void, StoreError>();
    yield* Deferred.done(callers, yield* Effect.exit(inTime));
    yield* Effect.sleep(LOOK_PAUSE);
  });
  yield* Effect.forkScoped(Effect.forever(round));
  return Effect.suspend(() => {
    // The look may begin within the call that opens the latch.
    const own = request;
    isAsked.openUnsafe();
    return Deferred.await(own);
  });
});

/** The held triggers and keys, by project, and the projects that changed since somebody asked for news. */
const makeHolding = (keyring: Keyring["Service"], runtimes: OfferedRuntimes) => {
  const knownProjects = new Map<string, KnownProject>();
  const readings = new Map<string, Parsed>();
  const parts = { unpacked: new UnpackedTriggers(), offered: runtimes };
  const unreadIds = new Set<string>();
  const isUnread = Latch.makeUnsafe(false);
  const tell = (id: string): void => {
    unreadIds.add(id);
    isUnread.openUnsafe();
  };

  const hold = (state: ProjectState): void => {
    const { project } = state;
    const former = knownProjects.get(project.id);
    if (former !== undefined && former.project.version > project.version) return;
    const reading = toParsed(state.manifest, { reading: readings.get(project.id), ...parts });
    const manifest = toReading(state, reading);
    readings.set(project.id, reading);
    knownProjects.set(project.id, {
      project,
      manifest,
      triggers: reading.manifest.triggers,
      keys: signatureKeys(state, reading.manifest.keyNames, keyring),
      secretNames: state.secrets.map(({ name }) => name),
      deliveredNames: deliveredNames(state.secrets),
      tier: state.tier,
      bringsModel: state.manifest?.bringsModel ?? null,
    });
    if (former?.project.version !== project.version) tell(project.id);
  };
  /** A project that is gone. */
  const forget = (id: string): void => {
    readings.delete(id);
    if (knownProjects.delete(id)) tell(id);
  };
  const news = Effect.andThen(
    isUnread.await,
    Effect.sync(() => {
      const ids = [...unreadIds];
      unreadIds.clear();
      isUnread.closeUnsafe();
      return ids;
    }),
  );
  return { held: knownProjects, hold, forget, news };
};

export const directoryLayer: Layer.Layer<Directory, never, Projects | Keyring> = Layer.effect(
  Directory,
  Effect.gen(function* () {
    const projects = yield* Projects;
    const { held, hold, forget, news } = makeHolding(yield* Keyring, yield* Runtimes);
    let since: string | null = null;

    /**
     * A project that cannot be held is logged and keeps its former version, which Y1 makes harmless. The others are
     * held.
     */
    const holdOrLog = (state: ProjectState) =>
      Effect.catchDefect(
        Effect.sync(() => hold(state)),
        (defect) =>
          Effect.logError("a project could not be loaded into memory", { project: state.project.id }, defect),
      );
    const load = Effect.fnUntraced(function* (ids: readonly string[]) {
      for (let from = 0; from < ids.length; from += PAGE) {
        const page = ids.slice(from, from + PAGE);
        const states = yield* projects.states(page);
        const there = new Set(states.map(({ project }) => project.id));
        for (const id of page) if (!there.has(id)) forget(id);
        // A full manifest takes some ms to parse: other fibers run in between.
        yield* Effect.forEach(states, (state) => Effect.andThen(holdOrLog(state), Effect.yieldNow), {
          discard: true,
        });
      }
    });
    const look = Effect.gen(function* () {
      const { changed, since: next } = yield* projects.changedSince(since);
      yield* load(
        changed.flatMap(({ id, version }) => (held.get(id)?.project.version === version ? [] : [id])),
      );
      since = next;
    });

    // The first look is part of the start: a webhook that comes with the first connection finds its trigger.
    yield* dutyRound("directory", look);
    yield* runDuty("directory", { round: look, periodMs: POLL_MS, signal: projects.changed });
    const caughtUp = yield* sharedLooks(look);
    return Directory.of({
      caughtUp,
      known: (id) => held.get(id) ?? null,
      all: () => held.values(),
      refresh: (id) => Effect.map(load([id]), () => held.get(id) ?? null),
      news,
    });
  }),
);
