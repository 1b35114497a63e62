/**
 * Tracks the open connections of each credential on this node: relayed requests and WebSockets, previews, git
 * exchanges, streams, bodies that are still arriving. When the credential ends, they are all cut.
 *
 *  N1 Everything that lasts is held here, from its authentication to its end.
 *  N2 One statement each half second checks everything that is held. If nothing is held, no statement runs. The store's
 *     signal triggers an immediate check of the named ids, so a lost signal costs half a second.
 *  N3 An expiry needs no statement: it cuts at its instant, even while the database is away.
 *  N4 An outage cuts nothing. A failed check is repeated half a second later.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import type { Grant } from "../../store/ports/people/grants.ts";
import { Identity, type Principal } from "../../store/ports/people/identity.ts";
import { DUTIES } from "../../services/duties.ts";
import { runDuty } from "../../services/duty.ts";

/** An open use, with the conditions that end it. */
export interface Use extends Grant {
  /** Ids of tokens, sessions, people and projects whose end or change may end it. The store's signals name them. */
  readonly endsWith: readonly string[];
  readonly expiresAt: number | null;
}

/** A caller's use of a project by a role, and of a session's sandbox if the connection leads there. */
export const toUse = (caller: Principal, reach: Pick<Grant, "projectId" | "session" | "needs">): Use => ({
  ...reach,
  credential: { kind: "token", id: caller.tokenId },
  endsWith: [
    caller.tokenId,
    caller.openedBy,
    caller.user.id,
    caller.sessionId,
    reach.projectId,
    reach.session?.id,
  ].filter((id) => typeof id === "string"),
  expiresAt: caller.expiresAt,
});

export class Openings extends Context.Service<
  Openings,
  {
    /**
     * Holds a connection.
     *
     * @param cut ends the connection. Called at most once, when its credential ends.
     * @returns a function to call when the connection ends by itself.
     */
    readonly hold: (use: Use, cut: () => void) => () => void;
    /** Completes when the credential ends. The use is held until the scope closes. */
    readonly ending: (use: Use) => Effect.Effect<Deferred.Deferred<void>, never, Scope.Scope>;
  }
>()("platform/http/Openings") {}

/** How long a lost signal may leave a connection open. */
const POLL_MS = DUTIES.open_connections.periodMs;
/** Node's timers are limited to 24 days. A later expiry is checked again after this time. */
const LONGEST_SLEEP_MS = DUTIES.expiring_tokens.periodMs;

/** All uses with the same conditions. An empty group stays until the next poll, so that a returning caller finds it. */
class Group {
  readonly use: Use;
  /** Slots that are taken and freed: a Set that grows and shrinks costs the relay more (proxy/watch.ts). */
  readonly #cuts: ((() => void) | null)[] = [];
  readonly #free: number[] = [];

  constructor(use: Use) {
    this.use = use;
  }

  get isEmpty(): boolean {
    return this.#free.length === this.#cuts.length;
  }

  add(cut: () => void): () => void {
    const place = this.#free.pop() ?? this.#cuts.length;
    this.#cuts[place] = cut;
    return () => {
      if (this.#cuts[place] !== cut) return;
      this.#cuts[place] = null;
      this.#free.push(place);
    };
  }

  takeAll(): readonly (() => void)[] {
    this.#free.length = 0;
    return this.#cuts.splice(0).filter((cut) => cut !== null);
  }
}

const groupKey = ({ credential, projectId, needs, session, expiresAt }: Use): string =>
  [
    credential.kind === "token" ? credential.id : credential.hash,
    projectId,
    needs,
    session?.id,
    session?.sandboxId,
    expiresAt,
  ].join(" ");

class Register {
  readonly #groups = new Map<string, Group>();
  readonly #named = new Set<string>();
  #isAllNamed = false;
  readonly isHeld = Latch.makeUnsafe(false);
  readonly isNamed = Latch.makeUnsafe(false);
  /** Something expires earlier than the end of the current sleep. */
  readonly isSooner = Latch.makeUnsafe(false);
  #sleepsUntil = Infinity;

  get isIdle(): boolean {
    return this.#groups.size === 0;
  }

  hold(use: Use, cut: () => void): () => void {
    const key = groupKey(use);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new Group(use);
      this.#groups.set(key, group);
      this.isHeld.openUnsafe();
      if ((use.expiresAt ?? Infinity) < this.#sleepsUntil) this.isSooner.openUnsafe();
    }
    return group.add(cut);
  }

