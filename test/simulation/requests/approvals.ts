/** The steps about approvals: agents call a tool that asks, wait or go away; people decide, late, twice, and not all alike. */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import { decide } from "../../../src/features/approvals/handlers.ts";
import { callTool } from "../../../src/services/connectors/executor.ts";
import type { Session } from "../../../src/store/ports/sessions/sessions.ts";
import { accountOf, type Ask } from "./asking.ts";
import type { Ledger } from "../ledger.ts";
import type { Node } from "../world/nodes.ts";
import type { Step } from "./steps.ts";
import { SLUG, TOOL } from "../world/upstream.ts";
import type { World } from "../world.ts";

type Place = Pick<Step, "which" | "how">;

/** How long agents wait at the most, ms. */
const PATIENCE_MS = [0, 50, 2_000, 40_000, 130_000] as const;

const at = <A>(of: readonly A[], which: number): A | undefined => of[which % Math.max(1, of.length)];

/** The digest of a call's arguments, as its row has it. */
export const digestOf = (page: string): string =>
  createHash("sha256").update(JSON.stringify({ page })).digest("hex");

export class Approving {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #ask: Ask;
  readonly #next: () => Node;

  constructor(world: World, { ledger, ask, next }: { ledger: Ledger; ask: Ask; next: () => Node }) {
    this.#world = world;
    this.#ledger = ledger;
    this.#ask = ask;
    this.#next = next;
  }

  /** @returns false if no session runs. */
  call({ which, how }: Place): boolean {
    const running = [...this.#world.tables.sessions.values()]
      .map(({ record }) => record)
      .filter(({ status }) => status === "running");
    const session = at(running, which >> 2);
    if (session === undefined) return false;
    const { pages } = this.#ledger;
    // An agent repeats a call whose result it does not have.
    const again = how % 3 === 0 ? pages.findLast(({ sessionId }) => sessionId === session.id) : undefined;
    const page = again?.page ?? `page ${this.#ledger.tick()}`;
    if (again === undefined) pages.push({ page, sessionId: session.id });
    for (let turn = 0; turn < (how % 5 === 0 ? 2 : 1); turn += 1)
      this.#publish(session, page, PATIENCE_MS[(how + turn) % PATIENCE_MS.length] ?? 0);
    return true;
  }

  #publish({ id, projectId, createdBy, triggerSlug }: Session, page: string, patienceMs: number): void {
    const startedBy = triggerSlug === null ? "user" : "trigger";
    const caller = { projectId, sessionId: id, userId: createdBy, startedBy } as const;
    const given = { page };
    const calling = callTool(caller, { name: `${SLUG}_${TOOL}`, given }, () => Effect.void);
    this.#world.boundary.note(`calls for ${page}`);
    this.#world.request(this.#next(), Effect.timeoutOption(calling, patienceMs), () => undefined);
  }

  /** Mostly of a call that waits; one or two people. Where no call is known, an agent calls. @returns false if no session runs. */
  decide(place: Place): boolean {
    const { which, how } = place;
    const { approvals, sessions } = this.#world.tables;
    const rows = [...approvals.values()];
    const waiting = rows.filter(({ status }) => status === "pending");
    const row = (which % 4 === 0 ? undefined : at(waiting, which >> 2)) ?? at(rows, which >> 2);
    const session = sessions.get(
      this.#world.tables.executorCalls.get(row?.id ?? "")?.sessionId ?? "",
    )?.record;
    if (row === undefined || session === undefined) return this.call(place);
    for (let person = 0; person < (how % 2 === 0 ? 2 : 1); person += 1) {
      const isApproval = (how + person) % 4 !== 3;
      const asked = this.#ask(
        "other",
        { account: accountOf(session), id: row.id },
        decide({ pid: row.projectId, id: row.id }, (by) =>
          isApproval ? { type: "approval.given", by } : { type: "denial.given", by, reason: null },
        ),
      );
      this.#ledger.decisions.push({ id: row.id, isApproval, asked });
    }
    return true;
  }
}
