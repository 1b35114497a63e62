/**
 * Follows the conversation of one agent session of opencode and of its subagents' sessions, by its events and listings,
 * and reports its items.
 *
 *  V1 A listing tells the truth, and the events of the same stream go on from there: those that come while it is read
 *     wait. Some of them are older than the listing, so no record goes back: not from ended to open, and no text to a
 *     shorter one.
 *  V2 The text of an open part is known only if its beginning came as an event on the same stream: a listing has none.
 *     Else its pieces are passed over, and the whole text comes with its end.
 *  V3 An event about a message may show its end before the parts come, because opencode writes an event out late. So an
 *     item for the end alone is reported when the message's session rests or goes on.
 *  V4 `MESSAGES_HELD` messages are held. An event about an older one changes nothing until the next listing.
 *  V5 The agent session is the oldest one with its title.
 */
import { isRecord } from "../../../src/ground/record.ts";
import { noteItem } from "../../conversation/note.ts";
import { type ConversationObserver, type ItemDraft, NO_OBSERVER } from "../adapter.ts";
import type { PassedCalls } from "../../agent/passed-calls.ts";
import { withPassedTokens, messageItems, TOP, type Place } from "./items.ts";
import { toolCommand, requestItem, type Settled } from "./requests.ts";
import {
  inOrder,
  isRepetition,
  heldRecord,
  summaryState,
  type HeldMessage,
  type HeldPart,
  type OpenRequest,
  type Task,
} from "./held.ts";
import { timeIn } from "./ids.ts";
import { decodeError, isOverflow } from "../turn-errors.ts";
import {
  decodeAsked,
  decodeConversationEvent,
  decodeSession,
  interruptPart,
  isOlder,
  isOpen,
  longer,
  oldestFirst,
  readInfo,
  readPart,
  type PendingRequest,
  type EventProperties as Properties,
  type MessageInfo,
  type Part,
  type Recorded,
} from "./records.ts";

/** How many messages are held apart from open ones, and how many events wait for the listing. */
const MESSAGES_HELD = 64;
const WAITING_MAX = 20_000;

/** What belongs to one stream of events. */
export interface ConversationStream {
  /** The title of the agent session. */
  readonly title: string;
  readonly observer: ConversationObserver;
  /** ms since the epoch. */
  readonly now: () => number;
  /** The runtime rests, but messages are open: whether they ended must be read. */
  readonly onUnsettled: () => void;
}

