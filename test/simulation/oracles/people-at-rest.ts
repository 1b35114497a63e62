/**
 * Peace where people talk to agents, and then the books (src/machines/conversation.ts M1 to M7, src/domain/conversation/steering.ts Y1 and
 * Y2): what was promised is kept, what waits is sent, and each agent has heard what is on record.
 */
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { derivedUuid } from "../../../src/domain/ids.ts";
import type { Session } from "../../../src/store/ports/sessions/sessions.ts";
import type { Item } from "../../../src/store/ports/sessions/conversations.ts";
import type { ConversationRow } from "../../twins/store/tables.ts";
import { isSameAnswer } from "../world/runtimes.ts";
import type { Ledger, SaidMessage } from "../ledger.ts";
import type { PeopleWatch } from "./people-watch.ts";
import type { Runtime } from "../world/runtime.ts";
import type { World } from "../world.ts";

/** A runtime that rests for so long, ms, gets what waits: longer than the longest pauses between tries, one after the other. */
const SENT_WITHIN_MS = 60_000;
/** An unattended request, or one whose time is over, is declined within this, ms. */
const DECLINED_WITHIN_MS = 60_000;
/** All turns of a full queue, and the longest of those that began before. */
const REST_MS = 200_000;
const LOOK_MS = 5_000;

interface Talking {
  readonly session: Session;
  readonly row: ConversationRow;
  readonly runtime: Runtime;
}

/** Sessions that run, with their conversations. */
const talking = ({ tables, daemons: { runtimes } }: World): readonly Talking[] =>
  [...tables.sessions.values()].flatMap(({ record: session, snapshot }) => {
    const row = tables.conversations.get(session.id);
    const { sandboxId } = session;
    const isUp = session.status === "running" && snapshot.context.ending === null && sandboxId !== null;
    return !isUp || row === undefined || runtimes === null
      ? []
      : [{ session, row, runtime: runtimes.of(sandboxId) }];
  });

/** The messages that are to go to the agent. The initial prompt goes its own way. */
const waitingIn = ({ session, row }: Talking): readonly Item[] => {
  const { held } = row.snapshot.context;
  return [...row.items.values()].filter(
    ({ id, status }) => id !== session.id && (status === "sending" || (status === "queued" && !held)),
  );
};

const isSettled = (one: Talking): boolean => waitingIn(one).length === 0 && one.runtime.open === null;

/** Messages and requests that are late. `rested`: for how long there has been peace, ms. */
const overdue = (world: World, rested: number): readonly string[] =>
  talking(world).flatMap((one) => {
    const { session, runtime } = one;
    const { restsSince, waitsFor } = runtime;
    const idle = restsSince === null ? 0 : Math.min(rested, world.time.elapsed - restsSince);
    const [waiting] = waitingIn(one);
    const faults: string[] = [];
    if (idle > SENT_WITHIN_MS && waiting !== undefined)
      faults.push(`M3 message ${waiting.id} is ${waiting.status}, and the agent of ${session.id} rests`);
    if (rested > DECLINED_WITHIN_MS && waitsFor !== null)
      faults.push(`M7 request ${waitsFor.native_id} waits and is not declined`);
    return faults;
  });

/** Of one message: a promise is kept, and an end is true. */
const messageFaults = (
  message: SaidMessage,
  item: Item | undefined,
  watch: PeopleWatch,
): readonly string[] => {
  const { id, posts, cancels } = message;
  if (item === undefined)
    return posts.some(({ answer }) => answer?.is === "done")
      ? [`R02 message ${id} was promised and is missing`]
      : [];
  const isCancelled = cancels.some(({ answer }) => answer?.is === "done");
  const isAsked = cancels.some(({ answer }) => answer?.is !== "refused");
  const { status } = item;
  return [
    ...(isCancelled && status !== "cancelled" ? [`R02 message ${id} was taken back, and is ${status}`] : []),
    ...(status === "cancelled" && !isAsked ? [`R02 message ${id} is cancelled without a request`] : []),
    ...(status === "accepted" && !watch.taken.has(id)
      ? [`Y2 message ${id} is accepted, and no runtime has it`]
      : []),
    ...(status === "failed" && !watch.refused.has(id)
      ? [`I22 message ${id} failed without a reason: ${item.error?.message ?? "none is given"}`]
      : []),
  ];
};

/** Y1: the conversation has each message once. */
const doubleFaults = ({ items, conversation: { id } }: ConversationRow): readonly string[] => {
  const seen = new Set<string>();
  return [...items.values()].flatMap((item) => {
    // Two calls may have the same result. The service's messages have an id for each call.
    if (item.kind !== "message" || item.role !== "user" || item.author?.kind === "service") return [];
    const words = JSON.stringify(item.content);
    if (seen.has(words)) return [`Y1 conversation ${id} has ${words} twice`];
    seen.add(words);
    return [];
  });
};

