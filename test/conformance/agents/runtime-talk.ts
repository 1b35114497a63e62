/** A conversation of one agent runtime, behind the whole service with a scripted model: what the duties of runtimes (runtime.ts) work with. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Ability } from "../../../src/domain/runtimes/runtime.ts";
import { promptOf, type Step, type TalkingModel } from "../../support/servers/talking-model.ts";
import { LiveSession, POLL } from "../../support/service/sessions/live-session.ts";
import type { Json, Life } from "../../support/service/process-service.ts";

/** One runtime in the test's installation. */
export interface RuntimeSubject {
  readonly name: string;
  /** The account's provider that it uses. `bad-…` is the same with a wrong key. Null: it uses no model. */
  readonly provider: string | null;
  /** What its record declares. */
  readonly lacks: Readonly<Partial<Record<Ability, string>>>;
}

/** The part of an item that cases look at. */
export interface Item extends Json {
  readonly kind: string;
  readonly role: string | null;
  readonly status: string;
}

/** Where the subjects run. */
export interface RuntimePlace {
  readonly life: Life;
  readonly pid: string;
  readonly model: TalkingModel;
  /** The key of the account's providers. */
  readonly key: string;
}

/** A session of one runtime. */
export class Talk {
  readonly session: LiveSession;

  constructor(session: LiveSession) {
    this.session = session;
  }

  /** Oldest first. */
  async items(): Promise<readonly Item[]> {
    const { items } = await this.session.call("GET", "conversation?limit=200");
    return (items as readonly Item[]).toReversed();
  }

  async requests(): Promise<readonly Json[]> {
    return (await this.session.call("GET", "conversation"))["requests"] as readonly Json[];
  }

  /** Sends a prompt. @returns the id of its message */
  async say(steps: readonly Step[], more: Json = {}): Promise<string> {
    const id = randomUUID();
    await this.session.call("POST", "messages", { id, text: promptOf(steps), ...more });
    return id;
  }

  /** The items of the agent in the turn of a message. */
  async of(id: string): Promise<readonly Item[]> {
    return (await this.items()).filter((item) => item["turn_id"] === id && item.role === "agent");
  }

  async isIdle(): Promise<boolean> {
    const { state } = await this.session.call("GET", "conversation");
    return (state as Json)["state"] === "idle";
  }

  /** Resolves once the message's turn is over. @returns the agent's items of it */
  async over(id: string): Promise<readonly Item[]> {
    const stands = async (): Promise<string> => {
      const own = (await this.items()).find((item) => item.role === "user" && item["turn_id"] === id);
      if (own?.status === "failed") return `refused: ${JSON.stringify(own["error"])}`;
      return (await this.of(id)).length > 0 && (await this.isIdle()) ? "over" : this.#standing(id);
    };
    await expect.poll(stands, POLL).toMatch(/^(over|refused)/);
    expect(await stands()).toBe("over");
    return this.of(id);
  }

  /** The reason why a turn is not over. */
  async #standing(id: string): Promise<string> {
    const { state, requests } = await this.session.call("GET", "conversation");
    const items = (await this.of(id)).map(({ kind, status, tool }) => [kind, status, tool]);
    return JSON.stringify({ state, requests, items });
  }

  /** Sends a prompt and waits for its turn's end. */
  async turn(steps: readonly Step[], more: Json = {}): Promise<readonly Item[]> {
    return this.over(await this.say(steps, more));
  }

  /** Waits until the turn's tool is open. Not every runtime says when it runs. */
  async tool(id: string): Promise<void> {
    const open = async () =>
      (await this.of(id)).some(({ kind, status }) => kind === "tool" && /^(pending|running)$/.test(status));
    await expect.poll(open, POLL).toBe(true);
  }

  /** Answers the one request that the agent waits for. @returns the request */
  async answer(choice: "once" | "always" | "reject", message?: string): Promise<Json> {
    await expect.poll(() => this.requests(), POLL).toHaveLength(1);
    const [request = {}] = await this.requests();
    await this.session.call("POST", `requests/${String(request["id"])}/answer`, {
      choice,
      ...(message !== undefined && { message }),
    });
    return request;
  }

  async interrupt(): Promise<void> {
    await this.session.call("POST", "interrupt", {});
  }

  /** How the last turn ended. */
  async last(): Promise<Json> {
    const session = await this.session.life.call("GET", this.session.path);
    return (session["last_turn"] ?? {}) as Json;
  }
}

/** What a case works with. */
export interface Conversation {
  readonly subject: RuntimeSubject;
  readonly place: RuntimePlace;
  /** The session that cases share. It asks no person. */
  readonly talk: Talk;
  /** Starts a further session. It is stopped after the case. */
  readonly start: (body: Json) => Promise<Talk>;
  /** Fires a trigger, and takes its session in the same way. */
  readonly fire: (slug: string) => Promise<Talk>;
}

export interface RuntimeCase {
  readonly name: string;
  /** The ability that a record may lack. Null: every runtime must do it. */
  readonly ability: Ability | null;
  /** Whether it looks at processes of the sandbox from outside. Absent: it does not. */
  readonly seesProcesses?: true;
  readonly run: (conversation: Conversation) => Promise<void>;
}

/** The texts of items of one kind, as JSON. */
export const texts = (items: readonly Item[], kind = "message"): string =>
  JSON.stringify(items.filter((item) => item.kind === kind).map(({ content }) => content));

/** The requests to the model since a number of calls. */
export const since = ({ model }: RuntimePlace, count: number) => model.calls.slice(count);

/** A session whose agent asks before it acts. */
export const asking = ({ subject, start }: Conversation) => start({ agent_name: `${subject.name}-ask` });

/** @param words null: some runtimes say it in their own */
export const refused = async (
  { talk }: Conversation,
  refuse: number,
  { code, words = "refused as the prompt says" }: { readonly code: string; readonly words?: string | null },
): Promise<void> => {
  const items = await talk.turn([{ refuse }, { refuse }, { refuse }]);
  expect(await talk.last()).toMatchObject({ state: "failed", error: { code } });
  if (words !== null) expect(JSON.stringify(items)).toContain(words);
  // The conversation goes on.
  expect(texts(await talk.turn([{ say: "Back again." }]))).toContain("Back again.");
};