export class OpencodeConversation {
  #stream: ConversationStream = {
    title: "",
    observer: NO_OBSERVER,
    now: () => 0,
    onUnsettled: () => undefined,
  };
  #root: string | null = null;
  /** The tool calls of each subagent's session, in their order. */
  readonly #tasks = new Map<string, Task[]>();
  readonly #messages = new Map<string, HeldMessage>();
  readonly #asked = new Map<string, OpenRequest>();
  /** Requests that have ended. opencode goes on listing a permission whose turn was aborted. */
  readonly over = new Set<string>();
  /** Answers that the daemon gives, by request. opencode may end the turn before it reports them. */
  readonly given = new Map<string, string>();
  readonly #busy = new Set<string>();
  /** Our ids of the messages that the daemon gave to the runtime, by the runtime's ids. */
  readonly #handedOver = new Map<string, string>();
  /** The texts of those that are commands, as people wrote them. The runtime has its own text in place of them. */
  readonly #written = new Map<string, string>();
  /** Messages of the model that have no answer, because the conversation was too long. */
  readonly #overflowed = new Set<string>();
  /** The listing of this stream's beginning was taken. */
  #isListed = false;
  /** Events that came before. */
  #waiting: unknown[] = [];

  /** How many tokens the context of each model can hold, as far as it is known. */
  #contextSizes: ReadonlyMap<string, number> = new Map();

  readonly #passed: Pick<PassedCalls, "messageTokens">;
  constructor(calls: Pick<PassedCalls, "messageTokens">) {
    this.#passed = calls;
  }

  /** The agent session. Null before it exists. */
  get root(): string | null {
    return this.#root;
  }

  /** Sessions of subagents. */
  get children(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  /** The messages of the model that go on. */
  get open(): readonly { readonly id: string; readonly sessionId: string }[] {
    return [...this.#messages.values()].flatMap(({ info }) =>
      isOpen(info) ? [{ id: info.id, sessionId: info.sessionID }] : [],
    );
  }

  /** Ids of the requests that wait for an answer. */
  get asked(): readonly string[] {
    return [...this.#asked.keys()];
  }

  /** Tells people something that neither they nor the agent said. @param about differs between the notes of a sandbox */
  note(about: string, text: string): void {
    this.#stream.observer.item(noteItem(about, text, this.#stream.now()));
  }

  /** The runtime gets a message that has this id in the service. @param content the text of a command. Null if it is none */
  handedOver(nativeId: string, messageId: string, content: string | null): void {
    this.#handedOver.set(nativeId, messageId);
    if (content !== null) this.#written.set(nativeId, content);
  }

  /** A new stream begins. */
  connected(stream: ConversationStream): void {
    this.#stream = stream;
    this.#waiting = [];
    this.#isListed = false;
    for (const { parts } of this.#messages.values()) for (const part of parts.values()) part.isExact = false;
  }

  /** @param sizes how many tokens the context of each model can hold, by `provider/model` */
  sized(sizes: ReadonlyMap<string, number>): void {
    this.#contextSizes = sizes;
  }

  /** Takes an event of the stream. Until the listing is taken, events wait. */
  take(event: unknown): void {
    if (this.#isListed || this.#waiting.length >= WAITING_MAX) this.#apply(event);
    else this.#waiting.push(event);
  }

  #apply(event: unknown): void {
    const conversationEvent = decodeConversationEvent(event);
    if (conversationEvent._tag === "None") return;
    const { type, properties } = conversationEvent.value;
    if (type === "session.created" || type === "session.updated") this.#session(properties.info);
    if (properties.sessionID === undefined || !this.#isOurs(properties.sessionID)) return;
    if (type === "session.error") this.#failed(properties);
    if (type === "message.updated") this.#info(readInfo(properties.info));
    if (type === "message.part.updated") this.#part(readPart(properties.part));
    if (type === "message.part.delta") this.#delta(properties);
    if (type === "session.status" || type === "session.idle")
      this.#status(properties.sessionID, properties.status);
    this.#request(type, event, properties);
  }

  /** opencode answers an overflow with a summary, and leaves the message that failed empty. A note tells about it. */
  #failed({ sessionID, error }: Properties): void {
    const fault = decodeError(error);
    if (fault._tag === "None" || !isOverflow(fault.value)) return;
    for (const { id, sessionId } of this.open) if (sessionId === sessionID) this.#overflowed.add(id);
  }

  /** The sessions without a parent, as the runtime lists them. */
  listedSessions(sessions: readonly unknown[]): void {
    for (const session of oldestFirst(sessions)) this.#session(session);
  }

  /** A part of a session's messages, in their order. */
  listedMessages(messages: readonly Recorded[]): void {
    for (const { info, parts } of messages) {
      if (!this.#isOurs(info.sessionID)) continue;
      const message = this.#hold(info);
      for (const part of parts) this.#put(message, part, false);
      message.isSettled ||= !isOpen(info);
      this.#report(message);
    }
  }

  /** Sessions that are at work. It ends the listing. */
  listedBusy(sessions: readonly string[]): void {
    this.#busy.clear();
    for (const id of sessions) if (this.#isOurs(id)) this.#busy.add(id);
    // Some of them are older than the listing, so no turn is reported until all were taken.
    for (const event of this.#waiting) this.#apply(event);
    this.#waiting = [];
    this.#isListed = true;
    for (const id of [this.#root, ...this.#tasks.keys()])
      if (id === null || this.#busy.has(id)) this.#settleSession(id);
      else this.#rested(id);
    this.#turn();
  }

  /** Open requests. Those of `before` that are not among them have ended. */
  listedRequests(requests: readonly unknown[], before: readonly string[]): void {
    const ids = new Set(requests.map((request) => this.#ask(request)));
    for (const id of before) if (!ids.has(id)) this.#settle(id, "interrupted", "");
    this.#turn();
  }

  /** Ends messages that the runtime has left open. */
  end(ids: readonly string[]): void {
    for (const id of ids) {
      const message = this.#messages.get(id);
      if (message === undefined || !isOpen(message.info)) continue;
      const endedInfo = { ...message.info, time: { ...message.info.time, completed: this.#stream.now() } };
      message.info = withPassedTokens(endedInfo, this.#passed);
      message.isSettled = true;
      for (const one of message.parts.values()) one.part = interruptPart(one.part, this.#stream.now());
      this.#report(message);
    }
    this.#turn();
  }

  /** The agent session was seen at rest, and its newest messages were listed. */
  rests(): void {
    if (this.#root !== null) this.#rested(this.#root);
    this.#turn();
  }

  #isOurs(sessionId: string): boolean {
    return sessionId === this.#root || this.#tasks.has(sessionId);
  }

  #session(record: unknown): void {
    const session = decodeSession(record);
    if (session._tag === "None" || this.#root !== null) return;
    const { id, title, parentID } = session.value;
    if (title === this.#stream.title && parentID === undefined) this.#root = id;
  }

  #info(info: MessageInfo | null): void {
    if (info === null || !this.#isOurs(info.sessionID)) return;
    this.#report(this.#hold(info));
    this.#turn();
  }

  #hold(info: MessageInfo): HeldMessage {
    const former = this.#messages.get(info.id);
    const message = former ?? { info, isSettled: false, parts: new Map<string, HeldPart>() };
    if (isOpen(message.info) || !isOpen(info)) message.info = withPassedTokens(info, this.#passed);
    if (former !== undefined) return message;
    this.#messages.set(info.id, message);
    const oldest =
      this.#messages.size > MESSAGES_HELD &&
      inOrder(this.#messages.values()).find((one) => !isOpen(one.info));
    // One that is too old is not held at all.
    if (oldest) this.#messages.delete(oldest.info.id);
    this.#settleSession(info.sessionID);
    return message;
  }

  /** V3: the end of a message is certain if its session rests, or has a later message. */
  #settleSession(sessionId: string | null): void {
    if (!this.#isListed || sessionId === null) return;
    const all = inOrder(this.#messages.values()).filter(({ info }) => info.sessionID === sessionId);
    for (const message of this.#busy.has(sessionId) ? all.slice(0, -1) : all) {
      if (message.isSettled || isOpen(message.info)) continue;
      message.isSettled = true;
      this.#report(message);
    }
  }

  #part(part: Part | null): void {
    const message = part === null ? undefined : this.#messages.get(part.messageID);
    if (part === null || message === undefined) return;
    this.#put(message, part, true);
    this.#report(message);
  }

  #put({ info, parts }: HeldMessage, part: Part, isEvent: boolean): void {
    const former = parts.get(part.id);
    if (former === undefined) parts.set(part.id, { part, isExact: isEvent });
    else if (!isOlder(part, former.part, isEvent)) {
      former.part = part;
      former.isExact = isEvent;
    }
    this.#task(info, part);
    // The arguments of a call may be known after its request.
    for (const open of this.#asked.values())
      if (open.command === null && part.callID !== undefined && open.asked.tool?.callID === part.callID) {
        open.command = toolCommand(part);
        if (open.command !== null) this.#reportRequest(open, null);
      }
  }

  /** Notes the subagent of a tool call. */
  #task(info: MessageInfo, part: Part): void {
    const child = part.state?.metadata?.["sessionId"];
    if (part.type !== "tool" || typeof child !== "string") return;
    const tasks = this.#tasks.get(child) ?? [];
    if (tasks.some(({ partId }) => partId === part.id)) return;
    const turnId = this.#itemPlace(info).turnId ?? info.parentID ?? null;
    this.#tasks.set(child, [...tasks, { partId: part.id, turnId }]);
  }

  /** A subagent may be called again: a message belongs to the last call before it. */
  #itemPlace({ sessionID, id }: Pick<MessageInfo, "sessionID" | "id">): Place {
    const tasks = this.#tasks.get(sessionID);
    const task = tasks?.findLast(({ partId }) => timeIn(partId) <= timeIn(id)) ?? tasks?.[0];
    return task === undefined ? TOP : { parentId: task.partId, turnId: task.turnId };
  }

  #delta({ messageID = "", partID = "", field, delta = "" }: Properties): void {
    const message = this.#messages.get(messageID);
    const one = message?.parts.get(partID);
    if (message === undefined || one === undefined || field !== "text") return;
    const { text = "", time } = one.part;
    if (!one.isExact || time?.end !== undefined || delta === "") return;
    one.part = longer(one.part, delta);
    const newText = one.part.text?.slice(text.length) ?? "";
    // The item begins with its first text.
    if (text === "") this.#report(message);
    else this.#stream.observer.grown({ native_id: partID, offset: text.length, text: newText });
  }

  #report(message: HeldMessage): void {
    const { info, isSettled } = message;
    const record = heldRecord(message);
    const isUser = info.role === "user";
    const session = isUser
      ? inOrder(this.#messages.values()).filter((one) => one.info.sessionID === info.sessionID)
      : [];
    if (isUser && !this.#handedOver.has(info.id) && isRepetition(info.id, session.map(heldRecord))) return;
    const infos = session.map((one) => one.info);
    const place = {
      ...this.#itemPlace(info),
      summary: isUser ? summaryState(record, infos) : null,
      contextSize: this.#contextSizes.get(`${info.providerID}/${info.modelID}`) ?? null,
    };
    // A note stands for it: the summary that was asked for.
    const isReplaced = info.error === undefined && this.#overflowed.has(info.id);
    for (const item of messageItems(record, place))
      if (isUser || item.native_id !== info.id || (isSettled && !isReplaced))
        this.#stream.observer.item({
          ...item,
          ...this.#asWritten(item.native_id),
          message_id: this.#handedOver.get(item.native_id) ?? null,
        });
    const request = info.summary === true ? this.#messages.get(info.parentID ?? "") : undefined;
    if (request !== undefined) this.#report(request);
  }

  #asWritten(native: string): Pick<ItemDraft, "content"> | undefined {
    const text = this.#written.get(native);
    return text === undefined ? undefined : { content: [{ type: "text", text }] };
  }

  #status(sessionId: string, status: Properties["status"]): void {
    if (status !== undefined && status.type !== "idle") this.#busy.add(sessionId);
    else this.#rested(sessionId);
    this.#turn();
  }

  #rested(sessionId: string): void {
    this.#busy.delete(sessionId);
    if (!this.#isListed) return;
    this.#settleSession(sessionId);
    // A session that rests asks nothing.
    for (const [id, { asked }] of this.#asked)
      if (asked.sessionID === sessionId) this.#settle(id, "interrupted", "");
    if (sessionId === this.#root && this.open.length > 0) this.#stream.onUnsettled();
  }

  #turn(): void {
    if (!this.#isListed) return;
    const isWorking = this.#root !== null && (this.#busy.has(this.#root) || this.open.length > 0);
    const [waitingFor = null] = this.#asked.keys();
    if (!isWorking) this.#stream.observer.turn({ state: "idle", waiting_for: null });
    else if (waitingFor === null) this.#stream.observer.turn({ state: "running", waiting_for: null });
    else this.#stream.observer.turn({ state: "requires_action", waiting_for: waitingFor });
  }

  #request(type: string, event: unknown, { requestID, reply, answers }: Properties): void {
    if (type === "question.asked" || type === "permission.asked") {
      this.#ask(isRecord(event) ? event["properties"] : null);
    } else if (requestID !== undefined && /^(?:question|permission)\.(?:replied|rejected)$/.test(type)) {
      const answer = answers?.map((choices) => choices.join(", ")).join("\n") ?? reply ?? "reject";
      this.#settle(requestID, "completed", answer);
    } else return;
    this.#turn();
  }

  /** @returns the request's id, if it belongs to this conversation */
  #ask(record: unknown): string | null {
    const decodeResult = decodeAsked(record);
    if (decodeResult._tag === "None" || !this.#isOurs(decodeResult.value.sessionID)) return null;
    const question = decodeResult.value;
    if (!this.#asked.has(question.id) && !this.over.has(question.id)) {
      const open = { asked: question, askedMs: this.#stream.now(), command: this.#commandOf(question) };
      this.#asked.set(question.id, open);
      this.#reportRequest(open, null);
    }
    return question.id;
  }

  #commandOf({ tool }: PendingRequest): string | null {
    const parts = this.#messages.get(tool?.messageID ?? "")?.parts.values() ?? [];
    const call = [...parts].find(({ part }) => part.callID !== undefined && part.callID === tool?.callID);
    return call === undefined ? null : toolCommand(call.part);
  }

  #settle(id: string, status: Settled["status"], answer: string): void {
    const open = this.#asked.get(id);
    if (open === undefined) return;
    this.#asked.delete(id);
    this.over.add(id);
    const reply = status === "interrupted" ? this.given.get(id) : undefined;
    const end = reply === undefined ? { status, answer } : { status: "completed" as const, answer: reply };
    this.given.delete(id);
    this.#reportRequest(open, { ...end, atMs: this.#stream.now() });
  }

  #reportRequest({ asked, askedMs, command }: OpenRequest, settlement: Settled | null): void {
    const message = this.#messages.get(asked.tool?.messageID ?? "")?.info;
    const place = this.#itemPlace({ sessionID: asked.sessionID, id: message?.id ?? asked.id });
    const turnId = place.turnId ?? message?.parentID ?? null;
    const root = message?.path?.root ?? "";
    this.#stream.observer.item(
      requestItem(asked, { ...place, turnId }, { askedMs, settled: settlement, command, root }),
    );
  }
}
