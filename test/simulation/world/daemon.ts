/** Daemons that boot in their own time, or never, or badly, and agents that work in turns: each as the seed has it. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Stream from "effect/Stream";
import {
  DaemonClient,
  DaemonUnreachable,
  NoConversation,
  type DaemonHealth,
} from "../../../src/sandbox/daemon.ts";
import { emptySaving, emptyWorkspace } from "../../../src/sandbox/daemon-simulated.ts";
import type { DaemonLink } from "../../../src/sandbox/port.ts";
import type { Random } from "../random.ts";
import type { Runtime } from "./runtime.ts";
import { Runtimes } from "./runtimes.ts";
import { simulatedTalks, type Talks } from "./talks.ts";
import type { SimulatedTime } from "../time.ts";

type Fate = "healthy" | "never_ready" | "unreachable" | "runtime_failed";

interface Daemon {
  readonly fate: Fate;
  /** When it is ready, in ms of `elapsed`. */
  readonly readyAt: number;
  /** Its agent works from its readiness on for so long, and comes to rest then. */
  readonly worksMs: number;
  readonly bornWall: number;
}

export interface SimulatedDaemons {
  readonly layer: Layer.Layer<DaemonClient>;
  readonly talks: Talks;
  /** Null: the world has no people. */
  readonly runtimes: Runtimes | null;
  /** Called when a daemon that waits takes a session. */
  onClaim: (sandboxId: string, sessionId: string) => void;
  readonly isServing: (sandboxId: string) => boolean;
  /** ms of `elapsed`. */
  readonly readyAt: (sandboxId: string) => number;
  /** From now on every new daemon is a healthy one. */
  readonly heal: () => void;
  /** Whether the agent of this sandbox is in a turn that goes on for a while, and has not lasted too long. */
  readonly isAtWork: (sandboxId: string) => boolean;
}

/** A judge's view may be a little older than the current state. */
const GRACE_MS = 3_000;

const BAD_FATES = ["never_ready", "unreachable", "runtime_failed"] as const;
const BAD = 0.08;

const idOf = (link: DaemonLink): string =>
  link.kind === "url" ? (/^http:\/\/([^.]+)\./.exec(link.url)?.[1] ?? "") : "";

export interface DaemonOptions {
  readonly time: SimulatedTime;
  /** What its clock says, ms since the epoch. */
  readonly wallOf: (sandboxId: string) => number;
  readonly randomOf: (label: string) => Random;
  /** Whether a sandbox waits for its saved work. */
  readonly wantsWork: (sandboxId: string) => boolean;
  /** A turn that lasts longer counts as none. */
  readonly maxTurnMs: number;
  readonly hasPeople: boolean;
}

/** The answers of a daemon in a world without people. */
const UNSTEERED = {
  hand: () => Effect.fail(new NoConversation()),
  attach: () => Effect.fail(new NoConversation()),
  interrupt: () => Effect.fail(new NoConversation()),
  answer: () => Effect.fail(new NoConversation()),
  models: () => Effect.fail(new NoConversation()),
  abort: () => Effect.succeed(false),
  goOn: () => Effect.void,
};

/** Whether it works, has worked for a while, and goes on for a while. */
const isInTurn = (runtime: Runtime, elapsed: number): boolean => {
  const { worksSince, endsAt } = runtime;
  return worksSince !== null && worksSince + GRACE_MS < elapsed && endsAt > elapsed + GRACE_MS;
};