/** M4: a queue is held where a person has interrupted, and has not said more since. */
const heldFaults = ({ tables }: World, watch: PeopleWatch): readonly string[] =>
  [...tables.conversations].flatMap(([id, { snapshot }]) =>
    snapshot.context.held && !watch.held.has(id)
      ? [`M4 the queue of ${id} is held without an interrupt`]
      : [],
  );

const isDeleted = ({ tables }: World, sessionId: string): boolean =>
  (tables.sessions.get(sessionId)?.record.deletedAt ?? null) !== null;

/** M6: one answer wins, and it is the one that the agent has heard. */
const answerFaults = (world: World, ledger: Ledger, watch: PeopleWatch): readonly string[] => {
  const { tables } = world;
  const heard = [...watch.heard.values()].flatMap(({ sandboxId, requestId, answer }) => {
    const sessionId = tables.sandboxes.get(sandboxId)?.record.sessionId ?? "";
    const item = tables.conversations.get(sessionId)?.items.get(derivedUuid(sessionId, requestId));
    return item === undefined || isSameAnswer(item.answer?.answer ?? null, answer)
      ? []
      : [`M6 the agent has heard another answer to ${item.id} than the one on record`];
  });
  const told = ledger.answers.flatMap(({ sessionId, requestId, answer, asked }) => {
    // A conversation ends with its session's deletion.
    const row = tables.conversations.get(sessionId);
    if (row === undefined && isDeleted(world, sessionId)) return [];
    const given = row?.items.get(requestId)?.answer?.answer ?? null;
    const words = "choice" in answer ? { ...answer, message: answer.message } : answer;
    return asked.answer?.is !== "done" || isSameAnswer(given, words)
      ? []
      : [`M6 somebody was told that the answer to ${requestId} counts, and another one does`];
  });
  return [...heard, ...told];
};

/** L4 of src/actors/conversations/follower.ts: what the conversation says of the turn is what the runtime does. */
const turnFaults = (world: World): readonly string[] =>
  talking(world).flatMap(({ session, row, runtime }) => {
    const rests = runtime.restsSince !== null && world.time.elapsed - runtime.restsSince > SENT_WITHIN_MS;
    const { state } = row.conversation.turn;
    return rests && state !== "idle" ? [`L4 the agent of ${session.id} rests, and its turn is ${state}`] : [];
  });

/** I19: commands that are under way. */
const leftToDo = ({ tables }: World): readonly string[] =>
  [...tables.conversationOutbox.actors()].flatMap((id) =>
    tables.conversationOutbox
      .of(id)
      .map(({ command }) => `I19 conversation ${id} has ${command.type} left to do`),
  );

/** I19, and that what an ended sandbox left is closed. */
const leftovers = (world: World): readonly string[] => {
  const { tables } = world;
  const open = [...tables.conversations].flatMap(([id, { items }]) => {
    const status = tables.sessions.get(id)?.record.status;
    const isOver = status === "stopped" || status === "failed";
    return [...items.values()].flatMap((item) =>
      isOver && item.kind === "request" && !isClosed(item.status)
        ? [`N3 request ${item.id} is open, and its session is ${status}`]
        : [],
    );
  });
  return [...leftToDo(world), ...open];
};

/** Waits until all messages have arrived. @returns the faults that remain. */
export const peopleFaults = (
  world: World,
  {
    ledger,
    watch,
    pass,
  }: { readonly ledger: Ledger; readonly watch: PeopleWatch; readonly pass: (ms: number) => void },
): readonly string[] => {
  let rested = 0;
  for (; rested < REST_MS && !talking(world).every(isSettled); rested += LOOK_MS) {
    const late = overdue(world, rested);
    if (late.length > 0) return late;
    pass(LOOK_MS);
  }
  const unsettled = talking(world).filter((one) => !isSettled(one));
  // The last turn's end is on its way to the service.
  pass(SENT_WITHIN_MS);
  // A session that took a free slot meanwhile has just begun to talk.
  for (; rested < REST_MS && leftToDo(world).length > 0; rested += LOOK_MS) pass(LOOK_MS);
  const { tables } = world;
  return [
    ...unsettled.map(({ session }) => `M3 the conversation of ${session.id} does not come to rest`),
    ...ledger.messages.flatMap((message) => {
      const item = tables.conversations.get(message.sessionId)?.items.get(message.id);
      return isDeleted(world, message.sessionId) ? [] : messageFaults(message, item, watch);
    }),
    ...[...tables.conversations.values()].flatMap(doubleFaults),
    ...heldFaults(world, watch),
    ...answerFaults(world, ledger, watch),
    ...turnFaults(world),
    ...leftovers(world),
  ];
};
