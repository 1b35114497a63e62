/**
 * What must hold of sandboxes that wait for a session (src/duties/warm-pool.ts K1 to K3, src/store/ports/sessions/warm-sandboxes.ts W1 and W3,
 * threats.md E17 and E18): at each claim, at each row, and in the end.
 */
import * as Effect from "effect/Effect";
import { isLive } from "../../../src/domain/session/session.ts";
import { WarmPool } from "../../../src/services/sessions/warm-pool.ts";
import { ABANDONED_MS } from "../../../src/store/ports/sessions/warm-sandboxes.ts";
import { PLACES } from "../config.ts";
import { PROJECTS } from "./settled.ts";
import type { Node } from "../world/nodes.ts";
import type { World } from "../world.ts";

/** A sandbox that a session left is found by its row's age, in the round after that. A clock may have been set back by less than this age. */
const REST_MS = 2 * ABANDONED_MS + 60_000;
const LOOK_MS = 5_000;

/** A person begins to write a prompt. */
export const wish = (world: World, node: Node, which: number): void => {
  const { id } = PROJECTS[which % PROJECTS.length] ?? PROJECTS[0];
  world.request(
    node,
    Effect.flatMap(WarmPool, (pool) => pool.wish(id)),
    () => world.boundary.hit("wished"),
  );
};

const REVISION = "PLATFORM_PROJECT_SECRETS_REVISION";

export class WarmWatch {
  readonly #world: World;
  readonly #violations: string[];
  /** The session of each claim, by sandbox. */
  readonly #claims = new Map<string, string>();
  /** The revision of the project's secrets when the sandbox's boot began. */
  readonly #revisions = new Map<string, number>();

  constructor(world: World, { violations }: { readonly violations: string[] }) {
    this.#world = world;
    this.#violations = violations;
    const former = world.boundary.onEffect;
    world.boundary.onEffect = (call) => {
      former(call);
      const { port, operation, about } = call;
      if (port === "store.WarmSandboxes") this.#lookAtRows();
      if (port === "store.Sandboxes" && operation === "beginBoot") this.#noteBoot(about);
    };
    world.daemons.onClaim = (sandboxId, sessionId) => this.#lookAtClaim(sandboxId, sessionId);
  }

  #lookAtRows(): void {
    const counts = new Map<string, number>();
    for (const { id, nodeId, claim } of this.#world.tables.warmSandboxes.values()) {
      if (claim === null) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
      else this.#claimed(id, claim.sessionId);
    }
    for (const [node, count] of counts)
      if (count > PLACES) this.#violations.push(`K3 ${count} sandboxes wait on ${node}, which has ${PLACES}`);
  }

  /** W1 */
  #claimed(sandboxId: string, sessionId: string): void {
    const first = this.#claims.get(sandboxId);
    this.#claims.set(sandboxId, sessionId);
    if (first !== undefined && first !== sessionId)
      this.#violations.push(`E17 the sandbox ${sandboxId} was claimed by ${first} and by ${sessionId}`);
  }

  /** A boot that is performed again may have begun with the secrets of the first time. */
  #noteBoot(sandboxId: string): void {
    const { sandboxes, sessions, projects } = this.#world.tables;
    const session = sessions.get(sandboxes.get(sandboxId)?.record.sessionId ?? "")?.record;
    const revision = projects.get(session?.projectId ?? "")?.secretsRevision;
    if (revision !== undefined && !this.#revisions.has(sandboxId)) this.#revisions.set(sandboxId, revision);
  }

  #lookAtClaim(sandboxId: string, sessionId: string): void {
    this.#world.boundary.hit("claimed");
    this.#claimed(sandboxId, sessionId);
    const given = this.#world.sandboxes().get(sandboxId)?.spec.environment[REVISION];
    const needed = this.#revisions.get(sandboxId);
    if (given === undefined || needed === undefined || Number(given) >= needed) return;
    this.#violations.push(
      `E18 session ${sessionId} got a sandbox with revision ${given} of the secrets, after ${needed}`,
    );
  }

  /** In the end, what exists is a live session's, or waits with its row, and no row of a claim remains. */
  atRest(pass: (ms: number) => void): readonly string[] {
    for (let waited = 0; waited < REST_MS && this.#left().length > 0; waited += LOOK_MS) pass(LOOK_MS);
    return this.#left();
  }

  #left(): readonly string[] {
    const { warmSandboxes, sandboxes, sessions } = this.#world.tables;
    const running = this.#world.sandboxes();
    const isSessions = (id: string): boolean => {
      const session = sessions.get(sandboxes.get(id)?.record.sessionId ?? "")?.record;
      return session !== undefined && isLive(session.status) && session.sandboxId === id;
    };
    return [
      ...[...running.keys()].flatMap((id) =>
        isSessions(id) || warmSandboxes.get(id)?.claim === null
          ? []
          : [`W3 the sandbox ${id} waits without a row and has no session`],
      ),
      ...[...warmSandboxes.values()].flatMap(({ id, claim, recipe }) => {
        if (claim !== null) return [`W3 the row of ${id} remains after the claim of ${claim.sessionId}`];
        if (!running.has(id)) return [`K1 the row of ${id} has no sandbox`];
        return recipe === null ? [`K2 the sandbox ${id} waits and is never ready`] : [];
      }),
    ];
  }
}