export const simulatedDaemons = (options: DaemonOptions): SimulatedDaemons => {
  const { time, wallOf, randomOf, maxTurnMs, hasPeople, wantsWork } = options;
  const random = randomOf("daemons");
  const daemons = new Map<string, Daemon>();
  let isHealed = false;
  const daemonOf = (id: string): Daemon => {
    const known = daemons.get(id);
    if (known !== undefined) return known;
    const fate = random.chance(BAD) ? random.pick(BAD_FATES) : "healthy";
    const daemon: Daemon = {
      fate: isHealed ? "healthy" : fate,
      readyAt: time.elapsed + random.between(10, 400),
      worksMs: !hasPeople && random.chance(0.3) ? random.between(1_000, 300_000) : 0,
      bornWall: wallOf(id),
    };
    daemons.set(id, daemon);
    return daemon;
  };
  const parts = { time, randomOf, beginsAt: (id: string) => daemonOf(id).readyAt };
  const isServing = (id: string): boolean =>
    daemonOf(id).fate === "healthy" && time.elapsed >= daemonOf(id).readyAt;
  const runtimes = hasPeople ? new Runtimes({ ...parts, isReady: isServing, idOf }) : null;
  const talks = runtimes?.talks ?? simulatedTalks(parts);
  const worksUntil = (id: string): number => {
    const daemon = daemons.get(id);
    return daemon === undefined ? 0 : daemon.readyAt + daemon.worksMs;
  };
  const restedFor = (id: string): number => {
    const since = runtimes === null ? worksUntil(id) : (runtimes.of(id).restsSince ?? time.elapsed);
    return Math.max(0, time.elapsed - since);
  };
  /** Since when its turn has gone on, ms since the epoch. Null: it rests. */
  const activeSince = (id: string): number | null => {
    const { bornWall } = daemonOf(id);
    if (runtimes === null) return time.elapsed < worksUntil(id) ? bornWall : null;
    const { open } = runtimes.of(id);
    return open === null ? null : wallOf(id) - (time.elapsed - open.since);
  };
  const healthOf = (id: string): DaemonHealth | null => {
    const { fate, readyAt } = daemonOf(id);
    if (fate === "unreachable") return null;
    const isUp = time.elapsed >= readyAt;
    const isWaiting = isUp && fate === "healthy" && wantsWork(id);
    const isReady = isUp && fate === "healthy" && !isWaiting;
    const since = isReady ? activeSince(id) : null;
    const failed = isUp && fate === "runtime_failed";
    return {
      status: isReady ? "ready" : failed ? "error" : "starting",
      runtime: { state: isReady ? "ready" : failed ? "failed" : "starting" },
      repo: { ready: isUp, branch: null, commit: null },
      protocol: 3,
      bootstrap: { state: isReady ? "done" : "pending" },
      turn: {
        active: since !== null,
        active_since: since === null ? null : new Date(since).toISOString(),
        last_activity_at: isReady ? new Date(wallOf(id) - restedFor(id)).toISOString() : null,
      },
      ...(isWaiting && { restore: "wanted" as const }),
      boot: [],
      error: failed ? "the simulated runtime failed" : null,
    };
  };
  const claim: DaemonClient["Service"]["claim"] = (link, _context, { session_id: sessionId }) =>
    Effect.suspend(() => {
      if (healthOf(idOf(link)) === null)
        return Effect.fail(new DaemonUnreachable({ message: "no daemon answers" }));
      simulated.onClaim(idOf(link), sessionId);
      return Effect.void;
    });
  const simulated: SimulatedDaemons = {
    talks,
    runtimes,
    onClaim: () => undefined,
    isServing,
    readyAt: (id) => daemonOf(id).readyAt,
    isAtWork: (id) => {
      const daemon = daemons.get(id);
      if (runtimes !== null) return isInTurn(runtimes.of(id), time.elapsed);
      if (daemon === undefined || daemon.fate !== "healthy" || time.elapsed < daemon.readyAt + GRACE_MS)
        return false;
      const lasts = wallOf(id) - daemon.bornWall;
      return worksUntil(id) > time.elapsed + GRACE_MS && lasts >= 0 && lasts < maxTurnMs;
    },
    heal: () => {
      isHealed = true;
      talks.heal();
    },
    layer: Layer.succeed(DaemonClient, {
      prepare: () => Effect.void,
      claim,
      health: (link) =>
        Effect.suspend(() => {
          const health = healthOf(idOf(link));
          return health === null
            ? Effect.fail(new DaemonUnreachable({ message: "no daemon answers" }))
            : Effect.succeed(health);
        }),
      turn: () => Effect.never,
      logs: () => Stream.never,
      conversation: (link, { after }) => talks.follow(idOf(link), after),
      ...(runtimes?.steering ?? UNSTEERED),
      output: () => Effect.succeed(null),
      ports: () => Effect.succeed([]),
      withdraw: () => Effect.void,
      workspace: emptyWorkspace,
      saveByPush: () => Effect.succeed({ wip: null, skipped: [], error: null }),
      saving: emptySaving,
      env: (_link, _context, { revision, env }) =>
        Effect.succeed({ changed: Object.keys(env), revision, restarted: true, turn_interrupted: false }),
    }),
  };
  return simulated;
};
