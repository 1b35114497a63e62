/**
 * What must hold where people talk to agents, whenever a message, an interrupt or an answer reaches a runtime, and at every
 * step of a conversation's machine (src/machines/conversation.ts M1 to M7, src/domain/conversation/steering.ts Y1).
 *
 * Where several nodes may own an actor, or one was frozen, a late one may hand over what is settled. The store's fence keeps
 * the order there, and only the books at rest are compared (people-at-rest.ts).
 */
import type { ConversationCommand, ConversationSnapshot } from "../../../src/machines/conversation.ts";
import type { ConversationEvent } from "../../../src/machines/conversation-events.ts";
import { derivedUuid } from "../../../src/domain/ids.ts";
import type { ConversationRow } from "../../twins/store/tables.ts";
import type { Change } from "../../../src/store/ports/journal.ts";
import type { Call } from "../world/boundary.ts";
import type { Ledger } from "../ledger.ts";
import { isLiveSandbox } from "../world/owners.ts";
import type { Handed, Heard, Runtimes, Stopped } from "../world/runtimes.ts";
import type { World } from "../world.ts";

/** A runtime in a turn gets other messages at most so often, also where calls are lost. */
const BUSY_MAX = 12;

/** In calm, a turn that was interrupted has ended after this, ms: more than the longest pause between two tries. */
const ENDED_WITHIN_MS = 20_000;

interface Order {
  readonly sandboxId: string;
  readonly turn: number;
  /** ms of `elapsed`. */
  readonly at: number;
}

type Step = Change<ConversationSnapshot, ConversationEvent, ConversationCommand>;

export class PeopleWatch {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #violations: string[];
  /** Messages that runtimes have taken, and refused. */
  readonly taken = new Set<string>();
  readonly refused = new Set<string>();
  /** The answers that agents have heard, by the request's native id. */
  readonly heard = new Map<string, Heard>();
  /** The turns that people want to end. */
  #orders: readonly Order[] = [];
  readonly #busy = new Map<string, number>();
  /** Conversations whose queue waits for a person. */
  readonly held = new Set<string>();
  /** When people have wanted agents to stop, ms of `elapsed`. */
  readonly #stops: { readonly sessionId: string; readonly at: number }[] = [];
  /** When each message was first to be sent to each sandbox, ms of `elapsed`. */
  readonly #sentAt = new Map<string, number>();
  /** When the message was first to be sent that met a turn. By sandbox and turn, ms of `elapsed`. */
  readonly #metSince = new Map<string, number>();

  constructor(
    world: World,
    { ledger, violations }: { readonly ledger: Ledger; readonly violations: string[] },
  ) {
    this.#world = world;
    this.#ledger = ledger;
    this.#violations = violations;
    const { boundary, daemons } = world;
    if (daemons.runtimes === null) return;
    const former = boundary.onEffect;
    boundary.onEffect = (call) => {
      former(call);
      this.#lookAtStep(call);
      if (call.operation === "changedSince") this.#lookAtCalm();
    };
    this.#listen(daemons.runtimes);
  }

