/**
 * What must hold of calls that wait for a person (src/features/approvals/machine.ts B1 to B5, src/features/approvals/ports/approvals.ts Q2): at each step
 * of an approval, at each call that reaches the server, and in the end, when no person has decided for more than a day.
 */
import { isSettled, type ApprovalState } from "../../../src/features/approvals/rules/approval.ts";
import type { ApprovalRow } from "../../../src/features/approvals/ports/approvals.ts";
import { digestOf } from "../requests/approvals.ts";
import type { Ledger } from "../ledger.ts";
import type { World } from "../world.ts";

/** The steps that an approval may make. */
const STEPS: Readonly<Record<ApprovalState, readonly ApprovalState[]>> = {
  pending: ["approved", "denied", "expired"],
  approved: ["calling", "refused"],
  calling: ["done", "unknown"],
  done: [],
  denied: [],
  refused: [],
  expired: [],
  unknown: [],
};

/** Longer than a person may think. */
const HOUR_MS = 60 * 60 * 1000;
const LONG_AFTER_MS = 25 * HOUR_MS;
/** A call that was cut off counts as lost after 90 s, and its end is told within some rounds. */
const REST_MS = 240_000;
const LOOK_MS = 5_000;

export class ApprovalsWatch {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #violations: string[];
  readonly #known = new Map<string, ApprovalState>();

  constructor(world: World, { ledger, violations }: { ledger: Ledger; violations: string[] }) {
    this.#world = world;
    this.#ledger = ledger;
    this.#violations = violations;
    const former = world.boundary.onEffect;
    world.boundary.onEffect = (call) => {
      former(call);
      if (call.port === "store.Approvals") this.#lookAtSteps();
    };
    if (world.upstream !== null) world.upstream.onSent = (page) => this.#lookAtSent(page);
  }

  /** Each step is one of those above. */
  #lookAtSteps(): void {
    for (const { id, status } of this.#world.tables.approvals.values()) {
      const before = this.#known.get(id) ?? "pending";
      this.#known.set(id, status);
      if (before === status) continue;
      this.#world.boundary.hit(`approval ${status}`);
      if (!STEPS[before].includes(status))
        this.#violations.push(`B1 approval ${id} went from ${before} to ${status}`);
    }
  }

  #approvalsOf(page: string): readonly ApprovalRow[] {
    const { approvals, executorCalls } = this.#world.tables;
    const digest = digestOf(page);
    return [...approvals.values()].filter(({ id }) => executorCalls.get(id)?.argumentsDigest === digest);
  }

  /** The server is called once for each approval that a person gave and a node began. */
  #lookAtSent(page: string): void {
    const { upstream, tables } = this.#world;
    const begun = this.#approvalsOf(page).filter(
      ({ id, decidedBy }) => decidedBy !== null && (tables.executorCalls.get(id)?.begunAt ?? null) !== null,
    );
    const sent = upstream?.sent.get(page) ?? 0;
    if (sent > begun.length)
      this.#violations.push(`B2 ${page} was sent ${sent} times, for ${begun.length} approved calls`);
  }

  /** Each call that asks ends, and the agent has its result. */
  #unended(): readonly string[] {
    return [...this.#world.tables.approvals.values()].flatMap(({ id, status, deliveredAt }) => {
      if (!isSettled(status)) return [`B4 approval ${id} is ${status} long after its time`];
      return deliveredAt === null ? [`B5 approval ${id} is ${status}, and its agent does not have it`] : [];
    });
  }

  /** A person who was told that her decision counts was the only one, and what followed is what she said. */
  #decisionFaults(): readonly string[] {
    const { approvals } = this.#world.tables;
    return [...approvals.values()].flatMap(({ id, status }) => {
      const counted = this.#ledger.decisions.filter(
        (decision) => decision.id === id && decision.asked.answer?.is === "done",
      );
      const [first] = counted;
      if (counted.length > 1) return [`B1 approval ${id} was decided ${counted.length} times`];
      if (first === undefined) return [];
      const isKept = first.isApproval ? !["denied", "expired"].includes(status) : status === "denied";
      return isKept ? [] : [`B1 approval ${id} is ${status}, and a person decided otherwise`];
    });
  }

  /** Of a call whose row says that it was made, the server knows. */
  #doneFaults(): readonly string[] {
    return this.#ledger.pages.flatMap(({ page }) => {
      const done = this.#approvalsOf(page).filter(({ status }) => status === "done").length;
      const sent = this.#world.upstream?.sent.get(page) ?? 0;
      return done > sent ? [`A1 ${page} is done ${done} times, and was sent ${sent} times`] : [];
    });
  }

  /** A day goes by, by each clock. One that was set back goes on from there. @returns the faults that remain. */
  atRest(pass: (ms: number) => void): readonly string[] {
    this.#world.clockSetAt = this.#world.time.elapsed;
    const last = Math.max(...[...this.#world.tables.approvals.values()].map(({ expiresAt }) => expiresAt));
    for (const { wall } of this.#world.nodes) wall.set(Math.max(LONG_AFTER_MS, last + HOUR_MS - wall.now));
    this.#world.disturb();
    for (let rested = 0; rested < REST_MS && this.#unended().length > 0; rested += LOOK_MS) pass(LOOK_MS);
    return [...this.#unended(), ...this.#decisionFaults(), ...this.#doneFaults()];
  }
}
