/** The steps of people who talk to agents: they send messages, take them back, interrupt, resume the queue and answer requests. */
import { derivedUuid } from "../../../src/domain/ids.ts";
import type { RequestAnswer } from "../../../src/domain/conversation/steering.ts";
import * as Messages from "../../../src/http/handlers/messages.ts";
import type { Session } from "../../../src/store/ports/sessions/sessions.ts";
import { accountOf, type Ask, type Endpoint } from "./asking.ts";
import type { Asked, Ledger, SaidMessage } from "../ledger.ts";
import type { Step } from "./steps.ts";
import type { World } from "../world.ts";

type Place = Pick<Step, "which" | "how">;
type SessionPath = { readonly pid: string; readonly sid: string };

/** So many at a time, so that a queue comes about. */
const AT_ONCE_MAX = 3;

const at = <A>(of: readonly A[], which: number): A | undefined => of[which % Math.max(1, of.length)];

export class People {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #ask: Ask;

  constructor(world: World, ledger: Ledger, ask: Ask) {
    this.#world = world;
    this.#ledger = ledger;
    this.#ask = ask;
  }

  /** @returns false if there is no session. */
  say({ which, how }: Place): boolean {
    const session = this.#session(which);
    if (session === undefined) return false;
    const unsure = this.#ledger.messages.filter(({ posts }) =>
      posts.every(({ answer }) => answer?.is !== "done"),
    );
    const again = how % 6 === 1 ? at(unsure, which) : undefined;
    if (again !== undefined) {
      this.#post(again);
      return true;
    }
    const count = 1 + (how % AT_ONCE_MAX);
    for (let index = 0; index < count; index += 1) {
      const message = this.#message(session, index === 0 && how % 5 === 0);
      this.#post(message);
      // A person presses twice.
      if (how % 7 === 0) this.#post(message);
    }
    if (how % 9 === 2) this.#stop(session);
    return true;
  }

  unsay({ which, how }: Place): void {
    const waiting = this.#ledger.messages.filter(({ id, sessionId }) => {
      const status = this.#world.tables.conversations.get(sessionId)?.items.get(id)?.status;
      return status === "queued" || (status === "sending" && how % 4 === 0);
    });
    const message = at(waiting, which) ?? this.#ledger.messages.at(-1);
    const session = this.#world.tables.sessions.get(message?.sessionId ?? "")?.record;
    if (message === undefined || session === undefined) return;
    message.cancels.push(this.#to(session, (path) => Messages.cancel({ ...path, id: message.id })));
  }

  interrupt({ which, how }: Place): void {
    const session = this.#session(which);
    if (session === undefined) return;
    this.#stop(session);
    if (how % 8 === 1) this.#stop(session);
    if (how % 8 === 2) this.#post(this.#message(session, true));
  }

  resume({ which }: Place): void {
    const held = [...this.#world.tables.conversations.values()].filter(
      ({ conversation }) => conversation.held,
    );
    const id = at(held, which)?.conversation.id ?? "";
    const session = this.#world.tables.sessions.get(id)?.record ?? this.#session(which);
    if (session !== undefined) this.#to(session, (path) => Messages.resume(path));
  }

  /** To a request that waits, now and then two people at once. Where none waits, people talk on. */
  answer({ which, how }: Place): void {
    const { runtimes } = this.#world.daemons;
    const open = at(runtimes?.waiting ?? [], which);
    const sessionId = this.#world.tables.sandboxes.get(open?.sandboxId ?? "")?.record.sessionId ?? "";
    const session = this.#world.tables.sessions.get(sessionId)?.record;
    if (open === undefined || session === undefined) {
      this.say({ which, how });
      return;
    }
    const { native_id: native, request } = open.request;
    const requestId = derivedUuid(sessionId, native);
    for (let person = 0; person < (how % 3 === 0 ? 2 : 1); person += 1) {
      const words = `answer ${this.#ledger.tick()}`;
      const isPermission = request?.kind === "permission";
      const given = isPermission
        ? { choice: how % 2 === 0 ? ("once" as const) : ("reject" as const), message: words }
        : { answers: [[words]] };
      const asked = this.#to(session, (path) => Messages.answer({ ...path, id: requestId }, given));
      this.#ledger.answers.push({ sessionId, requestId, answer: given satisfies RequestAnswer, asked });
    }
    // Somebody else ends the turn, and the request with it, while the answer is on its way.
    if (this.#world.boundary.slowness !== null && how % 2 === 1) this.#stop(session);
  }

  #stop(session: Session): void {
    this.#to(session, (path) => Messages.interrupt(path));
  }

  #message({ id: sessionId }: Session, isUrgent: boolean): SaidMessage {
    const id = this.#world.fresh();
    const message = { id, sessionId, text: `says ${id}`, isUrgent, posts: [], cancels: [] };
    this.#ledger.messages.push(message);
    return message;
  }

  /** It starts a session that has ended, as a restart does. */
  #post(message: SaidMessage): void {
    const { id, sessionId, text, isUrgent, posts } = message;
    const session = this.#world.tables.sessions.get(sessionId)?.record;
    if (session === undefined) return;
    const wish = { id, text, delivery: isUrgent ? ("interrupt" as const) : ("queue" as const) };
    this.#world.boundary.note(`says ${id} to ${sessionId}${isUrgent ? " at once" : ""}`);
    posts.push(this.#to(session, (path) => Messages.post(path, wish), "restart"));
  }

  #to(session: Session, call: (path: SessionPath) => Endpoint, kind: Asked["kind"] = "other"): Asked {
    const about = { account: accountOf(session), id: session.id };
    return this.#ask(kind, about, call({ pid: session.projectId, sid: session.id }));
  }

  /** Mostly one that runs: people stay with their agent. */
  #session(which: number): Session | undefined {
    const rows = [...this.#world.tables.sessions.values()]
      .map(({ record }) => record)
      .filter(({ deletedAt }) => deletedAt === null);
    if (which % 6 === 0) return at(rows, which >> 3);
    const own = rows.filter(({ triggerSlug }) => triggerSlug === null);
    const running = own.find(({ status }) => status === "running");
    return running ?? own.at(-1) ?? rows.at(-1);
  }
}