  hear(id: string | null): void {
    if (this.#groups.size === 0) return;
    if (id === null) this.#isAllNamed = true;
    else this.#named.add(id);
    this.isNamed.openUnsafe();
  }

  /** The groups that a round checks: all of them at a poll, otherwise those named since the last round. */
  toCheck(isTime: boolean): readonly Group[] {
    const isAll = isTime || this.#isAllNamed;
    const ids = new Set(this.#named);
    this.#named.clear();
    this.#isAllNamed = false;
    this.isNamed.closeUnsafe();
    if (isTime) this.#leave();
    const groups = [...this.#groups.values()].filter((group) => !group.isEmpty);
    return isAll ? groups : groups.filter(({ use }) => use.endsWith.some((id) => ids.has(id)));
  }

  cut(groups: readonly Group[]): readonly (() => void)[] {
    return groups.flatMap((group) => {
      const key = groupKey(group.use);
      if (this.#groups.get(key) === group) this.#groups.delete(key);
      return group.takeAll();
    });
  }

  /** The expired groups, and the next expiry, which ends the next sleep. */
  expired(now: number): { readonly groups: readonly Group[]; readonly next: number } {
    this.isSooner.closeUnsafe();
    const groups: Group[] = [];
    let next = Infinity;
    for (const group of this.#groups.values()) {
      const { expiresAt } = group.use;
      if (expiresAt === null) continue;
      if (expiresAt <= now) groups.push(group);
      else next = Math.min(next, expiresAt);
    }
    this.#sleepsUntil = next;
    return { groups, next };
  }

  /** Forgets groups without open uses. */
  #leave(): void {
    for (const [key, group] of this.#groups) if (group.isEmpty) this.#groups.delete(key);
    if (this.#groups.size === 0) this.isHeld.closeUnsafe();
  }
}

const cutAll = (cuts: readonly (() => void)[]) =>
  Effect.forEach(
    cuts,
    (cut) =>
      Effect.catchDefect(Effect.sync(cut), (defect) =>
        Effect.logError("a connection could not be closed", defect),
      ),
    { discard: true },
  );

export const openingsLayer: Layer.Layer<Openings, never, Identity> = Layer.effect(
  Openings,
  Effect.gen(function* () {
    const identity = yield* Identity;
    const register = new Register();
    yield* identity.endings((id) => register.hear(id));

    let nextPollAt = 0;
    const untilCheck = Effect.gen(function* () {
      const wasIdle = register.isIdle;
      yield* register.isHeld.await;
      const before = yield* Clock.currentTimeMillis;
      // The first use has just been authenticated, which counts as a check.
      if (wasIdle) nextPollAt = before + POLL_MS;
      // A clock that is set back must not delay a poll.
      if (nextPollAt - before > POLL_MS) nextPollAt = before;
      const waitMs = Math.max(0, nextPollAt - before);
      yield* Effect.raceFirst(Effect.sleep(waitMs), register.isNamed.await);
    });
    const check = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      const isTime = now >= nextPollAt;
      if (isTime) nextPollAt = now + POLL_MS;
      const groups = register.toCheck(isTime);
      if (groups.length === 0) return;
      const endedGrants = new Set(
        yield* identity.ended(
          groups.map(({ use }) => use),
          now,
        ),
      );
      yield* cutAll(register.cut(groups.filter(({ use }) => endedGrants.has(use))));
    });
    // The next check asks again.
    const round = Effect.catch(check, (error) =>
      Effect.logDebug("open connections could not be checked", { error }),
    );
    yield* runDuty("open_connections", { round, first: untilCheck, wait: untilCheck });

    let next = Infinity;
    const expire = Effect.gen(function* () {
      const expiry = register.expired(yield* Clock.currentTimeMillis);
      next = expiry.next;
      yield* cutAll(register.cut(expiry.groups));
    });
    const untilExpiry = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis;
      const sleepMs = Math.min(next - now, LONGEST_SLEEP_MS);
      yield* next === Infinity
        ? register.isSooner.await
        : Effect.raceFirst(Effect.sleep(sleepMs), register.isSooner.await);
    });
    yield* runDuty("expiring_tokens", { round: expire, wait: untilExpiry });

    const hold = (use: Use, cut: () => void) => register.hold(use, cut);
    return Openings.of({
      hold,
      ending: (use) =>
        Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => {
              const over = Deferred.makeUnsafe<void>();
              return { over, release: hold(use, () => Deferred.doneUnsafe(over, Effect.void)) };
            }),
            ({ release }) => Effect.sync(release),
          ),
          ({ over }) => over,
        ),
    });
  }),
);
