/**
 * The sessions at MCP servers that this node keeps for sessions of ours (U5 of src/connectors/port.ts). They are in memory alone: after
 * a restart, or on another node, a session of ours begins a new one.
 *
 *  K1 One session of ours has one at a connector's server. Calls that come together wait for one handshake.
 *  K2 A session is never shared by owners that differ in anything: the next call of another one replaces it.
 *  K3 A session leaves the map first. It is ended at the server when its last call is over.
 */
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import { BoundedMap } from "../ground/bounded-map.ts";
import { GOODBYE_MS } from "./wire.ts";
import type { ServerSessions, ServerTarget, SessionOwner } from "./port.ts";

/** How many are kept. The one that was used longest ago makes room, and is ended. */
const KEPT_MAX = 1000;
/** The numbers of requests that each call has for itself. It needs one. */
const NUMBERS = 16;

/** A session as its server named it. */
export interface NamedSession {
  readonly id: string;
  /** The revision that was agreed on. */
  readonly protocol: string;
}

export interface PooledSession {
  readonly owner: SessionOwner;
  /** Null if the server keeps no sessions. Rejects with a `ServerFault`. */
  readonly named: Promise<NamedSession | null>;
  /** The last call's: a token may have been renewed since the handshake. */
  target: ServerTarget;
  /** Calls under way. */
  uses: number;
  /** When the last use began or ended, in ms of the service's clock. */
  usedAt: number;
  /** The first number that no request has had. The handshake has the first ones. */
  numbers: number;
  /** It has left the map, and the server still has it. */
  isLeft: boolean;
}

/** The beginning and the end of a session at its server. Each has its own deadline. */
export interface AtServer {
  /** @returns null: the server keeps no sessions. @throws ServerFault */
  readonly begin: (target: ServerTarget) => Promise<NamedSession | null>;
  /** Never rejects. */
  readonly end: (target: ServerTarget, name: NamedSession) => Promise<void>;
}

const ownerKey = ({ sessionId, slug }: SessionOwner): string => `${sessionId} ${slug}`;

export class KeptSessions implements ServerSessions {
  readonly #server: AtServer;
  readonly #kept: BoundedMap<string, PooledSession>;
  readonly #isAny = Latch.makeUnsafe(false);
  readonly any = this.#isAny.await;

  constructor(server: AtServer, limit: number = KEPT_MAX) {
    this.#server = server;
    this.#kept = new BoundedMap(
      limit,
      () => 1,
      (left) => void this.#leave(left),
    );
  }

  readonly list: ServerSessions["list"] = () =>
    [...this.#kept.values()].map(({ owner, uses, usedAt }) => ({
      owner,
      idleSince: uses === 0 ? usedAt : null,
    }));

  /** The session for a call. Without one, it begins now. The call ends with `release`. */
  take(target: ServerTarget, owner: SessionOwner, now: number): PooledSession {
    const key = ownerKey(owner);
    const present = this.#kept.use(key);
    const session = present?.owner.stand === owner.stand ? present : this.#begin(target, owner, present);
    session.target = target;
    session.uses += 1;
    session.usedAt = now;
    this.#kept.set(key, session);
    this.#isAny.openUnsafe();
    return session;
  }

  /** @returns the first number for the requests of one call. */
  numbersFor(session: PooledSession): number {
    session.numbers += NUMBERS;
    return session.numbers - NUMBERS;
  }

  release(session: PooledSession, now: number): void {
    session.uses -= 1;
    session.usedAt = now;
    if (session.isLeft) void this.#leave(session);
  }

  /** @param has whether the server still has the session, as far as is known. */
  drop(session: PooledSession, has: boolean): void {
    this.#remove(session);
    if (has) void this.#leave(session);
  }

  readonly end: ServerSessions["end"] = (owners) =>
    Effect.promise(() =>
      Promise.all(
        owners.map((owner) => {
          const session = this.#kept.get(ownerKey(owner));
          if (session?.owner.stand !== owner.stand) return;
          this.#remove(session);
          return this.#leave(session);
        }),
      ),
    ).pipe(Effect.timeoutOption(GOODBYE_MS), Effect.asVoid);

  #begin(target: ServerTarget, owner: SessionOwner, former: PooledSession | undefined): PooledSession {
    if (former !== undefined) void this.#leave(former);
    const naming = this.#server.begin(target);
    const session: PooledSession = {
      owner,
      named: naming,
      target,
      uses: 0,
      usedAt: 0,
      numbers: NUMBERS,
      isLeft: false,
    };
    // The calls that wait for it have the fault. The next one tries again.
    naming.catch(() => this.#remove(session));
    return session;
  }

  #remove(session: PooledSession): void {
    const key = ownerKey(session.owner);
    if (this.#kept.get(key) !== session) return;
    this.#kept.delete(key);
    if (this.#kept.size === 0) this.#isAny.closeUnsafe();
  }

  /** K3. */
  async #leave(session: PooledSession): Promise<void> {
    session.isLeft = true;
    if (session.uses > 0) return;
    const name = await session.named.catch(() => null);
    if (name !== null) await this.#server.end(session.target, name);
  }
}
