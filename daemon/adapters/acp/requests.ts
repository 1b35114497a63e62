/**
 * What an agent asks of people over the Agent Client Protocol, and what they have allowed it for the rest of the session.
 *
 *  Q1 A request is answered once: by a person, by what a person has always allowed, or as cancelled when its turn ends.
 *  Q2 `always` allows what its request showed as that, and nothing else. Each agent keeps its own rules elsewhere, for other calls, and
 *     some forget them. So the rule is kept here, for all processes of the agent.
 */
import type { PermissionOption, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import type { RequestAnswer } from "../../../src/domain/conversation/steering.ts";
import { BoundedMap } from "../../../src/ground/bounded-map.ts";
import { NOT_ALLOWED } from "../adapter.ts";
import type { AcpConversation } from "./conversation.ts";
import { Rejections } from "./rejections.ts";

/** How many rules are kept. */
const RULES_MAX = 1000;

interface Asked {
  readonly options: readonly PermissionOption[];
  /** What `always` would allow. Null if it is a plan. */
  readonly rule: string | null;
  /** The command or the title. */
  readonly what: string;
  /** Gives the agent its answer. Null if cancelled. */
  readonly choose: (optionId: string | null) => void;
}

interface Settlement {
  readonly optionId: string | null;
  readonly status: "completed" | "interrupted";
  readonly answer: string;
}

export class AcpRequests {
  readonly #conversation: AcpConversation;
  readonly #changed: () => void;
  readonly #asked = new Map<string, Asked>();
  readonly rejections = new Rejections();
  /** Q2. */
  readonly #allowed = new BoundedMap<string, true>(RULES_MAX);

  /** @param onChange called when a request begins or ends */
  constructor(conversation: AcpConversation, onChange: () => void) {
    this.#conversation = conversation;
    this.#changed = onChange;
  }

  /** The oldest request that waits for an answer. */
  get first(): string | null {
    const [id = null] = this.#asked.keys();
    return id;
  }

  /** The chosen option's id. Null if cancelled. */
  ask(request: RequestPermissionRequest, cancellation: AbortSignal): Promise<string | null> {
    const { id, rule, what } = this.#conversation.ask(request);
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.#asked.set(id, { options: request.options, rule, what, choose: resolve });
    cancellation.addEventListener("abort", () => this.#cancel(id), { once: true });
    const { options } = request;
    const option =
      rule !== null && this.#allowed.has(rule)
        ? (optionFor(options, "once") ?? optionFor(options, "always"))
        : null;
    if (option === null) {
      this.#conversation.show(id);
      this.#changed();
    } else this.#settle(id, { optionId: option.optionId, status: "completed", answer: ALLOWED_BEFORE });
    return promise;
  }

  /** False: the request is closed, or takes no such answer. */
  answer(id: string, answer: RequestAnswer): boolean {
    const request = this.#asked.get(id);
    if (request === undefined || "answers" in answer) return false;
    if ("approve" in answer) return this.#approve(id, request, answer.mode);
    const choice = "choice" in answer ? answer.choice : "reject";
    const option = optionFor(request.options, choice);
    if (option === null && choice !== "reject") return false;
    if (request.rule === null && "choice" in answer) return false;
    if (choice === "always" && request.rule !== null) this.#allowed.set(request.rule, true);
    const rejection = request.rule === null ? null : rejectionIn(answer);
    if (rejection !== null) this.rejections.add({ what: request.what, ...rejection });
    const optionId = option?.optionId ?? null;
    this.#settle(id, { optionId, status: "completed", answer: request.rule === null ? "" : choice });
    return true;
  }

  /** The ways to carry a plan out are the options that allow it. */
  #approve(id: string, { options, rule }: Asked, mode: string): boolean {
    const option = options.find(({ optionId, kind }) => optionId === mode && kind.startsWith("allow_"));
    if (rule !== null || option === undefined) return false;
    this.#settle(id, { optionId: option.optionId, status: "completed", answer: "approved" });
    return true;
  }

  cancelAll(): void {
    for (const id of this.#asked.keys()) this.#cancel(id);
  }

  /** The process that asked is gone. */
  lose(): void {
    for (const { choose } of this.#asked.values()) choose(null);
    this.#asked.clear();
  }

  #cancel(id: string): void {
    this.#settle(id, { optionId: null, status: "interrupted", answer: "" });
  }

  /** Q1. */
  #settle(id: string, { optionId, status, answer }: Settlement): void {
    const request = this.#asked.get(id);
    if (request === undefined) return;
    this.#asked.delete(id);
    this.#conversation.settle(id, status, answer);
    this.#changed();
    request.choose(optionId);
  }
}

/** The words of an answer that rejects a permission. */
const rejectionIn = (answer: RequestAnswer): { readonly words: string; readonly isOurs: boolean } | null => {
  if ("declined" in answer)
    return answer.declined === "message" ? null : { words: NOT_ALLOWED[answer.declined], isOurs: true };
  const words = "choice" in answer && answer.choice === "reject" ? (answer.message ?? "").trim() : "";
  return words === "" ? null : { words, isOurs: false };
};

const ALLOWED_BEFORE =
  "Allowed without a question, because “Always allow” was answered to the same request before.";

/** The option that permits a request without a person's answer. Null if the request has only others. */
export const permittingOption = (options: readonly PermissionOption[]): string | null =>
  (optionFor(options, "once") ?? optionFor(options, "always"))?.optionId ?? null;

const KINDS: Readonly<Record<"once" | "always" | "reject", readonly string[]>> = {
  once: ["allow_once"],
  // An agent without a rule of its own asks again, and gets the answer from here.
  always: ["allow_always", "allow_once"],
  reject: ["reject_once", "reject_always"],
};

/** The agent's option for this choice. */
const optionFor = (
  options: readonly PermissionOption[],
  choice: keyof typeof KINDS,
): PermissionOption | null =>
  KINDS[choice].flatMap((kind) => options.find((option) => option.kind === kind) ?? [])[0] ?? null;