  #listen(runtimes: Runtimes): void {
    runtimes.onHanded = (handed) => this.#lookAtHanded(handed);
    runtimes.onStopped = (stopped) => this.#lookAtStopped(stopped);
    runtimes.onHeard = (heard) => this.#lookAtHeard(heard);
  }

  /** Over Postgres, what a call meets is known between two steps only. */
  get #isVague(): boolean {
    return this.#world.isOwnershipVague || this.#world.bridge !== null;
  }

  /** The session of the sandbox, if that is its present one. */
  #conversationOf(sandboxId: string): ConversationRow | null {
    const { sandboxes, sessions, conversations } = this.#world.tables;
    const sandbox = sandboxes.get(sandboxId)?.record;
    const session = sessions.get(sandbox?.sessionId ?? "")?.record;
    const isPresent =
      session?.sandboxId === sandboxId && sandbox !== undefined && isLiveSandbox(sandbox.status);
    return isPresent ? (conversations.get(session.id) ?? null) : null;
  }

  #lookAtHanded({ sandboxId, message, outcome }: Handed): void {
    const said = this.#ledger.messages.find(({ text }) => text === message.text);
    this.#world.boundary.hit(`handed ${outcome.outcome}`);
    // The service tells the result of a call in a message of its own.
    const isResult = [...this.#world.tables.approvals.keys()].some(
      (id) => derivedUuid(id, "result") === message.id,
    );
    if (said?.id !== message.id && !isResult)
      this.#violations.push(`Y1 a runtime got ${message.id} with the words of ${said?.id ?? "no message"}`);
    if (outcome.outcome === "refused") this.refused.add(message.id);
    if (outcome.outcome === "busy") {
      const turn = `${sandboxId} ${outcome.turn}`;
      this.#countBusy(turn);
      this.#metSince.set(turn, this.#sentAt.get(`${sandboxId} ${message.id}`) ?? this.#world.time.elapsed);
    }
    const isNew = outcome.outcome === "accepted" && !this.taken.has(message.id);
    if (isNew) this.taken.add(message.id);
    const row = this.#conversationOf(sandboxId);
    if (row === null || this.#isVague) return;
    const item = row.items.get(message.id);
    if (item?.status !== "sending" && item?.status !== "accepted")
      this.#violations.push(`M2 the ${item?.status ?? "unknown"} message ${message.id} was handed over`);
    if (item?.status === "sending" && said?.isUrgent === false) this.#lookAtOrder(row, item.id);
  }

  /** M1: only an urgent message may overtake. */
  #lookAtOrder({ items }: ConversationRow, id: string): void {
    const place = items.get(id)?.place ?? 0;
    const passed = this.#ledger.messages.find((other) => {
      const item = items.get(other.id);
      return !other.isUrgent && item?.status === "queued" && item.place < place;
    });
    if (passed !== undefined) this.#violations.push(`M1 message ${id} overtook ${passed.id}`);
  }

  #countBusy(turn: string): void {
    const times = (this.#busy.get(turn) ?? 0) + 1;
    this.#busy.set(turn, times);
    if (times === BUSY_MAX + 1) this.#violations.push(`M2 the turn ${turn} was met ${times} times`);
  }

  /** M5: a person has interrupted it, or has interrupted while a message was on its way that began or met it. */
  #lookAtStopped({ sandboxId, turn, messageId, since }: Stopped): void {
    this.#world.boundary.hit("stopped turn");
    if (this.#isVague) return;
    const sessionId = this.#world.tables.sandboxes.get(sandboxId)?.record.sessionId;
    const begun = this.#sentAt.get(`${sandboxId} ${messageId ?? ""}`) ?? since;
    const from = Math.min(since, begun, this.#metSince.get(`${sandboxId} ${turn}`) ?? since);
    const isWanted = this.#stops.some((stop) => stop.sessionId === sessionId && stop.at >= from);
    if (!isWanted) this.#violations.push(`M5 turn ${turn} of ${sandboxId} was ended without an interrupt`);
  }

  /** Once a second. M5: in calm, an interrupt ends its turn soon. */
  #lookAtCalm(): void {
    const { isCalm, providerFaults, disturbedUntil, time, daemons } = this.#world;
    this.#orders = this.#orders.filter(
      ({ sandboxId, turn }) =>
        daemons.runtimes?.of(sandboxId).open?.number === turn && this.#conversationOf(sandboxId) !== null,
    );
    // An interrupt asks the provider first where the daemon is, and waits for it.
    if (!isCalm || providerFaults > 0 || this.#isVague) return;
    const late = this.#orders.find(({ at }) => time.elapsed - Math.max(at, disturbedUntil) > ENDED_WITHIN_MS);
    if (late !== undefined)
      this.#violations.push(`M5 turn ${late.turn} of ${late.sandboxId} goes on after its interrupt`);
  }

  /** What the agent hears (src/machines/conversation.ts M6, M7). */
  #lookAtHeard(heard: Heard): void {
    const { sandboxId, requestId, answer } = heard;
    this.heard.set(requestId, heard);
    this.#world.boundary.hit(`heard ${"declined" in answer ? answer.declined : "a person"}`);
    const { sandboxes, sessions } = this.#world.tables;
    const session = sessions.get(sandboxes.get(sandboxId)?.record.sessionId ?? "")?.record;
    const isLate = "declined" in answer && answer.declined === "expired";
    if (isLate && session !== undefined && session.triggerSlug !== null && this.#world.isCalm)
      this.#violations.push(`M7 request ${requestId} of a trigger's session waited for a person`);
    if ("declined" in answer && answer.declined === "unattended" && session?.triggerSlug === null)
      this.#violations.push(`M7 request ${requestId} of a person's session was declined as unattended`);
  }

  /** M4: who has interrupted says when the queue goes on. */
  #lookAtStep({ port, operation, given }: Call): void {
    if (port !== "store.Conversations.memory" || operation !== "save" || this.#world.bridge !== null) return;
    const { id, event, before, after, commands } = given[0] as Step;
    if (this.#world.tables.conversations.get(id)?.snapshot !== after) return;
    // A message of the service does not release a queue that a person holds.
    const isSaid = event.type === "message.posted" && event.message.author.kind !== "service";
    if (isSaid || event.type === "queue.resumed") this.held.delete(id);
    if (event.type === "interrupt.requested" || (event.type === "message.posted" && event.isUrgent))
      this.#stops.push({ sessionId: id, at: this.#world.time.elapsed });
    for (const command of commands) {
      if (command.type !== "sendMessage") continue;
      const sent = `${command.sandboxId} ${command.messageId}`;
      this.#sentAt.set(sent, this.#sentAt.get(sent) ?? this.#world.time.elapsed);
      if (this.held.has(id))
        this.#violations.push(`M4 message ${command.messageId} went out while the queue was held`);
    }
    if (event.type !== "interrupt.requested") return;
    if (before.context.queue.length > 0) this.held.add(id);
    const { sandboxId, turn, ended } = before.context;
    if (sandboxId !== null && turn > ended)
      this.#orders = [...this.#orders, { sandboxId, turn, at: this.#world.time.elapsed }];
  }
}
